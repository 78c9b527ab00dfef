// Images sampled at the places of a grid; derivatives are those of `_grid_sample`, which gathers by index and weight.
#include "packages/aten/csrc/kernels/cpu/grid_sample.h"

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/resampling.h"

namespace argand::kernels::cpu {
namespace {

template <class E>
Tensor sample(const GridLoops<E>& loops, int dtype, const Tensor& input, const Tensor& grid, int along, int padding, bool align_corners) {
  const Tensor x = contiguous(to_dtype(input, dtype)), places = contiguous(to_dtype(grid, dtype));
  const int64_t channels = x.size(1), h = x.size(2), w = x.size(3), count = places.size(1) * places.size(2);
  const Tensor out = empty({x.size(0), channels, places.size(1), places.size(2)}, dtype);
  const int64_t blocks = (count + kGridBlock - 1) / kGridBlock;
  const int taps = along * along;
  const bool pairs = along == 2 && w > 1;
  parallel_for(0, x.size(0) * blocks, row_grain(kGridBlock * taps * (channels + 4)), [&](int64_t begin, int64_t end) {
    int32_t at[kGridTaps * kGridBlock];
    E weights[kGridTaps * kGridBlock];
    std::fill_n(at, kGridTaps * kGridBlock, 0);  // the last places of a block that is not full
    std::fill_n(weights, kGridTaps * kGridBlock, E(0));
    for (int64_t i = begin; i < end; i++) {
      const int64_t image = i / blocks, first = i % blocks * kGridBlock, n = std::min<int64_t>(kGridBlock, count - first);
      loops.taps(n, places.data<E>() + 2 * (image * count + first), h, w, along, padding, align_corners, at, weights);
      for (int64_t c = image * channels; c < (image + 1) * channels; c++) {
        const E* plane = x.data<E>() + c * h * w;
        E* to = out.data<E>() + c * count + first;
        pairs ? loops.pair_sums(n, at, weights, plane, to) : loops.sums(n, along, at, weights, plane, to);
      }
    }
  });
  return to_dtype(out, input.dtype());
}

}  // namespace

Tensor grid_sample_2d(const Tensor& input, const Tensor& grid, std::string_view interpolation, std::string_view padding_mode, bool align_corners) {
  if (input.size(2) * input.size(3) > INT32_MAX) return ops::_grid_sample(input, grid, interpolation, padding_mode, align_corners);
  const int along = interpolation == "nearest"    ? 1
                    : interpolation == "bilinear" ? 2
                                                  : 4,
            padding = padding_mode == "zeros"    ? 0
                      : padding_mode == "border" ? 1
                                                 : 2;
  if (input.dtype() == ARGAND_FLOAT64) return sample<double>(pick_grid_kernels().f64, ARGAND_FLOAT64, input, grid, along, padding, align_corners);
  return sample<float>(pick_grid_kernels().f32, ARGAND_FLOAT32, input, grid, along, padding, align_corners);
}

}  // namespace argand::kernels::cpu
