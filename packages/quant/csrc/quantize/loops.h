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

// How fake quantize computes. For all elements alike, or with integer zero points of channels: clamp(rint(x * inverse) + zero_point), and the
// result's product in float32, or float64; with real zero points: rint(clamp(x * inverse + zero_point)), and the same in float64.
enum FakeForm { kFakeTensor = 0, kFakeChannels, kFakeRounded, kNumFakeForms };

// Of a run of elements, as in Parameters.
struct FakeParameters {
  const float* inverse;
  const float* scale;
  const float* zero_point;
  int stride;
  int64_t low, high;
};

struct QuantizeLoops {
  void (*quantize[kNumIntegerKinds])(int64_t n, const float* x, void* q, Parameters inverse, Range range);
  void (*dequantize[kNumIntegerKinds])(int64_t n, const void* q, float* x, Parameters scale);
  // y = dequantize(quantize(x)), of float32 or (second) float64.
  void (*fake_quantize[2][kNumFakeForms])(int64_t n, const void* x, void* y, const FakeParameters& p);
  // Whether x's integer lies in the range.
  void (*fake_quantize_kept[2][kNumFakeForms])(int64_t n, const void* x, bool* kept, const FakeParameters& p);
  // Lowers *low and raises *high to the least and the greatest element; NaN takes both to infinity.
  void (*extend_range)(int64_t n, const float* x, float* low, float* high);
};

ARGAND_TIER_TABLES(QuantizeLoops, quantize_loops)

const QuantizeLoops& loops();  // of the processor's tier

}  // namespace argand::quant
