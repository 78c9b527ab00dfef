// The extension argand_aten._C: registers the operators and hands their callables to Python.
#include "packages/aten/csrc/init.h"
#include "packages/aten/csrc/python/bindings.h"
#include "packages/aten/csrc/python/indexing.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::bindings {
#define FAMILY(name) BindingTable name();
#include "packages/aten/generated/families.inc"
#undef FAMILY
}  // namespace argand::bindings

namespace {

using argand::python::python_api;

const struct {
  const char* name;
  ArgandTensorSlot slot;
} kSlots[] = {
    {"add", ARGAND_SLOT_ADD},
    {"sub", ARGAND_SLOT_SUB},
    {"mul", ARGAND_SLOT_MUL},
    {"div", ARGAND_SLOT_TRUEDIV},
    {"floor_divide", ARGAND_SLOT_FLOORDIV},
    {"remainder", ARGAND_SLOT_MOD},
    {"pow", ARGAND_SLOT_POW},
    {"matmul", ARGAND_SLOT_MATMUL},
    {"bitwise_and", ARGAND_SLOT_AND},
    {"bitwise_or", ARGAND_SLOT_OR},
    {"bitwise_xor", ARGAND_SLOT_XOR},
    {"bitwise_left_shift", ARGAND_SLOT_LSHIFT},
    {"bitwise_right_shift", ARGAND_SLOT_RSHIFT},
    {"add_", ARGAND_SLOT_IADD},
    {"sub_", ARGAND_SLOT_ISUB},
    {"mul_", ARGAND_SLOT_IMUL},
    {"div_", ARGAND_SLOT_ITRUEDIV},
    {"floor_divide_", ARGAND_SLOT_IFLOORDIV},
    {"remainder_", ARGAND_SLOT_IMOD},
    {"pow_", ARGAND_SLOT_IPOW},
    {"bitwise_and_", ARGAND_SLOT_IAND},
    {"bitwise_or_", ARGAND_SLOT_IOR},
    {"bitwise_xor_", ARGAND_SLOT_IXOR},
    {"bitwise_left_shift_", ARGAND_SLOT_ILSHIFT},
    {"bitwise_right_shift_", ARGAND_SLOT_IRSHIFT},
    {"neg", ARGAND_SLOT_NEG},
    {"positive", ARGAND_SLOT_POS},
    {"abs", ARGAND_SLOT_ABS},
    {"bitwise_not", ARGAND_SLOT_INVERT},
    {"eq", ARGAND_SLOT_EQ},
    {"ne", ARGAND_SLOT_NE},
    {"lt", ARGAND_SLOT_LT},
    {"le", ARGAND_SLOT_LE},
    {"gt", ARGAND_SLOT_GT},
    {"ge", ARGAND_SLOT_GE},
};

// Makes one callable; files it under `ops` (all), `functions` (public) and on Tensor (methods).
int add_binding(const argand::bindings::PlacedBinding& row, PyObject* ops, PyObject* functions) {
  PyObject* op = python_api->operator_new(&row.binding);
  if (!op) return -1;
  int failed = PyDict_SetItemString(ops, row.binding.name, op);
  if (!failed && row.places & argand::bindings::kFunction) failed = PyDict_SetItemString(functions, row.binding.name, op);
  if (!failed && row.places & argand::bindings::kMethod) failed = python_api->tensor_set_attr(row.binding.name, op);
  Py_DECREF(op);
  return failed;
}

int add_all(PyObject* module) {
  PyObject* ops = PyDict_New();
  PyObject* functions = PyDict_New();
  if (!ops || !functions) return -1;
#define FAMILY(name)                                             \
  {                                                              \
    const auto table = argand::bindings::name();                 \
    for (size_t i = 0; i < table.n; i++)                         \
      if (add_binding(table.rows[i], ops, functions)) return -1; \
  }
#include "packages/aten/generated/families.inc"
#undef FAMILY
  for (const auto& row : kSlots) {
    PyObject* op = PyDict_GetItemString(ops, row.name);
    if (!op) {
      PyErr_Format(PyExc_ImportError, "argand_aten: operator %s is missing", row.name);
      return -1;
    }
    if (python_api->tensor_set_slot(row.slot, op)) return -1;
  }
  python_api->tensor_set_indexing(argand::python::tensor_getitem, argand::python::tensor_setitem);
  return PyModule_AddObject(module, "operators", ops) || PyModule_AddObject(module, "functions", functions) ? -1 : 0;
}

PyObject* set_blas(PyObject*, PyObject* path) {
  const char* text = PyUnicode_AsUTF8(path);
  if (!text) return nullptr;
  if (int status = argand_aten_set_blas(text)) return python_api->raise(status);
  Py_RETURN_NONE;
}

PyObject* g_cuda_loader = nullptr;

int load_cuda() {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* result = PyObject_CallNoArgs(g_cuda_loader);
  const int status = result ? 0 : argand::api->set_error(ARGAND_PYTHON_ERROR, "a Python exception is set");
  Py_XDECREF(result);
  PyGILState_Release(state);
  return status;
}

PyObject* set_cuda_loader(PyObject*, PyObject* function) {
  Py_INCREF(function);
  Py_XSETREF(g_cuda_loader, function);
  argand::api->set_device_loader(ARGAND_CUDA, load_cuda);
  Py_RETURN_NONE;
}

PyObject* set_tensor_attribute(PyObject*, PyObject* args) {
  const char* name;
  PyObject* attribute;
  if (!PyArg_ParseTuple(args, "sO", &name, &attribute)) return nullptr;
  if (python_api->tensor_set_attr(name, attribute)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* autocast_state(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(argand_aten_autocast_state()); }

PyObject* set_autocast_state(PyObject*, PyObject* state) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(state);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return nullptr;
  argand_aten_set_autocast_state(value);
  Py_RETURN_NONE;
}

PyObject* clear_autocast_cache(PyObject*, PyObject*) {
  argand_aten_clear_autocast_cache();
  Py_RETURN_NONE;
}

PyObject* device_type_number(PyObject*, PyObject* name) {
  const ArgandArgDesc desc{"device_type", ARGAND_ARG_DEVICE, 0, 0, {}};
  ArgandValue device{};
  void* keep_alive = nullptr;
  if (python_api->to_value(name, &desc, &device, &keep_alive)) return nullptr;
  return PyLong_FromLong(ARGAND_DEVICE_TYPE(device.i));
}

PyMethodDef kMethods[] = {
    {"device_type_number", device_type_number, METH_O, "device_type_number(name): the ArgandDeviceType of a device's name."},
    {"autocast_state", autocast_state, METH_NOARGS, "autocast_state(): this thread's ArgandThreadState.autocast, its first byte in the lowest bits."},
    {"set_autocast_state", set_autocast_state, METH_O, "set_autocast_state(state): what autocast_state() then returns."},
    {"clear_autocast_cache", clear_autocast_cache, METH_NOARGS, "clear_autocast_cache(): lets go of the cast weights that this thread keeps."},
    {"set_tensor_attribute", set_tensor_attribute, METH_VARARGS, "set_tensor_attribute(name, attribute): adds a method or property to Tensor."},
    {"set_cuda_loader", set_cuda_loader, METH_O, "set_cuda_loader(load): load() registers the CUDA kernels when such a device is first asked for."},
    {"set_blas", set_blas, METH_O, "set_blas(path): where OpenBLAS's shared library is; it is loaded at its first use."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef kModule = {PyModuleDef_HEAD_INIT, "argand_aten._C", "Operators: kernels and bindings.", -1, kMethods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  argand::api = static_cast<const ArgandApi*>(PyCapsule_Import("argand_c10._C.api", 0));
  python_api = static_cast<const ArgandPythonApi*>(PyCapsule_Import("argand_c10._C.python_api", 0));
  if (!argand::api || !python_api) return nullptr;
  if (argand::api->abi_version != ARGAND_ABI_VERSION || python_api->abi_version != ARGAND_ABI_VERSION) {
    PyErr_SetString(PyExc_ImportError, "argand_aten: built for another ABI of argand_c10; install matching versions");
    return nullptr;
  }
  if (int status = argand_aten_init(argand::api)) return python_api->raise(status);
  PyObject* module = PyModule_Create(&kModule);
  if (module && add_all(module)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "argand_aten: operators could not be bound");
    Py_CLEAR(module);
  }
  return module;
}
