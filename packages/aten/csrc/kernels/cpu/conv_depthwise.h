// Convolution with one channel a group over one or two dimensions: vectors hold neighbouring channels of a pixel, so that planes may be small and
// tensors may have the channels last. Vectors of pixels are called tiles; a tile has `lanes` channels.
#pragma once

#include "packages/aten/csrc/kernels/cpu/conv_geometry.h"
#include "packages/aten/csrc/kernels/cpu/conv_passes.h"

namespace argand::kernels::cpu {

template <class T, class E>
struct DepthwiseLoops {
  int lanes;
  // to[p * lanes + l] = from[l * channel + p * pixel] for p < n and l < channels; the other lanes are zero. `channel` or `pixel` is 1.
  void (*load)(const T* from, int64_t channel, int64_t pixel, int64_t channels, int64_t n, E* to);
  // to[l * channel + p * pixel] = from[p * lanes + l] for p < n and l < channels.
  void (*store)(const E* from, int64_t channel, int64_t pixel, int64_t channels, int64_t n, T* to);
  // c[x] = bias + sum over i < kh and j < kw of w[i * kw + j] * base[i * row + j * column + x * step] for x < n, all of them vectors.
  void (*row)(int64_t kh, int64_t kw, const E* w, const E* base, int64_t row, int64_t column, int64_t step, int64_t n, const E* bias, E* c);
};
struct DepthwiseKernels {
  DepthwiseLoops<float, float> f32;
  DepthwiseLoops<double, double> f64;
  DepthwiseLoops<bf16, float> b16;
  DepthwiseLoops<f16, float> h16;
};
ARGAND_DECLARE_TIERS(DepthwiseKernels, depthwise_kernels)

template <class T>
const auto& depthwise_loops() {
  if constexpr (std::is_same_v<T, double>)
    return pick_depthwise_kernels().f64;
  else if constexpr (std::is_same_v<T, bf16>)
    return pick_depthwise_kernels().b16;
  else if constexpr (std::is_same_v<T, f16>)
    return pick_depthwise_kernels().h16;
  else
    return pick_depthwise_kernels().f32;
}

// Pixel rows of the result that are made together: their sums and what they read stay in the second-level cache. 0: too few of them to pay.
int64_t depthwise_band(const Geometry& g, int64_t lanes, int64_t itemsize);

// The convolution of `input`, of which it reads the strides if the channels are innermost; else it is contiguous. Where `last`, the result has the
// channels last, and no epilogue. `band` is not 0.
template <class T>
void depthwise_forward(const Geometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias, const Results& results, bool last,
                       int64_t band);

}  // namespace argand::kernels::cpu
