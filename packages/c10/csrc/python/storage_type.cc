// UntypedStorage: the memory that tensors look at.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unordered_map>

#include "packages/c10/csrc/abi/shared_memory.h"
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

struct StorageObject {
  PyObject_HEAD ArgandStorage* storage;  // owned
};
PyTypeObject* storage_type = nullptr;

static ArgandStorage* inner(PyObject* o) { return reinterpret_cast<StorageObject*>(o)->storage; }

// The object of each storage that has one, so that there are no two.
static std::unordered_map<const ArgandStorage*, PyObject*>& objects() {
  static auto* map = new std::unordered_map<const ArgandStorage*, PyObject*>;
  return *map;
}

PyObject* storage_object(ArgandStorage* storage) {
  if (const auto found = objects().find(storage); found != objects().end()) return Py_NewRef(found->second);
  auto* self = PyObject_New(StorageObject, storage_type);
  if (!self) return nullptr;
  __atomic_fetch_add(&storage->refcount, 1, __ATOMIC_RELAXED);
  self->storage = storage;
  objects()[storage] = reinterpret_cast<PyObject*>(self);
  return reinterpret_cast<PyObject*>(self);
}
ArgandStorage* storage_of(PyObject* o) {
  if (Py_TYPE(o) == storage_type) return inner(o);
  Ref untyped(PyObject_GetAttrString(o, "_untyped_storage"));  // of a storage with a dtype, which keeps it
  if (untyped && Py_TYPE(untyped.get()) == storage_type) return inner(untyped.get());
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "expected a Tensor or an UntypedStorage, got %s", Py_TYPE(o)->tp_name);
  return nullptr;
}

static void storage_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  ArgandStorage* s = inner(self);
  objects().erase(s);
  if (__atomic_sub_fetch(&s->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(s);
  PyObject_Free(self);
  Py_DECREF(type);
}
static PyObject* storage_data_ptr(PyObject* self, PyObject*) { return PyLong_FromVoidPtr(inner(self)->data); }
static PyObject* storage_nbytes(PyObject* self, PyObject*) { return PyLong_FromSize_t(inner(self)->nbytes); }
static Py_ssize_t storage_length(PyObject* self) { return static_cast<Py_ssize_t>(inner(self)->nbytes); }
static PyObject* storage_get_device(PyObject* self, void*) {
  ArgandDevice device = inner(self)->device;
  ArgandDeviceType type = ARGAND_DEVICE_TYPE(device);
  return device_object(type == ARGAND_CPU || type == ARGAND_META ? ARGAND_DEVICE(type, 0xff) : device);
}
static PyObject* storage_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != storage_type || Py_TYPE(b) != storage_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((inner(a) == inner(b)) == (op == Py_EQ));
}
static Py_hash_t storage_hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(inner(self)) >> 4); }
static PyObject* storage_repr(PyObject* self) {
  return PyUnicode_FromFormat("argand.UntypedStorage(nbytes=%zu, device='%s')", inner(self)->nbytes, device_type_name(inner(self)->device));
}
static PyObject* storage_untyped(PyObject* self, PyObject*) { return Py_NewRef(self); }
static PyObject* storage_resize(PyObject* self, PyObject* nbytes) {
  size_t n = PyLong_AsSize_t(nbytes);
  if (n == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  int status = api->storage_resize(inner(self), n);
  return status ? raise(status) : Py_NewRef(self);
}

// An object for a storage that nobody holds yet.
static PyObject* new_storage_object(ArgandStorage* storage) {
  PyObject* self = storage_object(storage);
  if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(storage);
  return self;
}

static void release_whole(void*, void* whole, size_t) {
  auto* s = static_cast<ArgandStorage*>(whole);
  if (__atomic_sub_fetch(&s->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(s);
}

// A byte; also what iteration asks for.
static PyObject* storage_byte(PyObject* self, Py_ssize_t i) {
  ArgandStorage* s = inner(self);
  const auto nbytes = static_cast<Py_ssize_t>(s->nbytes);
  if (i < 0 || i >= nbytes) return PyErr_Format(PyExc_IndexError, "UntypedStorage: got index %zd, expected one of %zd bytes", i, nbytes);
  if (ARGAND_DEVICE_TYPE(s->device) != ARGAND_CPU) return PyErr_Format(PyExc_RuntimeError, "UntypedStorage: bytes are read on the CPU only");
  return PyLong_FromLong(static_cast<const unsigned char*>(s->data)[i]);
}

// storage[i]: a byte; storage[a:b]: a storage of those bytes, which are the same memory.
static PyObject* storage_subscript(PyObject* self, PyObject* key) {
  ArgandStorage* s = inner(self);
  const auto nbytes = static_cast<Py_ssize_t>(s->nbytes);
  if (!PySlice_Check(key)) {
    Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return nullptr;
    return storage_byte(self, i < 0 ? i + nbytes : i);
  }
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(key, &start, &stop, &step) < 0) return nullptr;
  const Py_ssize_t count = PySlice_AdjustIndices(nbytes, &start, &stop, step);
  if (step != 1) return PyErr_Format(PyExc_ValueError, "UntypedStorage: got a step of %zd, expected 1", step);
  ArgandStorage* part = nullptr;
  char* data = s->data ? static_cast<char*>(s->data) + start : nullptr;
  if (int status = api->storage_from_blob(s->device, data, static_cast<size_t>(count), release_whole, s, s->flags, &part)) return raise(status);
  __atomic_fetch_add(&s->refcount, 1, __ATOMIC_RELAXED);
  return new_storage_object(part);
}

static void unmap(void* data, void*, size_t nbytes) { munmap(data, nbytes); }
static void unmap_shared(void* data, void*, size_t nbytes) { munmap(data, nbytes); }  // of a mapping whose writes reach the file

// Maps a file's first bytes: writes reach the file if they are shared, else only this mapping.
static PyObject* storage_from_file(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"filename", "shared", "nbytes", nullptr};
  PyObject* path = nullptr;
  int shared = 0;
  Py_ssize_t nbytes = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|pn:from_file", const_cast<char**>(names), PyUnicode_FSConverter, &path, &shared, &nbytes))
    return nullptr;
  PyObject* result = nullptr;
  void* data = nullptr;
  int fd = -1;
  struct stat info;
  if (nbytes < 0) {
    PyErr_Format(PyExc_ValueError, "from_file: got %zd bytes, expected at least 0", nbytes);
  } else if ((fd = open(PyBytes_AS_STRING(path), (shared ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600)) < 0 || fstat(fd, &info) < 0 ||
             (shared && info.st_size < nbytes && ftruncate(fd, nbytes) < 0)) {
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
  } else if (!shared && info.st_size < nbytes) {
    PyErr_Format(PyExc_RuntimeError, "from_file: got a file of %lld bytes (%s), expected at least %zd", static_cast<long long>(info.st_size),
                 PyBytes_AS_STRING(path), nbytes);
  } else if (nbytes &&
             (data = mmap(nullptr, static_cast<size_t>(nbytes), PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0)) == MAP_FAILED) {
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
  } else {
    ArgandStorage* storage = nullptr;
    int status = api->storage_from_blob(ARGAND_DEVICE(ARGAND_CPU, 0), data, static_cast<size_t>(nbytes),
                                        !nbytes  ? nullptr
                                        : shared ? unmap_shared
                                                 : unmap,
                                        nullptr, 0, &storage);
    if (status && nbytes) munmap(data, static_cast<size_t>(nbytes));
    result = status ? raise(status) : new_storage_object(storage);
  }
  if (fd >= 0) close(fd);
  Py_DECREF(path);
  return result;
}

// ---- memory that processes share --------------------------------------------------------------------------------------------
// Who else looks at memory that came from elsewhere, and would be left behind if it moved; nullptr: nobody.
static const char* other_owner(const ArgandStorage* s) {
  if (ARGAND_DEVICE_TYPE(s->device) != ARGAND_CPU) return nullptr;  // does not move
  if (is_buffer_reached(s)) return "the NumPy array or other buffer that it came from";
  if (is_of_dlpack(s)) return "the library that it came from";
  if (s->deleter == unmap_shared) return "the file that it maps";
  if (s->deleter != release_whole) return nullptr;
  const auto* whole = static_cast<const ArgandStorage*>(s->context);
  const int32_t handles = 1 + static_cast<int32_t>(objects().count(whole));  // which keep no address
  return __atomic_load_n(&whole->refcount, __ATOMIC_RELAXED) > handles ? "the storage that it is a slice of, or another slice" : other_owner(whole);
}
static PyObject* storage_moves_alone(PyObject* self, PyObject*) {
  ArgandStorage* s = inner(self);
  return PyBool_FromLong(!other_owner(s) && !argand_shared_memory()->storage_keepers(s, 1));
}
static PyObject* storage_share_memory(PyObject* self, PyObject*) {
  if (const char* owner = other_owner(inner(self)))
    return PyErr_Format(
        PyExc_RuntimeError,
        "share_memory_: got a storage of %zu bytes that is also memory of %s, expected memory of tensors alone, as it has to move and would "
        "leave that behind; share a clone(), or let go of the other first",
        inner(self)->nbytes, owner);
  int status = argand_shared_memory()->storage_share(inner(self), 1);
  return status ? raise(status) : Py_NewRef(self);
}
static PyObject* storage_is_shared(PyObject* self, PyObject*) {
  return PyBool_FromLong(argand_shared_memory()->storage_descriptor(inner(self)) >= 0);
}
static PyObject* storage_shared_descriptor(PyObject* self, PyObject*) {
  const int descriptor = argand_shared_memory()->storage_descriptor(inner(self));
  return descriptor < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(descriptor);
}
static PyObject* storage_use_count(PyObject* self, PyObject*) { return PyLong_FromLong(__atomic_load_n(&inner(self)->refcount, __ATOMIC_ACQUIRE)); }
static PyObject* storage_new_shared(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"size", "device", nullptr};
  Py_ssize_t nbytes = 0;
  PyObject* device = nullptr;
  ArgandDevice place = ARGAND_DEVICE(ARGAND_CPU, 0);
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|$O:_new_shared", const_cast<char**>(names), &nbytes, &device)) return nullptr;
  if (device && device_from(device, &place) < 0) return nullptr;
  if (nbytes < 0 || ARGAND_DEVICE_TYPE(place) != ARGAND_CPU)
    return PyErr_Format(PyExc_ValueError, "_new_shared: got %zd bytes on '%s', expected at least 0 on the CPU", nbytes, device_type_name(place));
  ArgandStorage* storage = nullptr;
  int status = argand_shared_memory()->storage_new(static_cast<size_t>(nbytes), &storage);
  return status ? raise(status) : new_storage_object(storage);
}
static PyObject* storage_open_shared(PyObject*, PyObject* args) {
  int descriptor = -1;
  Py_ssize_t nbytes = 0;
  int keep = 1;
  if (!PyArg_ParseTuple(args, "in|p:_open_shared", &descriptor, &nbytes, &keep)) return nullptr;
  ArgandStorage* storage = nullptr;
  int status = argand_shared_memory()->storage_open(descriptor, static_cast<size_t>(nbytes), keep, &storage);
  return status ? raise(status) : new_storage_object(storage);
}

static PyMethodDef storage_methods[] = {
    {"data_ptr", storage_data_ptr, METH_NOARGS, "The address of the memory."},
    {"nbytes", storage_nbytes, METH_NOARGS, "Its size in bytes."},
    {"size", storage_nbytes, METH_NOARGS, "Its size in bytes."},
    {"untyped", storage_untyped, METH_NOARGS, "Itself."},
    {"resize_", storage_resize, METH_O, "Grows or shrinks the memory to a number of bytes."},
    {"share_memory_", storage_share_memory, METH_NOARGS, "Makes the memory one that processes share. It is the CPU's."},
    {"_moves_alone", storage_moves_alone, METH_NOARGS, "Whether `share_memory_` leaves nobody behind that looks at the memory."},
    {"is_shared", storage_is_shared, METH_NOARGS, "Whether processes can share the memory."},
    {"_use_count", storage_use_count, METH_NOARGS, "How many tensors, other storages and foreign arrays look at the memory, and this object."},
    {"_shared_descriptor", storage_shared_descriptor, METH_NOARGS, "The file descriptor of shared memory, which stays the storage's; else None."},
    {"_new_shared", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(storage_new_shared)), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "Shared memory of `size` bytes, zeros."},
    {"_open_shared", storage_open_shared, METH_VARARGS | METH_STATIC,
     "The memory of a descriptor, which is the storage's from now on, and a number of bytes; with False as the third it is closed, and the memory is "
     "not shared on."},
    {"from_file", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(storage_from_file)), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "Memory that is the first `nbytes` of a file; what is written reaches the file if it is `shared`."},
    {nullptr, nullptr, 0, nullptr}};
static PyGetSetDef storage_getset[] = {{"device", storage_get_device, nullptr, "Where the memory is.", nullptr},
                                       {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyType_Slot storage_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
                                      {Py_tp_repr, reinterpret_cast<void*>(storage_repr)},
                                      {Py_tp_richcompare, reinterpret_cast<void*>(storage_compare)},
                                      {Py_tp_hash, reinterpret_cast<void*>(storage_hash)},
                                      {Py_sq_length, reinterpret_cast<void*>(storage_length)},
                                      {Py_sq_item, reinterpret_cast<void*>(storage_byte)},
                                      {Py_mp_subscript, reinterpret_cast<void*>(storage_subscript)},
                                      {Py_tp_methods, storage_methods},
                                      {Py_tp_getset, storage_getset},
                                      {Py_tp_doc, const_cast<char*>("The memory that a tensor and its views share.")},
                                      {0, nullptr}};
static PyType_Spec storage_spec = {"argand_c10.UntypedStorage", sizeof(StorageObject), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, storage_slots};

int init_storage(PyObject* module) {
  storage_type = new_type(module, &storage_spec);
  if (!storage_type) return -1;
  return PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(storage_type));
}

}  // namespace argand::py
