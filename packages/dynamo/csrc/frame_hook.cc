#include "packages/dynamo/csrc/frame_hook.h"

#include <vector>

#include "packages/dynamo/csrc/bound_arguments.h"
#include "packages/dynamo/csrc/frame.h"

namespace argand::dynamo {

namespace {

#if PY_VERSION_HEX >= 0x030c0000
#define CODE_EXTRA(name) PyUnstable_##name
#else
#define CODE_EXTRA(name) _Py##name
#endif

PyObject* callback = nullptr;
Py_ssize_t extra_index = -1;
int n_threads_on = 0;                               // threads whose hook is on; the interpreter has our function while there are any
_PyFrameEvalFunction evaluate_otherwise = nullptr;  // what the interpreter had before
bool monitored = false;                             // sys.monitoring was in use when the hook was last turned on

// ---- marks on code objects -------------------------------------------------------------------------------------------------
char skip_mark;  // its address is the mark

bool is_skipped(PyObject* code) {
  void* extra = nullptr;
  if (CODE_EXTRA(Code_GetExtra)(code, extra_index, &extra) < 0) PyErr_Clear();
  return extra == &skip_mark;
}

// sys.settrace or sys.setprofile is in force in this thread, or their function runs.
bool is_traced(PyThreadState* thread) { return thread->c_tracefunc || thread->c_profilefunc || thread->tracing; }

// ---- evaluation ------------------------------------------------------------------------------------------------------------
bool is_candidate(PyThreadState* thread, PyCodeObject* code) {
  constexpr int kFunction = CO_OPTIMIZED | CO_NEWLOCALS;
  constexpr int kSuspends = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
  if ((code->co_flags & kFunction) != kFunction || (code->co_flags & kSuspends)) return false;
  return !monitored && !is_traced(thread) && !is_skipped(reinterpret_cast<PyObject*>(code));
}

// Calls `replacement` with the arguments that the frame was given.
PyObject* call_with_frame(PyObject* replacement, PyCodeObject* code, PyObject* const* locals) {
  const Py_ssize_t argcount = code->co_argcount, named = argcount + code->co_kwonlyargcount, total = parameter_count(code);
  if (total == argcount) return PyObject_Vectorcall(replacement, locals, static_cast<size_t>(argcount), nullptr);
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<PyObject*> values(locals, locals + argcount);
    PyObject* star = code->co_flags & CO_VARARGS ? locals[named] : nullptr;
    for (Py_ssize_t i = 0; star && i < PyTuple_GET_SIZE(star); i++) values.push_back(PyTuple_GET_ITEM(star, i));
    const size_t positional = values.size();
    PyObject* keywords = code->co_flags & CO_VARKEYWORDS ? locals[total - 1] : nullptr;
    Ref names(checked(PyTuple_New(code->co_kwonlyargcount + (keywords ? PyDict_GET_SIZE(keywords) : 0))));
    Py_ssize_t n = 0;
    for (Py_ssize_t i = argcount; i < named; i++) {
      PyTuple_SET_ITEM(names.get(), n++, Py_NewRef(PyTuple_GET_ITEM(code->co_localsplusnames, i)));
      values.push_back(locals[i]);
    }
    PyObject *key, *value;
    for (Py_ssize_t position = 0; keywords && PyDict_Next(keywords, &position, &key, &value);) {
      PyTuple_SET_ITEM(names.get(), n++, Py_NewRef(key));
      values.push_back(value);
    }
    return PyObject_Vectorcall(replacement, values.data(), positional, n ? names.get() : nullptr);
  });
}

// What the callback gives for this frame: a callable, None, or NULL + exception.
PyObject* ask(Frame* frame, PyCodeObject* code) {
  const HookPause pause;
  PyFunctionObject* function = frame_function(frame);
  const Py_ssize_t n = parameter_count(code);
  Ref args(PyTuple_New(n));
  if (!args) return nullptr;
  for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(frame_locals(frame)[i]));
  Ref asked = Ref::borrow(callback);
  PyObject* values[] = {reinterpret_cast<PyObject*>(function), function->func_globals, function->func_closure ? function->func_closure : Py_None,
                        args.get()};
  return PyObject_Vectorcall(asked.get(), values, 4, nullptr);
}

PyObject* evaluate(PyThreadState* thread, Frame* frame, int throwing) {
  // Uninstalling forgets nothing: a thread may be in here while another one turns its hook off.
  const _PyFrameEvalFunction otherwise = evaluate_otherwise;
  if (!hook_is_on || throwing || !callback) return otherwise(thread, frame, throwing);
  PyCodeObject* code = frame_code(frame);
  if (!is_candidate(thread, code)) return otherwise(thread, frame, throwing);
  Ref replacement(ask(frame, code));
  if (!replacement) return end_frame(thread, frame, otherwise, nullptr);
  if (replacement.get() == Py_None) return otherwise(thread, frame, throwing);
  PyObject* result;
  {
    const HookPause pause;
    result = call_with_frame(replacement.get(), code, frame_locals(frame));
  }
  replacement = Ref();
  return end_frame(thread, frame, otherwise, result);
}

// ---- sys.monitoring ----------------------------------------------------------------------------------------------------------
#if PY_VERSION_HEX >= 0x030c0000
PyObject* all_events = nullptr;

// A replaced frame would give no events: with tools at work every frame is left as it is.
bool is_monitored() {
  const KeepException keep;  // the hook is also turned on again while an exception passes
  Ref events(all_events ? PyObject_CallNoArgs(all_events) : nullptr);
  if (!events) PyErr_Clear();
  return events && PyDict_Check(events.get()) && PyDict_GET_SIZE(events.get()) > 0;
}

int init_monitoring() {
  PyObject* monitoring = PySys_GetObject("monitoring");
  if (monitoring) all_events = PyObject_GetAttrString(monitoring, "_all_events");
  PyErr_Clear();
  return 0;
}
#else
bool is_monitored() { return false; }
int init_monitoring() { return 0; }
#endif

// ---- scopes ----------------------------------------------------------------------------------------------------------------
struct ScopeObject {
  PyObject_HEAD bool on;
  bool was_on;
};
PyTypeObject* scope_type = nullptr;

PyObject* new_scope(bool on) {
  PyObject* o = scope_type->tp_alloc(scope_type, 0);
  if (o) reinterpret_cast<ScopeObject*>(o)->on = on;
  return o;
}
PyObject* scope_enter(PyObject* o, PyObject*) {
  auto* scope = reinterpret_cast<ScopeObject*>(o);
  scope->was_on = set_hook(scope->on);
  return Py_NewRef(o);
}
PyObject* scope_exit(PyObject* o, PyObject* const*, Py_ssize_t) {
  set_hook(reinterpret_cast<ScopeObject*>(o)->was_on);
  Py_RETURN_NONE;
}
void scope_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}
PyMethodDef scope_methods[] = {{"__enter__", scope_enter, METH_NOARGS, nullptr},
                               {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(scope_exit)), METH_FASTCALL, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyType_Slot scope_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(scope_dealloc)}, {Py_tp_methods, scope_methods}, {0, nullptr}};
PyType_Spec scope_spec = {"argand_dynamo._C.HookScope", sizeof(ScopeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, scope_slots};

// ---- functions -------------------------------------------------------------------------------------------------------------
PyObject* set_frame_callback(PyObject*, PyObject* function) {
  if (function != Py_None && !PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "set_frame_callback: got %R, expected a callable or None", function);
  PyObject* old = callback;
  callback = function == Py_None ? nullptr : Py_NewRef(function);
  return old ? old : Py_NewRef(Py_None);
}

PyObject* set_hook_function(PyObject*, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  return on < 0 ? nullptr : PyBool_FromLong(set_hook(on));
}

PyObject* is_hook_enabled(PyObject*, PyObject*) { return PyBool_FromLong(hook_is_on); }
PyObject* get_hook_owner(PyObject*, PyObject*) { return Py_NewRef(hook_owner ? hook_owner : Py_None); }
PyObject* hook_enabled(PyObject*, PyObject*) { return new_scope(true); }
PyObject* hook_disabled(PyObject*, PyObject*) { return new_scope(false); }

PyObject* skip_code(PyObject*, PyObject* args) {
  PyObject* code;
  int skip = 1;
  if (!PyArg_ParseTuple(args, "O!|p:skip_code", &PyCode_Type, &code, &skip)) return nullptr;
  if (CODE_EXTRA(Code_SetExtra)(code, extra_index, skip ? &skip_mark : nullptr) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* is_skipped_function(PyObject*, PyObject* code) {
  if (!PyCode_Check(code)) return PyErr_Format(PyExc_TypeError, "is_skipped: got %R, expected a code object", code);
  return PyBool_FromLong(is_skipped(code));
}

}  // namespace

bool set_hook(bool on) {
  const bool was_on = hook_is_on;
  if (on == was_on) return was_on;
  hook_is_on = on;
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  if (on) {
    monitored = is_monitored();
    if (n_threads_on++ == 0) {
      evaluate_otherwise = _PyInterpreterState_GetEvalFrameFunc(interpreter);
      _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    }
  } else if (--n_threads_on == 0) {
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate_otherwise);
  }
  return was_on;
}

PyMethodDef hook_functions[] = {
    {"set_frame_callback", set_frame_callback, METH_O,
     "set_frame_callback(callback)\n--\n\nSets callback(function, globals, closure, args) -> replacement or None, asked for each new frame while a "
     "thread's "
     "hook is on; args are the parameters in the order of co_varnames. Returns the one before."},
    {"set_hook", set_hook_function, METH_O, "set_hook(on)\n--\n\nTurns this thread's hook on or off; returns what it was."},
    {"is_hook_enabled", is_hook_enabled, METH_NOARGS, "is_hook_enabled()\n--\n\nIs this thread's hook on."},
    {"hook_owner", get_hook_owner, METH_NOARGS,
     "hook_owner()\n--\n\nThe compiled function whose hooked entry had this thread's hook turned on, or None."},
    {"hook_enabled", hook_enabled, METH_NOARGS, "hook_enabled()\n--\n\nA context manager that has this thread's hook on."},
    {"hook_disabled", hook_disabled, METH_NOARGS, "hook_disabled()\n--\n\nA context manager that has this thread's hook off."},
    {"skip_code", skip_code, METH_VARARGS, "skip_code(code, skip=True)\n--\n\nNever shows frames of this code object to the callback."},
    {"is_skipped", is_skipped_function, METH_O, "is_skipped(code)\n--\n\nWas skip_code called for this code object."},
    {nullptr, nullptr, 0, nullptr}};

int init_frame_hook(PyObject* module) {
  extra_index = CODE_EXTRA(Eval_RequestCodeExtraIndex)(nullptr);
  if (extra_index < 0) {
    PyErr_SetString(PyExc_RuntimeError, "argand_dynamo: no room is left for data on code objects; another library has used all of it");
    return -1;
  }
  scope_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &scope_spec, nullptr));
  if (!scope_type || init_frames() < 0 || init_monitoring() < 0) return -1;
  return PyModule_AddFunctions(module, hook_functions);
}

}  // namespace argand::dynamo
