// Runs reductions over tensors: any dimensions, in parallel, with results that do not depend on the number of threads. The
// operators' tables are generated; the loops are in reduce.h.
#pragma once

#include "packages/aten/csrc/core/operand.h"
#include "packages/aten/csrc/kernels/cpu/loops.h"

namespace argand {

struct ReduceOp {
  const char* name;
  const ReduceKernel* kernels[3];  // a table a tier (baseline, AVX2, AVX-512), each of n_kernels
  int n_kernels;
  bool nonempty;  // no elements to reduce is an error (there is no identity)
};

// Reduces `dims` (absent or empty: all) to size 1, or away. `dtype` (or NONE): self is converted to it first, and the result has it.
Tensor reduce(const ReduceOp& op, const Tensor& self, std::optional<IntList> dims, bool keepdim, int dtype = ARGAND_DTYPE_NONE);

}  // namespace argand
