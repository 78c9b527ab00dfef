// What the files of the Python binding share.
#pragma once

#include <pybind11/pybind11.h>

#include "packages/c10/csrc/abi/python_api.h"
#include "packages/distributed/csrc/group/group.h"

namespace argand::distributed {

namespace py = pybind11;

extern const ArgandPythonApi* python;

void bind_stores(py::module_& m);
void bind_groups(py::module_& m);

// Not py::gil_scoped_release in the signature's policies where arguments are Python objects: those are read first.
using WithoutGil = py::gil_scoped_release;

}  // namespace argand::distributed
