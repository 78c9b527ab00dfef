// The extension argand_c10._C: types, functions, and the two capsules that other extensions build on.
#include <memory>

#include "packages/c10/csrc/abi/profiler.h"
#include "packages/c10/csrc/python/constants.h"
#include "packages/c10/csrc/python/parser.h"

namespace argand::py {

Names names;

static int init_names() {
  struct {
    PyObject** slot;
    const char* text;
  } const table[] = {{&names.argand_function, "__argand_function__"},
                     {&names.argand_dispatch, "__argand_dispatch__"},
                     {&names.item, "item"},
                     {&names.out, "out"},
                     {&names.requires_grad, "requires_grad"},
                     {&names.layout, "layout"},
                     {&names.pin_memory, "pin_memory"},
                     {&names.dtype, "dtype"},
                     {&names.device, "device"}};
  for (const auto& entry : table) {
    *entry.slot = PyUnicode_InternFromString(entry.text);
    if (!*entry.slot) return -1;
  }
  return 0;
}

// One argument for callers outside of an Operator. *keep_alive (NULL, or an owned PyObject*) holds what the value points to.
static int to_value(PyObject* o, const ArgandArgDesc* desc, ArgandValue* out, void** keep_alive) {
  static constexpr const char* kName = "argand_c10.arena";
  *keep_alive = nullptr;
  return guard<int>(ARGAND_PYTHON_ERROR, [&]() -> int {
    auto arena = std::make_unique<Arena>();
    Conversion c = convert(o, *desc, out, *arena);
    if (c == Conversion::kOk) {
      if (desc->type < ARGAND_ARG_INT_LIST || desc->type == ARGAND_ARG_GENERATOR) return 0;
      *keep_alive = PyCapsule_New(arena.get(), kName, [](PyObject* capsule) { delete static_cast<Arena*>(PyCapsule_GetPointer(capsule, kName)); });
      if (!*keep_alive) return ARGAND_PYTHON_ERROR;
      arena.release();
      return 0;
    }
    if (c == Conversion::kMismatch) {
      std::string wanted = expected_type(*desc);
      PyErr_Format(PyExc_TypeError, "argument '%s' must be %s, not %s", desc->name, wanted.c_str(), Py_TYPE(o)->tp_name);
    }
    return ARGAND_PYTHON_ERROR;
  });
}

static ArgandPythonApi python_api = {ARGAND_ABI_VERSION,
                                     sizeof(ArgandPythonApi),
                                     nullptr,  // tensor_type: set when it exists
                                     wrap,
                                     unwrap,
                                     raise,
                                     to_value,
                                     from_value,
                                     operator_new,
                                     tensor_set_attr,
                                     tensor_set_slot,
                                     tensor_set_indexing,
                                     call_operator,
                                     tensor_add_getset,
                                     tensor_add_methods,
                                     tensor_set_collector};

static int add_capsule(PyObject* module, const char* name, const char* full_name, const void* pointer) {
  Ref capsule(PyCapsule_New(const_cast<void*>(pointer), full_name, nullptr));
  return capsule ? PyModule_AddObjectRef(module, name, capsule.get()) : -1;
}

static int init(PyObject* module) {
  api = argand_api();
  if (api->abi_version != ARGAND_ABI_VERSION || api->struct_size != sizeof(ArgandApi)) {
    PyErr_Format(PyExc_ImportError, "argand_c10._C was built for ABI %d and found libargand_c10 of ABI %u; reinstall argand-c10", ARGAND_ABI_VERSION,
                 api->abi_version);
    return -1;
  }
  if (init_names() < 0 || init_errors(module) < 0 || init_descriptors(module) < 0 || init_constants(module) < 0 || init_size(module) < 0) return -1;
  if (init_generator(module) < 0 || init_storage(module) < 0 || init_operator(module) < 0 || init_tensor_type(module) < 0) return -1;
  if (init_overrides(module) < 0 || init_modes(module) < 0) return -1;
  for (PyMethodDef* functions : {factory_functions, interop_functions, runtime_functions, cuda_functions, generator_functions, registration_functions,
                                 backend_functions, slot_functions, profiler_functions})
    if (PyModule_AddFunctions(module, functions) < 0) return -1;
  python_api.tensor_type = tensor_type;
  if (PyModule_AddIntConstant(module, "ABI_VERSION", ARGAND_ABI_VERSION) < 0) return -1;
  if (add_capsule(module, "api", "argand_c10._C.api", api) < 0) return -1;
  if (add_capsule(module, "profiler", "argand_c10._C.profiler", argand_profiler()) < 0) return -1;
  return add_capsule(module, "python_api", "argand_c10._C.python_api", &python_api);
}

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "argand_c10._C", "The C++ side of argand_c10.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace argand::py

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&argand::py::definition);
  if (module && argand::py::init(module) < 0) Py_CLEAR(module);
  return module;
}
