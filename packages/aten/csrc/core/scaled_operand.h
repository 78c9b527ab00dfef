// The numbers of pointwise operators besides their operands.
#pragma once

#include <cmath>

#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"

namespace argand {

// The operand of a computation in `dtype`, multiplied by a complex number.
inline Tensor scaled_operand(const Operand& operand, const Scalar& number, int dtype) {
  const Tensor t = operand.is_tensor() ? ops::to(operand.tensor(), dtype) : ops::scalar_tensor(operand.scalar(), dtype);
  return ops::mul(t, number);
}

// The numbers as loops take them, in both types; `rounds_alpha`: an alpha to a dtype of half precision. A complex one, which loops do not have, is
// multiplied into an operand, which `product` keeps.
template <class Binding>
void take_scalars(const ArgandOperator* op, const Binding& b, const ArgandValue* args, Operand* operands, double* scalars, int64_t* ints,
                  bool rounds_alpha, Tensor* product) {
  for (int i = 0; i < b.n_scalars; i++) {
    const ArgandValue& number = args[b.scalar_args[i]];
    Scalar s = as_scalar(number);
    const bool small = number.tag == ARGAND_TAG_INT ? number.i > -128 && number.i < 128 && !beyond_int64(number)  // fits every dtype
                                                    : !b.has_alpha && number.tag != ARGAND_TAG_COMPLEX && !(std::fabs(s.re) > 65504);
    if (!small) {
      const Operand* pointers[kMaxOperands];
      for (int k = 0; k < b.n_operands; k++) pointers[k] = &operands[k];
      const int dtype = pointwise_dtype(op->name, b.n_operands, static_cast<Promotion>(b.variants->promote), b.variants->bool_operands, pointers);
      if (b.checked_scalars >> i & 1)
        check_scalar(op->name, dtype, b.chosen_scalars >> i & 1, number);
      else
        check_number(op->name, dtype, number);
      if (b.has_alpha) {
        check_alpha(op->name, dtype, number);
        if (rounds_alpha && is_half(dtype)) s.re = rounded(dtype, s.re);
      }
      if (number.tag == ARGAND_TAG_COMPLEX && b.scaled >= 0 && is_complex(dtype)) {
        *product = scaled_operand(operands[b.scaled], s, dtype);
        operands[b.scaled] = Operand(*product);
        s = Scalar(1);
      }
    }
    scalars[i] = s.to_double();
    ints[i] = s.to_int();
    if (const ArgandTensor* t = b.n_operands == 1 ? operands[0].get() : nullptr; t && is_wide_unsigned(t->dtype) && t->dtype != ARGAND_UINT64)
      ints[i] &= (int64_t{1} << (8 * kItemSize[t->dtype])) - 1;  // as the dtype holds it
  }
}

}  // namespace argand
