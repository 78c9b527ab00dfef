// Size: the tuple of a tensor's sizes.
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

PyTypeObject* size_type = nullptr;

static PyObject* fill(PyObject* tuple, const int64_t* values, Py_ssize_t n) {
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* value = PyLong_FromLongLong(values[i]);
    if (!value) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, value);
  }
  return tuple;
}
PyObject* int_tuple(const int64_t* values, Py_ssize_t n) { return fill(PyTuple_New(n), values, n); }
PyObject* size_object(const int64_t* sizes, Py_ssize_t n) { return fill(size_type->tp_alloc(size_type, n), sizes, n); }

// A plain tuple becomes a Size; anything else stays.
static PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_Check(tuple)) return tuple;
  Ref owned(tuple);
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* size = size_type->tp_alloc(size_type, n);
  if (!size) return nullptr;
  for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(size, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  return size;
}

static PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  Ref tuple(PyTuple_Type.tp_new(type, args, kwargs));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); i++) {
    PyObject* entry = PyTuple_GET_ITEM(tuple.get(), i);
    if (PyLong_Check(entry) || has_override(entry)) continue;
    PyObject* index = PyNumber_Index(entry);
    if (!index) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
      PyErr_Clear();
      return PyErr_Format(PyExc_TypeError, "Size(): got %s at position %zd, expected an int", Py_TYPE(entry)->tp_name, i);
    }
    PyTuple_SET_ITEM(tuple.get(), i, index);
    Py_DECREF(entry);
  }
  return tuple.take();
}

static PyObject* size_repr(PyObject* self) {
  Ref list(PySequence_List(self));
  return list ? PyUnicode_FromFormat("argand.Size(%R)", list.get()) : nullptr;
}
static PyObject* size_numel(PyObject* self, PyObject*) {
  Ref product(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); i++) product = Ref(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
  return product.take();
}
static PyObject* size_reduce(PyObject* self, PyObject*) {
  Ref tuple(PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self)));
  Ref list(PySequence_List(self));
  if (!list) return nullptr;
  Ref plain(PyList_AsTuple(list.get()));
  return plain ? Py_BuildValue("O(O)", reinterpret_cast<PyObject*>(size_type), plain.get()) : nullptr;
}
static PyObject* size_concat(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
static PyObject* size_repeat(PyObject* self, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(self, n)); }
static PyObject* size_subscript(PyObject* self, PyObject* index) { return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, index)); }

static PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The number of elements of a tensor of this size."},
                                     {"__reduce__", size_reduce, METH_NOARGS, nullptr},
                                     {nullptr, nullptr, 0, nullptr}};
static PyType_Slot size_slots[] = {{Py_tp_new, reinterpret_cast<void*>(size_new)},
                                   {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                                   {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                                   {Py_nb_add, reinterpret_cast<void*>(size_concat)},
                                   {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
                                   {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                                   {Py_tp_methods, size_methods},
                                   {Py_tp_doc, const_cast<char*>("The sizes of a tensor's dimensions.")},
                                   {0, nullptr}};
static PyType_Spec size_spec = {"argand_c10.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, size_slots};

int init_size(PyObject* module) {
  size_type = new_type(module, &size_spec, &PyTuple_Type);
  if (!size_type) return -1;
  return PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(size_type));
}

}  // namespace argand::py
