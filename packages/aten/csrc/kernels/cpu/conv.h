// Tiered loops of convolution. Inputs are copied, padded, into planes: one per channel and stride phase, so that every kernel tap reads a contiguous
// run of a plane, whatever stride and dilation are. Pixels are numbered row by row over the plane's width; those past the output's width are waste.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

template <class E>
struct ConvLoops {
  int rows;   // output channels of a full block; smaller blocks have 4, 2 or 1
  int lanes;  // elements of a vector
  // c[r][p] = (adds ? c[r][p] : bias[r]) + sum over k of weight(r, k) * base[offsets[k] + p] for p < n. n is a multiple of `lanes`; `rows` is a
  // power of two. Weight (r, k) is w[r * row + places[k]], or w[k * rows + r] if `places` is null.
  void (*block)(int rows, int64_t k, const E* w, int64_t row, const int64_t* places, const E* base, const int64_t* offsets, int64_t n, const E* bias,
                bool adds, E* c, int64_t ldc);
  // to[m][y][x] = in[m * image + (y * sh + top) * w + x * sw + left] for m < images, zero outside [h, w], for sw of 1 or 2; null where that is no
  // faster than rows one by one.
  void (*plane)(E* to, int64_t height, int64_t width, const E* in, int64_t images, int64_t image, int64_t h, int64_t w, int64_t sh, int64_t sw,
                int64_t top, int64_t left);
  // to[2 * x] = from[x] for x < n, nothing else written; null where that is no faster than one by one.
  void (*spread)(E* to, const E* from, int64_t n);
  // acc[m][j] += sum over pixels of base[offsets[m] + y * width + x] * g[(y * length + x) * ldg + j], y < height, x < length, m < rows, j < n.
  // n is a multiple of `lanes`; `rows` is a power of two up to this table's.
  void (*weight_block)(int rows, const E* base, const int64_t* offsets, int64_t height, int64_t length, int64_t width, const E* g, int64_t ldg,
                       int64_t n, E* acc, int64_t lda);
};
struct ConvKernels {
  ConvLoops<float> f32;
  ConvLoops<double> f64;
};
ARGAND_DECLARE_TIERS(ConvKernels, conv_kernels)

template <class E>
const ConvLoops<E>& conv_loops() {
  if constexpr (sizeof(E) == 4)
    return pick_conv_kernels().f32;
  else
    return pick_conv_kernels().f64;
}

}  // namespace argand::kernels::cpu
