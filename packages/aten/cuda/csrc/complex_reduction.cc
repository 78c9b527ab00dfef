#include "packages/aten/cuda/csrc/complex_reduction.h"

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::cuda {
namespace {

Tensor converted(const Tensor& self, int dtype) { return dtype == ARGAND_DTYPE_NONE || dtype == self.dtype() ? self : ops::_to_copy(self, dtype); }

}  // namespace

Tensor reduce_parts(const ReduceOp& op, const Tensor& self, std::optional<IntList> dims, bool keepdim, int dtype) {
  const Tensor x = converted(self, dtype);
  const uint64_t given = dims ? wrap_dims(op.name, *dims, x.dim()) : 0;
  Dims reduced;
  for (int64_t d = 0; d < x.dim(); d++)
    if (given == 0 || (given >> d & 1)) reduced.push_back(d);
  if (reduced.n == 0) return ops::clone(x);
  const Tensor result = ops::view_as_complex(reduce(op, ops::view_as_real(x), IntList(reduced), keepdim, ARGAND_DTYPE_NONE));
  // A quotient of complex numbers: a part that is not finite leaves no number in the other.
  return std::string_view(op.name) == "mean" ? ops::mul(result, Scalar(1.0, 0.0)) : result;
}

Tensor scan_parts(const ScanOp& op, const Tensor& self, int64_t dim, int dtype) {
  const Tensor x = converted(self, dtype);
  const int64_t d = builtins::wrap_dim(dim, x.dim());
  if (x.dim() == 0) return ops::clone(x);
  return ops::view_as_complex(scan(op, ops::view_as_real(x), d, ARGAND_DTYPE_NONE));
}

Tensor nonzero_elements(const Tensor& self) { return is_complex(self.dtype()) ? ops::ne(self, Scalar(int64_t{0})) : self; }

}  // namespace argand::cuda
