// Runs generated reductions and scans over CUDA tensors. Operators' tables are generated; the kernels are described in reduction.py.
#pragma once

#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/cuda/csrc/launch.h"

namespace argand::cuda {

struct AccumulationDtypes {
  int8_t in, acc, out;
};

struct ReduceOp {
  const char* name;
  const char* kernel;  // of its Triton kernel "<kernel>_reduce"
  const AccumulationDtypes* dtypes;
  int n_dtypes;
  bool nonempty;  // no elements to reduce is an error (there is no identity)
};

struct ScanOp {
  const char* name;
  const char* kernel;  // "<kernel>_scan"
  const AccumulationDtypes* dtypes;
  int n_dtypes;
};

// Reduces `dims` (absent or empty: all) to size 1, or away. `dtype` (or NONE): self is converted to it first, and the result has it.
// The order of sums depends on the shape and strides alone.
Tensor reduce(const ReduceOp& op, const Tensor& self, std::optional<IntList> dims, bool keepdim, int dtype);

// A tensor of self's shape whose element i along `dim` combines self's elements 0 to i; `dtype` as for reduce.
Tensor scan(const ScanOp& op, const Tensor& self, int64_t dim, int dtype);

}  // namespace argand::cuda
