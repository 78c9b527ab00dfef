// Distances of all pairs of rows by way of their differences, for backends without a kernel of their own.
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/linalg_composite.h"

namespace argand::kernels::composite {

Tensor distances(const Tensor& x1, const Tensor& x2, double p) { return ops::_difference_norms(ops::_row_differences(x1, x2), p); }

}  // namespace argand::kernels::composite
