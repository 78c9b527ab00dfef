#include <Python.h>
#include <cblas.h>

#include "tools/build/testdata/tiny/csrc/tiny.h"

namespace {

PyObject* twice(PyObject*, PyObject* x) {
  const long value = PyLong_AsLong(x);
  return value == -1 && PyErr_Occurred() ? nullptr : PyLong_FromLong(tiny_twice(static_cast<int>(value)));
}

PyObject* tiers(PyObject*, PyObject* x) {
  const double value = PyFloat_AsDouble(x);
  return value == -1 && PyErr_Occurred() ? nullptr : PyLong_FromLong(tiny_tiers(static_cast<float>(value)));
}

// Of two buffers of float64 of equal length.
PyObject* dot(PyObject*, PyObject* args) {
  Py_buffer a, b;
  if (!PyArg_ParseTuple(args, "y*y*", &a, &b)) return nullptr;
  const double sum = scipy_cblas_ddot64_(a.len / sizeof(double), static_cast<const double*>(a.buf), 1, static_cast<const double*>(b.buf), 1);
  PyBuffer_Release(&a);
  PyBuffer_Release(&b);
  return PyFloat_FromDouble(sum);
}

PyMethodDef methods[] = {{"twice", twice, METH_O, nullptr}, {"tiers", tiers, METH_O, nullptr}, {"dot", dot, METH_VARARGS, nullptr}, {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&definition); }
