// x[...] and x[...] = v.
#pragma once

#include "packages/c10/csrc/abi/python_api.h"

namespace argand::python {

PyObject* tensor_getitem(PyObject* self, PyObject* index);
int tensor_setitem(PyObject* self, PyObject* index, PyObject* v);  // v == NULL (del x[i]): TypeError

// The c10 binding's table; set by the module.
extern const ArgandPythonApi* python_api;

}  // namespace argand::python
