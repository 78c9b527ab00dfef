// Without the second norm that gradients need (statistics.yaml).
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/reduction.h"

namespace argand::kernels::composite {

Tensor slice_scales(const Tensor& self, const Scalar& p, IntList dim, const Scalar& maxnorm) {
  const Tensor size = ops::norm(self, p, dim, true);
  const Tensor scale = ops::div(maxnorm.to_double(), ops::add(size, 1e-7));
  return ops::where(ops::gt(size, maxnorm), scale, int64_t{1});
}

}  // namespace argand::kernels::composite
