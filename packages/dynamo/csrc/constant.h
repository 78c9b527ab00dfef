// Equality of constants that never runs user code and never takes 1 for True or 0.0 for -0.0.
#pragma once

#include <Python.h>

namespace argand::dynamo {

// Can `o` be the expected value of an EQUALS guard: None, bool, int, float, complex, str, bytes, dtype, device, layout, memory format,
// Ellipsis, NotImplemented, range, slice, and tuples and frozensets of those.
bool is_constant(PyObject* o);

// Same exact type and same value, floats bit for bit. `expected` is a constant; `value` may be anything.
bool equals_constant(PyObject* expected, PyObject* value);

int init_constants();  // looks up c10's types; -1 + exception

}  // namespace argand::dynamo
