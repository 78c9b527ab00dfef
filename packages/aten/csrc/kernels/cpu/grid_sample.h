// Tiered loops of sampling images at the places of a grid, block by block.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

inline constexpr int kGridBlock = 64, kGridTaps = 16;  // places of a block; taps of a place at most

template <class E>
struct GridLoops {
  // What sums() or, of two taps along and w > 1, pair_sums() read, of n <= kGridBlock places (x before y, from -1 to 1) in an image of h x w. `along`
  // taps in each direction: 1 nearest, 2 bilinear, 4 bicubic; padding 0: no element outside, 1: those of the border, 2: reflected ones.
  void (*taps)(int64_t n, const E* grid, int64_t h, int64_t w, int along, int padding, bool align_corners, int32_t* at, E* weights);
  // out[place] = sum over taps of weight * plane[at]
  void (*sums)(int64_t n, int along, const int32_t* at, const E* weights, const E* plane, E* out);
  void (*pair_sums)(int64_t n, const int32_t* at, const E* weights, const E* plane, E* out);
  // What sums() reads, and the weights' derivatives by x and y.
  void (*slopes)(int64_t n, const E* grid, int64_t h, int64_t w, int along, int padding, bool align_corners, int32_t* at, E* weights, E* by_x,
                 E* by_y);
  // gx[place] += grad[place] * sum over taps of by_x * plane[at], and gy; both have kGridBlock elements.
  void (*place_gradients)(int64_t n, int along, const int32_t* at, const E* by_x, const E* by_y, const E* plane, const E* grad, E* gx, E* gy);
  // plane[at] += weight * grad[place] for every tap
  void (*scatter)(int64_t n, int along, const int32_t* at, const E* weights, const E* grad, E* plane);
};
struct GridKernels {
  GridLoops<float> f32;
  GridLoops<double> f64;
};
ARGAND_DECLARE_TIERS(GridKernels, grid_kernels)

}  // namespace argand::kernels::cpu
