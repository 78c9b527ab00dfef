// What `functools.lru_cache` keeps.
#pragma once

#include "packages/dynamo/csrc/binding.h"

namespace argand::dynamo {

// Whether a call would find its result in the cache, so that it runs nothing. `arguments` are `n` values, the last of them by these names.
bool cache_holds(PyObject* cached, PyObject* const* arguments, Py_ssize_t n, PyObject* names);

}  // namespace argand::dynamo
