// Reductions and scans of complex tensors by those of real ones.
#pragma once

#include "packages/aten/cuda/csrc/reduction.h"

namespace argand::cuda {

// Whether `self`, converted to `dtype` unless that is NONE, is complex.
inline bool computes_complex(const Tensor& self, int dtype) { return is_complex(dtype == ARGAND_DTYPE_NONE ? self.dtype() : dtype); }

// Of operators that treat both parts alike, sums and means: as reduce and scan, for complex computations.
Tensor reduce_parts(const ReduceOp& op, const Tensor& self, std::optional<IntList> dims, bool keepdim, int dtype);
Tensor scan_parts(const ScanOp& op, const Tensor& self, int64_t dim, int dtype);

// Of operators that ask which elements are not 0: a tensor that answers the same; real ones are what they are.
Tensor nonzero_elements(const Tensor& self);

}  // namespace argand::cuda
