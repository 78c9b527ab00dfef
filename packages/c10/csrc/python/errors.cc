// Python exceptions of the ABI's error kinds.
#include "packages/c10/csrc/abi/linalg_error.h"
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

PyObject* device_error = nullptr;
PyObject* dtype_error = nullptr;
static PyObject* shape_error = nullptr;
static PyObject* out_of_memory_error = nullptr;
static PyObject* linalg_error = nullptr;

static PyObject* exception_for(int kind) {
  switch (kind) {
    case ARGAND_VALUE_ERROR:
      return PyExc_ValueError;
    case ARGAND_TYPE_ERROR:
      return PyExc_TypeError;
    case ARGAND_INDEX_ERROR:
      return PyExc_IndexError;
    case ARGAND_NOT_IMPLEMENTED_ERROR:
      return PyExc_NotImplementedError;
    case ARGAND_OUT_OF_MEMORY_ERROR:
      return out_of_memory_error;
    case ARGAND_SHAPE_ERROR:
      return shape_error;
    case ARGAND_DTYPE_ERROR:
      return dtype_error;
    case ARGAND_DEVICE_ERROR:
      return device_error;
    case ARGAND_LINALG_ERROR:
      return linalg_error;
    default:
      return PyExc_RuntimeError;
  }
}

PyObject* raise(int status) {
  int kind = status;
  const char* message = api->last_error(&kind);
  if (status == ARGAND_PYTHON_ERROR || kind == ARGAND_PYTHON_ERROR) {
    if (PyErr_Occurred()) return nullptr;  // it travels as it is
  }
  if (!message || !*message) message = "unknown error";
  if (kind == ARGAND_INTERNAL_ERROR)
    PyErr_Format(PyExc_RuntimeError, "internal error, please report it: %s", message);
  else
    PyErr_SetString(exception_for(kind), message);
  return nullptr;
}

static PyObject* add_exception(PyObject* module, const char* name, const char* doc, PyObject* base = PyExc_RuntimeError) {
  std::string full = std::string("argand_c10.errors.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  if (type && PyModule_AddObjectRef(module, name, type) < 0) Py_CLEAR(type);
  return type;
}

int init_errors(PyObject* module) {
  shape_error = add_exception(module, "ShapeError", "Sizes or dimensions do not fit the operation.");
  const Ref dtype_bases(PyTuple_Pack(2, PyExc_NotImplementedError, PyExc_TypeError));
  if (!dtype_bases) return -1;
  dtype_error = add_exception(module, "DTypeError", "The operation does not take these dtypes.", dtype_bases.get());
  device_error = add_exception(module, "DeviceError", "Tensors are on the wrong device, or the device is not there.");
  out_of_memory_error = add_exception(module, "OutOfMemoryError", "A device's memory is exhausted.");
  linalg_error = add_exception(module, "LinAlgError", "A factorization does not exist or did not converge.");
  return linalg_error && shape_error && dtype_error && device_error && out_of_memory_error ? 0 : -1;
}

}  // namespace argand::py
