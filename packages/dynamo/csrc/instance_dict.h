// An object's own attributes, read where CPython keeps them: no descriptor runs, no dict is made.
#pragma once

#include <Python.h>

namespace argand::dynamo {

// The entry `name` (an interned str) of o.__dict__ as a new reference; NULL without an exception when there is none.
PyObject* instance_attribute(PyObject* o, PyObject* name);

}  // namespace argand::dynamo
