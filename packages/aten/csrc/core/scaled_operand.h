// Complex numbers that scale an operand: loops have real ones only.
#pragma once

#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"

namespace argand {

// The operand of a computation in `dtype`, multiplied by a complex number.
inline Tensor scaled_operand(const Operand& operand, const Scalar& number, int dtype) {
  const Tensor t = operand.is_tensor() ? ops::to(operand.tensor(), dtype) : ops::scalar_tensor(operand.scalar(), dtype);
  return ops::mul(t, number);
}

}  // namespace argand
