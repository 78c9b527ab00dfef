// UntypedStorage: the memory that tensors look at.
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

struct StorageObject {
  PyObject_HEAD ArgandStorage* storage;  // owned
};
PyTypeObject* storage_type = nullptr;

static ArgandStorage* inner(PyObject* o) { return reinterpret_cast<StorageObject*>(o)->storage; }

PyObject* storage_object(ArgandStorage* storage) {
  auto* self = PyObject_New(StorageObject, storage_type);
  if (!self) return nullptr;
  __atomic_fetch_add(&storage->refcount, 1, __ATOMIC_RELAXED);
  self->storage = storage;
  return reinterpret_cast<PyObject*>(self);
}
ArgandStorage* storage_of(PyObject* o) {
  if (Py_TYPE(o) == storage_type) return inner(o);
  PyErr_Format(PyExc_TypeError, "expected a Tensor or an UntypedStorage, got %s", Py_TYPE(o)->tp_name);
  return nullptr;
}

static void storage_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  ArgandStorage* s = inner(self);
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
static PyObject* storage_resize(PyObject* self, PyObject* nbytes) {
  size_t n = PyLong_AsSize_t(nbytes);
  if (n == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  int status = api->storage_resize(inner(self), n);
  return status ? raise(status) : Py_NewRef(self);
}

static PyMethodDef storage_methods[] = {{"data_ptr", storage_data_ptr, METH_NOARGS, "The address of the memory."},
                                        {"nbytes", storage_nbytes, METH_NOARGS, "Its size in bytes."},
                                        {"size", storage_nbytes, METH_NOARGS, "Its size in bytes."},
                                        {"resize_", storage_resize, METH_O, "Grows or shrinks the memory to a number of bytes."},
                                        {nullptr, nullptr, 0, nullptr}};
static PyGetSetDef storage_getset[] = {{"device", storage_get_device, nullptr, "Where the memory is.", nullptr},
                                       {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyType_Slot storage_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
                                      {Py_tp_repr, reinterpret_cast<void*>(storage_repr)},
                                      {Py_tp_richcompare, reinterpret_cast<void*>(storage_compare)},
                                      {Py_tp_hash, reinterpret_cast<void*>(storage_hash)},
                                      {Py_sq_length, reinterpret_cast<void*>(storage_length)},
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
