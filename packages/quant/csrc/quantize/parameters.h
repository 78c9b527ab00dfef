// Scales, zero points and ranges: what they must be, and how they follow from data.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"
#include "packages/quant/csrc/quantize/loops.h"

namespace argand::quant {

IntegerKind integer_kind(const char* op, int dtype);
Range checked_range(const char* op, int64_t quant_min, int64_t quant_max, int dtype);
float checked_scale(const char* op, double scale);
int32_t checked_zero_point(const char* op, int64_t zero_point);
double only_number(const char* op, const char* name, const Tensor& t);  // of a tensor of one element

Tensor as_float32(const Tensor& t);  // contiguous

struct ScaleAndZero {
  float scale;
  int32_t zero_point;
};
// As choose_qparams.tensor; `x` is contiguous float32. Fails in the name of `op` where a value is not finite.
ScaleAndZero choose_affine(const char* op, const Tensor& x, Range range, double eps);

}  // namespace argand::quant
