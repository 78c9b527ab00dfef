// GuardTree as Python sees it.
#include <Python.h>
#include <structmember.h>

#include "packages/dynamo/csrc/types.h"

namespace argand::dynamo {

PyTypeObject* guard_tree_type = nullptr;

namespace {

GuardTreeObject* self_of(PyObject* o) { return reinterpret_cast<GuardTreeObject*>(o); }

int tree_traverse(PyObject* o, visitproc visit, void* arg) {
  GuardTreeObject* self = self_of(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->guards);
  Py_VISIT(self->globals);
  Py_VISIT(self->closure);
  Py_VISIT(self->freevars);
  return self->tree ? self->tree->traverse(visit, arg) : 0;
}

int tree_clear(PyObject* o) {
  GuardTreeObject* self = self_of(o);
  delete std::exchange(self->tree, nullptr);
  Py_CLEAR(self->guards);
  Py_CLEAR(self->globals);
  Py_CLEAR(self->closure);
  Py_CLEAR(self->freevars);
  return 0;
}

void tree_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  tree_clear(o);
  type->tp_free(o);
  Py_DECREF(type);
}

// What is kept for explanations: ID guards hold their object weakly here too, as `(source, "ID", weak reference)`.
PyObject* without_owners(PyObject* guards) {
  const Py_ssize_t n = PyTuple_GET_SIZE(guards);
  Ref result(checked(PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* guard = PyTuple_GET_ITEM(guards, i);
    PyObject* value = PyTuple_GET_ITEM(guard, 2);
    const bool weak = PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(guard, 1), "ID") == 0 && is_held_weakly(value);
    if (weak) {
      Ref reference(checked(PyWeakref_NewRef(value, nullptr)));
      PyTuple_SET_ITEM(result.get(), i, checked(PyTuple_Pack(3, PyTuple_GET_ITEM(guard, 0), PyTuple_GET_ITEM(guard, 1), reference.get())));
    } else {
      PyTuple_SET_ITEM(result.get(), i, Py_NewRef(guard));
    }
  }
  return result.take();
}

PyObject* tree_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"guards", "globals", "closure", "freevars", nullptr};
  PyObject *guards, *globals = Py_None, *closure = Py_None, *freevars = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO!:GuardTree", const_cast<char**>(keywords), &guards, &globals, &closure, &PyTuple_Type,
                                   &freevars))
    return nullptr;
  if (globals != Py_None && !PyDict_Check(globals)) return PyErr_Format(PyExc_TypeError, "GuardTree: globals is %R, expected a dict", globals);
  if (closure != Py_None && !PyTuple_Check(closure)) return PyErr_Format(PyExc_TypeError, "GuardTree: closure is %R, expected a tuple", closure);
  return guarded<PyObject*>(nullptr, [&] {
    Ref list(checked(PySequence_Tuple(guards)));
    auto tree = std::make_unique<GuardTree>(list.get());
    Ref self(checked(type->tp_alloc(type, 0)));
    self_of(self.get())->tree = tree.release();
    self_of(self.get())->guards = without_owners(list.get());
    self_of(self.get())->globals = globals == Py_None ? nullptr : Py_NewRef(globals);
    self_of(self.get())->closure = closure == Py_None ? nullptr : Py_NewRef(closure);
    self_of(self.get())->freevars = Py_XNewRef(freevars);
    return self.take();
  });
}

// (args, function=None): args are the frame's first locals.
bool parse_call(GuardTreeObject* self, const char* name, PyObject* const* args, Py_ssize_t nargs, Call* call, PyObject** code) {
  if (nargs < 1 || nargs > 2 || !PyTuple_Check(args[0])) {
    PyErr_Format(PyExc_TypeError, "GuardTree.%s: expected (args, function=None) with the values of the parameters in a tuple", name);
    return false;
  }
  *code = nullptr;
  if (nargs == 2 && args[1] != Py_None) {
    if (!PyFunction_Check(args[1])) {
      PyErr_Format(PyExc_TypeError, "GuardTree.%s: function is %R, expected a Python function", name, args[1]);
      return false;
    }
    *call = call_of(reinterpret_cast<PyFunctionObject*>(args[1]));
    *code = PyFunction_GET_CODE(args[1]);
  } else {
    call->globals = self->globals;
    call->closure = self->closure;
    call->names = self->freevars;
  }
  call->locals = &PyTuple_GET_ITEM(args[0], 0);
  call->n_locals = PyTuple_GET_SIZE(args[0]);
  return true;
}

PyObject* tree_check(PyObject* o, PyObject* const* args, Py_ssize_t nargs) {
  Call call;
  PyObject* code;
  if (!parse_call(self_of(o), "check", args, nargs, &call, &code)) return nullptr;
  return guarded<PyObject*>(nullptr, [&] { return PyBool_FromLong(self_of(o)->tree->check(call)); });
}

PyObject* tree_explain(PyObject* o, PyObject* const* args, Py_ssize_t nargs) {
  Call call;
  PyObject* code;
  if (!parse_call(self_of(o), "explain", args, nargs, &call, &code)) return nullptr;
  return explain(self_of(o), call, code);
}

PyObject* tree_alive(PyObject* o, void*) { return PyBool_FromLong(self_of(o)->tree->alive()); }

PyCFunction fast(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t)) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)); }

PyMethodDef methods[] = {{"check", fast(tree_check), METH_FASTCALL,
                          "check(args, function=None)\n--\n\nDo all guards hold for a call of `function` whose parameters, in the order of "
                          "co_varnames, have these values."},
                         {"explain", fast(tree_explain), METH_FASTCALL,
                          "explain(args, function=None)\n--\n\n(index of the first guard that fails, text for people), or None if all hold."},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {{"guards", T_OBJECT, offsetof(GuardTreeObject, guards), READONLY,
                          "The guards as they were given; objects of ID guards by weak reference where they allow it."},
                         {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef getset[] = {{"alive", tree_alive, nullptr, "False once an object that a guard expects by identity is gone.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(tree_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(tree_dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(tree_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(tree_clear)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {Py_tp_doc, const_cast<char*>("GuardTree(guards, globals=None, closure=None, freevars=())\n--\n\n"
                                                     "Facts (source, kind, value) that a compiled program relies on, checked together.\n\n"
                                                     "globals, closure and freevars stand for the function where check() is called without one.")},
                       {0, nullptr}};
PyType_Spec spec = {"argand_dynamo._C.GuardTree", sizeof(GuardTreeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

PyObject* explain(GuardTreeObject* tree, const Call& call, PyObject* code) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Failure failure;
    if (tree->tree->check(call, &failure)) Py_RETURN_NONE;
    Ref module(checked(PyImport_ImportModule("argand_dynamo.guards")));
    Ref locals(checked(PyTuple_New(call.n_locals)));
    for (Py_ssize_t i = 0; i < call.n_locals; i++) PyTuple_SET_ITEM(locals.get(), i, Py_NewRef(call.locals[i] ? call.locals[i] : Py_None));
    Ref text(checked(PyObject_CallMethod(module.get(), "describe_failure", "(OOOOO)", PyTuple_GET_ITEM(tree->guards, failure.guard),
                                         failure.value ? Py_True : Py_False, failure.value ? failure.value.get() : Py_None, locals.get(),
                                         code ? code : Py_None)));
    return checked(Py_BuildValue("(iO)", failure.guard, text.get()));
  });
}

int init_guard_tree_type(PyObject* module) {
  guard_tree_type = add_type(module, &spec);
  return guard_tree_type ? 0 : -1;
}

}  // namespace argand::dynamo
