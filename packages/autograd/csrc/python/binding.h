// What the files of the Python binding share. Functions need the GIL unless they say otherwise.
#pragma once

#include <Python.h>

#include <vector>

#include "packages/autograd/csrc/hooks.h"
#include "packages/autograd/csrc/node.h"
#include "packages/c10/csrc/abi/python_api.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::autograd::binding {

extern const ArgandPythonApi* python;

// Holds the GIL, from any thread.
class Gil {
 public:
  Gil() : state_(PyGILState_Ensure()) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Lets other threads run Python meanwhile.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  // A daemon thread that comes back while the interpreter ends is ended by unwinding.
  ~WithoutGil() noexcept(false) { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// An owned Python reference.
class Object {
 public:
  Object() = default;
  static Object steal(PyObject* o) {
    Object r;
    r.o_ = o;
    return r;
  }
  static Object borrow(PyObject* o) {
    Py_XINCREF(o);
    return steal(o);
  }
  Object(Object&& o) noexcept : o_(o.take()) {}
  Object(const Object&) = delete;
  Object& operator=(Object o) noexcept {
    std::swap(o_, o.o_);
    return *this;
  }
  ~Object() { Py_XDECREF(o_); }
  PyObject* get() const { return o_; }
  PyObject* take() { return std::exchange(o_, nullptr); }
  explicit operator bool() const { return o_ != nullptr; }

 private:
  PyObject* o_ = nullptr;
};

// The interpreter is going away: Python objects must be left alone.
bool finalizing();

// A Python exception is set; it travels through C++ as this.
[[noreturn]] void throw_python();
inline Object checked(PyObject* o) {  // steals; throws on NULL
  if (!o) throw_python();
  return Object::steal(o);
}

PyObject* raise(const Error& e);  // returns NULL

// Runs body() and turns a C++ error into a Python exception; `failed` is returned then.
template <class R, class Body>
R guard(R failed, Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    raise(e);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return failed;
}

inline bool is_tensor(PyObject* o) { return PyObject_TypeCheck(o, python->tensor_type); }
ArgandTensor* self_of(PyObject* o);  // borrowed; throws
Tensor unwrap(PyObject* o);          // throws if it is no tensor
Object wrap(Tensor t);               // undefined: None

// ---- node_object.cc ------------------------------------------------------------------------------------------------
int init_node_type(PyObject* module);
Object node_object(Node* node);  // the same object for the same node while it lives; None for NULL
Node* node_of(PyObject* o);      // borrowed; throws if it is no node

// ---- hooks.cc ------------------------------------------------------------------------------------------------------
int init_handle_type(PyObject* module);
// Python's collector has to know tensors whose hooks or contexts may refer to them.
inline void track(PyObject* tensor) {
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}
// What the hooks of `t`, and the context of a Function that nothing but `t` keeps, refer to, as tp_traverse and tp_clear of its object have it.
int traverse_tensor(ArgandTensor* t, visitproc visit, void* arg);
void clear_tensor(ArgandTensor* t);
Object add_tensor_hook(ArgandTensor* t, PyObject* function);
Object add_leaf_hook(ArgandTensor* t, PyObject* function);
Object add_node_hook(Node* node, PyObject* function, bool before);
PyObject* push_saved_tensor_hooks(PyObject*, PyObject* args);
PyObject* pop_saved_tensor_hooks(PyObject*, PyObject*);
PyObject* has_saved_tensor_hooks(PyObject*, PyObject*);

// ---- function.cc ---------------------------------------------------------------------------------------------------
int init_function_type(PyObject* module);
PyObject* merge_places(PyObject*, PyObject* const* args, Py_ssize_t nargs);
PyObject* function_apply(PyObject*, PyObject* const* args, Py_ssize_t nargs);
PyObject* function_context(Node* node);  // borrowed; NULL if the node is not a custom Function's

// ---- graph_function.cc ---------------------------------------------------------------------------------------------
int init_graph_function_type(PyObject* module);

// ---- backward.cc ---------------------------------------------------------------------------------------------------
PyObject* run_backward_function(PyObject*, PyObject* const* args, Py_ssize_t nargs);
PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// ---- tensor_attributes.cc --------------------------------------------------------------------------------------------
int init_tensor_attributes();

}  // namespace argand::autograd::binding
