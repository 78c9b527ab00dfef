#include "packages/dynamo/csrc/constant.h"

#include <cstring>

#include "packages/dynamo/csrc/binding.h"

namespace argand::dynamo {

namespace {

constexpr const char* kOpaqueTypes[] = {"dtype", "device", "layout", "memory_format"};
PyTypeObject* opaque_types[4];

bool is_opaque(PyTypeObject* type) {
  for (PyTypeObject* t : opaque_types)
    if (t == type) return true;
  return type == &PyRange_Type;  // compares its ints only
}

bool is_simple(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBytes_Type ||
         type == &PyComplex_Type || is_opaque(type);
}

bool rich_equal(PyObject* a, PyObject* b) {
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

bool equal_tuples(PyObject* a, PyObject* b) {
  const Py_ssize_t n = PyTuple_GET_SIZE(a);
  if (PyTuple_GET_SIZE(b) != n) return false;
  for (Py_ssize_t i = 0; i < n; i++)
    if (!equals_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

// Every element of `a` has an equal one of the same type in `b`, and there are as many.
bool equal_sets(PyObject* a, PyObject* b) {
  if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
  Ref left(PySequence_Tuple(a)), right(PySequence_Tuple(b));
  if (!left || !right) {
    PyErr_Clear();
    return false;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(left.get());
  for (Py_ssize_t i = 0; i < n; i++) {
    bool found = false;
    for (Py_ssize_t j = 0; !found && j < n; j++) found = equals_constant(PyTuple_GET_ITEM(left.get(), i), PyTuple_GET_ITEM(right.get(), j));
    if (!found) return false;
  }
  return true;
}

}  // namespace

bool is_constant(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || o == Py_NotImplemented || is_simple(Py_TYPE(o))) return true;
  if (PyTuple_Check(o)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
      if (!is_constant(PyTuple_GET_ITEM(o, i))) return false;
    return true;
  }
  if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    return is_constant(s->start) && is_constant(s->stop) && is_constant(s->step);
  }
  if (PyFrozenSet_CheckExact(o)) {
    Ref items(PySequence_Tuple(o));
    if (!items) PyErr_Clear();
    return items && is_constant(items.get());
  }
  return false;
}

bool equals_constant(PyObject* expected, PyObject* value) {
  if (expected == value) return true;
  PyTypeObject* type = Py_TYPE(expected);
  if (Py_TYPE(value) != type) return false;
  if (type == &PyUnicode_Type) return PyUnicode_Compare(expected, value) == 0;
  if (type == &PyLong_Type) return rich_equal(expected, value);
  if (type == &PyFloat_Type) {
    const double a = PyFloat_AS_DOUBLE(expected), b = PyFloat_AS_DOUBLE(value);
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
  if (type == &PyBytes_Type)
    return PyBytes_GET_SIZE(expected) == PyBytes_GET_SIZE(value) &&
           std::memcmp(PyBytes_AS_STRING(expected), PyBytes_AS_STRING(value), static_cast<size_t>(PyBytes_GET_SIZE(value))) == 0;
  if (type == &PyComplex_Type) {
    const Py_complex a = PyComplex_AsCComplex(expected), b = PyComplex_AsCComplex(value);
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
  if (is_opaque(type)) return rich_equal(expected, value);
  if (PyTuple_Check(expected)) return equal_tuples(expected, value);
  if (type == &PySlice_Type) {
    auto *a = reinterpret_cast<PySliceObject*>(expected), *b = reinterpret_cast<PySliceObject*>(value);
    return equals_constant(a->start, b->start) && equals_constant(a->stop, b->stop) && equals_constant(a->step, b->step);
  }
  return type == &PyFrozenSet_Type && equal_sets(expected, value);
}

int init_constants() {
  Ref module(PyImport_ImportModule("argand_c10._C"));
  if (!module) return -1;
  for (int i = 0; i < 4; i++) {
    Ref type(PyObject_GetAttrString(module.get(), kOpaqueTypes[i]));
    if (!type) return -1;
    opaque_types[i] = reinterpret_cast<PyTypeObject*>(type.take());  // types of an extension module: they live forever
  }
  return 0;
}

}  // namespace argand::dynamo
