#include "packages/dynamo/csrc/bound_arguments.h"

#include <algorithm>

namespace argand::dynamo {

namespace {

// Index of the parameter `name` among [first, last), or -1.
Py_ssize_t find_parameter(PyCodeObject* code, PyObject* name, Py_ssize_t first, Py_ssize_t last) {
  PyObject* names = code->co_localsplusnames;
  for (Py_ssize_t i = first; i < last; i++)
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  for (Py_ssize_t i = first; i < last; i++)
    if (PyUnicode_Check(name) && PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) return i;
  return -1;
}

}  // namespace

bool BoundArguments::bind_keywords(PyCodeObject* code, PyObject** slots, PyObject* const* values, PyObject* kwnames) {
  const Py_ssize_t n = PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    const Py_ssize_t at = find_parameter(code, name, code->co_posonlyargcount, code->co_argcount + code->co_kwonlyargcount);
    if (at >= 0) {
      if (slots[at]) return false;
      slots[at] = values[i];
    } else if (!keywords_ || PyDict_SetItem(keywords_.get(), name, values[i]) < 0) {
      PyErr_Clear();
      return false;
    }
  }
  return true;
}

bool BoundArguments::fill_defaults(PyFunctionObject* function, PyCodeObject* code, PyObject** slots) {
  const Py_ssize_t argcount = code->co_argcount;
  defaults_ = Ref::borrow(function->func_defaults);
  const Py_ssize_t n = defaults_ ? PyTuple_GET_SIZE(defaults_.get()) : 0;
  for (Py_ssize_t i = 0; i < argcount; i++) {
    if (slots[i]) continue;
    const Py_ssize_t k = i - (argcount - n);
    if (k < 0) return false;
    slots[i] = PyTuple_GET_ITEM(defaults_.get(), k);
  }
  for (Py_ssize_t i = argcount; i < argcount + code->co_kwonlyargcount; i++) {
    if (slots[i]) continue;
    PyObject* defaults = function->func_kwdefaults;
    slots[i] = defaults ? PyDict_GetItemWithError(defaults, PyTuple_GET_ITEM(code->co_localsplusnames, i)) : nullptr;
    if (!slots[i]) {
      PyErr_Clear();
      return false;
    }
  }
  return true;
}

bool BoundArguments::bind_slowly(PyFunctionObject* function, PyCodeObject* code, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  const Py_ssize_t argcount = code->co_argcount, named = argcount + code->co_kwonlyargcount;
  size_ = parameter_count(code);
  PyObject** slots = inline_;
  if (size_ > kInline) {
    heap_ = Ref(PyBytes_FromStringAndSize(nullptr, size_ * static_cast<Py_ssize_t>(sizeof(PyObject*))));
    if (!heap_) {
      PyErr_Clear();
      return false;
    }
    slots = reinterpret_cast<PyObject**>(PyBytes_AS_STRING(heap_.get()));
  }
  std::fill_n(slots, size_, nullptr);
  std::copy_n(args, std::min(nargs, argcount), slots);
  if (code->co_flags & CO_VARARGS) {
    const Py_ssize_t extra = std::max<Py_ssize_t>(nargs - argcount, 0);
    star_ = Ref(PyTuple_New(extra));
    if (!star_) {
      PyErr_Clear();
      return false;
    }
    for (Py_ssize_t i = 0; i < extra; i++) PyTuple_SET_ITEM(star_.get(), i, Py_NewRef(args[argcount + i]));
    slots[named] = star_.get();
  } else if (nargs > argcount) {
    return false;
  }
  if (code->co_flags & CO_VARKEYWORDS) {
    keywords_ = Ref(PyDict_New());
    slots[size_ - 1] = keywords_.get();
  }
  if (kwnames && !bind_keywords(code, slots, args + nargs, kwnames)) return false;
  data_ = slots;
  return fill_defaults(function, code, slots);
}

}  // namespace argand::dynamo
