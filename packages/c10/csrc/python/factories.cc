// Tensors from Python data: numbers, nested sequences, NumPy arrays, bytes.
#include <cstring>

#include "packages/c10/csrc/abi/python_entries.h"
#include "packages/c10/csrc/core/strided.h"
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

constexpr ArgandDevice kCpu = ARGAND_DEVICE(ARGAND_CPU, 0);

// ---- shape and dtype of nested data -----------------------------------------------------------------------------------------
static bool is_text(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }
static bool is_nested(PyObject* o) { return PySequence_Check(o) && !is_tensor(o) && !is_text(o) && !PyDict_Check(o); }  // a tensor is a number

struct Inferred {
  int64_t sizes[ARGAND_MAX_DIMS];
  int32_t ndim = 0;
  int dtype = -1;  // of what was seen so far
};

// Follows the first entries down.
static bool infer_shape(PyObject* data, Inferred& inferred) {
  Ref current = new_ref(data);
  while (is_nested(current.get())) {
    Py_ssize_t n = PySequence_Size(current.get());
    if (n < 0) return false;
    if (inferred.ndim == ARGAND_MAX_DIMS) {
      PyErr_Format(PyExc_ValueError, "tensor(): got more than %d dimensions; does a sequence contain itself?", ARGAND_MAX_DIMS);
      return false;
    }
    inferred.sizes[inferred.ndim++] = n;
    if (n == 0) return true;
    current = Ref(PySequence_GetItem(current.get(), 0));
    if (!current) return false;
  }
  return true;
}

static int dtype_of_number(PyObject* o) {  // -1: no number
  if (is_tensor(o)) return tensor_of(o)->dtype;
  int standard = api->default_dtype();
  if (PyBool_Check(o)) return ARGAND_BOOL;
  if (PyLong_Check(o)) return ARGAND_INT64;
  if (PyFloat_CheckExact(o)) return standard;
  if (is_numpy_scalar(o)) return dtype_of_numpy(o);
  if (PyFloat_Check(o)) return standard;
  if (PyComplex_Check(o)) return standard == ARGAND_FLOAT64 ? ARGAND_COMPLEX128 : ARGAND_COMPLEX64;
  return -1;
}

static bool infer_dtype(PyObject* data, Inferred& inferred, int depth = 0) {
  const bool array = is_ndarray(data);
  if (array || !is_nested(data)) {
    int dtype = array ? dtype_of_numpy(data) : dtype_of_number(data);
    if (dtype < 0) {
      PyErr_Format(
          !is_text(data)  ? PyExc_RuntimeError
          : inferred.ndim ? PyExc_ValueError
                          : PyExc_TypeError,
          is_text(data) ? "tensor(): invalid data type '%s'; expected numbers" : "tensor(): could not infer the dtype of %s; expected numbers",
          Py_TYPE(data)->tp_name);
      return false;
    }
    const int before = inferred.dtype < 0 ? dtype : inferred.dtype;
    inferred.dtype = api->promote_types(before, dtype);
    if (inferred.dtype != ARGAND_DTYPE_NONE) return true;
    PyErr_Format(PyExc_RuntimeError, "tensor(): got numbers of %s and %s, which no dtype has in common; say dtype=", kDTypeName[before],
                 kDTypeName[dtype]);
    return false;
  }
  if (depth == ARGAND_MAX_DIMS) {
    PyErr_Format(PyExc_TypeError, "tensor(): got sequences nested more than %d deep, or one that holds itself, expected numbers", depth);
    return false;
  }
  Ref sequence(PySequence_Fast(data, "tensor(): expected a sequence of numbers"));
  if (!sequence) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); i++)
    if (!infer_dtype(PySequence_Fast_GET_ITEM(sequence.get(), i), inferred, depth + 1)) return false;
  return true;
}

// ---- filling ------------------------------------------------------------------------------------------------------------------
static bool fill_number(void* p, int dtype, PyObject* o) {
  if (!is_tensor(o)) {
    if (is_text(o) || o == Py_None || PyDict_Check(o)) {
      PyErr_Format(PyExc_TypeError, "tensor(): got %s among the data, expected numbers", Py_TYPE(o)->tp_name);
      return false;
    }
    return store_element(p, dtype, o) == 0;
  }
  if (tensor_of(o)->numel != 1) {
    PyErr_Format(is_floating(dtype) || is_complex(dtype) ? PyExc_ValueError : PyExc_TypeError,
                 "tensor(): only one element tensors can be converted to Python scalars, got one of %lld among the data; use stack()",
                 static_cast<long long>(tensor_of(o)->numel));
    return false;
  }
  Ref number(item(tensor_of(o)));
  return number && store_element(p, dtype, number.get()) == 0;
}

// `p` is where the elements of dimension `d` and those inside of it begin.
static bool fill(ArgandTensor* t, PyObject* data, int d, char* p) {
  if (d == t->ndim) {
    if (is_nested(data)) {
      PyErr_Format(PyExc_TypeError, "tensor(): got a %s at dim %d where other entries are numbers", Py_TYPE(data)->tp_name, d);
      return false;
    }
    return fill_number(p, t->dtype, data);
  }
  if (!is_nested(data)) {
    PyErr_Format(PyExc_TypeError, "tensor(): got a %s at dim %d, expected a sequence of length %lld", Py_TYPE(data)->tp_name, d,
                 static_cast<long long>(t->sizes[d]));
    return false;
  }
  Ref sequence(PySequence_Fast(data, "tensor(): expected a sequence"));
  if (!sequence) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence.get());
  if (n != t->sizes[d]) {
    PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %zd)", static_cast<long long>(t->sizes[d]), d, n);
    return false;
  }
  for (Py_ssize_t i = 0; i < n; i++)
    if (!fill(t, PySequence_Fast_GET_ITEM(sequence.get(), i), d + 1, p + i * t->strides[d] * item_size(t->dtype))) return false;
  return true;
}

// ---- copies ---------------------------------------------------------------------------------------------------------------------
// Elements into memory where they lie by `strides`.
static void gather(const ArgandTensor* t, const char* data, int d, char* out, const int64_t* strides) {
  const int64_t width = item_size(t->dtype);
  if (d == t->ndim) {
    std::memcpy(out, data, static_cast<size_t>(width));
  } else if (d == t->ndim - 1 && t->strides[d] == 1 && strides[d] == 1) {
    std::memcpy(out, data, static_cast<size_t>(t->sizes[d] * width));
  } else {
    for (int64_t i = 0; i < t->sizes[d]; i++) gather(t, data + i * t->strides[d] * width, d + 1, out + i * strides[d] * width, strides);
  }
}

void gather_elements(const ArgandTensor* t, char* out) {
  gather(t, static_cast<const char*>(t->data), 0, out, contiguous_strides({t->sizes, t->ndim}).d);
}

// A copy of dense elements, which lie as they did, on another device, or on the same one; NULL + exception.
static ArgandTensor* copy_dense(ArgandTensor* t, ArgandDevice device) {
  ArgandTensor* copy = nullptr;
  int status = api->tensor_empty_strided(t->ndim, t->sizes, t->strides, t->dtype, device, &copy);
  if (!status && t->numel && ARGAND_DEVICE_TYPE(device) != ARGAND_META) {
    const ArgandDevice from = t->storage->device, to = copy->storage->device;
    const ArgandDeviceType type = ARGAND_DEVICE_TYPE(to) == ARGAND_CPU ? ARGAND_DEVICE_TYPE(from) : ARGAND_DEVICE_TYPE(to);
    status = api->device_interface(type)->copy(copy->data, to, t->data, from, static_cast<size_t>(t->numel * item_size(t->dtype)));
    if (status) release(copy);
  }
  if (!status) return copy;
  raise(status);
  return nullptr;
}

static bool move_to(ArgandTensor*& t, ArgandDevice device) {
  if (device == t->storage->device) return true;
  ArgandTensor* moved = copy_dense(t, device);
  release(t);
  t = moved;
  return moved != nullptr;
}

static bool lie_alike(const ArgandTensor* t, const int64_t* strides) {
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] > 1 && t->strides[d] != strides[d]) return false;
  return true;
}

// The copy keeps the order of dimensions in memory.
static PyObject* copy_of(ArgandTensor* source, int dtype, ArgandDevice device) {
  HostData host;
  if (!may_lend(source)) return nullptr;
  if (dtype == ARGAND_DTYPE_NONE) dtype = source->dtype;
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(source->storage->device);
  const bool meta = type == ARGAND_META && ARGAND_DEVICE_TYPE(device) == ARGAND_META;
  if (type != ARGAND_CPU && type != ARGAND_META && dtype == source->dtype && (source->flags & ARGAND_TENSOR_CONTIGUOUS)) {
    ArgandTensor* copy = copy_dense(source, device);
    return copy ? wrap(copy) : nullptr;
  }
  if (!meta && !host.open(source, "tensor")) return nullptr;
  ArgandTensor* t = nullptr;
  const Dims strides = dense_strides({source->sizes, source->ndim}, {source->strides, source->ndim});
  if (int status = api->tensor_empty_strided(source->ndim, source->sizes, strides.d, dtype, meta ? device : kCpu, &t)) return raise(status);
  bool done = true;
  if (meta || !t->numel) {
  } else if (dtype == source->dtype) {
    if (lie_alike(source, strides.d))
      std::memcpy(t->data, host.data(), static_cast<size_t>(t->numel * item_size(dtype)));
    else
      gather(source, host.data(), 0, static_cast<char*>(t->data), strides.d);
  } else {
    Ref list(tolist(source));
    done = list && fill(t, list.get(), 0, static_cast<char*>(t->data));
  }
  if (!done) release(t);
  return done && move_to(t, device) ? wrap(t) : nullptr;
}

static bool is_expanded(const ArgandTensor* t) {
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] > 1 && t->strides[d] == 0) return true;
  return false;
}

// What NumPy would lay otherwise than tensors (expanded dimensions) is copied here before NumPy converts it.
static PyObject* from_array(PyObject* array, int dtype, ArgandDevice device) {
  Ref view(tensor_from_numpy(array));
  if (!view) {
    PyErr_Clear();
    Ref copy(PyObject_CallMethod(array, "copy", "s", "K"));  // positive strides
    view = Ref(copy ? tensor_from_numpy(copy.get()) : nullptr);
    if (!view) return nullptr;
  }
  if (dtype != ARGAND_DTYPE_NONE && dtype != tensor_of(view.get())->dtype) {
    Ref source = new_ref(array);
    if (is_expanded(tensor_of(view.get()))) {
      Ref dense(copy_of(tensor_of(view.get()), ARGAND_DTYPE_NONE, kCpu));
      source = Ref(dense ? PyObject_CallMethod(dense.get(), "numpy", nullptr) : nullptr);
      if (!source) return nullptr;
    }
    const char* name = dtype == ARGAND_BFLOAT16 || is_float8(dtype) ? "float32" : kDTypeName[dtype];  // NumPy has no such types
    Ref converted(PyObject_CallMethod(source.get(), "astype", "s", name));
    view = Ref(converted ? tensor_from_numpy(converted.get()) : nullptr);
    if (!view) return nullptr;
  }
  return copy_of(tensor_of(view.get()), dtype, device);
}

// Whether there is an array or a scalar of NumPy where the data begins: NumPy reads it.
static bool wants_array(PyObject* data, int depth = 0) {
  if (is_ndarray(data) || is_numpy_scalar(data)) return true;
  bool nested = (PyList_Check(data) || PyTuple_Check(data)) && PySequence_Fast_GET_SIZE(data) > 0;
  return nested && depth < ARGAND_MAX_DIMS && wants_array(PySequence_Fast_GET_ITEM(data, 0), depth + 1);
}

bool read_ints(PyObject* sequence, int64_t* dims, int32_t* n) {
  Ref entries(PySequence_Tuple(sequence));
  if (!entries) return false;
  *n = static_cast<int32_t>(PyTuple_GET_SIZE(entries.get()));
  if (*n > ARGAND_MAX_DIMS) {
    PyErr_Format(PyExc_ValueError, "got %d dimensions, expected at most %d", *n, ARGAND_MAX_DIMS);
    return false;
  }
  for (int32_t i = 0; i < *n; i++) dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(entries.get(), i));
  return !PyErr_Occurred();
}

PyObject* tensor_from_data(PyObject* data, int dtype, ArgandDevice device) {
  if (is_tensor(data)) {
    ArgandTensor* source = unwrap(data);
    return source ? copy_of(source, dtype, device) : nullptr;
  }
  if (wants_array(data)) {
    Ref numpy(PyImport_ImportModule("numpy"));
    Ref array(numpy ? PyObject_CallMethod(numpy.get(), "asarray", "(O)", data) : nullptr);
    if (!array) return nullptr;
    Inferred inferred;
    // NumPy would promote Python's numbers beside its own by its rules.
    if (dtype == ARGAND_DTYPE_NONE && (PyList_Check(data) || PyTuple_Check(data))) {
      if (!infer_dtype(data, inferred)) return nullptr;
      dtype = inferred.dtype;
    }
    return from_array(array.get(), dtype, device);
  }
  Inferred inferred;
  if (!infer_shape(data, inferred)) return nullptr;
  if (dtype == ARGAND_DTYPE_NONE) {
    if (!infer_dtype(data, inferred)) return nullptr;
    dtype = inferred.dtype < 0 ? api->default_dtype() : inferred.dtype;
  }
  ArgandTensor* t = nullptr;
  if (int status = api->tensor_empty(inferred.ndim, inferred.sizes, dtype, kCpu, &t)) return raise(status);
  if (!fill(t, data, 0, static_cast<char*>(t->data))) {
    release(t);
    return nullptr;
  }
  return move_to(t, device) ? wrap(t) : nullptr;
}

// ---- functions ---------------------------------------------------------------------------------------------------------------------
static bool read_options(const char* function, PyObject* dtype, PyObject* device, int* dtype_out, ArgandDevice* device_out) {
  *dtype_out = ARGAND_DTYPE_NONE;
  *device_out = kCpu;
  int status = dtype == Py_None ? 1 : dtype_from(dtype, dtype_out);
  if (status == 0) PyErr_Format(PyExc_TypeError, "%s(): argument 'dtype' must be dtype, not %s", function, Py_TYPE(dtype)->tp_name);
  if (status <= 0) return false;
  status = device == Py_None ? 1 : device_from(device, device_out);
  if (status == 0) PyErr_Format(PyExc_TypeError, "%s(): argument 'device' must be device or str, not %s", function, Py_TYPE(device)->tp_name);
  if (status <= 0) return false;
  if (int failed = api->resolve_device(function, *device_out, device_out)) raise(failed);
  return !PyErr_Occurred();
}

// Of a tensor whose elements are not simply in its memory: sparse ones, and those that stand for entries.
static Ref copy_by_operators(PyObject* data, PyObject* dtype, PyObject* device) {
  Ref detached(PyObject_CallMethod(data, "detach", nullptr));
  Ref to(detached ? PyObject_GetAttrString(detached.get(), "to") : nullptr), none(PyTuple_New(0));
  Ref options(Py_BuildValue("{sOsOsO}", "dtype", dtype, "device", device, "copy", Py_True));
  return Ref(to && none && options ? PyObject_Call(to.get(), none.get(), options.get()) : nullptr);
}

static PyObject* tensor(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"data", "dtype", "device", "requires_grad", "pin_memory", nullptr};
  PyObject *data, *dtype_arg = Py_None, *device_arg = Py_None, *requires_grad = Py_False, *pin_memory = Py_False;
  int dtype;
  ArgandDevice device;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOO!O!:tensor", const_cast<char**>(keywords), &data, &dtype_arg, &device_arg, &PyBool_Type,
                                   &requires_grad, &PyBool_Type, &pin_memory))
    return nullptr;
  if (!read_options("tensor", dtype_arg, device_arg, &dtype, &device)) return nullptr;
  if (is_tensor(data) && PyErr_WarnEx(PyExc_UserWarning,
                                      "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                                      1) < 0)
    return nullptr;
  if (device_arg == Py_None && is_tensor(data)) {
    ArgandTensor* source = unwrap(data);
    if (!source) return nullptr;
    device = source->storage->device;
  } else if (device_arg == Py_None) {
    if (int failed = api->resolve_device("tensor", default_device(), &device)) return raise(failed);
  }
  ArgandTensor* given = is_tensor(data) ? unwrap(data) : nullptr;
  const bool elsewhere = given && (given->keys & ARGAND_KEYBIT(ARGAND_KEY_SPARSE) || argand::stands_for_entries(given));
  Ref result(elsewhere ? copy_by_operators(data, dtype_arg, device_arg) : Ref(tensor_from_data(data, dtype, device)));
  if (result && pin_memory == Py_True) result = Ref(pin_memory_of(result.get()));
  if (result && requires_grad == Py_True && PyObject_SetAttr(result.get(), names.requires_grad, Py_True) < 0) return nullptr;
  return result.take();
}

// The elements as bytes in row-major order: what pickles and files hold.
static PyObject* tensor_to_bytes(PyObject*, PyObject* o) {
  ArgandTensor* t = unwrap(o);
  HostData host;
  if (!t || !may_lend(t) || !host.open(t, "tobytes")) return nullptr;
  Ref bytes(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(t->numel * item_size(t->dtype))));
  if (bytes && t->numel) gather(t, host.data(), 0, PyBytes_AS_STRING(bytes.get()), contiguous_strides({t->sizes, t->ndim}).d);
  return bytes.take();
}

static PyObject* tensor_from_bytes(PyObject*, PyObject* args) {
  Py_buffer buffer;
  PyObject *dtype_arg, *shape;
  int dtype;
  if (!PyArg_ParseTuple(args, "y*OO:_tensor_from_bytes", &buffer, &dtype_arg, &shape)) return nullptr;
  PyObject* result = nullptr;
  ArgandDevice device;
  int64_t dims[ARGAND_MAX_DIMS];
  int32_t ndim;
  if (read_options("_tensor_from_bytes", dtype_arg, Py_None, &dtype, &device) && read_ints(shape, dims, &ndim)) {
    ArgandTensor* t = nullptr;
    if (int status = api->tensor_empty(ndim, dims, dtype, kCpu, &t)) {
      raise(status);
    } else if (t->numel * item_size(dtype) != buffer.len) {
      PyErr_Format(PyExc_ValueError, "_tensor_from_bytes: got %zd bytes, expected %lld", buffer.len,
                   static_cast<long long>(t->numel * item_size(dtype)));
      release(t);
    } else {
      if (t->numel) std::memcpy(t->data, buffer.buf, static_cast<size_t>(buffer.len));
      result = wrap(t);
    }
  }
  PyBuffer_Release(&buffer);
  return result;
}

// A storage of its own with the same bytes, for deep copies that keep tensors of one storage together.
static PyObject* copy_storage(PyObject*, PyObject* o) {
  ArgandStorage *source = storage_of(o), *copy = nullptr;
  if (!source) return nullptr;
  int status = api->storage_new(source->device, source->nbytes, &copy);
  if (status) return raise(status);
  if (source->data && source->nbytes) {
    status =
        api->device_interface(ARGAND_DEVICE_TYPE(source->device))->copy(copy->data, source->device, source->data, source->device, source->nbytes);
  }
  PyObject* result = status ? raise(status) : storage_object(copy);
  if (__atomic_sub_fetch(&copy->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(copy);
  return result;
}

static PyObject* edge_list_function(PyObject*, PyObject* args) {
  PyObject* o;
  long long edge;
  if (!PyArg_ParseTuple(args, "OL:_edge_list", &o, &edge)) return nullptr;
  ArgandTensor* t = unwrap(o);
  return t && may_lend(t) ? edge_list(t, edge) : nullptr;
}

static bool read_geometry(PyObject* size, PyObject* stride, int64_t (*dims)[ARGAND_MAX_DIMS], int32_t* ndim) {
  int32_t n_strides = 0;
  if (!read_ints(size, dims[0], ndim)) return false;
  if (stride == Py_None) return true;
  if (!read_ints(stride, dims[1], &n_strides)) return false;
  if (*ndim == n_strides) return true;
  PyErr_Format(PyExc_ValueError, "got %d sizes and %d strides, expected as many", *ndim, n_strides);
  return false;
}

// Uninitialised tensors and views without the dispatcher; the operators `empty` and `as_strided` of upper layers go through it.
static PyObject* empty_strided(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"size", "stride", "dtype", "device", nullptr};
  PyObject *size, *stride = Py_None, *dtype_arg = Py_None, *device_arg = Py_None;
  int64_t dims[2][ARGAND_MAX_DIMS];
  int32_t ndim;
  int dtype;
  ArgandDevice device;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOO:_empty_strided", const_cast<char**>(keywords), &size, &stride, &dtype_arg, &device_arg))
    return nullptr;
  if (!read_options("_empty_strided", dtype_arg, device_arg, &dtype, &device) || !read_geometry(size, stride, dims, &ndim)) return nullptr;
  if (dtype == ARGAND_DTYPE_NONE) dtype = api->default_dtype();
  ArgandTensor* t = nullptr;
  int status =
      stride == Py_None ? api->tensor_empty(ndim, dims[0], dtype, device, &t) : api->tensor_empty_strided(ndim, dims[0], dims[1], dtype, device, &t);
  return status ? raise(status) : wrap(t);
}
static PyObject* as_strided(PyObject*, PyObject* args) {
  PyObject *self, *size, *stride;
  long long offset = -1;
  int64_t dims[2][ARGAND_MAX_DIMS];
  int32_t ndim;
  if (!PyArg_ParseTuple(args, "OOO|L:_as_strided", &self, &size, &stride, &offset) || !read_geometry(size, stride, dims, &ndim)) return nullptr;
  ArgandTensor *t = unwrap(self), *view = nullptr;
  if (!t) return nullptr;
  int status = api->tensor_view(t, ndim, dims[0], dims[1], offset < 0 ? t->offset : offset, t->dtype, &view);
  return status ? raise(status) : wrap(view);
}

#define KEYWORDS(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), METH_VARARGS | METH_KEYWORDS
PyMethodDef factory_functions[] = {
    {"tensor", KEYWORDS(tensor),
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n\nA new tensor with a copy of numbers, nested sequences, "
     "arrays or another tensor."},
    {"_empty_strided", KEYWORDS(empty_strided),
     "_empty_strided(size, stride=None, dtype=None, device=None)\n\nAn uninitialised tensor, without the dispatcher."},
    {"_as_strided", as_strided, METH_VARARGS,
     "_as_strided(tensor, size, stride, storage_offset=-1)\n\nA view, without the dispatcher and without history; a negative offset is the "
     "tensor's."},
    {"_tensor_to_bytes", tensor_to_bytes, METH_O, "The elements as bytes in row-major order."},
    {"_tensor_from_bytes", tensor_from_bytes, METH_VARARGS, "_tensor_from_bytes(bytes, dtype, shape)"},
    {"_copy_storage", copy_storage, METH_O, "A new storage with the same bytes."},
    {"_edge_list", edge_list_function, METH_VARARGS, "_edge_list(tensor, n): tolist() of the first and last n of each long dimension."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace argand::py
