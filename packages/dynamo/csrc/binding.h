// What the files of dynamo's extension share: owned references, c10's tables, errors. All functions need the GIL.
#pragma once

#include <Python.h>

#include <utility>

#include "packages/c10/csrc/abi/argand.h"
#include "packages/c10/csrc/abi/python_api.h"

namespace argand::dynamo {

extern const ArgandApi* api;
extern const ArgandPythonApi* python;

// An owned reference; empty after a failed call.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* o) : o_(o) {}  // steals
  static Ref borrow(PyObject* o) { return Ref(Py_XNewRef(o)); }
  Ref(Ref&& other) noexcept : o_(std::exchange(other.o_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* old = std::exchange(o_, std::exchange(other.o_, nullptr));
    Py_XDECREF(old);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(o_); }
  PyObject* get() const { return o_; }
  PyObject* take() { return std::exchange(o_, nullptr); }
  explicit operator bool() const { return o_ != nullptr; }

 private:
  PyObject* o_ = nullptr;
};

// Thrown where a Python exception is already set; caught at the entry points of the extension.
struct PythonError {};
inline PyObject* checked(PyObject* o) {
  if (!o) throw PythonError{};
  return o;
}

// Takes the current exception aside for a scope and puts it back: what is called inside may set and clear its own.
class KeepException {
 public:
  KeepException() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeepException() { PyErr_Restore(type_, value_, traceback_); }
  KeepException(const KeepException&) = delete;
  KeepException& operator=(const KeepException&) = delete;

 private:
  PyObject *type_, *value_, *traceback_;
};

// Runs body() (which may throw PythonError) and turns a C++ exception into a Python one; `failed` is returned then.
template <class R, class Body>
R guarded(R failed, Body&& body) noexcept {
  try {
    return body();
  } catch (const PythonError&) {
  } catch (...) {
    PyErr_NoMemory();  // the containers of this library throw nothing else
  }
  return failed;
}

// One PyTypeObject of a module, made from its spec and added under the name after the last dot.
PyTypeObject* add_type(PyObject* module, PyType_Spec* spec);

}  // namespace argand::dynamo
