// A reduction as two walks: over the dimensions that are kept, and over those that are reduced.
#pragma once

#include "packages/aten/csrc/core/iteration.h"

namespace argand {

// `kept` has the operands self and out, `reduced` self; both begin empty. Bit d of `mask`: dimension d is reduced.
void split_dims(const Tensor& self, const Tensor& out, uint64_t mask, bool keepdim, Iteration* kept, Iteration* reduced);

}  // namespace argand
