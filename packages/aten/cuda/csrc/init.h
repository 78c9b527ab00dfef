// Registers the CUDA kernels with c10's dispatcher.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::cuda {

// Sets argand::api of this library and registers every kernel. Returns a status.
int init(const ArgandApi* api);

}  // namespace argand::cuda
