// layout and memory_format: named constants.
#include "packages/c10/csrc/python/constants.h"

namespace argand::py {

struct ConstantObject {
  PyObject_HEAD const char* name;
};

PyObject* strided_layout = nullptr;
PyObject* contiguous_format = nullptr;
PyObject* preserve_format = nullptr;
PyObject* channels_last = nullptr;
PyObject* channels_last_3d = nullptr;
PyTypeObject* layout_type = nullptr;
PyTypeObject* memory_format_type = nullptr;

static const char* name_of(PyObject* o) { return reinterpret_cast<ConstantObject*>(o)->name; }
static PyObject* constant_repr(PyObject* self) { return PyUnicode_FromFormat("argand.%s", name_of(self)); }
static PyObject* constant_reduce(PyObject* self, PyObject*) {
  Ref module(PyImport_ImportModule("argand_c10._C"));
  if (!module) return nullptr;
  Ref find(PyObject_GetAttrString(module.get(), "_constant_by_name"));
  return find ? Py_BuildValue("O(s)", find.get(), name_of(self)) : nullptr;
}
static PyMethodDef constant_methods[] = {{"__reduce__", constant_reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyType_Slot constant_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(constant_repr)}, {Py_tp_methods, constant_methods}, {0, nullptr}};
static PyType_Spec layout_spec = {"argand_c10.layout", sizeof(ConstantObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  constant_slots};
static PyType_Spec memory_format_spec = {"argand_c10.memory_format", sizeof(ConstantObject), 0,
                                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, constant_slots};

static PyObject* add_constant(PyObject* module, PyTypeObject* type, const char* name) {
  auto* self = PyObject_New(ConstantObject, type);
  if (!self) return nullptr;
  self->name = name;
  return PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(self)) < 0 ? nullptr : reinterpret_cast<PyObject*>(self);
}

int init_constants(PyObject* module) {
  layout_type = new_type(module, &layout_spec);
  memory_format_type = new_type(module, &memory_format_spec);
  if (!layout_type || !memory_format_type) return -1;
  if (PyModule_AddObjectRef(module, "layout", reinterpret_cast<PyObject*>(layout_type)) < 0) return -1;
  if (PyModule_AddObjectRef(module, "memory_format", reinterpret_cast<PyObject*>(memory_format_type)) < 0) return -1;
  strided_layout = add_constant(module, layout_type, "strided");
  for (const char* name : {"sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"})
    if (!add_constant(module, layout_type, name)) return -1;
  contiguous_format = add_constant(module, memory_format_type, "contiguous_format");
  preserve_format = add_constant(module, memory_format_type, "preserve_format");
  channels_last = add_constant(module, memory_format_type, "channels_last");
  channels_last_3d = add_constant(module, memory_format_type, "channels_last_3d");
  return strided_layout && contiguous_format && preserve_format && channels_last && channels_last_3d ? 0 : -1;
}

}  // namespace argand::py
