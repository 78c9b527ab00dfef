// The Tensor type: its objects' life and their tie to the C++ tensor (docs/notes/abi.md, "Python objects").
#include <Python.h>
#include <structmember.h>

#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

PyTypeObject* tensor_type = nullptr;

static TensorObject* object_of(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }
static PyObject* object_of(ArgandTensor* t) { return static_cast<PyObject*>(t->pyobject); }

// ---- allocation --------------------------------------------------------------------------------------------------------
// Dead objects of the exact type wait here for the next tensor. An exact Tensor without attributes is part of no
// reference cycle, so the collector learns of it only when it gets a __dict__.
constexpr int kFreeObjects = 256;
static TensorObject* free_objects[kFreeObjects];
static int n_free_objects = 0;

static PyObject* new_exact(ArgandTensor* t) {
  TensorObject* self;
  if (n_free_objects > 0) {
    self = free_objects[--n_free_objects];
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
    Py_INCREF(tensor_type);
  } else {
    self = PyObject_GC_New(TensorObject, tensor_type);
    if (!self) {
      release(t);
      return nullptr;
    }
    self->dict = self->weakrefs = nullptr;
    self->releasing = false;
  }
  self->tensor = t;
  t->pyobject = self;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap_as(PyTypeObject* type, ArgandTensor* t) {
  if (type == tensor_type) return new_exact(t);
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) {
    release(t);
    return nullptr;
  }
  object_of(o)->tensor = t;
  t->pyobject = o;
  return o;
}

PyObject* wrap(ArgandTensor* t) {
  if (!t) Py_RETURN_NONE;
  PyObject* o = object_of(t);
  if (!o) return new_exact(t);
  if (t->flags & ARGAND_TENSOR_OWNS_PYOBJECT) {  // swap owners: our reference to t becomes the object's, t's one to it ours
    t->flags &= ~ARGAND_TENSOR_OWNS_PYOBJECT;
    return o;
  }
  Py_INCREF(o);
  release(t);
  return o;
}

ArgandTensor* unwrap(PyObject* o) {
  if (is_tensor(o)) {
    if (ArgandTensor* t = tensor_of(o)) return t;
    PyErr_SetString(PyExc_RuntimeError, "Tensor: got an object whose __new__ was not called, expected an initialised tensor");
    return nullptr;
  }
  PyErr_Format(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(o)->tp_name);
  return nullptr;
}

// ---- death and resurrection ----------------------------------------------------------------------------------------------
static int (*traverse_meta)(ArgandTensor* t, visitproc visit, void* arg) = nullptr;
static void (*clear_meta)(ArgandTensor* t) = nullptr;

void tensor_set_collector(int (*traverse)(ArgandTensor*, visitproc, void*), void (*clear)(ArgandTensor*)) {
  traverse_meta = traverse;
  clear_meta = clear;
}

static bool has_state(TensorObject* self) {
  if (!Py_IS_TYPE(reinterpret_cast<PyObject*>(self), tensor_type) || self->weakrefs || (self->dict && PyDict_GET_SIZE(self->dict))) return true;
  return self->tensor->meta && traverse_meta && traverse_meta(self->tensor, [](PyObject*, void*) { return 1; }, nullptr);
}

// Called with no Python reference left: while C++ holds the tensor, it takes over an object worth keeping.
static bool keep_for_owner(TensorObject* self) {
  ArgandTensor* t = self->tensor;
  if (!t || self->releasing || t->pyobject != self || __atomic_load_n(&t->refcount, __ATOMIC_ACQUIRE) <= 1 || !has_state(self)) return false;
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
  if (!PyObject_GC_IsTracked(reinterpret_cast<PyObject*>(self))) PyObject_GC_Track(self);
  t->flags |= ARGAND_TENSOR_OWNS_PYOBJECT;
  release(t);  // ends in release_object if another thread has dropped the last reference meanwhile: self may be gone now
  return true;
}

// The core calls this when the last C++ reference is gone, holding one itself meanwhile. The object gets a reference to the
// tensor again and normally dies with it; if Python took it up meanwhile (a weak reference, __del__), both live on.
static void release_object(ArgandTensor* t) {
  TensorObject* self = static_cast<TensorObject*>(t->pyobject);
#if PY_VERSION_HEX >= 0x030d0000
  bool ending = !Py_IsInitialized() || Py_IsFinalizing();
#else
  bool ending = !Py_IsInitialized() || _Py_IsFinalizing();
#endif
  if (ending) {  // the object's memory goes with the process
    self->tensor = nullptr;
    return;
  }
  PyGILState_STATE gil = PyGILState_Ensure();
  if (t->flags & ARGAND_TENSOR_OWNS_PYOBJECT) {
    PyObject *type, *value, *traceback;  // a destructor must not disturb an exception on its way
    PyErr_Fetch(&type, &value, &traceback);
    t->flags &= ~ARGAND_TENSOR_OWNS_PYOBJECT;
    retain(t);
    self->releasing = true;
    Py_DECREF(reinterpret_cast<PyObject*>(self));
    if (t->pyobject == self) self->releasing = false;
    PyErr_Restore(type, value, traceback);
  }
  PyGILState_Release(gil);
}

static void tensor_dealloc(PyObject* o) {
  TensorObject* self = object_of(o);
  if (keep_for_owner(self)) return;
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  ArgandTensor* t = self->tensor;
  if (t && t->pyobject == self) t->pyobject = nullptr;  // nobody can wrap t into this object any more
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  self->tensor = nullptr;
  if (t) release(t);
  if (type == tensor_type && n_free_objects < kFreeObjects) {
    self->weakrefs = nullptr;
    self->releasing = false;
    free_objects[n_free_objects++] = self;
  } else {
    type->tp_free(o);
  }
  Py_DECREF(type);
}

// While C++ holds the tensor too, what the object and the meta refer to is reachable from outside Python: not visiting it says so.
static bool held_by_cpp(TensorObject* self) { return self->tensor && __atomic_load_n(&self->tensor->refcount, __ATOMIC_RELAXED) > 1; }
static int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  if (held_by_cpp(object_of(o))) return 0;
  Py_VISIT(object_of(o)->dict);
  ArgandTensor* t = object_of(o)->tensor;
  return t && t->meta && traverse_meta ? traverse_meta(t, visit, arg) : 0;
}
static int tensor_clear(PyObject* o) {
  if (held_by_cpp(object_of(o))) return 0;
  Py_CLEAR(object_of(o)->dict);
  ArgandTensor* t = object_of(o)->tensor;
  if (t && t->meta && clear_meta) clear_meta(t);
  return 0;
}

// ---- attributes: the collector learns of objects with a __dict__ ---------------------------------------------------------
static void track(PyObject* o) {
  if (object_of(o)->dict && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}
static int tensor_setattro(PyObject* o, PyObject* name, PyObject* value) {
  int status = PyObject_GenericSetAttr(o, name, value);
  track(o);
  return status;
}
static PyObject* tensor_get_dict(PyObject* o, void* context) {
  PyObject* dict = PyObject_GenericGetDict(o, context);
  track(o);
  return dict;
}
static int tensor_set_dict(PyObject* o, PyObject* value, void* context) {
  int status = PyObject_GenericSetDict(o, value, context);
  track(o);
  return status;
}

// ---- construction ---------------------------------------------------------------------------------------------------------
// Tensor(), Tensor(2, 3), Tensor(size=sizes), Tensor(sequence), Tensor(data=sequence), Tensor(tensor): float tensors of the default dtype, as
// the legacy constructor. Other keywords are a subclass's own.
static PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  ArgandDevice cpu = ARGAND_DEVICE(ARGAND_CPU, 0);
  int dtype = api->default_dtype();
  Ref named;
  if (kwargs && !PyTuple_GET_SIZE(args)) {
    if (PyObject* data = PyDict_GetItemString(kwargs, "data")) {
      named = Ref(PyTuple_Pack(1, data));
    } else if (PyObject* size = PyDict_GetItemString(kwargs, "size")) {
      named = Ref(PySequence_Tuple(size));
    }
    if (PyErr_Occurred()) return nullptr;
    if (named) args = named.get();
  }
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* first = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (n == 1 && is_tensor(first)) {
    ArgandTensor* alias = nullptr;
    if (int status = api->tensor_alias(tensor_of(first), &alias)) return raise(status);
    return wrap_as(type, alias);
  }
  if (n == 1 && !PyLong_Check(first) && Py_TYPE(first) != size_type) {
    if (PyFloat_CheckExact(first)) return PyErr_Format(PyExc_TypeError, "Tensor(): data must be a sequence, got float; use tensor()");
    Ref data(tensor_from_data(first, dtype, cpu));
    if (!data) return nullptr;
    if (type == tensor_type) return data.take();
    ArgandTensor* alias = nullptr;
    if (int status = api->tensor_alias(tensor_of(data.get()), &alias)) return raise(status);
    return wrap_as(type, alias);
  }
  PyObject* sizes = n == 1 && Py_TYPE(first) == size_type ? first : args;
  int64_t dims[ARGAND_MAX_DIMS];
  int32_t ndim = static_cast<int32_t>(PyTuple_GET_SIZE(sizes));
  if (ndim > ARGAND_MAX_DIMS) return PyErr_Format(PyExc_ValueError, "Tensor(): got %d sizes, expected at most %d", ndim, ARGAND_MAX_DIMS);
  for (int32_t i = 0; i < ndim; i++) {
    dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, i));
    if (dims[i] == -1 && PyErr_Occurred()) return nullptr;
  }
  if (n == 0) dims[0] = 0, ndim = 1;
  ArgandTensor* t = nullptr;
  if (int status = api->tensor_empty(ndim, dims, dtype, cpu, &t)) return raise(status);
  return wrap_as(type, t);
}

static int tensor_init(PyObject*, PyObject*, PyObject*) { return 0; }                 // __new__ did all; subclasses may add arguments
static Py_hash_t tensor_hash(PyObject* o) { return reinterpret_cast<Py_hash_t>(o); }  // id(o)

// ---- the type ---------------------------------------------------------------------------------------------------------------
static PyMemberDef tensor_members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
                                       {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
                                       {nullptr, 0, 0, 0, nullptr}};
static PyGetSetDef dict_getset[] = {{"__dict__", tensor_get_dict, tensor_set_dict, nullptr, nullptr}, {nullptr, nullptr, nullptr, nullptr, nullptr}};

int tensor_add_getset(PyGetSetDef* defs) {
  for (PyGetSetDef* def = defs; def->name; def++) {
    Ref descriptor(PyDescr_NewGetSet(tensor_type, def));
    if (!descriptor || PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), def->name, descriptor.get()) < 0) return -1;
  }
  return 0;
}

int tensor_add_methods(PyMethodDef* defs) {
  for (PyMethodDef* def = defs; def->ml_name; def++) {
    Ref descriptor;
    if (def->ml_flags & METH_STATIC) {
      Ref function(PyCFunction_New(def, nullptr));
      if (function) descriptor = Ref(PyStaticMethod_New(function.get()));
    } else if (def->ml_flags & METH_CLASS) {
      descriptor = Ref(PyDescr_NewClassMethod(tensor_type, def));
    } else {
      descriptor = Ref(PyDescr_NewMethod(tensor_type, def));
    }
    if (!descriptor || PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), def->ml_name, descriptor.get()) < 0) return -1;
  }
  return 0;
}

int tensor_set_attr(const char* name, PyObject* value) {
  Ref method(Py_TYPE(value) == operator_type ? operator_method(value) : Py_NewRef(value));
  return method ? PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), name, method.get()) : -1;
}

int init_tensor_type(PyObject* module) {
  static PyType_Slot slots[96] = {{Py_tp_new, reinterpret_cast<void*>(tensor_new)},
                                  {Py_tp_init, reinterpret_cast<void*>(tensor_init)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
                                  {Py_tp_setattro, reinterpret_cast<void*>(tensor_setattro)},
                                  {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
                                  {Py_tp_members, tensor_members},
                                  {Py_tp_methods, tensor_methods},
                                  {Py_tp_getset, dict_getset},
                                  {Py_bf_getbuffer, reinterpret_cast<void*>(tensor_buffer.bf_getbuffer)},
                                  {Py_bf_releasebuffer, reinterpret_cast<void*>(tensor_buffer.bf_releasebuffer)},
                                  {Py_tp_doc, const_cast<char*>("A strided array of one dtype on one device.")}};
  int n = 13;
  add_tensor_slots(slots, &n);
  static PyType_Spec spec = {"argand_c10.Tensor", sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  tensor_type = new_type(module, &spec);
  if (!tensor_type) return -1;
  if (tensor_add_getset(tensor_getset) < 0) return -1;  // replaceable, unlike those of a slot
  api->set_pyobject_hooks(release_object, nullptr);
  return PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type));
}

}  // namespace argand::py
