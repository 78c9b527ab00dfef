// The C entry points of libargand_aten.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

extern "C" {
// Registers every operator with its CPU and meta kernels. Call once, before any other use. Returns a status.
__attribute__((visibility("default"))) int argand_aten_init(const ArgandApi* api);
// Where OpenBLAS's shared library is; it is loaded at its first use. Returns a status.
__attribute__((visibility("default"))) int argand_aten_set_blas(const char* path);
// This thread's ArgandThreadState.autocast as one number; setting it settles whether ARGAND_KEY_AUTOCAST is included.
__attribute__((visibility("default"))) uint64_t argand_aten_autocast_state(void);
__attribute__((visibility("default"))) void argand_aten_set_autocast_state(uint64_t state);
// Lets go of the cast weights that this thread keeps while a region lasts.
__attribute__((visibility("default"))) void argand_aten_clear_autocast_cache(void);
}
