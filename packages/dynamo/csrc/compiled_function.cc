// CompiledFunction: a callable that runs the first of its replacements whose guards hold, and asks Python only when none does.
#include <Python.h>
#include <structmember.h>

#include <new>

#include "packages/dynamo/csrc/bound_arguments.h"
#include "packages/dynamo/csrc/frame_hook.h"
#include "packages/dynamo/csrc/types.h"

namespace argand::dynamo {

PyTypeObject* cache_entry_type = nullptr;
PyTypeObject* compiled_function_type = nullptr;

namespace {

thread_local int compiling = 0;

CompiledFunctionObject* self_of(PyObject* o) { return reinterpret_cast<CompiledFunctionObject*>(o); }
CacheEntryObject* entry_of(PyObject* o) { return reinterpret_cast<CacheEntryObject*>(o); }
PyObject* object_of(CacheEntryObject* entry) { return reinterpret_cast<PyObject*>(entry); }

// ---- entries -------------------------------------------------------------------------------------------------------------
PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"guard_tree", "replacement", "info", "hooked", nullptr};
  PyObject *tree, *replacement, *info = Py_None;
  int hooked = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|Op:CacheEntry", const_cast<char**>(keywords), guard_tree_type, &tree, &replacement, &info,
                                   &hooked))
    return nullptr;
  if (!PyCallable_Check(replacement)) return PyErr_Format(PyExc_TypeError, "CacheEntry: replacement is %R, expected a callable", replacement);
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  entry_of(self)->guard_tree = Py_NewRef(tree);
  entry_of(self)->replacement = Py_NewRef(replacement);
  entry_of(self)->info = Py_NewRef(info);
  entry_of(self)->hooked = hooked;
  return self;
}

int entry_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(entry_of(o)->guard_tree);
  Py_VISIT(entry_of(o)->replacement);
  Py_VISIT(entry_of(o)->info);
  return 0;
}

int entry_clear(PyObject* o) {
  Py_CLEAR(entry_of(o)->guard_tree);
  Py_CLEAR(entry_of(o)->replacement);
  Py_CLEAR(entry_of(o)->info);
  return 0;
}

void entry_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  entry_clear(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyMemberDef entry_members[] = {
    {"guard_tree", T_OBJECT, offsetof(CacheEntryObject, guard_tree), READONLY, "The guards under which the replacement is right."},
    {"replacement", T_OBJECT, offsetof(CacheEntryObject, replacement), READONLY, "What runs: it takes the function's arguments."},
    {"info", T_OBJECT, offsetof(CacheEntryObject, info), 0, "Whatever was given with the entry."},
    {"hooked", T_BOOL, offsetof(CacheEntryObject, hooked), READONLY, "Does the replacement run with the frame hook on."},
    {"hits", T_PYSSIZET, offsetof(CacheEntryObject, hits), READONLY, "How often it was chosen."},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot entry_slots[] = {{Py_tp_new, reinterpret_cast<void*>(entry_new)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(entry_dealloc)},
                             {Py_tp_traverse, reinterpret_cast<void*>(entry_traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(entry_clear)},
                             {Py_tp_members, entry_members},
                             {Py_tp_doc, const_cast<char*>("CacheEntry(guard_tree, replacement, info=None, hooked=False)\n--\n\n"
                                                           "One compiled form of a function, with the guards under which it is right.")},
                             {0, nullptr}};
PyType_Spec entry_spec = {"argand_dynamo._C.CacheEntry", sizeof(CacheEntryObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, entry_slots};

void clear_entries(CompiledFunctionObject* self) {
  std::vector<CacheEntryObject*> old;
  old.swap(*self->entries);  // their deletion may run code that looks at the list
  for (CacheEntryObject* entry : old) Py_DECREF(object_of(entry));
}

// ---- calling -------------------------------------------------------------------------------------------------------------
// A replacement with the function's signature takes its defaults from the function as it is now.
void sync_defaults(PyFunctionObject* function, PyObject* replacement) {
  if (!PyFunction_Check(replacement)) return;
  auto* to = reinterpret_cast<PyFunctionObject*>(replacement);
  if (to->func_defaults == function->func_defaults && to->func_kwdefaults == function->func_kwdefaults) return;
  auto *code = reinterpret_cast<PyCodeObject*>(function->func_code), *other = reinterpret_cast<PyCodeObject*>(to->func_code);
  if (other->co_argcount != code->co_argcount || other->co_kwonlyargcount != code->co_kwonlyargcount) return;
  Py_XSETREF(to->func_defaults, Py_XNewRef(function->func_defaults));
  Py_XSETREF(to->func_kwdefaults, Py_XNewRef(function->func_kwdefaults));
}

// The first entry that holds, as a new reference, or NULL.
CacheEntryObject* find(CompiledFunctionObject* self, const BoundArguments& bound) {
  Call call = call_of(self->function);
  call.locals = bound.data();
  call.n_locals = bound.size();
  std::vector<CacheEntryObject*>& entries = *self->entries;
  for (size_t i = 0; i < entries.size(); i++) {
    CacheEntryObject* entry = entries[i];
    Py_INCREF(object_of(entry));  // a check may run code that clears the list
    GuardTree* tree = reinterpret_cast<GuardTreeObject*>(entry->guard_tree)->tree;
    if (tree->check(call)) {
      entry->hits++;
      if (i > 0 && i < entries.size() && entries[i] == entry) {
        for (size_t k = i; k > 0; k--) entries[k] = entries[k - 1];
        entries[0] = entry;
      }
      return entry;
    }
    Py_DECREF(object_of(entry));
  }
  return nullptr;
}

PyObject* keyword_dict(PyObject* const* values, PyObject* kwnames) {
  PyObject* kwargs = PyDict_New();
  const Py_ssize_t n = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; kwargs && i < n; i++)
    if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(kwnames, i), values[i]) < 0) Py_CLEAR(kwargs);
  return kwargs;
}

// Asks `miss` what to run: an entry or a callable as a new reference, None for the function itself, NULL + exception.
PyObject* ask(CompiledFunctionObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (self->disabled || !self->miss || self->miss == Py_None) Py_RETURN_NONE;
  Ref positional(PyTuple_New(nargs));
  if (!positional) return nullptr;
  for (Py_ssize_t i = 0; i < nargs; i++) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  Ref kwargs(keyword_dict(args + nargs, kwnames));
  if (!kwargs) return nullptr;
  Ref miss = Ref::borrow(self->miss);
  PyObject* values[] = {reinterpret_cast<PyObject*>(self), positional.get(), kwargs.get()};
  compiling++;
  PyObject* result = PyObject_Vectorcall(miss.get(), values, 3, nullptr);
  compiling--;
  return result;
}

bool all_plain = false;  // all compiled functions run as they are

PyObject* call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  CompiledFunctionObject* self = self_of(callable);
  HookPause pause;
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  auto* function = reinterpret_cast<PyObject*>(self->function);
  if (all_plain) return PyObject_Vectorcall(function, args, nargsf, kwnames);
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (self->function->func_code != self->code) {
      clear_entries(self);
      Py_XSETREF(self->code, Py_NewRef(self->function->func_code));
    }
    Ref chosen;  // an entry, or what `miss` gave
    {
      BoundArguments bound;
      if (!bound.bind(self->function, args, nargs, kwnames)) return PyObject_Vectorcall(function, args, nargsf, kwnames);  // it says what is wrong
      chosen = Ref(object_of(find(self, bound)));
    }
    if (!chosen) chosen = Ref(ask(self, args, nargs, kwnames));
    if (!chosen) return nullptr;
    if (chosen.get() == Py_None) return PyObject_Vectorcall(function, args, nargsf, kwnames);
    PyObject* run = chosen.get();
    if (Py_IS_TYPE(run, cache_entry_type)) {
      run = entry_of(chosen.get())->replacement;
      if (entry_of(chosen.get())->hooked) pause.resume(callable);
    }
    sync_defaults(self->function, run);
    return PyObject_Vectorcall(run, args, nargsf, kwnames);
  });
}

// ---- life ----------------------------------------------------------------------------------------------------------------
PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"function", "miss", nullptr};
  PyObject *function, *miss = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:CompiledFunction", const_cast<char**>(keywords), &function, &miss)) return nullptr;
  if (!PyFunction_Check(function)) return PyErr_Format(PyExc_TypeError, "CompiledFunction: got %R, expected a Python function", function);
  if (miss != Py_None && !PyCallable_Check(miss)) return PyErr_Format(PyExc_TypeError, "CompiledFunction: miss is %R, expected a callable", miss);
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  CompiledFunctionObject* self = self_of(o);
  self->vectorcall = call;
  self->function = reinterpret_cast<PyFunctionObject*>(Py_NewRef(function));
  self->code = Py_NewRef(PyFunction_GET_CODE(function));
  self->miss = Py_NewRef(miss);
  self->dict = PyDict_New();
  if (self->dict && !(self->entries = new (std::nothrow) std::vector<CacheEntryObject*>())) PyErr_NoMemory();
  if (!self->entries) {
    Py_DECREF(o);
    return nullptr;
  }
  return o;
}

int function_traverse(PyObject* o, visitproc visit, void* arg) {
  CompiledFunctionObject* self = self_of(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->function);
  Py_VISIT(self->code);
  Py_VISIT(self->miss);
  Py_VISIT(self->dict);
  if (self->entries)
    for (CacheEntryObject* entry : *self->entries) Py_VISIT(object_of(entry));
  return 0;
}

int function_clear(PyObject* o) {
  CompiledFunctionObject* self = self_of(o);
  if (self->entries) clear_entries(self);
  Py_CLEAR(self->miss);
  Py_CLEAR(self->dict);
  return 0;  // function and code stay: a call during collection still finds them
}

void function_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  CompiledFunctionObject* self = self_of(o);
  PyObject_GC_UnTrack(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  function_clear(o);
  delete std::exchange(self->entries, nullptr);
  Py_CLEAR(self->function);
  Py_CLEAR(self->code);
  type->tp_free(o);
  Py_DECREF(type);
}

// ---- attributes: its own dict, its methods, then the function's ------------------------------------------------------------
PyObject *name_doc, *name_module, *name_qualname;

PyObject* function_getattro(PyObject* o, PyObject* name) {
  CompiledFunctionObject* self = self_of(o);
  if (self->dict) {
    if (PyObject* own = PyDict_GetItemWithError(self->dict, name)) return Py_NewRef(own);
    if (PyErr_Occurred()) return nullptr;
  }
  auto* function = reinterpret_cast<PyObject*>(self->function);
  // The type has these too, but they are to be the function's.
  if (name == name_doc || name == name_module) return PyObject_GetAttr(function, name);
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  found = PyObject_GetAttr(function, name);
  if (!found && PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_Format(PyExc_AttributeError, "compiled function '%U' has no attribute '%U'", self->function->func_name, name);
  return found;
}

PyObject* function_repr(PyObject* o) { return PyUnicode_FromFormat("<compiled function %U at %p>", self_of(o)->function->func_qualname, o); }

PyObject* function_descr_get(PyObject* o, PyObject* instance, PyObject*) {
  return !instance || instance == Py_None ? Py_NewRef(o) : PyMethod_New(o, instance);
}

PyObject* get_wrapped(PyObject* o, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(self_of(o)->function)); }

PyObject* get_entries(PyObject* o, void*) {
  const std::vector<CacheEntryObject*>& entries = *self_of(o)->entries;
  Ref list(PyList_New(static_cast<Py_ssize_t>(entries.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < entries.size(); i++) PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(object_of(entries[i])));
  return list.take();
}

// ---- methods -------------------------------------------------------------------------------------------------------------
PyObject* add_entry(PyObject* o, PyObject* entry) {
  if (!Py_IS_TYPE(entry, cache_entry_type)) return PyErr_Format(PyExc_TypeError, "add_entry: got %R, expected a CacheEntry", entry);
  return guarded<PyObject*>(nullptr, [&] {
    std::vector<CacheEntryObject*>& entries = *self_of(o)->entries;
    entries.insert(entries.begin(), entry_of(entry));
    Py_INCREF(entry);
    return Py_NewRef(Py_None);
  });
}

PyObject* remove_entry(PyObject* o, PyObject* entry) {
  std::vector<CacheEntryObject*>& entries = *self_of(o)->entries;
  for (size_t i = 0; i < entries.size(); i++) {
    if (object_of(entries[i]) != entry) continue;
    entries.erase(entries.begin() + static_cast<ptrdiff_t>(i));
    Py_DECREF(entry);
    Py_RETURN_TRUE;
  }
  Py_RETURN_FALSE;
}

PyObject* clear_method(PyObject* o, PyObject*) {
  clear_entries(self_of(o));
  Py_RETURN_NONE;
}

// The call's arguments as a vector, with the names of those given by keyword.
struct Arguments {
  std::vector<PyObject*> values;
  Ref names;
  Py_ssize_t positional = 0;

  bool parse(const char* format, PyObject* args) {
    PyObject *given, *kwargs = nullptr;
    if (!PyArg_ParseTuple(args, format, &PyTuple_Type, &given, &PyDict_Type, &kwargs)) return false;
    positional = PyTuple_GET_SIZE(given);
    for (Py_ssize_t i = 0; i < positional; i++) values.push_back(PyTuple_GET_ITEM(given, i));
    if (!kwargs || !PyDict_GET_SIZE(kwargs)) return true;
    names = Ref(PyTuple_New(PyDict_GET_SIZE(kwargs)));
    if (!names) return false;
    PyObject *key, *value;
    for (Py_ssize_t position = 0, i = 0; PyDict_Next(kwargs, &position, &key, &value); i++) {
      PyTuple_SET_ITEM(names.get(), i, Py_NewRef(key));
      values.push_back(value);
    }
    return true;
  }
};

PyObject* bind_method(PyObject* o, PyObject* args) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Arguments given;
    if (!given.parse("O!|O!:bind", args)) return nullptr;
    BoundArguments bound;
    if (!bound.bind(self_of(o)->function, given.values.data(), given.positional, given.names.get())) Py_RETURN_NONE;
    Ref result(checked(PyTuple_New(bound.size())));
    for (Py_ssize_t i = 0; i < bound.size(); i++) PyTuple_SET_ITEM(result.get(), i, Py_NewRef(bound.data()[i]));
    return result.take();
  });
}

PyObject* explain_method(PyObject* o, PyObject* args) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Arguments given;
    if (!given.parse("O!|O!:explain", args)) return nullptr;
    BoundArguments bound;
    Ref result(checked(PyList_New(0)));
    CompiledFunctionObject* self = self_of(o);
    if (!bound.bind(self->function, given.values.data(), given.positional, given.names.get())) return result.take();
    Call call = call_of(self->function);
    call.locals = bound.data();
    call.n_locals = bound.size();
    Ref entries(checked(get_entries(o, nullptr)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries.get()); i++) {
      PyObject* tree = entry_of(PyList_GET_ITEM(entries.get(), i))->guard_tree;
      Ref why(checked(explain(reinterpret_cast<GuardTreeObject*>(tree), call, self->function->func_code)));
      if (PyList_Append(result.get(), why.get()) < 0) throw PythonError{};
    }
    return result.take();
  });
}

// A function is copied as itself and pickled by its name; so is this.
PyObject* itself(PyObject* o, PyObject*) { return Py_NewRef(o); }
PyObject* reduce(PyObject* o, PyObject*) { return PyObject_GetAttr(reinterpret_cast<PyObject*>(self_of(o)->function), name_qualname); }

PyMethodDef methods[] = {
    {"add_entry", add_entry, METH_O, "add_entry(entry)\n--\n\nPuts a CacheEntry first."},
    {"remove_entry", remove_entry, METH_O, "remove_entry(entry)\n--\n\nTakes an entry out; False if it is not there."},
    {"clear", clear_method, METH_NOARGS, "clear()\n--\n\nForgets all entries. Calls that run one of them go on."},
    {"bind", bind_method, METH_VARARGS,
     "bind(args, kwargs={})\n--\n\nThe values of the function's parameters in the order of co_varnames, or None if it does not take these "
     "arguments."},
    {"explain", explain_method, METH_VARARGS,
     "explain(args, kwargs={})\n--\n\nFor each entry (index of its first guard that fails, text), or None where all its guards hold."},
    {"__copy__", itself, METH_NOARGS, nullptr},
    {"__deepcopy__", itself, METH_O, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, weakrefs), READONLY, nullptr},
    {"miss", T_OBJECT, offsetof(CompiledFunctionObject, miss), 0, "callable(compiled, args, kwargs) -> CacheEntry, callable or None"},
    {"disabled", T_BOOL, offsetof(CompiledFunctionObject, disabled), 0, "If set, a call for which no entry holds runs the function."},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef getset[] = {{"__wrapped__", get_wrapped, nullptr, "The function.", nullptr},
                        {"entries", get_entries, nullptr, "The entries, most recently used first; a copy of the list.", nullptr},
                        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(function_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_getattro, reinterpret_cast<void*>(function_getattro)},
                       {Py_tp_setattro, reinterpret_cast<void*>(PyObject_GenericSetAttr)},
                       {Py_tp_repr, reinterpret_cast<void*>(function_repr)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(function_descr_get)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {Py_tp_doc, const_cast<char*>("CompiledFunction(function, miss=None)\n--\n\n"
                                                     "Runs the first of its entries whose guards hold. If none does, runs what miss(compiled, args, "
                                                     "kwargs) returns, a CacheEntry or a callable, or the function itself if that is None.")},
                       {0, nullptr}};
PyType_Spec spec = {"argand_dynamo._C.CompiledFunction", sizeof(CompiledFunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};

}  // namespace

bool is_compiling() { return compiling > 0; }

bool exchange_all_plain(bool value) { return std::exchange(all_plain, value); }

int init_compiled_function_type(PyObject* module) {
  name_doc = PyUnicode_InternFromString("__doc__");
  name_module = PyUnicode_InternFromString("__module__");
  name_qualname = PyUnicode_InternFromString("__qualname__");
  cache_entry_type = add_type(module, &entry_spec);
  compiled_function_type = cache_entry_type && name_doc && name_module && name_qualname ? add_type(module, &spec) : nullptr;
  return compiled_function_type ? 0 : -1;
}

}  // namespace argand::dynamo
