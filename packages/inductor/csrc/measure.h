// The time that a kernel takes on a device, for autotuning.
#ifndef ARGAND_INDUCTOR_MEASURE_H_
#define ARGAND_INDUCTOR_MEASURE_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "packages/c10/csrc/abi/python_api.h"

namespace argand::inductor {

// Adds `measure_kernel` and `device_name` to a module; false with an exception.
bool add_measure(PyObject* module, const ArgandApi* api, const ArgandPythonApi* python_api);

}  // namespace argand::inductor

#endif  // ARGAND_INDUCTOR_MEASURE_H_
