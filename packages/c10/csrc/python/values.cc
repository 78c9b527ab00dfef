// Elements of tensors and ABI values as Python objects, and back.
#include <cmath>
#include <cstring>

#include "packages/c10/csrc/core/float8.h"
#include "packages/c10/csrc/python/binding.h"
#include "packages/c10/csrc/python/half.h"

namespace argand::py {

template <class T>
static T read(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T>
static void write(void* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

PyObject* load_element(const void* p, int dtype) {
  switch (dtype) {
    case ARGAND_BOOL:
      return PyBool_FromLong(read<uint8_t>(p));
    case ARGAND_UINT8:
      return PyLong_FromLong(read<uint8_t>(p));
    case ARGAND_INT8:
      return PyLong_FromLong(read<int8_t>(p));
    case ARGAND_INT16:
      return PyLong_FromLong(read<int16_t>(p));
    case ARGAND_INT32:
      return PyLong_FromLong(read<int32_t>(p));
    case ARGAND_INT64:
      return PyLong_FromLongLong(read<int64_t>(p));
    case ARGAND_UINT16:
      return PyLong_FromLong(read<uint16_t>(p));
    case ARGAND_UINT32:
      return PyLong_FromUnsignedLong(read<uint32_t>(p));
    case ARGAND_UINT64:
      return PyLong_FromUnsignedLongLong(read<uint64_t>(p));
    case ARGAND_FLOAT16:
      return PyFloat_FromDouble(float16_to_float(read<uint16_t>(p)));
    case ARGAND_BFLOAT16:
      return PyFloat_FromDouble(bfloat16_to_float(read<uint16_t>(p)));
    case ARGAND_FLOAT32:
      return PyFloat_FromDouble(read<float>(p));
    case ARGAND_FLOAT64:
      return PyFloat_FromDouble(read<double>(p));
    case ARGAND_FLOAT8_E4M3FN:
      return PyFloat_FromDouble(Float8E4M3::decode(read<uint8_t>(p)));
    case ARGAND_FLOAT8_E5M2:
      return PyFloat_FromDouble(Float8E5M2::decode(read<uint8_t>(p)));
    case ARGAND_COMPLEX64:
      return PyComplex_FromDoubles(read<float>(p), read<float>(static_cast<const char*>(p) + 4));
    default:
      return PyComplex_FromDoubles(read<double>(p), read<double>(static_cast<const char*>(p) + 8));
  }
}

static int no_fit(int dtype) {
  PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", kDTypeName[dtype]);
  return -1;
}

// Floats are cut towards zero. Negative numbers wrap into unsigned dtypes but uint64, as in C; nothing else may overflow.
static int store_integer(void* p, int dtype, PyObject* number) {
  __int128 value;
  if (PyFloat_Check(number)) {
    double d = PyFloat_AS_DOUBLE(number);
    if (!(std::fabs(d) < 0x1p64)) return no_fit(dtype);
    value = static_cast<__int128>(d);
  } else {
    int overflow = 0;
    Ref index(PyNumber_Index(number));
    if (!index) return -1;
    value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
    if (overflow > 0) value = PyLong_AsUnsignedLongLong(index.get());
    if (PyErr_Occurred() || overflow < 0 || (overflow && dtype != ARGAND_UINT64)) {
      PyErr_Format(dtype == ARGAND_UINT64 ? PyExc_OverflowError : PyExc_ValueError, "Overflow: got the int %R, which %s cannot hold", number,
                   kDTypeName[dtype]);
      return -1;
    }
  }
  const bool is_unsigned = dtype == ARGAND_UINT8 || is_wide_unsigned(dtype);
  const __int128 high = (__int128{1} << (8 * item_size(dtype) - !is_unsigned)) - 1;
  const __int128 low = dtype == ARGAND_UINT64 ? 0 : is_unsigned ? -high : -high - 1;
  if (value < 0 && dtype == ARGAND_UINT64) {
    PyErr_Format(PyExc_OverflowError, "can't convert negative int to unsigned: got %R for uint64, expected a number from 0", number);
    return -1;
  }
  if (value < low || value > high) return no_fit(dtype);
  const auto bits = static_cast<uint64_t>(value);
  std::memcpy(p, &bits, static_cast<size_t>(item_size(dtype)));  // little-endian: the low bytes
  return 0;
}

int store_element(void* p, int dtype, PyObject* number) {
  if (dtype == ARGAND_BOOL) {
    int truth = PyObject_IsTrue(number);
    if (truth >= 0) write(p, static_cast<uint8_t>(truth));
    return truth < 0 ? -1 : 0;
  }
  if (is_complex(dtype)) {
    Py_complex c = PyComplex_AsCComplex(number);
    if (c.real == -1.0 && PyErr_Occurred()) return -1;
    if (dtype == ARGAND_COMPLEX64) {
      write(p, static_cast<float>(c.real));
      write(static_cast<char*>(p) + 4, static_cast<float>(c.imag));
    } else {
      write(p, c.real);
      write(static_cast<char*>(p) + 8, c.imag);
    }
    return 0;
  }
  if (PyComplex_Check(number)) {
    PyErr_Format(PyExc_TypeError, "tensor: got the complex number %R, expected a real one for %s", number, kDTypeName[dtype]);
    return -1;
  }
  if (is_integral(dtype, false)) return store_integer(p, dtype, number);
  double d = PyFloat_AsDouble(number);
  if (d == -1.0 && PyErr_Occurred()) return -1;
  switch (dtype) {
    case ARGAND_FLOAT16:
      write(p, float_to_float16(static_cast<float>(d)));
      break;
    case ARGAND_BFLOAT16:
      write(p, float_to_bfloat16(static_cast<float>(d)));
      break;
    case ARGAND_FLOAT32:
      write(p, static_cast<float>(d));
      break;
    case ARGAND_FLOAT8_E4M3FN:
      write(p, Float8E4M3::encode(static_cast<float>(d)));
      break;
    case ARGAND_FLOAT8_E5M2:
      write(p, Float8E5M2::encode(static_cast<float>(d)));
      break;
    default:
      write(p, d);
      break;
  }
  return 0;
}

bool is_numpy_scalar(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == tensor_type) return false;
  for (; type; type = type->tp_base)
    if (std::strcmp(type->tp_name, "numpy.generic") == 0) return true;
  return false;
}

// ---- reading tensors ---------------------------------------------------------------------------------------------------------
// Copies `nbytes` at t's data + `skip` bytes to the host.
static bool copy_to_host(ArgandTensor* t, const char* what, int64_t skip, size_t nbytes, void* out) {
  ArgandDevice device = t->storage->device;
  const ArgandDeviceInterface* interface = api->device_interface(ARGAND_DEVICE_TYPE(device));
  if (ARGAND_DEVICE_TYPE(device) == ARGAND_META || !interface || !interface->copy) {
    PyErr_Format(PyExc_NotImplementedError, "Tensor.%s() cannot be called on %s tensors: they have no data", what, device_type_name(device));
    return false;
  }
  const char* from = static_cast<const char*>(t->data) + skip;
  PyThreadState* thread = interface->stream_current ? PyEval_SaveThread() : nullptr;  // it may wait long for the device
  int status = interface->copy(out, ARGAND_DEVICE(ARGAND_CPU, 0), from, device, nbytes);
  if (thread) PyEval_RestoreThread(thread);
  if (status) raise(status);
  return !status;
}

bool HostData::open(ArgandTensor* t, const char* what) {
  if (ARGAND_DEVICE_TYPE(t->storage->device) == ARGAND_CPU) {
    data_ = static_cast<const char*>(t->data);
    return true;
  }
  int64_t last = 0;
  for (int i = 0; i < t->ndim; i++) last += (t->sizes[i] - 1) * t->strides[i];
  size_t nbytes = t->numel ? static_cast<size_t>((last + 1) * item_size(t->dtype)) : 0;
  copy_.resize(nbytes);
  data_ = copy_.data();
  return copy_to_host(t, what, 0, nbytes, copy_.data());
}

PyObject* item(ArgandTensor* t) {
  if (t->numel != 1)
    return PyErr_Format(PyExc_RuntimeError, "a Tensor with %lld elements cannot be converted to Scalar", static_cast<long long>(t->numel));
  if (!may_read(t)) return nullptr;
  if (ARGAND_DEVICE_TYPE(t->storage->device) == ARGAND_CPU) return load_element(t->data, t->dtype);
  char element[16];
  if (!copy_to_host(t, "item", 0, static_cast<size_t>(item_size(t->dtype)), element)) return nullptr;
  return load_element(element, t->dtype);
}

// Nested lists; of a dimension longer than 2 * edge only its two edges (edge 0: all of it).
static PyObject* nested_list(ArgandTensor* t, const char* data, int d, int64_t edge) {
  if (d == t->ndim) return load_element(data, t->dtype);
  int64_t size = t->sizes[d], step = t->strides[d] * item_size(t->dtype);
  bool cut = edge > 0 && size > 2 * edge;
  int64_t n = cut ? 2 * edge : size;
  Ref list(PyList_New(static_cast<Py_ssize_t>(n)));
  if (!list) return nullptr;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = cut && i >= edge ? size - n + i : i;
    PyObject* entry = nested_list(t, data + at * step, d + 1, edge);
    if (!entry) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), entry);
  }
  return list.take();
}
// The same of a large tensor on another device: only the elements that are shown travel.
static PyObject* remote_list(ArgandTensor* t, int64_t skip, int d, int64_t edge) {
  if (d == t->ndim) {
    char element[16];
    return copy_to_host(t, "tolist", skip, static_cast<size_t>(item_size(t->dtype)), element) ? load_element(element, t->dtype) : nullptr;
  }
  const int64_t size = t->sizes[d], width = item_size(t->dtype);
  const bool cut = size > 2 * edge;
  const int64_t n = cut ? 2 * edge : size;
  const bool row = d == t->ndim - 1 && t->strides[d] == 1;
  std::string elements(row ? static_cast<size_t>(n * width) : 0, 0);
  const int64_t head = cut ? edge : n;
  if (row && n && !copy_to_host(t, "tolist", skip, static_cast<size_t>(head * width), elements.data())) return nullptr;
  if (row && cut && !copy_to_host(t, "tolist", skip + (size - edge) * width, static_cast<size_t>(edge * width), elements.data() + head * width))
    return nullptr;
  Ref list(PyList_New(static_cast<Py_ssize_t>(n)));
  if (!list) return nullptr;
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = cut && i >= edge ? size - n + i : i;
    PyObject* entry = row ? load_element(elements.data() + i * width, t->dtype) : remote_list(t, skip + at * t->strides[d] * width, d + 1, edge);
    if (!entry) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), entry);
  }
  return list.take();
}

PyObject* edge_list(ArgandTensor* t, int64_t edge_items) {
  constexpr int64_t kWhole = 1 << 20;  // bytes that travel faster as one than as many pieces
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(t->storage->device);
  if (edge_items > 0 && type != ARGAND_CPU && type != ARGAND_META && t->numel * item_size(t->dtype) > kWhole) return remote_list(t, 0, 0, edge_items);
  HostData host;
  return host.open(t, "tolist") ? nested_list(t, host.data(), 0, edge_items) : nullptr;
}
PyObject* tolist(ArgandTensor* t) { return may_read(t) ? edge_list(t, 0) : nullptr; }

// ---- ABI values -----------------------------------------------------------------------------------------------------------------
static PyObject* list_of(const ArgandValue* v) {
  Ref list(PyList_New(v->len));
  for (uint32_t i = 0; list && i < v->len; i++) {
    PyObject* entry = v->tag == ARGAND_TAG_FLOAT_LIST  ? PyFloat_FromDouble(v->floats[i])
                      : v->tag == ARGAND_TAG_BOOL_LIST ? PyBool_FromLong(v->ints[i] != 0)
                                                       : PyLong_FromLongLong(v->ints[i]);
    if (!entry) return nullptr;
    PyList_SET_ITEM(list.get(), i, entry);
  }
  return list.take();
}

// What is neither tensor nor list of tensors.
static PyObject* plain_value(const ArgandValue* v) {
  switch (v->tag) {
    case ARGAND_TAG_BOOL:
      return PyBool_FromLong(v->i != 0);
    case ARGAND_TAG_INT:
      return beyond_int64(*v) ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(v->i)) : PyLong_FromLongLong(v->i);
    case ARGAND_TAG_FLOAT:
      return PyFloat_FromDouble(v->d);
    case ARGAND_TAG_COMPLEX:
      return PyComplex_FromDoubles(v->c.re, v->c.im);
    case ARGAND_TAG_STRING:
      return PyUnicode_FromStringAndSize(v->s, v->len);
    case ARGAND_TAG_DTYPE:
      return dtype_object(static_cast<int>(v->i));
    case ARGAND_TAG_DEVICE:
      return device_object(static_cast<ArgandDevice>(v->i));
    case ARGAND_TAG_GENERATOR:
      return v->p ? generator_object(static_cast<ArgandGenerator*>(v->p)) : Py_NewRef(Py_None);
    case ARGAND_TAG_INT_LIST:
    case ARGAND_TAG_FLOAT_LIST:
    case ARGAND_TAG_BOOL_LIST:
      return list_of(v);
    default:
      Py_RETURN_NONE;
  }
}

PyObject* borrow_value(const ArgandValue* v) {
  if (v->tag == ARGAND_TAG_TENSOR) {
    retain(v->t);
    return wrap(v->t);
  }
  if (v->tag == ARGAND_TAG_OBJECT) return Py_NewRef(static_cast<PyObject*>(v->p));
  if (v->tag != ARGAND_TAG_TENSOR_LIST) return plain_value(v);
  Ref list(PyList_New(v->len));
  for (uint32_t i = 0; list && i < v->len; i++) {
    retain(v->tensors[i]);
    PyObject* entry = wrap(v->tensors[i]);
    if (!entry) return nullptr;
    PyList_SET_ITEM(list.get(), i, entry);
  }
  return list.take();
}

PyObject* from_value(ArgandValue* v) {
  PyObject* result = nullptr;
  if (v->tag == ARGAND_TAG_TENSOR) {
    result = wrap(v->t);
  } else if (v->tag == ARGAND_TAG_OBJECT) {
    result = static_cast<PyObject*>(v->p);
  } else if (v->tag == ARGAND_TAG_TENSOR_LIST) {
    Ref tuple(PyTuple_New(v->len));
    bool failed = !tuple;
    for (uint32_t i = 0; i < v->len; i++) {
      PyObject* entry = wrap(v->tensors[i]);  // takes each tensor, also after a failure
      failed = failed || !entry;
      if (tuple) PyTuple_SET_ITEM(tuple.get(), i, entry);
    }
    api->free_array(v->tensors);
    if (!failed) result = tuple.take();
  } else {
    result = plain_value(v);
    if (v->tag == ARGAND_TAG_INT_LIST || v->tag == ARGAND_TAG_BOOL_LIST) api->free_array(const_cast<int64_t*>(v->ints));
    if (v->tag == ARGAND_TAG_FLOAT_LIST) api->free_array(const_cast<double*>(v->floats));
  }
  *v = ArgandValue{};
  return result;
}

}  // namespace argand::py
