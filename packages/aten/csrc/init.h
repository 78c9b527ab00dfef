// The C entry points of libargand_aten.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

extern "C" {
// Registers every operator with its CPU and meta kernels. Call once, before any other use. Returns a status.
__attribute__((visibility("default"))) int argand_aten_init(const ArgandApi* api);
// Where OpenBLAS's shared library is; it is loaded at its first use. Returns a status.
__attribute__((visibility("default"))) int argand_aten_set_blas(const char* path);
}
