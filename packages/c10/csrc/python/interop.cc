// Memory shared with others without a copy: the buffer protocol and NumPy, which is imported only when it is used.
#include <cstring>
#include <utility>

#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

// struct-module format codes by dtype; NULL: the buffer protocol has none.
static const char* const kFormat[ARGAND_NUM_DTYPES] = {"?", "B",  "b",  "h",     "i",     "q", "e", nullptr, "f",
                                                       "d", "Zf", "Zd", nullptr, nullptr, "H", "I", "Q"};

static bool has_history(ArgandTensor* t) { return argand::Tensor::borrow(t).requires_grad(); }

// ---- exporting ----------------------------------------------------------------------------------------------------------------
// What a view of a tensor keeps: its memory, also if the tensor turns to other memory meanwhile.
struct Exported {
  ArgandStorage* storage;
  Py_ssize_t dims[2 * ARGAND_MAX_DIMS];  // sizes, strides in bytes
};

static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  static char nothing[16];
  view->obj = nullptr;
  ArgandTensor* t = unwrap(self);
  if (!t || !may_lend(t)) return -1;
  const char* fault = has_history(t)                                         ? "a tensor that requires grad; use tensor.detach()"
                      : ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_CPU ? "a tensor that is not on the CPU; use tensor.cpu()"
                      : !kFormat[t->dtype]                                   ? "a bfloat16 or float8 tensor; use tensor.float()"
                      : (flags & PyBUF_WRITABLE) && (t->storage->flags & ARGAND_STORAGE_READONLY) ? "read-only memory for writing; use tensor.clone()"
                      : (flags & PyBUF_STRIDES) != PyBUF_STRIDES && !(t->flags & ARGAND_TENSOR_CONTIGUOUS)
                          ? "a tensor that is not contiguous as a plain block; use tensor.contiguous()"
                          : nullptr;
  bool c_order = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
  if (!fault && c_order && !(t->flags & ARGAND_TENSOR_CONTIGUOUS)) fault = "a tensor that is not contiguous; use tensor.contiguous()";
  if (!fault && (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && t->ndim > 1) fault = "a row-major tensor in column-major order";
  if (fault) {
    PyErr_Format(PyExc_BufferError, "Tensor: cannot export %s", fault);
    return -1;
  }
  auto* exported = static_cast<Exported*>(PyMem_Malloc(sizeof(Exported)));
  if (!exported) {
    PyErr_NoMemory();
    return -1;
  }
  __atomic_fetch_add(&t->storage->refcount, 1, __ATOMIC_RELAXED);
  exported->storage = t->storage;
  for (int i = 0; i < t->ndim; i++) {
    exported->dims[i] = static_cast<Py_ssize_t>(t->sizes[i]);
    exported->dims[ARGAND_MAX_DIMS + i] = static_cast<Py_ssize_t>(t->strides[i] * item_size(t->dtype));
  }
  view->obj = Py_NewRef(self);
  view->buf = t->data ? t->data : nothing;
  view->itemsize = item_size(t->dtype);
  view->len = static_cast<Py_ssize_t>(t->numel) * view->itemsize;
  view->readonly = (t->storage->flags & ARGAND_STORAGE_READONLY) != 0;
  view->ndim = t->ndim;
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(kFormat[t->dtype]) : nullptr;
  view->shape = (flags & PyBUF_ND) ? exported->dims : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->dims + ARGAND_MAX_DIMS : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported;
  return 0;
}
static void release_buffer(PyObject*, Py_buffer* view) {
  auto* exported = static_cast<Exported*>(view->internal);
  if (__atomic_sub_fetch(&exported->storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(exported->storage);
  PyMem_Free(exported);
}
PyBufferProcs tensor_buffer = {get_buffer, release_buffer};

// Only with force=True: through a copy.
static PyObject* numpy_of_device(PyObject* self, bool force) {
  ArgandTensor* t = unwrap(self);
  const ArgandDevice device = t->storage->device;
  if (force && ARGAND_DEVICE_TYPE(device) != ARGAND_META) {
    Ref copy(tensor_from_data(self, ARGAND_DTYPE_NONE, ARGAND_DEVICE(ARGAND_CPU, 0)));
    return copy ? tensor_numpy(copy.get(), false) : nullptr;
  }
  const std::string index = ARGAND_DEVICE_TYPE(device) == ARGAND_META ? "" : ":" + std::to_string(ARGAND_DEVICE_INDEX(device));
  return PyErr_Format(PyExc_TypeError, "can't convert %s%s device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
                      device_type_name(device), index.c_str());
}

PyObject* tensor_numpy(PyObject* self, bool force) {
  ArgandTensor* t = unwrap(self);
  if (!t || !may_lend(t)) return nullptr;
  if (has_history(t) && !force && api->thread_state()->grad_mode) {
    PyErr_SetString(PyExc_RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    return nullptr;
  }
  if (ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_CPU) return numpy_of_device(self, force);
  if (!kFormat[t->dtype]) {
    PyErr_SetString(PyExc_TypeError,
                    "numpy(): got a bfloat16 or float8 tensor, which NumPy has no dtype for; convert it first, as in tensor.float().numpy()");
    return nullptr;
  }
  Ref plain = new_ref(self);
  if (has_history(t) || !is_tensor_exact(self)) {
    ArgandTensor* alias = nullptr;
    if (int status = api->tensor_alias(t, &alias)) return raise(status);
    plain = Ref(wrap(alias));
  }
  Ref view(plain ? PyMemoryView_FromObject(plain.get()) : nullptr);
  Ref numpy(view ? PyImport_ImportModule("numpy") : nullptr);
  return numpy ? PyObject_CallMethod(numpy.get(), "asarray", "O", view.get()) : nullptr;
}

// __array__(dtype=None, copy=None)
PyObject* tensor_array(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject *dtype = nargs > 0 ? args[0] : Py_None, *copy = nargs > 1 ? args[1] : Py_None;
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0) {
      dtype = args[nargs + i];
    } else if (PyUnicode_CompareWithASCIIString(name, "copy") == 0) {
      copy = args[nargs + i];
    } else {
      return PyErr_Format(PyExc_TypeError, "__array__() got an unexpected keyword argument %R", name);
    }
  }
  Ref array(tensor_numpy(self, false));
  if (!array || (dtype == Py_None && copy != Py_True)) return array.take();
  Ref wanted = dtype == Py_None ? Ref(PyObject_GetAttrString(array.get(), "dtype")) : new_ref(dtype);
  Ref method(PyObject_GetAttrString(array.get(), "astype")), positional(wanted ? PyTuple_Pack(1, wanted.get()) : nullptr);
  Ref keywords(Py_BuildValue("{s:O}", "copy", copy == Py_True ? Py_True : Py_False));
  return method && positional && keywords ? PyObject_Call(method.get(), positional.get(), keywords.get()) : nullptr;
}

// ---- importing ------------------------------------------------------------------------------------------------------------------
bool is_ndarray(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == tensor_type || type == &PyList_Type || type == &PyTuple_Type) return false;
  for (; type; type = type->tp_base)
    if (std::strcmp(type->tp_name, "numpy.ndarray") == 0) return true;
  return false;
}

static int dtype_of_format(const char* format, Py_ssize_t itemsize) {
  if (!format) return ARGAND_UINT8;
  if (*format == '@' || *format == '=' || *format == '<') format++;
  if (std::strcmp(format, "Zf") == 0) return ARGAND_COMPLEX64;
  if (std::strcmp(format, "Zd") == 0) return ARGAND_COMPLEX128;
  if (!*format || format[1]) return -1;
  switch (*format) {
    case '?':
      return ARGAND_BOOL;
    case 'B':
      return ARGAND_UINT8;
    case 'b':
      return ARGAND_INT8;
    case 'e':
      return ARGAND_FLOAT16;
    case 'f':
      return ARGAND_FLOAT32;
    case 'd':
      return ARGAND_FLOAT64;
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return itemsize == 2 ? ARGAND_INT16 : itemsize == 4 ? ARGAND_INT32 : itemsize == 8 ? ARGAND_INT64 : -1;
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return itemsize == 2 ? ARGAND_UINT16 : itemsize == 4 ? ARGAND_UINT32 : itemsize == 8 ? ARGAND_UINT64 : -1;
    default:
      return -1;
  }
}

static void release_imported(void*, void* context, size_t) {
#if PY_VERSION_HEX >= 0x030d0000
  if (!Py_IsInitialized() || Py_IsFinalizing()) return;
#else
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return;
#endif
  PyGILState_STATE gil = PyGILState_Ensure();
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  PyMem_Free(view);
  PyGILState_Release(gil);
}

// Whether others than the view, which holds it once, may reach what an object exports: yes, unless it is an array that nobody else holds, of memory
// that is its own or that of another such object.
static bool is_reached(PyObject* exporter, bool readonly) {
  Ref holder;
  Py_ssize_t known = 1;
  for (PyObject* o = exporter;; known = 2) {
    if (PyBytes_CheckExact(o)) return false;  // nobody changes it
    if (Py_REFCNT(o) > known) return true;
    if (PyByteArray_CheckExact(o)) return false;
    if (std::strcmp(Py_TYPE(o)->tp_name, "mmap.mmap") == 0) return !readonly;  // others reach the file
    Ref base;
    if (PyMemoryView_Check(o)) {
      base = new_ref(PyMemoryView_GET_BASE(o));
    } else if (is_ndarray(o)) {
      base = Ref(PyObject_GetAttrString(o, "base"));
      if (base.get() == Py_None) return false;
    }
    if (!base) return PyErr_Clear(), true;
    holder = std::move(base);
    o = holder.get();
  }
}

bool is_buffer_reached(const ArgandStorage* s) {
  if (s->deleter != release_imported) return false;
  const auto* view = static_cast<const Py_buffer*>(s->context);
  return view->obj && is_reached(view->obj, view->readonly);
}

// A tensor over an acquired buffer, which the storage then owns; on failure the caller still does.
static ArgandTensor* over_buffer(Py_buffer* view, int dtype, int32_t ndim, const int64_t* sizes, const int64_t* strides, char* start, size_t nbytes) {
  ArgandStorage* storage = nullptr;
  ArgandTensor* t = nullptr;
  uint32_t flags = view->readonly ? ARGAND_STORAGE_READONLY : 0;
  int status = api->storage_from_blob(ARGAND_DEVICE(ARGAND_CPU, 0), start, nbytes, nullptr, view, flags, &storage);
  if (!status) {
    status = api->tensor_from_storage(storage, ndim, sizes, strides, 0, dtype, &t);
    if (!status) storage->deleter = release_imported;
    if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(storage);
  }
  if (status) raise(status);
  return t;
}

static ArgandTensor* over_array(PyObject* array, Py_buffer* view) {
  int64_t sizes[ARGAND_MAX_DIMS], strides[ARGAND_MAX_DIMS];
  int dtype = dtype_of_format(view->format, view->itemsize);
  if (dtype < 0) {
    Ref name(PyObject_GetAttrString(array, "dtype"));
    if (name && view->format && view->format[0] == '>')
      PyErr_Format(PyExc_ValueError, "from_numpy: got an array of %S, whose byte order is not this machine's; convert it by astype()", name.get());
    else if (name)
      PyErr_Format(PyExc_TypeError,
                   "can't convert np.ndarray of type numpy.%S. The only supported types are: float64, float32, float16, complex64, "
                   "complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
                   name.get());
    return nullptr;
  }
  int64_t last = 0, numel = 1;
  for (int i = 0; i < view->ndim; i++) {
    sizes[i] = view->shape[i];
    numel *= sizes[i];
    if (view->strides[i] < 0 && sizes[i] > 1) {
      PyErr_SetString(PyExc_ValueError,
                      "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
                      "supported. (You can probably work around this by making a copy of your array with array.copy().)");
      return nullptr;
    }
    if (view->strides[i] % view->itemsize != 0) {
      PyErr_SetString(PyExc_ValueError,
                      "from_numpy: got strides that are no multiple of the element size (a field of a structured array?), expected "
                      "whole elements; make a copy with array.copy()");
      return nullptr;
    }
    strides[i] = view->strides[i] < 0 ? 1 : view->strides[i] / view->itemsize;
    last += (sizes[i] - 1) * strides[i];
  }
  return over_buffer(view, dtype, view->ndim, sizes, strides, static_cast<char*>(view->buf),
                     numel ? static_cast<size_t>((last + 1) * view->itemsize) : 0);
}

int dtype_of_numpy(PyObject* o) {
  Py_buffer view;
  if (PyObject_GetBuffer(o, &view, PyBUF_FULL_RO) < 0) {
    PyErr_Clear();
    return -1;
  }
  const int dtype = dtype_of_format(view.format, view.itemsize);
  PyBuffer_Release(&view);
  return dtype;
}

PyObject* tensor_from_numpy(PyObject* array) {
  if (!is_ndarray(array)) return PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(array)->tp_name);
  auto* view = static_cast<Py_buffer*>(PyMem_Malloc(sizeof(Py_buffer)));
  if (!view) return PyErr_NoMemory();
  int status = PyObject_GetBuffer(array, view, PyBUF_FULL);
  if (status < 0) {
    PyErr_Clear();
    status = PyObject_GetBuffer(array, view, PyBUF_FULL_RO);
  }
  if (status < 0) {  // dates, objects: no buffer
    PyMem_Free(view);
    PyErr_Clear();
    Ref name(PyObject_GetAttrString(array, "dtype"));
    return name ? PyErr_Format(PyExc_TypeError, "from_numpy: got an array of %S, expected numbers or bools in native byte order", name.get())
                : nullptr;
  }
  ArgandTensor* t = over_array(array, view);
  if (t) return wrap(t);
  PyBuffer_Release(view);
  PyMem_Free(view);
  return nullptr;
}
static PyObject* from_numpy(PyObject*, PyObject* array) { return tensor_from_numpy(array); }

static PyObject* frombuffer(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"buffer", "dtype", "count", "offset", "requires_grad", nullptr};
  PyObject *buffer, *dtype_arg = Py_None;
  long long count = -1, offset = 0;
  int requires_grad = 0, dtype = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OLLp:frombuffer", const_cast<char**>(keywords), &buffer, &dtype_arg, &count, &offset,
                                   &requires_grad))
    return nullptr;
  int known = dtype_from(dtype_arg, &dtype);
  if (known == 0) PyErr_Format(PyExc_TypeError, "frombuffer(): argument 'dtype' must be dtype, not %s", Py_TYPE(dtype_arg)->tp_name);
  if (known <= 0) return nullptr;
  auto* view = static_cast<Py_buffer*>(PyMem_Malloc(sizeof(Py_buffer)));
  if (!view) return PyErr_NoMemory();
  if (PyObject_GetBuffer(buffer, view, PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE) < 0) {
      PyMem_Free(view);
      return nullptr;
    }
  }
  int64_t width = item_size(dtype), available = view->len - offset;
  int64_t size = count < 0 ? available / width : count, stride = 1;
  ArgandTensor* t = nullptr;
  if (offset < 0 || available < 0 || size > available / width || (count < 0 && available % width) || !view->len || !count) {
    PyErr_Format(PyExc_ValueError, "frombuffer: got a buffer of %zd bytes, offset %lld and count %lld of %s, expected whole elements inside of it",
                 view->len, offset, count, kDTypeName[dtype]);
  } else {
    t = over_buffer(view, dtype, 1, &size, &stride, static_cast<char*>(view->buf) + offset, static_cast<size_t>(size * width));
  }
  if (!t) {
    PyBuffer_Release(view);
    PyMem_Free(view);
    return nullptr;
  }
  Ref result(wrap(t));
  if (result && requires_grad && PyObject_SetAttr(result.get(), names.requires_grad, Py_True) < 0) return nullptr;
  return result.take();
}

// _swap(a, b): each of two objects stands for the other's tensor.
static PyObject* swap(PyObject*, PyObject* args) {
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "O!O!:_swap", tensor_type, &a, tensor_type, &b)) return nullptr;
  std::swap(reinterpret_cast<TensorObject*>(a)->tensor, reinterpret_cast<TensorObject*>(b)->tensor);
  for (PyObject* o : {a, b}) {
    if (ArgandTensor* t = tensor_of(o)) t->pyobject = o;
    if (!PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);  // the hooks of the tensor may refer to the object
  }
  Py_RETURN_NONE;
}

PyMethodDef interop_functions[] = {
    {"_swap", swap, METH_VARARGS, "_swap(a, b)\n\nLets each of two tensors be the other; classes and attributes stay."},
    {"from_numpy", from_numpy, METH_O, "from_numpy(array)\n\nA tensor on the memory of a NumPy array; of a read-only array a read-only tensor."},
    {"frombuffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(frombuffer)), METH_VARARGS | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n\nA one-dimensional tensor on the memory of a buffer; offset in bytes."},
    {"from_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(from_dlpack)), METH_VARARGS | METH_KEYWORDS,
     "from_dlpack(object, /, *, device=None, copy=None)\n\nA tensor on the memory of an object with __dlpack__, or of a DLPack capsule. Copied with "
     "copy=True, and to another device, which copy=False refuses (ValueError)."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace argand::py
