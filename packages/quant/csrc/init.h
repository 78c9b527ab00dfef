// The C entry point of libargand_quant.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

extern "C" {
// Registers the operators with their CPU and meta kernels; again is harmless. Call once libargand_aten is initialised. Returns a status.
__attribute__((visibility("default"))) int argand_quant_init(const ArgandApi* api);
}
