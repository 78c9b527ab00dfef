// The arguments of a call in the order of the function's co_varnames, as its frame would have them.
#pragma once

#include "packages/dynamo/csrc/binding.h"

namespace argand::dynamo {

class BoundArguments {
 public:
  // False, without an exception, if the function does not take these arguments. Everything but *args and **kwargs is borrowed.
  bool bind(PyFunctionObject* function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
    if (!kwnames && nargs == code->co_argcount && !code->co_kwonlyargcount && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS))) {
      data_ = args;
      size_ = nargs;
      return true;
    }
    return bind_slowly(function, code, args, nargs, kwnames);
  }
  PyObject* const* data() const { return data_; }
  Py_ssize_t size() const { return size_; }

 private:
  bool bind_slowly(PyFunctionObject* function, PyCodeObject* code, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
  bool bind_keywords(PyCodeObject* code, PyObject** slots, PyObject* const* values, PyObject* kwnames);
  bool fill_defaults(PyFunctionObject* function, PyCodeObject* code, PyObject** slots);

  static constexpr Py_ssize_t kInline = 24;
  PyObject* const* data_ = nullptr;
  Py_ssize_t size_ = 0;
  PyObject* inline_[kInline];
  Ref heap_;  // bytes that hold the slots of a function with many parameters
  Ref star_, keywords_, defaults_;
};

// Number of a code object's parameters, *args and **kwargs included: what a frame's first locals are.
inline Py_ssize_t parameter_count(const PyCodeObject* code) {
  return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
}

}  // namespace argand::dynamo
