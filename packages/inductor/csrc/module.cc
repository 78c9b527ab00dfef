// The extension argand_inductor._C: `Program`, a compiled graph loaded from its shared library, as a fast callable.
#include <Python.h>
#include <dlfcn.h>
#include <structmember.h>

#include "packages/c10/csrc/abi/python_entries.h"
#include "packages/inductor/csrc/graph_recorder.h"
#include "packages/inductor/csrc/measure.h"

namespace {

const ArgandApi* api = nullptr;
const ArgandPythonApi* python_api = nullptr;

constexpr int kStackValues = 24;
// Elements of all inputs together from which on other Python threads may run meanwhile: about ten microseconds of work.
constexpr int64_t kLarge = 32768;

using RunFunction = int (*)(const ArgandApi*, const ArgandValue* inputs, ArgandValue* outputs);
using LoadFunction = int (*)(const ArgandApi*);

struct ProgramObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  RunFunction run;
  void* library;
  int n_inputs;     // without the constants
  int n_constants;  // passed after the inputs
  int n_outputs;
  int64_t constant_elements;
  ArgandTensor** constants;  // owned
  PyObject* path;
  PyObject* description;  // dict: what serialize() gives
};

PyTypeObject* program_type = nullptr;

void retain(ArgandTensor* t) { __atomic_fetch_add(&t->refcount, 1, __ATOMIC_RELAXED); }
void release(ArgandTensor* t) {
  if (t && __atomic_sub_fetch(&t->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->tensor_release(t);
}

ProgramObject* program_of(PyObject* o) { return reinterpret_cast<ProgramObject*>(o); }

// ---- calls -----------------------------------------------------------------------------------------------------------------
// Fills `values`; returns the number of elements of all tensors, or -1 with an exception.
int64_t read_inputs(const ProgramObject* self, PyObject* const* args, ArgandValue* values) {
  int64_t elements = self->constant_elements;
  for (int i = 0; i < self->n_inputs; i++) {
    PyObject* o = args[i];
    ArgandValue& v = values[i];
    if (PyLong_Check(o)) {
      v.tag = ARGAND_TAG_INT;
      v.i = PyLong_AsLongLong(o);
      if (v.i == -1 && PyErr_Occurred()) return -1;
      continue;
    }
    v.tag = ARGAND_TAG_TENSOR;
    v.t = python_api->unwrap(o);
    if (!v.t) {
      if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "compiled program: input %d: got %s, expected a Tensor or an int", i, Py_TYPE(o)->tp_name);
      return -1;
    }
    if (!argand::may_read_memory(o, v.t, "a compiled program")) return -1;
    elements += v.t->numel;
  }
  for (int i = 0; i < self->n_constants; i++) {
    values[self->n_inputs + i].tag = ARGAND_TAG_TENSOR;
    values[self->n_inputs + i].t = self->constants[i];
  }
  return elements;
}

PyObject* wrap_outputs(ArgandValue* outputs, int n) {
  PyObject* tuple = PyTuple_New(n);
  bool failed = !tuple;
  for (int i = 0; i < n; i++) {
    PyObject* entry = outputs[i].tag == ARGAND_TAG_TENSOR ? python_api->wrap(outputs[i].t) : python_api->from_value(&outputs[i]);
    failed = failed || !entry;
    if (tuple)
      PyTuple_SET_ITEM(tuple, i, entry);
    else
      Py_XDECREF(entry);
  }
  if (!failed) return tuple;
  Py_XDECREF(tuple);
  return nullptr;
}

PyObject* call_with(ProgramObject* self, PyObject* const* args, ArgandValue* values, ArgandValue* outputs) {
  const int64_t elements = read_inputs(self, args, values);
  if (elements < 0) return nullptr;
  int status;
  if (elements >= kLarge) {
    PyThreadState* thread = PyEval_SaveThread();
    status = self->run(api, values, outputs);
    PyEval_RestoreThread(thread);
  } else {
    status = self->run(api, values, outputs);
  }
  return status ? python_api->raise(status) : wrap_outputs(outputs, self->n_outputs);
}

PyObject* program_call(PyObject* o, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  ProgramObject* self = program_of(o);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (kwnames && PyTuple_GET_SIZE(kwnames))
    return PyErr_Format(PyExc_TypeError, "compiled program: got keyword arguments, expected %d positional inputs", self->n_inputs);
  if (n != self->n_inputs) return PyErr_Format(PyExc_TypeError, "compiled program: got %zd inputs, expected %d", n, self->n_inputs);
  const int total = self->n_inputs + self->n_constants + self->n_outputs;
  if (total <= kStackValues) {
    ArgandValue values[kStackValues];
    return call_with(self, args, values, values + self->n_inputs + self->n_constants);
  }
  auto* values = static_cast<ArgandValue*>(PyMem_Malloc(sizeof(ArgandValue) * static_cast<size_t>(total)));
  if (!values) return PyErr_NoMemory();
  PyObject* result = call_with(self, args, values, values + self->n_inputs + self->n_constants);
  PyMem_Free(values);
  return result;
}

// ---- making ----------------------------------------------------------------------------------------------------------------
bool open_library(ProgramObject* self, const char* path) {
  self->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!self->library) {
    PyErr_Format(PyExc_ImportError, "compiled program: %s cannot be loaded: %s", path, dlerror());
    return false;
  }
  auto load = reinterpret_cast<LoadFunction>(dlsym(self->library, "argand_program_load"));
  self->run = reinterpret_cast<RunFunction>(dlsym(self->library, "argand_program_run"));
  if (!load || !self->run) {
    PyErr_Format(PyExc_ImportError, "compiled program: %s is no compiled graph: it lacks argand_program_load or argand_program_run", path);
    return false;
  }
  const int status = load(api);
  if (status) python_api->raise(status);
  return !status;
}

bool keep_constants(ProgramObject* self, PyObject* tensors) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tensors);
  self->constants = static_cast<ArgandTensor**>(PyMem_Calloc(static_cast<size_t>(n) + 1, sizeof(ArgandTensor*)));
  if (!self->constants) {
    PyErr_NoMemory();
    return false;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    ArgandTensor* t = python_api->unwrap(PyTuple_GET_ITEM(tensors, i));
    if (!t) return false;
    retain(t);
    self->constants[self->n_constants++] = t;
    self->constant_elements += t->numel;
  }
  return true;
}

PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"path", "n_inputs", "n_outputs", "constants", "description", nullptr};
  const char* path;
  int n_inputs, n_outputs;
  PyObject *constants, *description;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "siiO!O!", const_cast<char**>(names), &path, &n_inputs, &n_outputs, &PyTuple_Type, &constants,
                                   &PyDict_Type, &description))
    return nullptr;
  if (n_inputs < 0 || n_outputs < 0)
    return PyErr_Format(PyExc_ValueError, "Program: got %d inputs and %d outputs, expected counts", n_inputs, n_outputs);
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  ProgramObject* self = program_of(o);
  self->vectorcall = program_call;
  self->n_inputs = n_inputs;
  self->n_outputs = n_outputs;
  self->path = PyUnicode_FromString(path);
  Py_INCREF(description);
  self->description = description;
  if (!self->path || !keep_constants(self, constants) || !open_library(self, path)) {
    Py_DECREF(o);
    return nullptr;
  }
  return o;
}

// Outputs use no code of the library, and a call in another thread holds a reference: it may be closed.
void program_dealloc(PyObject* o) {
  ProgramObject* self = program_of(o);
  PyTypeObject* type = Py_TYPE(o);
  for (int i = 0; i < self->n_constants; i++) release(self->constants[i]);
  PyMem_Free(self->constants);
  Py_XDECREF(self->path);
  Py_XDECREF(self->description);
  if (self->library) dlclose(self->library);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* program_serialize(PyObject* o, PyObject*) { return PyDict_Copy(program_of(o)->description); }
PyObject* program_backend(PyObject*, void*) { return PyUnicode_FromString("inductor"); }
PyObject* program_repr(PyObject* o) {
  const ProgramObject* self = program_of(o);
  return PyUnicode_FromFormat("<argand_inductor.Program: %d inputs, %d outputs, %U>", self->n_inputs, self->n_outputs, self->path);
}

PyMethodDef program_methods[] = {
    {"serialize", program_serialize, METH_NOARGS, "serialize()\n--\n\nPlain data from which `argand_inductor.load` makes the program again."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef program_getset[] = {
    {"backend", program_backend, nullptr, "The name under which the loader of `serialize()`'s data is registered.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef program_members[] = {
    {"path", T_OBJECT_EX, offsetof(ProgramObject, path), READONLY, "The shared library."},
    {"n_inputs", T_INT, offsetof(ProgramObject, n_inputs), READONLY, "How many inputs a call takes."},
    {"n_outputs", T_INT, offsetof(ProgramObject, n_outputs), READONLY, "How many outputs a call gives."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ProgramObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot program_slots[] = {
    {Py_tp_doc, const_cast<char*>("A compiled graph: call it with its flat inputs (tensors and ints), get a tuple of its outputs.")},
    {Py_tp_new, reinterpret_cast<void*>(program_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(program_dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(program_repr)},
    {Py_tp_methods, program_methods},
    {Py_tp_members, program_members},
    {Py_tp_getset, program_getset},
    {0, nullptr},
};
PyType_Spec program_spec = {"argand_inductor._C.Program", sizeof(ProgramObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, program_slots};

// ---- module ----------------------------------------------------------------------------------------------------------------
PyObject* schema_hash(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  const ArgandOperator* op = api->op_find(text);
  if (!op) return PyErr_Format(PyExc_RuntimeError, "%s: operator is not registered; import the package that provides it", text);
  return PyLong_FromUnsignedLongLong(op->schema_hash);
}

// The architecture that a device's code is compiled for.
PyObject* device_arch(PyObject*, PyObject* number) {
  const long device = PyLong_AsLong(number);
  if (device == -1 && PyErr_Occurred()) return nullptr;
  const ArgandDeviceInterface* interface = api->device_interface(ARGAND_DEVICE_TYPE(device));
  if (!interface || !interface->properties) return PyUnicode_FromString("");
  ArgandDeviceProperties properties;
  if (const int status = interface->properties(ARGAND_DEVICE_INDEX(device), &properties)) return python_api->raise(status);
  return PyUnicode_FromFormat("sm_%d%d", properties.major, properties.minor);
}

PyMethodDef module_methods[] = {
    {"device_arch", device_arch, METH_O,
     "device_arch(device)\n--\n\nThe architecture of a device by its number, as \"sm_90\"; \"\" where it has none."},
    {"schema_hash", schema_hash, METH_O, "schema_hash(operator)\n--\n\nThe hash of a registered overload's schema."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, "argand_inductor._C", "Compiled graphs as callables.", -1, module_methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  api = static_cast<const ArgandApi*>(PyCapsule_Import("argand_c10._C.api", 0));
  if (!api) return nullptr;
  python_api = static_cast<const ArgandPythonApi*>(PyCapsule_Import("argand_c10._C.python_api", 0));
  if (!python_api) return nullptr;
  if (api->abi_version != ARGAND_ABI_VERSION || python_api->abi_version != ARGAND_ABI_VERSION) {
    PyErr_Format(PyExc_ImportError, "argand-inductor was built for ABI %d of argand-c10, which provides ABI %u; install versions of one release",
                 ARGAND_ABI_VERSION, api->abi_version);
    return nullptr;
  }
  PyObject* module = PyModule_Create(&module_def);
  if (!module) return nullptr;
  program_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&program_spec));
  if (!program_type || PyModule_AddObject(module, "Program", reinterpret_cast<PyObject*>(program_type))) {
    Py_DECREF(module);
    return nullptr;
  }
  if (!argand::inductor::add_graph_recorder(module, api, python_api) || !argand::inductor::add_measure(module, api, python_api)) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
