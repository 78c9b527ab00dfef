// What the files of c10's Python binding share. All functions need the GIL unless they say otherwise.
#pragma once

#include <Python.h>

#include <cstring>
#include <string>

#include "packages/c10/csrc/abi/python_api.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::py {

// ---- objects -------------------------------------------------------------------------------------------------------
// A tensor and its object own each other by turns: while Python holds the object, the object owns one reference to the
// tensor; while only C++ holds the tensor, the tensor owns the object (ARGAND_TENSOR_OWNS_PYOBJECT).
struct TensorObject {
  PyObject_HEAD ArgandTensor* tensor;
  PyObject* dict;
  PyObject* weakrefs;
  bool releasing;  // the tensor is on its way out and takes the object with it
};

struct DTypeObject {
  PyObject_HEAD int code;
};

struct DeviceObject {
  PyObject_HEAD ArgandDevice device;
};

struct GeneratorObject {
  PyObject_HEAD ArgandGenerator* generator;  // owned
};

extern PyTypeObject* tensor_type;
extern PyTypeObject* size_type;
extern PyTypeObject* dtype_type;
extern PyTypeObject* device_type;
extern PyTypeObject* generator_type;
extern PyTypeObject* storage_type;
extern PyTypeObject* operator_type;

inline bool is_tensor_exact(PyObject* o) { return Py_TYPE(o) == tensor_type; }
inline bool is_tensor(PyObject* o) { return is_tensor_exact(o) || PyType_IsSubtype(Py_TYPE(o), tensor_type); }
inline ArgandTensor* tensor_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->tensor; }
inline void release(ArgandTensor* t) { argand::Tensor::release(t); }
inline void retain(ArgandTensor* t) { argand::Tensor::retain(t); }

// A type of the module. Python's own messages name it as ours do, without its module: "Tensor".
inline PyTypeObject* new_type(PyObject* module, PyType_Spec* spec, PyTypeObject* base = nullptr) {
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, spec, reinterpret_cast<PyObject*>(base)));
  if (type) type->tp_name = strrchr(spec->name, '.') + 1;
  return type;
}

// An owned Python reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* o) : o_(o) {}  // steals
  Ref(Ref&& other) noexcept : o_(other.take()) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* old = o_;
    o_ = other.take();
    Py_XDECREF(old);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(o_); }
  PyObject* get() const { return o_; }
  PyObject* take() {
    PyObject* o = o_;
    o_ = nullptr;
    return o;
  }
  explicit operator bool() const { return o_ != nullptr; }

 private:
  PyObject* o_ = nullptr;
};
inline Ref new_ref(PyObject* o) {
  Py_XINCREF(o);
  return Ref(o);
}

// Names that are looked up often, interned once.
struct Names {
  PyObject *argand_function, *argand_dispatch, *item, *out, *requires_grad, *layout, *pin_memory, *dtype, *device;
};
extern Names names;

// ---- tensor_type.cc ------------------------------------------------------------------------------------------------
PyObject* wrap(ArgandTensor* t);                         // steals; NULL -> None
PyObject* wrap_as(PyTypeObject* type, ArgandTensor* t);  // steals a tensor that has no object yet
ArgandTensor* unwrap(PyObject* o);                       // borrowed; NULL + TypeError
int init_tensor_type(PyObject* module);
int tensor_set_attr(const char* name, PyObject* value);
int tensor_add_getset(PyGetSetDef* defs);
int tensor_add_methods(PyMethodDef* defs);
void tensor_set_collector(int (*traverse)(ArgandTensor*, visitproc, void*), void (*clear)(ArgandTensor*));
extern PyGetSetDef tensor_getset[];                 // tensor_attributes.cc
extern PyMethodDef tensor_methods[];                // tensor_methods.cc
void add_tensor_slots(PyType_Slot* slots, int* n);  // tensor_slots.cc
int tensor_set_slot(ArgandTensorSlot slot, PyObject* op);
void tensor_set_indexing(PyObject* (*get)(PyObject*, PyObject*), int (*set)(PyObject*, PyObject*, PyObject*));

// ---- errors.cc -----------------------------------------------------------------------------------------------------
PyObject* raise(int status);  // the thread's error as a Python exception; returns NULL
int init_errors(PyObject* module);
extern PyObject* device_error;
extern PyObject* dtype_error;

// Runs body() (which may throw argand::Error) and turns its error into a Python exception; `failed` is returned then.
template <class R, class Body>
R guard(R failed, Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    raise(api->set_error(e.kind, e.message.c_str()));
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return failed;
}

// ---- descriptors.cc: dtype and device objects ------------------------------------------------------------------------
int init_descriptors(PyObject* module);
bool is_signed(int dtype);                     // can hold negative numbers
PyObject* dtype_object(int code);              // new reference
PyObject* device_object(ArgandDevice device);  // new reference
// 1: converted, 0: not such a thing, -1: exception. Text is "float32", "cpu", "cuda:1".
int dtype_from(PyObject* o, int* out);
int device_from(PyObject* o, ArgandDevice* out);
const char* device_type_name(ArgandDevice device);

// ---- modes.cc --------------------------------------------------------------------------------------------------------
// Where this thread makes tensors when nothing else says it.
ArgandDevice default_device();
void set_default_device(ArgandDevice device);

// ---- size_type.cc ----------------------------------------------------------------------------------------------------
int init_size(PyObject* module);
PyObject* size_object(const int64_t* sizes, Py_ssize_t n);
PyObject* int_tuple(const int64_t* values, Py_ssize_t n);

// ---- generator_type.cc, storage_type.cc --------------------------------------------------------------------------------
int init_generator(PyObject* module);
extern PyMethodDef generator_functions[];
PyObject* generator_object(ArgandGenerator* generator);  // the same object for the same generator
int init_storage(PyObject* module);
PyObject* storage_object(ArgandStorage* storage);  // adds a reference
ArgandStorage* storage_of(PyObject* o);            // borrowed, NULL + TypeError

// ---- values.cc: elements and numbers -----------------------------------------------------------------------------------
bool may_lend(ArgandTensor* t);  // the same before its memory is given to others, which a mode may refuse of a tensor that stands for several
bool may_read(ArgandTensor* t);  // modes.cc; false + exception where a mode refuses to make numbers of the elements
PyObject* load_element(const void* p, int dtype);
int store_element(void* p, int dtype, PyObject* number);  // -1 + exception
bool is_numpy_scalar(PyObject* o);                        // without importing NumPy
int dtype_of_numpy(PyObject* o);                          // of an array or a scalar; -1 where no dtype of ours holds it
PyObject* item(ArgandTensor* t);                          // the only element as a number
PyObject* tolist(ArgandTensor* t);
PyObject* edge_list(ArgandTensor* t, int64_t edge_items);  // tolist of the corners of a large tensor; 0: of everything
// A tensor's elements where the processor can read them: in place, or copied from another device.
class HostData {
 public:
  bool open(ArgandTensor* t, const char* what);  // false + exception, as for tensors without data
  const char* data() const { return data_; }

 private:
  const char* data_ = nullptr;
  std::string copy_;
};

// ---- factories.cc, interop.cc, dlpack.cc -----------------------------------------------------------------------------
extern PyMethodDef slot_functions[];  // tensor_slots.cc
extern PyMethodDef factory_functions[];
extern PyMethodDef interop_functions[];
extern PyMethodDef runtime_functions[];
extern PyMethodDef cuda_functions[];        // cuda.cc
extern PyMethodDef profiler_functions[];    // profiler.cc
PyObject* pin_memory_of(PyObject* tensor);  // a copy in page-locked memory
PyObject* cuda_array_interface(PyObject* tensor, void*);
extern PyBufferProcs tensor_buffer;
bool read_ints(PyObject* sequence, int64_t* dims, int32_t* n);               // at most ARGAND_MAX_DIMS; false + exception
PyObject* tensor_from_data(PyObject* data, int dtype, ArgandDevice device);  // dtype NONE: inferred; copies
void gather_elements(const ArgandTensor* t, char* out);                      // of the CPU, in row-major order
PyObject* tensor_numpy(PyObject* self, bool force);
PyObject* tensor_array(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* tensor_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
PyObject* tensor_dlpack_device(PyObject* self, PyObject*);
bool is_ndarray(PyObject* o);
PyObject* tensor_from_numpy(PyObject* array);
PyObject* from_dlpack(PyObject* module, PyObject* args, PyObject* kwargs);
bool is_buffer_reached(const ArgandStorage* s);  // memory of an array or another buffer that others than the storage may hold
bool is_of_dlpack(const ArgandStorage* s);       // memory of another library

// ---- values and results ------------------------------------------------------------------------------------------------
PyObject* from_value(ArgandValue* v);          // consumes v
PyObject* borrow_value(const ArgandValue* v);  // a Python object for an argument; v stays as it is

// ---- overrides.cc: __argand_function__ ---------------------------------------------------------------------------------
bool type_has_override(PyTypeObject* type);
inline bool has_override(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || o == Py_None || type == &PyUnicode_Type)
    return false;
  return type_has_override(type);
}
// In how many threads functions' modes are set; where there are none, plain arguments need not be looked at.
extern int threads_with_modes;
// 1: an override took the call (*result is its value, or NULL with an exception); 0: none is there.
int call_override(PyObject* op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** result);
// The same for a factory, by what `_override_factories` has set.
int call_factory(PyObject* op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** result);
int init_overrides(PyObject* module);

// ---- operator_type.cc --------------------------------------------------------------------------------------------------
int init_operator(PyObject* module);
PyObject* operator_new(const ArgandBinding* binding);
PyObject* operator_method(PyObject* op);              // the same callable as a method descriptor; new reference
PyObject* overload_object(const ArgandOperator* op);  // borrowed, made from the operator's schema; NULL + exception
const ArgandBinding* operator_binding(PyObject* op);
PyObject* call_operator(PyObject* op, PyObject* const* args, size_t nargs, PyObject* kwnames);
// Calls a registered operator and wraps its results. The GIL is released around large ones.
PyObject* dispatch(const ArgandOperator* op, const ArgandValue* args, PyTypeObject* result_type);

// ---- modes.cc, python_kernels.cc ----------------------------------------------------------------------------------------
int init_modes(PyObject* module);
extern PyMethodDef registration_functions[];
extern PyMethodDef backend_functions[];
int dispatch_key_of(const char* function, const char* name);  // of "cpu", "privateuse1", ...; -1 + exception in the name of `function`
// Positional and keyword objects for an operator's arguments, trailing defaults left out.
int python_arguments(const ArgandOperator* op, const ArgandValue* args, Ref* positional, Ref* keywords);
// A Python result into values, by number of results; -1 + exception.
int python_results(const ArgandOperator* op, PyObject* result, ArgandValue* rets);

}  // namespace argand::py
