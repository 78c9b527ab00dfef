// Inner loops between float32 and integers, one table a tier. The arithmetic is that of registry/quantize.yaml.
#pragma once

#include <cstdint>

#include "packages/quant/csrc/tiers.h"

namespace argand::quant {

// Integers that may hold quantized numbers, as an index of tables.
enum IntegerKind { kUInt8 = 0, kInt8, kInt16, kInt32, kNumIntegerKinds };

struct Range {
  int32_t low, high;
};

// Parameters of a run of elements: one for all (stride 0), or one each (stride 1).
struct Parameters {
  const float* factor;  // quantize: the inverse scale; dequantize: the scale
  const int32_t* zero_point;
  int stride;
};

struct QuantizeLoops {
  void (*quantize[kNumIntegerKinds])(int64_t n, const float* x, void* q, Parameters inverse, Range range);
  void (*dequantize[kNumIntegerKinds])(int64_t n, const void* q, float* x, Parameters scale);
  // y = dequantize(quantize(x)); `scale` has the stride of `inverse`.
  void (*fake_quantize)(int64_t n, const float* x, float* y, Parameters inverse, const float* scale, Range range);
  // dx = dy where x's integer lies in the range, else 0.
  void (*fake_quantize_backward)(int64_t n, const float* dy, const float* x, float* dx, Parameters inverse, Range range);
  // Lowers *low and raises *high to the least and the greatest element; NaN takes both to infinity.
  void (*extend_range)(int64_t n, const float* x, float* low, float* high);
};

ARGAND_TIER_TABLES(QuantizeLoops, quantize_loops)

const QuantizeLoops& loops();  // of the processor's tier

}  // namespace argand::quant
