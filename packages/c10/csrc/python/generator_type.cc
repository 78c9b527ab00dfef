// Generator: a stream of random numbers (Philox: a seed and the number of counters used).
#include <sys/random.h>

#include <cstring>

#include "packages/c10/csrc/python/binding.h"
#include "packages/c10/csrc/random/generator.h"

namespace argand::py {

PyTypeObject* generator_type = nullptr;
constexpr int kStateBytes = 16;  // seed, offset

static ArgandGenerator* generator_of(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o)->generator; }
static void drop(ArgandGenerator* g) {
  if (__atomic_sub_fetch(&g->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->generator_release(g);
}

PyObject* generator_object(ArgandGenerator* generator) {
  if (generator->pyobject) return Py_NewRef(static_cast<PyObject*>(generator->pyobject));
  auto* self = PyObject_New(GeneratorObject, generator_type);
  if (!self) return nullptr;
  __atomic_fetch_add(&generator->refcount, 1, __ATOMIC_RELAXED);
  self->generator = generator;
  generator->pyobject = self;
  return reinterpret_cast<PyObject*>(self);
}

static PyObject* generator_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"device", nullptr};
  PyObject* text = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(keywords), &text)) return nullptr;
  ArgandDevice device = ARGAND_DEVICE(ARGAND_CPU, 0);
  int converted = text ? device_from(text, &device) : 1;
  if (converted == 0) PyErr_Format(PyExc_TypeError, "Generator(): argument 'device' must be str or device, not %s", Py_TYPE(text)->tp_name);
  if (converted <= 0) return nullptr;
  ArgandGenerator* generator = nullptr;
  if (int status = api->generator_new(device, &generator)) return raise(status);
  PyObject* self = generator_object(generator);
  drop(generator);
  return self;
}
static void generator_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  generator_of(self)->pyobject = nullptr;
  drop(generator_of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
  if (!PyIndex_Check(seed)) return PyErr_Format(PyExc_RuntimeError, "manual_seed: got a %s, expected an int", Py_TYPE(seed)->tp_name);
  Ref index(PyNumber_Index(seed));
  if (!index) return nullptr;
  int overflow = 0;
  long long signed_seed = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  uint64_t value = static_cast<uint64_t>(signed_seed);
  if (overflow > 0) value = PyLong_AsUnsignedLongLong(index.get());
  if (overflow < 0 || (overflow > 0 && PyErr_Occurred())) {
    PyErr_Clear();
    return PyErr_Format(PyExc_ValueError, "manual_seed: got %R, expected a seed from -2**63 to 2**64 - 1", seed);
  }
  generator_of(self)->seed = value;
  __atomic_store_n(&generator_of(self)->offset, 0, __ATOMIC_RELAXED);
  return Py_NewRef(self);
}
static PyObject* generator_initial_seed(PyObject* self, PyObject*) { return PyLong_FromUnsignedLongLong(generator_of(self)->seed); }
static PyObject* generator_seed(PyObject* self, PyObject*) {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed) return PyErr_SetFromErrno(PyExc_OSError);
  seed &= 0x1fffffffffffffull;  // exact in a double, as users store seeds in JSON
  generator_of(self)->seed = seed;
  __atomic_store_n(&generator_of(self)->offset, 0, __ATOMIC_RELAXED);
  return PyLong_FromUnsignedLongLong(seed);
}

static PyObject* generator_get_state(PyObject* self, PyObject*) {
  ArgandTensor* t = nullptr;
  int64_t size = kStateBytes;
  if (int status = api->tensor_empty(1, &size, ARGAND_UINT8, ARGAND_DEVICE(ARGAND_CPU, 0), &t)) return raise(status);
  uint64_t state[2] = {generator_of(self)->seed, __atomic_load_n(&generator_of(self)->offset, __ATOMIC_RELAXED)};
  std::memcpy(t->data, state, sizeof state);
  return wrap(t);
}
static PyObject* generator_set_state(PyObject* self, PyObject* state) {
  uint64_t words[2];
  const void* bytes = nullptr;
  if (is_tensor(state)) {
    ArgandTensor* t = unwrap(state);
    if (!t) return nullptr;
    bool fits = t->dtype == ARGAND_UINT8 && t->numel == kStateBytes && (t->flags & ARGAND_TENSOR_CONTIGUOUS) &&
                ARGAND_DEVICE_TYPE(t->storage->device) == ARGAND_CPU;
    bytes = fits ? t->data : nullptr;
  } else if (PyBytes_Check(state) && PyBytes_GET_SIZE(state) == kStateBytes) {
    bytes = PyBytes_AS_STRING(state);
  }
  if (!bytes) {
    const bool is_other_state = is_tensor(state) && tensor_of(state)->dtype == ARGAND_UINT8;
    return PyErr_Format(is_other_state ? PyExc_RuntimeError : PyExc_TypeError,
                        "set_state: got %R, expected a dense uint8 tensor of %d elements on the CPU, as get_state() returns", state, kStateBytes);
  }
  std::memcpy(words, bytes, sizeof words);
  generator_of(self)->seed = words[0];
  __atomic_store_n(&generator_of(self)->offset, words[1], __ATOMIC_RELAXED);
  return Py_NewRef(self);
}
static PyObject* generator_clone_state(PyObject* self, PyObject*) {
  ArgandGenerator* copy = nullptr;
  if (int status = api->generator_new(generator_of(self)->device, &copy)) return raise(status);
  copy->seed = generator_of(self)->seed;
  copy->offset = __atomic_load_n(&generator_of(self)->offset, __ATOMIC_RELAXED);
  PyObject* result = generator_object(copy);
  drop(copy);
  return result;
}
static PyObject* restore_generator(PyObject*, PyObject* args) {
  unsigned long long seed, offset;
  PyObject* device;
  if (!PyArg_ParseTuple(args, "OKK", &device, &seed, &offset)) return nullptr;
  Ref self(PyObject_CallOneArg(reinterpret_cast<PyObject*>(generator_type), device));
  if (!self) return nullptr;
  generator_of(self.get())->seed = seed;
  generator_of(self.get())->offset = offset;
  return self.take();
}
static PyObject* generator_get_device(PyObject* self, void*) {
  ArgandDevice device = generator_of(self)->device;
  return device_object(ARGAND_DEVICE_TYPE(device) == ARGAND_CPU ? ARGAND_DEVICE(ARGAND_CPU, 0xff) : device);
}
static PyObject* generator_reduce(PyObject* self, PyObject*) {
  Ref module(PyImport_ImportModule("argand_c10._C")), device(generator_get_device(self, nullptr));
  if (!module || !device) return nullptr;
  Ref make(PyObject_GetAttrString(module.get(), "_restore_generator"));
  if (!make) return nullptr;
  return Py_BuildValue("O(OKK)", make.get(), device.get(), static_cast<unsigned long long>(generator_of(self)->seed),
                       static_cast<unsigned long long>(generator_of(self)->offset));
}

static PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O, "Starts the stream of a seed from its beginning; returns the generator."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "The seed in use."},
    {"seed", generator_seed, METH_NOARGS, "Seeds from the operating system's entropy; returns the seed."},
    {"get_state", generator_get_state, METH_NOARGS, "The state as a uint8 tensor."},
    {"set_state", generator_set_state, METH_O, "Continues from a state of get_state(), a tensor or its bytes."},
    {"clone_state", generator_clone_state, METH_NOARGS, "A new generator that will draw the same numbers."},
    {"__reduce__", generator_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
static PyGetSetDef generator_getset[] = {{"device", generator_get_device, nullptr, "Where the numbers are drawn.", nullptr},
                                         {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyType_Slot generator_slots[] = {{Py_tp_new, reinterpret_cast<void*>(generator_new)},
                                        {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
                                        {Py_tp_methods, generator_methods},
                                        {Py_tp_getset, generator_getset},
                                        {Py_tp_doc, const_cast<char*>("Generator(device='cpu')\n\nA stream of random numbers of its own.")},
                                        {0, nullptr}};
static PyType_Spec generator_spec = {"argand_c10.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                     generator_slots};
static PyMethodDef restore_definition = {"_restore_generator", restore_generator, METH_VARARGS, nullptr};

static PyObject* default_generators(PyObject*, PyObject*) {
  ArgandGenerator* all[256];
  const size_t n = argand_default_generators(all, 256);
  Ref list(PyList_New(0));
  for (size_t i = 0; list && i < n; i++) {
    Ref entry(generator_object(all[i]));
    if (!entry || PyList_Append(list.get(), entry.get()) < 0) return nullptr;
  }
  return list.take();
}
PyMethodDef generator_functions[] = {{"_default_generators", default_generators, METH_NOARGS,
                                      "The default generators of the devices that drew random numbers so far, the CPU's first."},
                                     {nullptr, nullptr, 0, nullptr}};

int init_generator(PyObject* module) {
  generator_type = new_type(module, &generator_spec);
  if (!generator_type || PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type)) < 0) return -1;
  Ref restore(PyCFunction_New(&restore_definition, nullptr));
  if (!restore || PyModule_AddObjectRef(module, "_restore_generator", restore.get()) < 0) return -1;
  Ref standard(generator_object(api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0))));
  return standard ? PyModule_AddObjectRef(module, "default_generator", standard.get()) : -1;
}

}  // namespace argand::py
