// __argand_function__, or __torch_function__: types that take over calls in which they appear.
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

static thread_local int disabled = 0;  // depth of DisableArgandFunction

// The two names, which mean the same, and what Tensor has under them.
static struct {
  PyObject *name, *default_override;
} spellings[2];

// The name under which a type has an override of its own; null: it has none.
static PyObject* override_name(PyTypeObject* type) {
  for (const auto& spelling : spellings) {
    PyObject* found = _PyType_Lookup(type, spelling.name);
    if (found && found != Py_None && found != spelling.default_override) return spelling.name;
  }
  return nullptr;
}
bool type_has_override(PyTypeObject* type) { return override_name(type) != nullptr; }

// ---- collecting --------------------------------------------------------------------------------------------------------------
constexpr int kMaxOverrides = 16;  // distinct types in one call
struct Overrides {
  PyObject* objects[kMaxOverrides];  // borrowed; subclasses before their bases, else from left to right
  int n = 0;

  void add(PyObject* o) {
    if (!has_override(o)) return;
    PyTypeObject* type = Py_TYPE(o);
    int at = n;
    for (int i = 0; i < n; i++) {
      if (Py_TYPE(objects[i]) == type) return;
      if (at == n && PyType_IsSubtype(type, Py_TYPE(objects[i]))) at = i;
    }
    if (n == kMaxOverrides) return;
    for (int i = n++; i > at; i--) objects[i] = objects[i - 1];
    objects[at] = o;
  }
  void add_with_entries(PyObject* o) {  // lists and tuples one level deep, and slices
    add(o);
    if (PySlice_Check(o)) {
      auto* slice = reinterpret_cast<PySliceObject*>(o);
      add(slice->start), add(slice->stop), add(slice->step);
      return;
    }
    bool is_list = PyList_Check(o);
    if (!is_list && !PyTuple_Check(o)) return;
    Py_ssize_t size = is_list ? PyList_GET_SIZE(o) : PyTuple_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < size; i++) add(is_list ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i));
  }
};

static bool is_plain(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return type == tensor_type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || o == Py_None || type == &PyUnicode_Type;
}

static PyObject* raise_refused(PyObject* op, const Overrides& overrides) {
  Ref types(PyList_New(0));
  for (int i = 0; types && i < overrides.n; i++)
    if (PyList_Append(types.get(), reinterpret_cast<PyObject*>(Py_TYPE(overrides.objects[i]))) < 0) return nullptr;
  if (!types) return nullptr;
  return PyErr_Format(PyExc_TypeError, "no implementation found for %R on types that implement __torch_function__: %R", op, types.get());
}

static bool pack_arguments(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, Ref* positional, Ref* keywords) {
  *positional = Ref(PyTuple_New(nargs));
  *keywords = Ref(PyDict_New());
  if (!*positional || !*keywords) return false;
  for (Py_ssize_t i = 0; i < nargs; i++) PyTuple_SET_ITEM(positional->get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
    if (PyDict_SetItem(keywords->get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) return false;
  return true;
}

// Calls that objects other than tensors are being asked about, innermost first. One that comes back as it was is not asked about again: another
// library's tensors, which know the name too, hand Argand's operators back unchanged.
static thread_local struct Asked {
  PyObject *op, *object;
  Asked* outer;
}* asked = nullptr;

static bool is_asked(PyObject* op, PyObject* object) {
  for (const Asked* a = asked; a; a = a->outer)
    if (a->op == op && a->object == object) return true;
  return false;
}

// Objects whose __torch_function__ is asked first about every call in this thread, outermost first: a tuple, or null.
int threads_with_modes = 0;
static thread_local PyObject* modes = nullptr;

// Returns what was set before.
static PyObject* set_modes(PyObject* now) {
  PyObject* before = modes ? modes : PyTuple_New(0);
  threads_with_modes += (PyTuple_GET_SIZE(now) > 0) - (modes != nullptr);
  modes = PyTuple_GET_SIZE(now) ? Py_NewRef(now) : nullptr;
  return before;
}

// What the innermost mode answers; meanwhile those outside of it are set.
static PyObject* ask_mode(PyObject* op, PyObject* types, PyObject* positional, PyObject* keywords) {
  const Py_ssize_t n = PyTuple_GET_SIZE(modes);
  Ref outer(PyTuple_GetSlice(modes, 0, n - 1));
  if (!outer) return nullptr;
  Ref all(set_modes(outer.get()));
  PyObject* mode = PyTuple_GET_ITEM(all.get(), n - 1);
  PyObject* call_args[5] = {mode, op, types, positional, keywords};
  PyObject* answer = PyObject_VectorcallMethod(spellings[1].name, call_args, 5, nullptr);
  Ref left(set_modes(all.get()));
  return answer;
}

// What the innermost mode, or else the first of the objects' types answers that does not refuse.
static PyObject* ask(PyObject* op, const Overrides& overrides, PyObject* positional, PyObject* keywords) {
  Ref types(PyTuple_New(overrides.n));
  if (!types) return nullptr;
  for (int i = 0; i < overrides.n; i++) PyTuple_SET_ITEM(types.get(), i, Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(overrides.objects[i]))));
  if (modes) {
    Ref answer(ask_mode(op, types.get(), positional, keywords));
    if (!answer || answer.get() != Py_NotImplemented) return answer.take();
  }
  for (int i = 0; i < overrides.n; i++) {
    PyTypeObject* type = Py_TYPE(overrides.objects[i]);
    Ref function(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), override_name(type)));
    if (!function) return nullptr;
    PyObject* call_args[4] = {op, types.get(), positional, keywords};
    bool foreign = !PyType_IsSubtype(type, tensor_type);
    Asked here{op, overrides.objects[i], asked};
    if (foreign) asked = &here;
    Ref answer(PyObject_Vectorcall(function.get(), call_args, 4, nullptr));
    if (foreign) asked = here.outer;
    if (!answer || answer.get() != Py_NotImplemented) return answer.take();
  }
  return raise_refused(op, overrides);
}

int call_override(PyObject* op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** result) {
  Py_ssize_t n_all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  Overrides overrides;
  for (Py_ssize_t i = 0; i < n_all; i++)
    if (!is_plain(args[i])) overrides.add_with_entries(args[i]);
  if (disabled || (overrides.n && is_asked(op, overrides.objects[0]))) overrides.n = 0;
  if (__builtin_expect(overrides.n == 0, 1) && !modes) return 0;

  *result = nullptr;
  Ref positional, keywords;
  if (pack_arguments(args, nargs, kwnames, &positional, &keywords)) *result = ask(op, overrides, positional.get(), keywords.get());
  return 1;
}

static PyObject* has_override_among(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (modes) Py_RETURN_TRUE;
  for (Py_ssize_t i = 0; i < nargs && !disabled; i++)
    if (has_override(args[i])) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}

static PyObject* handle_override(PyObject*, PyObject* args) {
  PyObject *op, *relevant, *positional, *keywords;
  if (!PyArg_ParseTuple(args, "OO!O!O!:_handle_override", &op, &PyTuple_Type, &relevant, &PyTuple_Type, &positional, &PyDict_Type, &keywords))
    return nullptr;
  Overrides overrides;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(relevant); i++) overrides.add(PyTuple_GET_ITEM(relevant, i));
  return ask(op, overrides, positional, keywords);
}

// ---- factories ---------------------------------------------------------------------------------------------------------------
// They have no argument that could take them over.
static thread_local PyObject* factories = nullptr;  // owned; f(op, args, kwargs), or null

int call_factory(PyObject* op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** result) {
  if (__builtin_expect(!factories, 1)) return 0;
  Ref positional, keywords;
  *result = nullptr;
  if (!pack_arguments(args, nargs, kwnames, &positional, &keywords)) return 1;
  PyObject* call_args[3] = {op, positional.get(), keywords.get()};
  *result = PyObject_Vectorcall(factories, call_args, 3, nullptr);
  return 1;
}

static PyObject* override_factories(PyObject*, PyObject* function) {
  PyObject* before = factories;
  factories = function == Py_None ? nullptr : Py_NewRef(function);
  return before ? before : Py_NewRef(Py_None);
}
static PyObject* exchange_modes(PyObject*, PyObject* now) {
  if (!PyTuple_CheckExact(now)) return PyErr_Format(PyExc_TypeError, "_exchange_modes: got %s, expected a tuple", Py_TYPE(now)->tp_name);
  return set_modes(now);
}
static PyMethodDef override_functions[] = {
    {"_exchange_modes", exchange_modes, METH_O,
     "Sets the objects whose __torch_function__ is asked first about every call in this thread, outermost first. Returns those that were set "
     "before."},
    {"_override_factories", override_factories, METH_O,
     "Calls f(op, args, kwargs) in this thread for operators that make tensors from none, None: themselves. Returns what was set before."},
    {"_has_override", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(has_override_among)), METH_FASTCALL,
     "Whether one of the objects takes over calls in which it appears."},
    {"_handle_override", handle_override, METH_VARARGS,
     "What the objects of the second argument answer to a call: f(function, objects, args, kwargs)."},
    {nullptr, nullptr, 0, nullptr}};

// ---- Tensor.__argand_function__: what super() calls ----------------------------------------------------------------------------
// Results of exact type Tensor become objects of the subclass, also inside tuples and lists.
static PyObject* convert_result(PyObject* result, PyTypeObject* cls) {
  Ref owned(result);
  if (!result || cls == tensor_type) return owned.take();
  if (is_tensor_exact(result)) return PyObject_CallMethod(result, "as_subclass", "O", cls);
  bool is_list = PyList_CheckExact(result);
  if (!is_list && !PyTuple_CheckExact(result)) return owned.take();
  Py_ssize_t n = PySequence_Fast_GET_SIZE(result);
  Ref converted(is_list ? PyList_New(n) : PyTuple_New(n));
  for (Py_ssize_t i = 0; converted && i < n; i++) {
    PyObject* entry = convert_result(Py_NewRef(PySequence_Fast_GET_ITEM(result, i)), cls);
    if (!entry) return nullptr;
    is_list ? PyList_SET_ITEM(converted.get(), i, entry) : PyTuple_SET_ITEM(converted.get(), i, entry);
  }
  return converted.take();
}

static PyObject* tensor_argand_function(PyObject* cls, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *func, *types, *call_args = nullptr, *call_kwargs = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__argand_function__", const_cast<char**>(keywords), &func, &types, &call_args, &call_kwargs))
    return nullptr;
  Ref positional(call_args ? PySequence_Tuple(call_args) : PyTuple_New(0));
  if (!positional) return nullptr;
  disabled++;
  PyObject* result = PyObject_Call(func, positional.get(), call_kwargs == Py_None ? nullptr : call_kwargs);
  disabled--;
  return convert_result(result, reinterpret_cast<PyTypeObject*>(cls));
}
// Also called by other libraries that know the name, whose functions Argand's subclasses do not take part in: each would ask the other for ever.
static PyObject* tensor_torch_function(PyObject* cls, PyObject* args, PyObject* kwargs) {
  if (disabled) Py_RETURN_NOTIMPLEMENTED;
  return tensor_argand_function(cls, args, kwargs);
}
static PyMethodDef tensor_override_methods[] = {
    {"__argand_function__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_argand_function)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, "Calls func with overrides disabled; subclasses replace it to take part in calls."},
    {"__torch_function__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_torch_function)),
     METH_VARARGS | METH_KEYWORDS | METH_CLASS, "`__argand_function__`, by PyTorch's name."},
    {nullptr, nullptr, 0, nullptr}};

// ---- DisableArgandFunction --------------------------------------------------------------------------------------------------------
static PyObject* disable_enter(PyObject* self, PyObject*) {
  disabled++;
  return Py_NewRef(self);
}
static PyObject* disable_exit(PyObject*, PyObject*) {
  if (disabled > 0) disabled--;
  Py_RETURN_NONE;
}
static PyMethodDef disable_methods[] = {
    {"__enter__", disable_enter, METH_NOARGS, nullptr}, {"__exit__", disable_exit, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyType_Slot disable_slots[] = {
    {Py_tp_methods, disable_methods},
    {Py_tp_doc, const_cast<char*>("Context manager: no __argand_function__ is called in this thread inside of it.")},
    {0, nullptr}};
static PyType_Spec disable_spec = {"argand_c10.DisableArgandFunction", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, disable_slots};

int init_overrides(PyObject* module) {
  Ref type(PyType_FromModuleAndSpec(module, &disable_spec, nullptr));
  if (!type || PyModule_AddObjectRef(module, "DisableArgandFunction", type.get()) < 0) return -1;
  if (PyModule_AddFunctions(module, override_functions) < 0 || tensor_add_methods(tensor_override_methods) < 0) return -1;
  spellings[0].name = names.argand_function;
  spellings[1].name = PyUnicode_InternFromString("__torch_function__");
  for (auto& spelling : spellings)
    if (!spelling.name || !(spelling.default_override = _PyType_Lookup(tensor_type, spelling.name))) return -1;
  return 0;
}

}  // namespace argand::py
