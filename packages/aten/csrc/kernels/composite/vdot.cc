#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/matrix.h"

namespace argand::kernels::composite {

Tensor vdot(const Tensor& self, const Tensor& other) { return ops::dot(ops::conj(self), other); }

}  // namespace argand::kernels::composite
