// Runs scans over tensors along one dimension. The operators' tables are generated; the loops are in scan.h.
#pragma once

#include "packages/aten/csrc/core/operand.h"
#include "packages/aten/csrc/kernels/cpu/loops.h"

namespace argand {

struct ScanOp {
  const char* name;
  const ScanKernel* kernels[3];  // a table a tier (baseline, AVX2, AVX-512), each of n_kernels
  int n_kernels;
};

// A tensor of self's shape whose element i along `dim` combines self's elements 0 to i. `dtype` (or NONE): self is converted to it
// first, and the result has it. `out` undefined: a new tensor; else resized and written.
Tensor scan(const ScanOp& op, const Tensor& self, int64_t dim, int dtype = ARGAND_DTYPE_NONE, const Tensor& out = {});

}  // namespace argand
