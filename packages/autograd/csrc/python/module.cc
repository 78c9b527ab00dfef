// The extension module argand_autograd._C.
#include "packages/autograd/csrc/anomaly.h"
#include "packages/autograd/csrc/batching.h"
#include "packages/autograd/csrc/derivative.h"
#include "packages/autograd/csrc/engine.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/profiled_node.h"
#include "packages/autograd/csrc/python/binding.h"
#include "packages/autograd/csrc/tape.h"

namespace argand::autograd::binding {

const ArgandPythonApi* python = nullptr;

bool finalizing() {
#if PY_VERSION_HEX >= 0x030d0000
  return !Py_IsInitialized() || Py_IsFinalizing();
#else
  return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

void throw_python() { throw Error{ARGAND_PYTHON_ERROR, ""}; }

PyObject* raise(const Error& e) { return python->raise(api->set_error(e.kind, e.message.c_str())); }

ArgandTensor* self_of(PyObject* o) {
  ArgandTensor* t = python->unwrap(o);
  if (!t) throw_python();
  return t;
}
Tensor unwrap(PyObject* o) { return Tensor::borrow(self_of(o)); }
Object wrap(Tensor t) { return checked(python->wrap(t.take())); }

namespace {

// ---- modes of this thread ----------------------------------------------------------------------------------------------
PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(api->thread_state()->grad_mode); }
PyObject* set_grad_enabled(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  api->thread_state()->grad_mode = on;
  Py_RETURN_NONE;
}
PyObject* is_inference_mode_enabled(PyObject*, PyObject*) { return PyBool_FromLong(api->thread_state()->inference_mode); }
PyObject* set_inference_mode(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  api->thread_state()->inference_mode = on;
  Py_RETURN_NONE;
}

// ---- anomaly detection ---------------------------------------------------------------------------------------------------
PyObject *g_created = nullptr, *g_failed = nullptr;

// Tells Python of a node; an exception that is on its way is kept.
void notify(PyObject* function, Node* node) {
  if (!function || finalizing()) return;
  Gil gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  try {
    checked(PyObject_CallOneArg(function, node_object(node).get()));
  } catch (const Error&) {
    PyErr_WriteUnraisable(function);
  }
  PyErr_Restore(type, value, traceback);
}
PyObject* set_anomaly(PyObject*, PyObject* args) {
  int on, check_nan;
  if (!PyArg_ParseTuple(args, "pp:_set_anomaly", &on, &check_nan)) return nullptr;
  set_anomaly_mode(on, check_nan);
  Py_RETURN_NONE;
}
PyObject* is_anomaly_enabled(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_mode()); }
PyObject* is_anomaly_check_nan_enabled(PyObject*, PyObject*) { return PyBool_FromLong(anomaly_checks_nan()); }
PyObject* set_anomaly_hooks(PyObject*, PyObject* args) {
  PyObject *created, *failed;
  if (!PyArg_ParseTuple(args, "OO:_set_anomaly_hooks", &created, &failed)) return nullptr;
  Py_XSETREF(g_created, Py_NewRef(created));
  Py_XSETREF(g_failed, Py_NewRef(failed));
  set_anomaly_callbacks({[](Node* n) { notify(g_created, n); }, [](Node* n) { notify(g_failed, n); }});
  Py_RETURN_NONE;
}
PyObject* current_node_object(PyObject*, PyObject*) {
  return guard<PyObject*>(nullptr, [] { return node_object(current_node()).take(); });
}

bool truth_of(PyObject* o) {
  const int value = PyObject_IsTrue(o);
  if (value < 0) throw_python();
  return value;
}

PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)); }

PyObject* leaf_of_gradient_object(PyObject*, PyObject* index) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const unsigned long number = PyLong_AsUnsignedLong(index);
    if (number == static_cast<unsigned long>(-1) && PyErr_Occurred()) throw_python();
    Tensor leaf = leaf_of_gradient(static_cast<uint32_t>(number));
    return leaf ? wrap(std::move(leaf)).take() : Py_NewRef(Py_None);
  });
}

PyObject* current_call_number(PyObject*, PyObject*) { return PyLong_FromLongLong(current_call()); }

// Stands for the node of a tensor, without keeping it.
PyObject* node_key(PyObject*, PyObject* tensor) {
  return guard<PyObject*>(nullptr, [&] { return PyLong_FromVoidPtr(gradient_edge(self_of(tensor)).fn.get()); });
}

// gradient_edge(tensor) -> (node, the number of its gradient), or None where there is none.
PyObject* edge_of(PyObject*, PyObject* tensor) {
  return guard<PyObject*>(nullptr, [&] {
    const Edge edge = gradient_edge(self_of(tensor));
    return edge.fn ? checked(Py_BuildValue("(NI)", node_object(edge.fn.get()).take(), edge.input_nr)).take() : Py_NewRef(Py_None);
  });
}

PyObject* increment_version(PyObject*, PyObject* tensor) {
  return guard<PyObject*>(nullptr, [&] {
    unwrap(tensor).bump_version();
    return Py_NewRef(Py_None);
  });
}

PyObject* will_execute_key(PyObject*, PyObject* key) {
  const void* node = PyLong_AsVoidPtr(key);
  return PyErr_Occurred() ? nullptr : PyBool_FromLong(will_execute(static_cast<const Node*>(node)));
}

// ---- entries of vmap's dimensions: batching.h -----------------------------------------------------------------------------
PyObject *g_has_batch_rule = nullptr, *g_first_entry = nullptr;

bool has_batch_rule(const ArgandOperator* op) {
  Gil gil;
  return truth_of(checked(PyObject_CallFunction(g_has_batch_rule, "s", op->name)).get());
}

Tensor first_entry_of(const Tensor& t, int64_t level) {
  Gil gil;
  return unwrap(checked(PyObject_CallFunction(g_first_entry, "OL", wrap(t).get(), static_cast<long long>(level))).get());
}

// _install_batching(has_rule, kernel, first_entry): has_rule(name of an operator), a capsule with the kernel that runs rules, and what
// first_entry(tensor, level) of batching.h is.
PyObject* install_batching_kernel(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&] {
    PyObject *classify, *kernel, *first;
    if (!PyArg_ParseTuple(args, "OOO:_install_batching", &classify, &kernel, &first)) throw_python();
    void* rule = PyCapsule_GetPointer(kernel, "argand_c10._C.kernel");
    if (!rule) throw_python();
    Py_XSETREF(g_has_batch_rule, Py_NewRef(classify));
    Py_XSETREF(g_first_entry, Py_NewRef(first));
    install_batching(has_batch_rule, reinterpret_cast<ArgandKernel>(rule), first_entry_of);
    return Py_NewRef(Py_None);
  });
}

// _make_batched(whole, level, base): an entry along the first dimension that stands for all; a view of the entry `base` unless that is None.
PyObject* make_batched_object(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guard<PyObject*>(nullptr, [&] {
    if (nargs != 3) fail(ARGAND_TYPE_ERROR, "_make_batched: got %zd arguments, expected 3", nargs);
    const long long level = PyLong_AsLongLong(args[1]);
    if (level == -1 && PyErr_Occurred()) throw_python();
    return wrap(make_batched(unwrap(args[0]), level, args[2] == Py_None ? nullptr : self_of(args[2]))).take();
  });
}

// _whole(tensor): what it is an entry of, or None; _level(tensor): of which level, 0 if of none, -1 if that got lost.
PyObject* whole_object(PyObject*, PyObject* t) {
  return guard<PyObject*>(nullptr, [&] { return wrap(whole_of(self_of(t))).take(); });
}
PyObject* level_number(PyObject*, PyObject* t) {
  return guard<PyObject*>(nullptr, [&] {
    const ArgandTensor* self = self_of(t);
    const int64_t level = level_of(self);
    return PyLong_FromLongLong(level == 0 && is_batched(self) ? -1 : level);
  });
}

// _turn_entry(entry, whole): has it be one of another whole.
PyObject* turn_entry_object(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guard<PyObject*>(nullptr, [&] {
    if (nargs != 2) fail(ARGAND_TYPE_ERROR, "_turn_entry: got %zd arguments, expected 2", nargs);
    turn_entry(self_of(args[0]), unwrap(args[1]));
    return Py_NewRef(Py_None);
  });
}

// _see_every_call(on)
PyObject* see_every_call_of_thread(PyObject*, PyObject* on) {
  see_every_call(on == Py_True);
  Py_RETURN_NONE;
}

// _cut(tensor): detached, where it is an entry in this level alone.
PyObject* cut(PyObject*, PyObject* t) {
  return guard<PyObject*>(nullptr, [&] { return wrap(detach(self_of(t))).take(); });
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "is_grad_enabled()\n\nAre gradients recorded in this thread."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS, "is_inference_mode_enabled()\n\nIs inference mode on in this thread."},
    {"_set_inference_mode", set_inference_mode, METH_O, nullptr},
    {"_run_backward", fast(run_backward_function), METH_FASTCALL, nullptr},
    {"_function_apply", fast(function_apply), METH_FASTCALL, nullptr},
    {"_push_saved_tensor_hooks", push_saved_tensor_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensor_hooks", pop_saved_tensor_hooks, METH_NOARGS, nullptr},
    {"_has_saved_tensor_hooks", has_saved_tensor_hooks, METH_NOARGS, "_has_saved_tensor_hooks()\n\nIs this thread inside of saved_tensors_hooks."},
    {"_set_anomaly", set_anomaly, METH_VARARGS, nullptr},
    {"_set_anomaly_hooks", set_anomaly_hooks, METH_VARARGS, nullptr},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS, "is_anomaly_enabled()\n\nIs anomaly detection on."},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan_enabled, METH_NOARGS,
     "is_anomaly_check_nan_enabled()\n\nDoes anomaly detection look for NaN."},
    {"_current_node", current_node_object, METH_NOARGS, nullptr},
    {"_current_call", current_call_number, METH_NOARGS, nullptr},
    {"_gradient_edge", edge_of, METH_O, nullptr},
    {"_increment_version", increment_version, METH_O, nullptr},
    {"_node_key", node_key, METH_O, nullptr},
    {"_will_execute", will_execute_key, METH_O, nullptr},
    {"_leaf_of_gradient", leaf_of_gradient_object, METH_O, nullptr},
    {"_install_batching", install_batching_kernel, METH_VARARGS, nullptr},
    {"_make_batched", fast(make_batched_object), METH_FASTCALL, nullptr},
    {"_whole", whole_object, METH_O, nullptr},
    {"_level", level_number, METH_O, nullptr},
    {"_turn_entry", fast(turn_entry_object), METH_FASTCALL, nullptr},
    {"_see_every_call", see_every_call_of_thread, METH_O, nullptr},
    {"_cut", cut, METH_O, nullptr},
    {"_merge_places", fast(merge_places), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "argand_autograd._C", "The tape and the engine.", -1, functions, nullptr, nullptr, nullptr, nullptr};

bool load_tables() {
  api = static_cast<const ArgandApi*>(PyCapsule_Import("argand_c10._C.api", 0));
  if (!api) return false;
  python = static_cast<const ArgandPythonApi*>(PyCapsule_Import("argand_c10._C.python_api", 0));
  if (!python) return false;
  profiler = static_cast<const ArgandProfiler*>(PyCapsule_Import("argand_c10._C.profiler", 0));
  if (!profiler) return false;
  if (api->abi_version == ARGAND_ABI_VERSION && python->abi_version == ARGAND_ABI_VERSION) return true;
  PyErr_Format(PyExc_ImportError,
               "argand_autograd was built for ABI %d of argand_c10, but the installed argand_c10 has ABI %u; install matching versions",
               ARGAND_ABI_VERSION, api->abi_version);
  return false;
}

}  // namespace

}  // namespace argand::autograd::binding

PyMODINIT_FUNC PyInit__C() {
  using namespace argand::autograd;
  namespace binding = argand::autograd::binding;
  if (!binding::load_tables()) return nullptr;
  return binding::guard<PyObject*>(nullptr, [] {
    register_all_derivatives();
    install_tape();
    binding::Object module = binding::checked(PyModule_Create(&binding::module_definition));
    if (binding::init_node_type(module.get()) || binding::init_handle_type(module.get()) || binding::init_function_type(module.get()) ||
        binding::init_graph_function_type(module.get()) || binding::init_tensor_attributes())
      binding::throw_python();
    return module.take();
  });
}
