// Dtypes that kernels of every backend refuse alike.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand {

// What compares numbers takes real ones; of float8 numbers nothing is computed.
inline void check_ordered(const char* op, int dtype) {
  if (is_complex(dtype) || is_float8(dtype))
    fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for dtype %s, whose numbers are not compared; expected a real dtype", op,
         kDTypeName[dtype]);
}
// What orders numbers refuses truth values, which are all ties.
inline void check_not_bool(const char* op, int dtype) {
  if (dtype == ARGAND_BOOL) fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for dtype bool; convert with .to(torch.uint8)", op);
}

}  // namespace argand
