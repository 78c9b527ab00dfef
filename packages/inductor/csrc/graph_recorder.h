// The type GraphRecorder: a callable over tensors of one device whose work is recorded as a device graph and replayed.
#ifndef ARGAND_INDUCTOR_GRAPH_RECORDER_H_
#define ARGAND_INDUCTOR_GRAPH_RECORDER_H_

#include <Python.h>

#include "packages/c10/csrc/abi/python_api.h"

namespace argand::inductor {

// Adds the type to a module; false with an exception.
bool add_graph_recorder(PyObject* module, const ArgandApi* api, const ArgandPythonApi* python_api);

}  // namespace argand::inductor

#endif  // ARGAND_INDUCTOR_GRAPH_RECORDER_H_
