// The dtype and device types. A dtype is an object that lives forever.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

PyTypeObject* dtype_type = nullptr;
PyTypeObject* device_type = nullptr;
static PyObject* dtypes[ARGAND_NUM_DTYPES];

// ---- dtype -----------------------------------------------------------------------------------------------------------
static int code_of(PyObject* o) { return reinterpret_cast<DTypeObject*>(o)->code; }

PyObject* dtype_object(int code) {
  if (code < 0 || code >= ARGAND_NUM_DTYPES) Py_RETURN_NONE;
  return Py_NewRef(dtypes[code]);
}

struct DTypeAlias {
  const char* name;
  int code;
};
static const DTypeAlias kAliases[] = {{"double", ARGAND_FLOAT64},   {"float", ARGAND_FLOAT32},     {"half", ARGAND_FLOAT16},
                                      {"long", ARGAND_INT64},       {"int", ARGAND_INT32},         {"short", ARGAND_INT16},
                                      {"cfloat", ARGAND_COMPLEX64}, {"cdouble", ARGAND_COMPLEX128}};

static int dtype_by_name(const char* name) {
  for (int i = 0; i < ARGAND_NUM_DTYPES; i++)
    if (std::strcmp(name, kDTypeName[i]) == 0) return i;
  for (const DTypeAlias& alias : kAliases)
    if (std::strcmp(name, alias.name) == 0) return alias.code;
  return -1;
}

int dtype_from(PyObject* o, int* out) {
  if (Py_TYPE(o) == dtype_type) {
    *out = code_of(o);
    return 1;
  }
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *out = ARGAND_FLOAT64;
  } else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *out = ARGAND_INT64;
  } else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *out = ARGAND_BOOL;
  } else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *out = ARGAND_COMPLEX128;
  } else if (PyUnicode_Check(o)) {
    const char* text = PyUnicode_AsUTF8(o);
    if (!text) return -1;
    *out = dtype_by_name(text);
    return *out >= 0;
  } else {
    return 0;
  }
  return 1;
}

static PyObject* dtype_repr(PyObject* self) { return PyUnicode_FromFormat("argand.%s", kDTypeName[code_of(self)]); }
static PyObject* dtype_reduce(PyObject* self, PyObject*) {
  Ref module(PyImport_ImportModule("argand_c10._C"));
  if (!module) return nullptr;
  Ref make(PyObject_GetAttrString(module.get(), "_dtype_by_name"));
  if (!make) return nullptr;
  return Py_BuildValue("O(s)", make.get(), kDTypeName[code_of(self)]);
}
static PyObject* dtype_same(PyObject* self, PyObject*) { return Py_NewRef(self); }
static PyObject* dtype_to_real(PyObject* self, PyObject*) {
  int code = code_of(self);
  return dtype_object(code == ARGAND_COMPLEX64 ? ARGAND_FLOAT32 : code == ARGAND_COMPLEX128 ? ARGAND_FLOAT64 : code);
}
static PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  int code = code_of(self);
  return dtype_object(code == ARGAND_FLOAT64 || code == ARGAND_COMPLEX128 ? ARGAND_COMPLEX128 : ARGAND_COMPLEX64);
}
static PyObject* dtype_itemsize(PyObject* self, void*) { return PyLong_FromLong(item_size(code_of(self))); }
static PyObject* dtype_is_floating(PyObject* self, void*) { return PyBool_FromLong(is_floating(code_of(self))); }
static PyObject* dtype_is_complex(PyObject* self, void*) { return PyBool_FromLong(is_complex(code_of(self))); }
bool is_signed(int dtype) { return dtype != ARGAND_BOOL && dtype != ARGAND_UINT8 && !is_wide_unsigned(dtype); }
static PyObject* dtype_is_signed(PyObject* self, void*) { return PyBool_FromLong(is_signed(code_of(self))); }
static PyObject* dtype_name(PyObject* self, void*) { return PyUnicode_FromString(kDTypeName[code_of(self)]); }

static PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
                                      {"__copy__", dtype_same, METH_NOARGS, nullptr},
                                      {"__deepcopy__", dtype_same, METH_O, nullptr},
                                      {"to_real", dtype_to_real, METH_NOARGS, "The dtype of the real and imaginary parts."},
                                      {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype of the same precision."},
                                      {nullptr, nullptr, 0, nullptr}};
static PyGetSetDef dtype_getset[] = {{"itemsize", dtype_itemsize, nullptr, "Bytes per element.", nullptr},
                                     {"is_floating_point", dtype_is_floating, nullptr, "Is it a real floating-point type.", nullptr},
                                     {"is_complex", dtype_is_complex, nullptr, "Is it a complex type.", nullptr},
                                     {"is_signed", dtype_is_signed, nullptr, "Can it hold negative numbers.", nullptr},
                                     {"name", dtype_name, nullptr, "The name without a prefix, as in 'float32'.", nullptr},
                                     {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyType_Slot dtype_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
                                    {Py_tp_methods, dtype_methods},
                                    {Py_tp_getset, dtype_getset},
                                    {Py_tp_doc, const_cast<char*>("The type of a tensor's elements.")},
                                    {0, nullptr}};
static PyType_Spec dtype_spec = {"argand_c10.dtype", sizeof(DTypeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots};

// ---- device ------------------------------------------------------------------------------------------------------------
static const char* const kDeviceName[ARGAND_NUM_BACKENDS] = {"cpu", "cuda", "hip", "meta", "privateuse1", "privateuse2", "privateuse3"};
static ArgandDevice device_of(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->device; }

// A backend may have registered its device under a name of its own.
static const char* backend_name(int type) {
  const ArgandDeviceInterface* interface = api->device_interface(static_cast<ArgandDeviceType>(type));
  return interface && interface->name ? interface->name : kDeviceName[type];
}
const char* device_type_name(ArgandDevice device) { return backend_name(ARGAND_DEVICE_TYPE(device)); }

PyObject* device_object(ArgandDevice device) {
  auto* self = PyObject_New(DeviceObject, device_type);
  if (self) self->device = device;
  return reinterpret_cast<PyObject*>(self);
}

// "cpu", "cuda:1"; -1 + exception.
static int parse_device(const char* text, ArgandDevice* out) {
  const char* colon = std::strchr(text, ':');
  size_t length = colon ? static_cast<size_t>(colon - text) : std::strlen(text);
  long index = 0xff;
  if (colon) {
    char* end = nullptr;
    index = std::strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || index < 0 || index >= 0xff || colon[1] == '+' || colon[1] == ' ') {
      PyErr_Format(PyExc_RuntimeError, "Invalid device string: '%s'; expected a type and a small number, as in 'cuda:0'", text);
      return -1;
    }
  }
  for (int type = 0; type < ARGAND_NUM_BACKENDS; type++) {
    for (const char* name : {backend_name(type), kDeviceName[type]}) {
      if (std::strlen(name) == length && std::strncmp(name, text, length) == 0) {
        *out = ARGAND_DEVICE(type, index);
        return 0;
      }
    }
  }
  PyErr_Format(PyExc_RuntimeError, "Expected one of cpu, cuda, hip, meta, privateuse1 device type at start of device string: '%s'", text);
  return -1;
}

int device_from(PyObject* o, ArgandDevice* out) {
  if (Py_TYPE(o) == device_type) {
    *out = device_of(o);
    return 1;
  }
  if (PyLong_CheckExact(o)) {  // as `x.to(0)`: a CUDA device
    const long index = PyLong_AsLong(o);
    if (index == -1 && PyErr_Occurred()) return -1;
    if (index < 0 || index >= 0xff) {
      PyErr_Format(PyExc_RuntimeError, "device: got index %ld, expected 0 to 254", index);
      return -1;
    }
    *out = ARGAND_DEVICE(ARGAND_CUDA, index);
    return 1;
  }
  if (!PyUnicode_Check(o)) return 0;
  const char* text = PyUnicode_AsUTF8(o);
  if (!text) return -1;
  return parse_device(text, out) < 0 ? -1 : 1;
}

static PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"type", "index", nullptr};
  PyObject *type = nullptr, *index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(keywords), &type, &index)) return nullptr;
  ArgandDevice device;
  int status = device_from(type, &device);
  if (status == 0) PyErr_Format(PyExc_TypeError, "device(): argument 'type' (position 1) must be str or device, not %s", Py_TYPE(type)->tp_name);
  if (status <= 0) return nullptr;
  if (index != Py_None) {
    if (ARGAND_DEVICE_INDEX(device) != 0xff)
      return PyErr_Format(PyExc_RuntimeError, "device(): got an index both in the type %R and as argument 'index'; give it once", type);
    long number = PyLong_AsLong(index);
    if (number == -1 && PyErr_Occurred()) return nullptr;
    if (number < 0 || number >= 0xff) return PyErr_Format(PyExc_RuntimeError, "device(): got index %ld, expected 0 to 254", number);
    device = ARGAND_DEVICE(ARGAND_DEVICE_TYPE(device), number);
  }
  return device_object(device);
}

static PyObject* device_str(PyObject* self) {
  ArgandDevice device = device_of(self);
  if (ARGAND_DEVICE_INDEX(device) == 0xff) return PyUnicode_FromString(device_type_name(device));
  return PyUnicode_FromFormat("%s:%d", device_type_name(device), ARGAND_DEVICE_INDEX(device));
}
static PyObject* device_repr(PyObject* self) {
  ArgandDevice device = device_of(self);
  if (ARGAND_DEVICE_INDEX(device) == 0xff) return PyUnicode_FromFormat("device(type='%s')", device_type_name(device));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", device_type_name(device), ARGAND_DEVICE_INDEX(device));
}
static Py_hash_t device_hash(PyObject* self) { return device_of(self) + 1; }
static PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != device_type || Py_TYPE(b) != device_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_of(a) == device_of(b)) == (op == Py_EQ));
}
static PyObject* device_get_type(PyObject* self, void*) { return PyUnicode_FromString(device_type_name(device_of(self))); }
static PyObject* device_get_index(PyObject* self, void*) {
  int index = ARGAND_DEVICE_INDEX(device_of(self));
  if (index == 0xff) Py_RETURN_NONE;
  return PyLong_FromLong(index);
}
static PyObject* device_reduce(PyObject* self, PyObject*) {
  Ref text(device_str(self));
  return text ? Py_BuildValue("O(O)", reinterpret_cast<PyObject*>(device_type), text.get()) : nullptr;
}

// Devices that were the thread's default ones before those that are entered now.
static thread_local std::vector<ArgandDevice> devices_before;

static PyObject* device_enter(PyObject* self, PyObject*) {
  devices_before.push_back(default_device());
  set_default_device(device_of(self));
  return Py_NewRef(self);
}
static PyObject* device_exit(PyObject*, PyObject* const*, Py_ssize_t) {
  if (devices_before.empty()) return PyErr_Format(PyExc_RuntimeError, "device.__exit__(): got no device that was entered; use `with device(...):`");
  set_default_device(devices_before.back());
  devices_before.pop_back();
  Py_RETURN_NONE;
}

static PyMethodDef device_methods[] = {{"__enter__", device_enter, METH_NOARGS, "Makes it the device of tensors that are made with no other given."},
                                       {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(device_exit)), METH_FASTCALL, nullptr},
                                       {"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                       {nullptr, nullptr, 0, nullptr}};
static PyGetSetDef device_getset[] = {{"type", device_get_type, nullptr, "The kind of device, as in 'cpu'.", nullptr},
                                      {"index", device_get_index, nullptr, "Which device of its kind; None for the current one.", nullptr},
                                      {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyType_Slot device_slots[] = {{Py_tp_new, reinterpret_cast<void*>(device_new)},
                                     {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                                     {Py_tp_str, reinterpret_cast<void*>(device_str)},
                                     {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
                                     {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
                                     {Py_tp_methods, device_methods},
                                     {Py_tp_getset, device_getset},
                                     {Py_tp_doc, const_cast<char*>("device(type, index=None)\n\nWhere a tensor's data is: 'cpu', 'meta', 'cuda:0'.")},
                                     {0, nullptr}};
static PyType_Spec device_spec = {"argand_c10.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, device_slots};

int init_descriptors(PyObject* module) {
  dtype_type = new_type(module, &dtype_spec);
  device_type = new_type(module, &device_spec);
  if (!dtype_type || !device_type) return -1;
  for (int code = 0; code < ARGAND_NUM_DTYPES; code++) {
    auto* dtype = PyObject_New(DTypeObject, dtype_type);
    if (!dtype) return -1;
    dtype->code = code;
    dtypes[code] = reinterpret_cast<PyObject*>(dtype);
    if (PyModule_AddObjectRef(module, kDTypeName[code], dtypes[code]) < 0) return -1;
  }
  for (const DTypeAlias& alias : kAliases)
    if (PyModule_AddObjectRef(module, alias.name, dtypes[alias.code]) < 0) return -1;
  if (PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(dtype_type)) < 0) return -1;
  return PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_type));
}

}  // namespace argand::py
