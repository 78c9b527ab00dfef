// The extension module argand_dynamo._C.
#include <cstring>

#include "packages/dynamo/csrc/constant.h"
#include "packages/dynamo/csrc/frame_hook.h"
#include "packages/dynamo/csrc/instance_dict.h"
#include "packages/dynamo/csrc/lru_cache.h"
#include "packages/dynamo/csrc/types.h"

namespace argand::dynamo {

const ArgandApi* api = nullptr;
const ArgandPythonApi* python = nullptr;

PyTypeObject* add_type(PyObject* module, PyType_Spec* spec) {
  PyObject* type = PyType_FromModuleAndSpec(module, spec, nullptr);
  if (!type) return nullptr;
  return PyModule_AddObjectRef(module, std::strrchr(spec->name, '.') + 1, type) < 0 ? nullptr : reinterpret_cast<PyTypeObject*>(type);
}

namespace {

PyObject* set_code_hash_function(PyObject*, PyObject* function) {
  set_code_hash(function == Py_None ? nullptr : function);
  Py_RETURN_NONE;
}

PyObject* is_compiling_function(PyObject*, PyObject*) { return PyBool_FromLong(is_compiling()); }

PyObject* instance_attribute_function(PyObject*, PyObject* args) {
  PyObject *o, *name, *otherwise = Py_None;
  if (!PyArg_ParseTuple(args, "OU|O:instance_attribute", &o, &name, &otherwise)) return nullptr;
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  PyObject* value = instance_attribute(o, name);
  Py_DECREF(name);
  return value ? value : Py_NewRef(otherwise);
}

PyObject* is_constant_function(PyObject*, PyObject* o) { return PyBool_FromLong(is_constant(o)); }

PyObject* cache_holds_function(PyObject*, PyObject* args) {
  PyObject *cached, *values, *names;
  if (!PyArg_ParseTuple(args, "OO!O!:cache_holds", &cached, &PyTuple_Type, &values, &PyTuple_Type, &names)) return nullptr;
  if (PyTuple_GET_SIZE(names) > PyTuple_GET_SIZE(values)) return PyErr_Format(PyExc_ValueError, "cache_holds: got more names than values");
  return PyBool_FromLong(cache_holds(cached, &PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values), names));
}

PyObject* storage_id(PyObject*, PyObject* o) {
  const ArgandTensor* t = python->unwrap(o);
  return t ? PyLong_FromVoidPtr(t->storage) : nullptr;
}

PyObject* thread_keys(PyObject*, PyObject*) {
  const ArgandThreadState* state = api->thread_state();
  unsigned long long autocast;
  std::memcpy(&autocast, state->autocast, sizeof autocast);
  return Py_BuildValue("(KKK)", static_cast<unsigned long long>(state->include_keys), static_cast<unsigned long long>(state->exclude_keys), autocast);
}

PyObject* set_all_plain(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  return on < 0 ? nullptr : PyBool_FromLong(exchange_all_plain(on));
}

PyMethodDef functions[] = {
    {"set_code_hash", set_code_hash_function, METH_O,
     "set_code_hash(function)\n--\n\nSets function(code) -> str, by which CODE guards that were stored as text know their code."},
    {"in_miss", is_compiling_function, METH_NOARGS, "in_miss()\n--\n\nIs this thread inside the `miss` of a compiled function."},
    {"instance_attribute", instance_attribute_function, METH_VARARGS,
     "instance_attribute(object, name, default=None)\n--\n\nThe entry of object.__dict__; runs no descriptor and makes no dict."},
    {"cache_holds", cache_holds_function, METH_VARARGS,
     "cache_holds(cached, values, names)\n--\n\nWhether a call of a function of functools.lru_cache, the last of whose values have these names, runs "
     "nothing."},
    {"storage_id", storage_id, METH_O, "storage_id(tensor)\n--\n\nA number that the tensors of one storage share while it lives."},
    {"thread_keys", thread_keys, METH_NOARGS,
     "thread_keys()\n--\n\nThe dispatch keys that this thread adds to and removes from every operator call, and its autocast state."},
    {"set_all_plain", set_all_plain, METH_O,
     "set_all_plain(on)\n--\n\nHas the compiled functions of all threads run as they are; returns whether they did before."},
    {"is_constant", is_constant_function, METH_O, "is_constant(object)\n--\n\nCan it be the value of an EQUALS guard."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "argand_dynamo._C", "Guards, compiled functions and the frame hook.", -1, functions, nullptr, nullptr, nullptr, nullptr};

bool load_tables() {
  api = static_cast<const ArgandApi*>(PyCapsule_Import("argand_c10._C.api", 0));
  python = api ? static_cast<const ArgandPythonApi*>(PyCapsule_Import("argand_c10._C.python_api", 0)) : nullptr;
  if (!python) return false;
  if (api->abi_version == ARGAND_ABI_VERSION && python->abi_version == ARGAND_ABI_VERSION) return true;
  PyErr_Format(PyExc_ImportError,
               "argand_dynamo was built for ABI %d of argand_c10, but the installed argand_c10 has ABI %u; install matching versions",
               ARGAND_ABI_VERSION, api->abi_version);
  return false;
}

}  // namespace

}  // namespace argand::dynamo

PyMODINIT_FUNC PyInit__C() {
  using namespace argand::dynamo;
  if (!load_tables()) return nullptr;
  Ref module(PyModule_Create(&definition));
  if (!module || init_constants() || init_sources() || init_guard_tree_type(module.get()) || init_compiled_function_type(module.get()) ||
      init_frame_hook(module.get()))
    return nullptr;
  return module.take();
}
