// DLPack in both directions, versioned and classic capsules (dmlc.github.io/dlpack/latest/python_spec.html).
#include "packages/c10/csrc/python/binding.h"
#include "packages/c10/csrc/python/parser.h"

namespace argand::py {
namespace {

struct DLDevice {
  int32_t type;
  int32_t id;
};
constexpr int32_t kDLCpu = 1, kDLCuda = 2, kDLCudaHost = 3, kDLCudaManaged = 13;
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: contiguous
  uint64_t byte_offset;
};
struct DLManaged {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManaged*);
};
struct DLManagedVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(DLManagedVersioned*);
  uint64_t flags;  // bit 0: read-only, bit 1: copied
  DLTensor tensor;
};
constexpr uint64_t kReadOnly = 1, kCopied = 2;

enum : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6, kFloat8E4M3 = 10, kFloat8E5M2 = 12 };
const DLDataType kTypes[ARGAND_NUM_DTYPES] = {{kBool, 8, 1},     {kUInt, 8, 1},      {kInt, 8, 1},        {kInt, 16, 1},       {kInt, 32, 1},
                                              {kInt, 64, 1},     {kFloat, 16, 1},    {kBfloat, 16, 1},    {kFloat, 32, 1},     {kFloat, 64, 1},
                                              {kComplex, 64, 1}, {kComplex, 128, 1}, {kFloat8E4M3, 8, 1}, {kFloat8E5M2, 8, 1}, {kUInt, 16, 1},
                                              {kUInt, 32, 1},    {kUInt, 64, 1}};

// ---- exporting -------------------------------------------------------------------------------------------------------------
// Keeps the memory while the consumer holds the capsule's tensor.
template <class Managed>
struct Exported {
  Managed managed;
  ArgandStorage* storage;
  int64_t dims[2 * ARGAND_MAX_DIMS];
};

template <class Managed>
void delete_exported(Managed* managed) {
  auto* exported = reinterpret_cast<Exported<Managed>*>(managed);
  if (__atomic_sub_fetch(&exported->storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(exported->storage);
  delete exported;
}

DLDevice dlpack_device(const ArgandTensor* t) {
  const ArgandDevice device = t->storage->device;
  return ARGAND_DEVICE_TYPE(device) == ARGAND_CUDA ? DLDevice{kDLCuda, ARGAND_DEVICE_INDEX(device)} : DLDevice{kDLCpu, 0};
}

template <class Managed>
Managed* export_tensor(ArgandTensor* t) {
  auto* exported = new Exported<Managed>{};
  __atomic_fetch_add(&t->storage->refcount, 1, __ATOMIC_RELAXED);
  exported->storage = t->storage;
  for (int i = 0; i < t->ndim; i++) {
    exported->dims[i] = t->sizes[i];
    exported->dims[ARGAND_MAX_DIMS + i] = t->strides[i];
  }
  exported->managed.tensor = {t->data, dlpack_device(t), t->ndim, kTypes[t->dtype], exported->dims, exported->dims + ARGAND_MAX_DIMS, 0};
  exported->managed.deleter = delete_exported<Managed>;
  return &exported->managed;
}

constexpr const char *kClassic = "dltensor", *kVersioned = "dltensor_versioned";

// A capsule that nobody consumed still owns its tensor.
template <class Managed>
void delete_capsule(PyObject* capsule) {
  const char* name = std::is_same<Managed, DLManaged>::value ? kClassic : kVersioned;
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}

struct DlpackOptions {
  PyObject* max_version = Py_None;
  PyObject* device = Py_None;
  PyObject* copy = Py_None;
  PyObject* stream = Py_None;
};

bool read_options(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, DlpackOptions& options) {
  if (nargs > 0) {
    PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only: stream, max_version, dl_device, copy");
    return false;
  }
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    if (PyUnicode_CompareWithASCIIString(name, "max_version") == 0) {
      options.max_version = args[i];
    } else if (PyUnicode_CompareWithASCIIString(name, "dl_device") == 0) {
      options.device = args[i];
    } else if (PyUnicode_CompareWithASCIIString(name, "copy") == 0) {
      options.copy = args[i];
    } else if (PyUnicode_CompareWithASCIIString(name, "stream") == 0) {
      options.stream = args[i];
    } else {
      PyErr_Format(PyExc_TypeError, "__dlpack__() got an unexpected keyword argument %R", name);
      return false;
    }
  }
  return true;
}

// What the consumer's stream gets from now on runs after what is on the producer's current one: None and 1 are the default stream,
// 2 the thread's default stream, -1 asks for no order.
bool order_streams(ArgandDevice device, PyObject* consumer) {
  const ArgandDeviceInterface* interface = api->device_interface(ARGAND_DEVICE_TYPE(device));
  const int32_t index = ARGAND_DEVICE_INDEX(device);
  const long long number = consumer == Py_None ? 1 : PyLong_AsLongLong(consumer);
  if (PyErr_Occurred()) return false;
  if (number == -1) return true;
  if (number == 0) {
    PyErr_SetString(PyExc_BufferError, "__dlpack__: got stream 0, which is ambiguous; expected 1 (the default stream), 2, or a stream's address");
    return false;
  }
  void* target = number == 1 ? nullptr : reinterpret_cast<void*>(static_cast<intptr_t>(number));
  void *source = nullptr, *event = nullptr;
  int status = interface->stream_current(index, &source);
  if (status || source == target) return !status || raise(status);
  status = interface->event_new(index, 0, &event);
  if (!status) status = interface->event_record(event, index, source);
  if (!status) status = interface->stream_wait_event(index, target, event);
  if (event) interface->event_destroy(event, index);
  return !status || raise(status);
}

PyObject* export_capsule(ArgandTensor* t, bool versioned, bool copied) {
  bool read_only = t->storage->flags & ARGAND_STORAGE_READONLY;
  if (!versioned) {
    if (read_only) {
      PyErr_SetString(PyExc_BufferError, "__dlpack__: got read-only memory, which only max_version=(1, 0) or later can mark; use tensor.clone()");
      return nullptr;
    }
    auto* managed = export_tensor<DLManaged>(t);
    PyObject* capsule = PyCapsule_New(managed, kClassic, delete_capsule<DLManaged>);
    if (!capsule) managed->deleter(managed);
    return capsule;
  }
  auto* managed = export_tensor<DLManagedVersioned>(t);
  managed->version = {1, 0};
  managed->flags = (read_only ? kReadOnly : 0) | (copied ? kCopied : 0);
  PyObject* capsule = PyCapsule_New(managed, kVersioned, delete_capsule<DLManagedVersioned>);
  if (!capsule) managed->deleter(managed);
  return capsule;
}

// ---- importing -------------------------------------------------------------------------------------------------------------
template <class Managed>
void delete_imported(void*, void* context, size_t) {
#if PY_VERSION_HEX >= 0x030d0000
  if (!Py_IsInitialized() || Py_IsFinalizing()) return;
#else
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return;
#endif
  auto* managed = static_cast<Managed*>(context);
  PyGILState_STATE gil = PyGILState_Ensure();  // producers may touch Python objects
  if (managed->deleter) managed->deleter(managed);
  PyGILState_Release(gil);
}

int dtype_of(DLDataType type) {
  for (int i = 0; i < ARGAND_NUM_DTYPES; i++)
    if (kTypes[i].code == type.code && kTypes[i].bits == type.bits && type.lanes == 1) return i;
  PyErr_Format(PyExc_BufferError, "from_dlpack: got elements of type code %d with %d bits and %d lanes, expected a supported dtype", type.code,
               type.bits, type.lanes);
  return -1;
}

template <class Managed>
PyObject* import_tensor(PyObject* capsule, const char* name, const char* used_name, uint32_t flags) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (!managed) return nullptr;
  const DLTensor& d = managed->tensor;
  const bool on_cuda = d.device.type == kDLCuda || d.device.type == kDLCudaManaged;
  if (!on_cuda && d.device.type != kDLCpu && d.device.type != kDLCudaHost)
    return PyErr_Format(PyExc_BufferError, "from_dlpack: got memory of device type %d, expected 1 (CPU) or 2 (CUDA)", d.device.type);
  const ArgandDevice device = on_cuda ? ARGAND_DEVICE(ARGAND_CUDA, d.device.id) : ARGAND_DEVICE(ARGAND_CPU, 0);
  if (d.ndim < 0 || d.ndim > ARGAND_MAX_DIMS)
    return PyErr_Format(PyExc_BufferError, "from_dlpack: got %d dimensions, expected at most %d", d.ndim, ARGAND_MAX_DIMS);
  int dtype = dtype_of(d.dtype);
  if (dtype < 0) return nullptr;
  int64_t last = 0, numel = 1, strides[ARGAND_MAX_DIMS];
  for (int i = d.ndim - 1; i >= 0; i--) {
    strides[i] = d.strides ? d.strides[i] : numel;
    numel *= d.shape[i];
    if (d.shape[i] <= 1 && strides[i] < 0) strides[i] = 1;  // nothing is a stride away
    if (strides[i] < 0) return PyErr_Format(PyExc_BufferError, "from_dlpack: got a negative stride, expected none; make a copy first");
    last += (d.shape[i] - 1) * strides[i];
  }
  size_t nbytes = numel ? static_cast<size_t>((last + 1) * item_size(dtype)) : 0;
  ArgandStorage* storage = nullptr;
  ArgandTensor* t = nullptr;
  int status = api->storage_from_blob(device, static_cast<char*>(d.data) + d.byte_offset, nbytes, nullptr, managed, flags, &storage);
  if (status) return raise(status);
  status = api->tensor_from_storage(storage, d.ndim, d.shape, strides, 0, dtype, &t);
  if (!status && PyCapsule_SetName(capsule, used_name) == 0) storage->deleter = delete_imported<Managed>;  // it is ours now
  if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(storage);
  return status ? raise(status) : wrap(t);
}

PyObject* import_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    auto* managed = static_cast<DLManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersioned));
    if (managed->version.major != 1)
      return PyErr_Format(PyExc_BufferError, "from_dlpack: got DLPack version %u.%u, expected 1.x", managed->version.major, managed->version.minor);
    return import_tensor<DLManagedVersioned>(capsule, kVersioned, "used_dltensor_versioned",
                                             managed->flags & kReadOnly ? ARGAND_STORAGE_READONLY : 0);
  }
  if (PyCapsule_IsValid(capsule, kClassic)) return import_tensor<DLManaged>(capsule, kClassic, "used_dltensor", 0);
  PyErr_SetString(PyExc_ValueError, "from_dlpack: got a capsule that is no DLPack tensor or was consumed before; each one can be used once");
  return nullptr;
}

}  // namespace

bool is_of_dlpack(const ArgandStorage* s) { return s->deleter == delete_imported<DLManaged> || s->deleter == delete_imported<DLManagedVersioned>; }

// A sequence of two ints; false + TypeError.
template <class T>
static bool read_pair(PyObject* o, const char* complaint, T* first, T* second) {
  Ref pair(PySequence_Check(o) ? PySequence_Tuple(o) : nullptr);
  int a = 0, b = 0;
  if (!pair || PyTuple_GET_SIZE(pair.get()) != 2 || !PyArg_ParseTuple(pair.get(), "ii", &a, &b)) {
    PyErr_SetString(PyExc_TypeError, complaint);
    return false;
  }
  *first = static_cast<T>(a);
  *second = static_cast<T>(b);
  return true;
}

PyObject* tensor_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  ArgandTensor* t = unwrap(self);
  DlpackOptions options;
  if (!t || !may_lend(t) || !read_options(args, nargs, kwnames, options)) return nullptr;
  if (argand::Tensor::borrow(t).requires_grad()) {
    PyErr_SetString(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    return nullptr;
  }
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(t->storage->device);
  if (type != ARGAND_CPU && type != ARGAND_CUDA)
    return PyErr_Format(PyExc_BufferError, "__dlpack__: got a tensor on %s, expected one on the CPU or a CUDA device",
                        device_type_name(t->storage->device));
  DLDevice wanted = dlpack_device(t);
  if (options.device != Py_None && !read_pair(options.device, "__dlpack__: dl_device must be a tuple (type, id)", &wanted.type, &wanted.id))
    return nullptr;
  const bool same = wanted.type == dlpack_device(t).type && wanted.id == dlpack_device(t).id;
  if (!same && (wanted.type != kDLCpu || options.copy == Py_False))
    return PyErr_Format(PyExc_BufferError, "__dlpack__: got device type %d, expected %d, where the tensor is%s", wanted.type, dlpack_device(t).type,
                        wanted.type == kDLCpu ? ", or copy=None" : " (or 1, the CPU)");
  int major = 0, minor = 0;
  if (options.max_version != Py_None && !read_pair(options.max_version, "__dlpack__: max_version must be a tuple (major, minor)", &major, &minor))
    return nullptr;
  const bool copy = options.copy == Py_True || !same;
  Ref source = copy ? Ref(tensor_from_data(self, ARGAND_DTYPE_NONE, same ? t->storage->device : ARGAND_DEVICE(ARGAND_CPU, 0))) : new_ref(self);
  if (source && type == ARGAND_CUDA && same && !order_streams(t->storage->device, options.stream)) return nullptr;
  if (!source) return nullptr;
  return guard<PyObject*>(nullptr, [&] { return export_capsule(tensor_of(source.get()), major >= 1, copy); });
}

PyObject* tensor_dlpack_device(PyObject* self, PyObject*) {
  ArgandTensor* t = unwrap(self);
  if (!t) return nullptr;
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(t->storage->device);
  if (type != ARGAND_CPU && type != ARGAND_CUDA)
    return PyErr_Format(PyExc_BufferError, "__dlpack_device__: got a tensor on %s, expected one on the CPU or a CUDA device",
                        device_type_name(t->storage->device));
  const DLDevice device = dlpack_device(t);
  return Py_BuildValue("(ii)", device.type, device.id);
}

// The stream to ask a producer for: None for memory of the CPU, else our current stream of its device; NULL + exception.
static PyObject* consumer_stream(PyObject* producer) {
  Ref method(PyObject_GetAttrString(producer, "__dlpack_device__"));
  if (!method) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  int type = 0, id = 0;
  Ref device(PyObject_CallNoArgs(method.get()));
  if (!device || !read_pair(device.get(), "__dlpack_device__ must return a tuple (type, id)", &type, &id)) return nullptr;
  if (type != kDLCuda && type != kDLCudaManaged) Py_RETURN_NONE;
  ArgandDevice ours = 0;
  void* stream = nullptr;
  if (int status = api->resolve_device("from_dlpack", ARGAND_DEVICE(ARGAND_CUDA, id), &ours)) return raise(status);
  if (int status = api->device_interface(ARGAND_CUDA)->stream_current(id, &stream)) return raise(status);
  return PyLong_FromLongLong(stream ? static_cast<long long>(reinterpret_cast<intptr_t>(stream)) : 1);
}

static PyObject* import_object(PyObject* o) {
  if (PyCapsule_CheckExact(o)) return import_capsule(o);
  Ref method(PyObject_GetAttrString(o, "__dlpack__"));
  if (!method) {
    PyErr_Clear();
    return PyErr_Format(PyExc_TypeError, "from_dlpack: got %s, expected a DLPack capsule or an object with __dlpack__", Py_TYPE(o)->tp_name);
  }
  Ref stream(consumer_stream(o));
  if (!stream) return nullptr;
  Ref no_args(PyTuple_New(0)), keywords(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
  if (!no_args || !keywords || (stream.get() != Py_None && PyDict_SetItemString(keywords.get(), "stream", stream.get()) < 0)) return nullptr;
  Ref capsule(PyObject_Call(method.get(), no_args.get(), keywords.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer from before DLPack 1.0
    PyErr_Clear();
    if (PyDict_DelItemString(keywords.get(), "max_version") < 0) return nullptr;
    capsule = Ref(PyObject_Call(method.get(), no_args.get(), keywords.get()));
  }
  return capsule ? import_capsule(capsule.get()) : nullptr;
}

PyObject* from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"", "device", "copy", nullptr};
  PyObject *o = nullptr, *wanted = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char**>(keywords), &o, &wanted, &copy)) return nullptr;
  ArgandDevice device = 0;
  if (wanted != Py_None && device_from(wanted, &device) < 0) return nullptr;
  const int copies = copy == Py_None ? 0 : PyObject_IsTrue(copy);
  if (copies < 0) return nullptr;
  Ref found(import_object(o));
  if (!found) return nullptr;
  const ArgandDevice its = tensor_of(found.get())->storage->device;
  if (wanted != Py_None && with_index(device) != its) {
    if (copy == Py_None || copies) return tensor_from_data(found.get(), ARGAND_DTYPE_NONE, device);
    return PyErr_Format(PyExc_ValueError, "from_dlpack: got copy=False for memory on %s and device=%S, expected one device; allow a copy",
                        device_type_name(its), wanted);
  }
  return copies ? tensor_from_data(found.get(), ARGAND_DTYPE_NONE, its) : found.take();
}

}  // namespace argand::py
