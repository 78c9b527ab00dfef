// Methods of Tensor that need no operator.
#include <cstring>

#include "packages/c10/csrc/abi/python_entries.h"
#include "packages/c10/csrc/python/constants.h"

namespace argand::py {

// The only argument of a method, positional or named; *out stays NULL when it is not given.
static int optional_argument(const char* method, const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** out) {
  Py_ssize_t n_keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (nargs + n_keywords > 1) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most 1 argument but %zd were given", method, nargs + n_keywords);
    return -1;
  }
  if (n_keywords && !(PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), name) == 0)) {
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", method, PyTuple_GET_ITEM(kwnames, 0));
    return -1;
  }
  if (nargs + n_keywords == 1) *out = args[0];
  return 0;
}

// A dimension argument as 0..ndim-1; -1 + exception.
static int wrap_dimension(const char* method, PyObject* o, ArgandTensor* t) {
  Py_ssize_t dim = PyNumber_AsSsize_t(o, PyExc_IndexError);
  if (dim == -1 && PyErr_Occurred()) return -1;
  Py_ssize_t range = t->ndim ? t->ndim : 1;
  if (t->ndim == 0) {
    PyErr_Format(PyExc_IndexError, "%s: Dimension specified as %zd but tensor has no dimensions", method, dim);
    return -1;
  }
  if (dim < -range || dim >= range) {
    PyErr_Format(PyExc_IndexError, "%s: Dimension out of range (expected to be in range of [%zd, %zd], but got %zd)", method, -range, range - 1, dim);
    return -1;
  }
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

#define FASTCALL PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames

static PyObject* method_size(PyObject* self, FASTCALL) {
  ArgandTensor* t = unwrap(self);
  PyObject* dim = nullptr;
  if (!t || optional_argument("size", "dim", args, nargs, kwnames, &dim) < 0) return nullptr;
  if (!dim || dim == Py_None) return size_object(t->sizes, t->ndim);
  int d = wrap_dimension("size", dim, t);
  return d < 0 ? nullptr : PyLong_FromLongLong(t->sizes[d]);
}
static PyObject* method_stride(PyObject* self, FASTCALL) {
  ArgandTensor* t = unwrap(self);
  PyObject* dim = nullptr;
  if (!t || optional_argument("stride", "dim", args, nargs, kwnames, &dim) < 0) return nullptr;
  if (!dim || dim == Py_None) return int_tuple(t->strides, t->ndim);
  int d = wrap_dimension("stride", dim, t);
  return d < 0 ? nullptr : PyLong_FromLongLong(t->strides[d]);
}

// Dense with the channel dimension (1) innermost.
static bool is_channels_last(ArgandTensor* t, int ndim) {
  if (t->ndim != ndim) return false;
  int64_t expected = 1;
  for (int i = 0; i < ndim; i++) {
    int d = i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;
    if (t->sizes[d] != 1 && t->strides[d] != expected) return false;
    expected *= t->sizes[d];
  }
  return true;
}
static PyObject* method_is_contiguous(PyObject* self, FASTCALL) {
  ArgandTensor* t = unwrap(self);
  PyObject* format = nullptr;
  if (!t || optional_argument("is_contiguous", "memory_format", args, nargs, kwnames, &format) < 0) return nullptr;
  if (format == channels_last) return PyBool_FromLong(is_channels_last(t, 4));
  if (format == channels_last_3d) return PyBool_FromLong(is_channels_last(t, 5));
  if (format && format != contiguous_format)
    return PyErr_Format(PyExc_TypeError, "is_contiguous(): argument 'memory_format' must be a memory_format other than preserve_format, not %R",
                        format);
  return PyBool_FromLong(t->flags & ARGAND_TENSOR_CONTIGUOUS);
}

#define SIMPLE_METHOD(name, expression)                       \
  static PyObject* method_##name(PyObject* self, PyObject*) { \
    ArgandTensor* t = unwrap(self);                           \
    return t ? (expression) : nullptr;                        \
  }
SIMPLE_METHOD(storage_offset, PyLong_FromLongLong(t->offset))
SIMPLE_METHOD(data_ptr, may_lend(t) ? PyLong_FromVoidPtr(t->data) : nullptr)
SIMPLE_METHOD(numel, PyLong_FromLongLong(t->numel))
SIMPLE_METHOD(use_count, PyLong_FromLong(static_cast<long>(__atomic_load_n(&t->refcount, __ATOMIC_ACQUIRE))))
SIMPLE_METHOD(dim, PyLong_FromLong(t->ndim))
SIMPLE_METHOD(element_size, PyLong_FromLong(item_size(t->dtype)))
SIMPLE_METHOD(is_floating_point, PyBool_FromLong(is_floating(t->dtype)))
SIMPLE_METHOD(is_complex, PyBool_FromLong(is_complex(t->dtype)))
SIMPLE_METHOD(is_signed, PyBool_FromLong(is_signed(t->dtype)))
SIMPLE_METHOD(is_inference, PyBool_FromLong((t->flags & ARGAND_TENSOR_INFERENCE) != 0))
SIMPLE_METHOD(is_view, PyBool_FromLong(t->base != nullptr))
SIMPLE_METHOD(get_device, PyLong_FromLong(ARGAND_DEVICE_TYPE(t->storage->device) == ARGAND_CPU ? -1 : ARGAND_DEVICE_INDEX(t->storage->device)))
SIMPLE_METHOD(item, item(t))
SIMPLE_METHOD(tolist, tolist(t))
SIMPLE_METHOD(untyped_storage, may_lend(t) ? storage_object(t->storage) : nullptr)

static PyObject* method_complex(PyObject* self, PyObject*) {
  ArgandTensor* t = unwrap(self);
  if (t && t->numel != 1)
    return PyErr_Format(PyExc_ValueError, "complex(): only one element tensors can be converted to Python scalars, got one of %lld elements",
                        static_cast<long long>(t->numel));
  Ref number(t ? item(t) : nullptr);
  if (!number) return nullptr;
  Py_complex value = PyComplex_AsCComplex(number.get());
  return value.real == -1.0 && PyErr_Occurred() ? nullptr : PyComplex_FromCComplex(value);
}
static PyObject* method_numpy(PyObject* self, FASTCALL) {
  PyObject* force = nullptr;
  if (optional_argument("numpy", "force", args, nargs, kwnames, &force) < 0) return nullptr;
  if (force && !PyBool_Check(force)) return PyErr_Format(PyExc_TypeError, "numpy(): argument 'force' must be bool, not %s", Py_TYPE(force)->tp_name);
  return tensor_numpy(self, force == Py_True);
}
static PyObject* method_is_same_size(PyObject* self, PyObject* other) {
  ArgandTensor *a = unwrap(self), *b = a ? unwrap(other) : nullptr;
  if (!b) return nullptr;
  return PyBool_FromLong(a->ndim == b->ndim && std::memcmp(a->sizes, b->sizes, sizeof(int64_t) * static_cast<size_t>(a->ndim)) == 0);
}

// ---- set_ -------------------------------------------------------------------------------------------------------------------
// Checked before anything is changed.
static bool geometry_fits(ArgandStorage* storage, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int dtype) {
  __int128 last = offset;
  bool empty = false, valid = offset >= 0;
  int64_t span = item_size(dtype);  // of what sizes of 0 do not hide, as every tensor's
  for (int32_t i = 0; i < ndim; i++) {
    valid = valid && sizes[i] >= 0 && strides[i] >= 0 && !__builtin_mul_overflow(span, sizes[i] > 1 ? sizes[i] : 1, &span);
    empty = empty || sizes[i] == 0;
    last += static_cast<__int128>(sizes[i] - 1) * strides[i];
  }
  __int128 needed = empty ? 0 : (last + 1) * item_size(dtype);
  if (valid && needed <= static_cast<__int128>(storage->nbytes)) return true;
  Ref size(int_tuple(sizes, ndim)), stride(int_tuple(strides, ndim));
  if (size && stride)
    PyErr_Format(PyExc_RuntimeError, "set_: got size %R, stride %R and storage offset %lld of %s, expected them to fit into a storage of %zu bytes",
                 size.get(), stride.get(), static_cast<long long>(offset), kDTypeName[dtype], storage->nbytes);
  return false;
}

// set_(source, storage_offset=0, size=None, stride=None): source is a tensor or a storage; set_() empties the tensor.
static PyObject* method_set(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"source", "storage_offset", "size", "stride", nullptr};
  PyObject *source = Py_None, *size = Py_None, *stride = Py_None;
  long long offset = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OLOO:set_", const_cast<char**>(keywords), &source, &offset, &size, &stride)) return nullptr;
  ArgandTensor* t = unwrap(self);
  if (!t) return nullptr;
  if (argand::stands_for_entries(t)) {
    PyErr_SetString(PyExc_RuntimeError, "set_: got a tensor that stands for the entries of a vmap, expected one with memory of its own; use copy_()");
    return nullptr;
  }
  int64_t sizes[ARGAND_MAX_DIMS] = {0}, strides[ARGAND_MAX_DIMS] = {1};
  int32_t ndim = 1, n_strides = 1;
  ArgandStorage* storage = nullptr;
  ArgandStorage* fresh = nullptr;
  const int dtype = t->dtype;
  if (source == Py_None) {
    if (int status = api->storage_new(t->storage->device, 0, &fresh)) return raise(status);
    storage = fresh;
  } else if (is_tensor(source)) {
    ArgandTensor* other = unwrap(source);
    if (!other || !may_lend(other)) return nullptr;
    if (other->dtype != dtype)
      return PyErr_Format(PyExc_RuntimeError, "set_: got a source of dtype %s for a tensor of dtype %s, expected the same", kDTypeName[other->dtype],
                          kDTypeName[dtype]);
    storage = other->storage;
    if (size == Py_None) {
      ndim = n_strides = other->ndim;
      std::memcpy(sizes, other->sizes, sizeof(int64_t) * static_cast<size_t>(ndim));
      std::memcpy(strides, other->strides, sizeof(int64_t) * static_cast<size_t>(ndim));
      offset = other->offset;
    }
  } else {
    storage = storage_of(source);
    if (!storage) return nullptr;
    Ref typed(Py_TYPE(source) == storage_type ? nullptr : PyObject_GetAttrString(source, "dtype"));
    int given = dtype;
    if (typed && dtype_from(typed.get(), &given) == 1 && given != dtype)
      return PyErr_Format(PyExc_RuntimeError, "set_: got a storage of %s for a tensor of %s, expected one of the same dtype, or an UntypedStorage",
                          kDTypeName[given], kDTypeName[dtype]);
    if (PyErr_Occurred()) return nullptr;
    sizes[0] = static_cast<int64_t>(storage->nbytes) / item_size(dtype) - offset;
  }
  if (size != Py_None) {
    if (!read_ints(size, sizes, &ndim)) return nullptr;
    if (stride != Py_None) {
      if (!read_ints(stride, strides, &n_strides)) return nullptr;
    } else {
      n_strides = ndim;
      for (int64_t i = ndim - 1, step = 1; i >= 0; step *= sizes[i] > 1 ? sizes[i] : 1, i--) strides[i] = step;
    }
    if (n_strides != ndim) return PyErr_Format(PyExc_ValueError, "set_: got %d sizes and %d strides, expected as many", ndim, n_strides);
  }
  int status = 0;
  if (geometry_fits(storage, ndim, sizes, strides, offset, dtype)) {
    status = api->tensor_set_storage(t, storage, dtype);
    if (!status) status = api->tensor_set_geometry(t, ndim, sizes, strides, offset);
  }
  if (fresh && __atomic_sub_fetch(&fresh->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(fresh);
  if (PyErr_Occurred()) return nullptr;
  return status ? raise(status) : Py_NewRef(self);
}

// Another object on a sparse tensor would be without its elements.
static bool refuse_sparse(const char* method, const ArgandTensor* t) {
  if (!(t->keys & ARGAND_KEYBIT(ARGAND_KEY_SPARSE))) return false;
  PyErr_Format(PyExc_TypeError, "%s: got a sparse tensor, expected a strided one, as of its values or to_dense()", method);
  return true;
}

// ---- subclasses -----------------------------------------------------------------------------------------------------------
// _make_subclass(cls, data, requires_grad=False): an object of class cls on data's memory, without its history.
static PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"cls", "data", "require_grad", nullptr};
  PyObject *cls, *data, *requires_grad = Py_False;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O!:_make_subclass", const_cast<char**>(keywords), &cls, &data, &PyBool_Type, &requires_grad))
    return nullptr;
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type))
    return PyErr_Format(PyExc_TypeError, "_make_subclass(): argument 'cls' must be a subclass of Tensor, not %R", cls);
  ArgandTensor* t = unwrap(data);
  ArgandTensor* alias = nullptr;
  if (!t || refuse_sparse("_make_subclass", t)) return nullptr;
  if (int status = api->tensor_alias(t, &alias)) return raise(status);
  alias->flags &= ~ARGAND_TENSOR_NO_VERSION;
  Ref result(wrap_as(reinterpret_cast<PyTypeObject*>(cls), alias));
  if (result && requires_grad == Py_True && PyObject_SetAttr(result.get(), names.requires_grad, Py_True) < 0) return nullptr;
  return result.take();
}

// _make_sparse(cls, data): as _make_subclass, of a tensor on the meta device; operators find their kernels by the key of sparse tensors.
static PyObject* make_sparse(PyObject* none, PyObject* args) {
  Ref result(make_subclass(none, args, nullptr));
  if (result) unwrap(result.get())->keys |= ARGAND_KEYBIT(ARGAND_KEY_SPARSE);
  return result.take();
}

// as_subclass(cls): this tensor, history included, as an object of class cls.
static PyObject* method_as_subclass(PyObject* self, PyObject* cls) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type))
    return PyErr_Format(PyExc_TypeError, "as_subclass(): argument 'cls' must be a subclass of Tensor, not %R", cls);
  ArgandTensor* t = unwrap(self);
  if (!t || refuse_sparse("as_subclass", t)) return nullptr;
  ArgandTensor* alias = nullptr;
  static const ArgandOperator* op = nullptr;
  if (!op) op = api->op_find("alias");
  int status;
  if (op && op->n_args == 1) {
    ArgandValue args[1] = {}, rets[1] = {};
    args[0].tag = ARGAND_TAG_TENSOR;
    args[0].t = t;
    status = api->call(op, args, rets);
    alias = rets[0].t;
  } else {
    status = api->tensor_alias(t, &alias);
  }
  if (status) return raise(status);
  return wrap_as(reinterpret_cast<PyTypeObject*>(cls), alias);
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))
PyMethodDef tensor_methods[] = {
    {"size", FAST(method_size), METH_FASTCALL | METH_KEYWORDS, "size(dim=None)\n\nAll sizes, or that of one dimension."},
    {"stride", FAST(method_stride), METH_FASTCALL | METH_KEYWORDS, "stride(dim=None)\n\nAll strides in elements, or that of one dimension."},
    {"is_contiguous", FAST(method_is_contiguous), METH_FASTCALL | METH_KEYWORDS, "Are the elements dense in row-major order."},
    {"storage_offset", method_storage_offset, METH_NOARGS, "The first element's place in the storage, in elements."},
    {"data_ptr", method_data_ptr, METH_NOARGS, "The address of the first element."},
    {"numel", method_numel, METH_NOARGS, "The number of elements."},
    {"nelement", method_numel, METH_NOARGS, "The number of elements."},
    {"dim", method_dim, METH_NOARGS, "The number of dimensions."},
    {"ndimension", method_dim, METH_NOARGS, "The number of dimensions."},
    {"element_size", method_element_size, METH_NOARGS, "Bytes per element."},
    {"is_floating_point", method_is_floating_point, METH_NOARGS, "Is the dtype a real floating-point type."},
    {"is_complex", method_is_complex, METH_NOARGS, "Is the dtype complex."},
    {"is_signed", method_is_signed, METH_NOARGS, "Can the dtype hold negative numbers."},
    {"is_inference", method_is_inference, METH_NOARGS, "Was the tensor made in inference mode."},
    {"is_same_size", method_is_same_size, METH_O, "Has another tensor the same sizes."},
    {"_is_view", method_is_view, METH_NOARGS, "Is the tensor a view of another one."},
    {"_use_count", method_use_count, METH_NOARGS, "How many references there are to the tensor; its object is one of them."},
    {"get_device", method_get_device, METH_NOARGS, "The index of the device; -1 for the CPU."},
    {"item", method_item, METH_NOARGS, "The only element as a Python number."},
    {"tolist", method_tolist, METH_NOARGS, "The elements as nested lists of Python numbers."},
    {"numpy", FAST(method_numpy), METH_FASTCALL | METH_KEYWORDS, "numpy(*, force=False)\n\nA NumPy array on the same memory."},
    {"untyped_storage", method_untyped_storage, METH_NOARGS, "The memory that this tensor and its views share."},
    {"set_", FAST(method_set), METH_VARARGS | METH_KEYWORDS,
     "set_(source=None, storage_offset=0, size=None, stride=None)\n\nLooks at other memory from now on."},
    {"as_subclass", method_as_subclass, METH_O, "The same tensor as an object of a subclass."},
    {"_make_subclass", FAST(make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {"_make_sparse", make_sparse, METH_VARARGS | METH_STATIC, nullptr},
    {"__complex__", method_complex, METH_NOARGS, nullptr},
    {"__array__", FAST(tensor_array), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__dlpack__", FAST(tensor_dlpack), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace argand::py
