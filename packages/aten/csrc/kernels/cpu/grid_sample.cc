// Images sampled at the places of a grid; derivatives are those of `_grid_sample`, which gathers by index and weight.
#include "packages/aten/csrc/kernels/cpu/grid_sample.h"

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/resampling.h"

namespace argand::kernels::cpu {
namespace {

struct Mode {
  int along, padding;
  bool align_corners;
  Mode(std::string_view interpolation, std::string_view padding_mode, bool align)
      : along(interpolation == "nearest"    ? 1
              : interpolation == "bilinear" ? 2
                                            : 4),
        padding(padding_mode == "zeros"    ? 0
                : padding_mode == "border" ? 1
                                           : 2),
        align_corners(align) {}
};

// Taps of a block of places; those past the last place read element 0.
template <class E>
struct Block {
  int32_t at[kGridTaps * kGridBlock] = {};
  E weights[kGridTaps * kGridBlock] = {}, by_x[kGridTaps * kGridBlock] = {}, by_y[kGridTaps * kGridBlock] = {};
};

template <class E>
Tensor sample(const GridLoops<E>& loops, int dtype, const Tensor& input, const Tensor& grid, const Mode& m) {
  const Tensor x = contiguous(to_dtype(input, dtype)), places = contiguous(to_dtype(grid, dtype));
  const int64_t channels = x.size(1), h = x.size(2), w = x.size(3), count = places.size(1) * places.size(2);
  const Tensor out = empty({x.size(0), channels, places.size(1), places.size(2)}, dtype);
  const int64_t blocks = (count + kGridBlock - 1) / kGridBlock;
  const bool pairs = m.along == 2 && w > 1;
  parallel_for(0, x.size(0) * blocks, row_grain(kGridBlock * m.along * m.along * (channels + 4)), [&](int64_t begin, int64_t end) {
    Block<E> b;
    for (int64_t i = begin; i < end; i++) {
      const int64_t image = i / blocks, first = i % blocks * kGridBlock, n = std::min<int64_t>(kGridBlock, count - first);
      loops.taps(n, places.data<E>() + 2 * (image * count + first), h, w, m.along, m.padding, m.align_corners, b.at, b.weights);
      for (int64_t c = image * channels; c < (image + 1) * channels; c++) {
        const E* plane = x.data<E>() + c * h * w;
        E* to = out.data<E>() + c * count + first;
        pairs ? loops.pair_sums(n, b.at, b.weights, plane, to) : loops.sums(n, m.along, b.at, b.weights, plane, to);
      }
    }
  });
  return to_dtype(out, input.dtype());
}

// An image's channels are cut into parts, each with gradients of the places of its own, that are added up in their order. Those of the nearest
// elements' places are zero, whatever the elements are.
template <class E>
std::tuple<Tensor, Tensor> gradients(const GridLoops<E>& loops, int dtype, const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                     const Mode& m, IntList output_mask) {
  constexpr int64_t kUnits = 16;  // that are worth cutting for
  const Tensor g = contiguous(to_dtype(grad_output, dtype)), x = contiguous(to_dtype(input, dtype)), places = contiguous(to_dtype(grid, dtype));
  const int64_t batch = x.size(0), channels = x.size(1), h = x.size(2), w = x.size(3), count = places.size(1) * places.size(2);
  const int64_t each = std::max<int64_t>(1, std::max(channels * batch / kUnits, std::min<int64_t>(channels, 3)));
  const int64_t parts = (channels + each - 1) / each;
  const Tensor dx = output_mask[0] ? zeros(x.sizes(), dtype) : Tensor();
  const Tensor dgrid = output_mask[1] ? zeros(grid.sizes(), dtype) : Tensor();  // the first part's
  const int64_t numbers = 2 * batch * count;
  const Scratch<E> others(dgrid ? (parts - 1) * numbers : 0);
  parallel_for(0, batch * parts, row_grain(count * m.along * m.along * (each + 4)), [&](int64_t begin, int64_t end) {
    Block<E> b;
    E gx[kGridBlock], gy[kGridBlock];
    for (int64_t i = begin; i < end; i++) {
      const int64_t image = i / parts, part = i % parts, stop = std::min((part + 1) * each, channels);
      for (int64_t first = 0; first < count; first += kGridBlock) {
        const int64_t n = std::min<int64_t>(kGridBlock, count - first);
        loops.slopes(n, places.data<E>() + 2 * (image * count + first), h, w, m.along, m.padding, m.align_corners, b.at, b.weights, b.by_x, b.by_y);
        std::fill_n(gx, kGridBlock, E(0)), std::fill_n(gy, kGridBlock, E(0));
        for (int64_t c = image * channels + part * each; c < image * channels + stop; c++) {
          const E* from = g.data<E>() + c * count + first;
          if (dgrid && m.along > 1) loops.place_gradients(n, m.along, b.at, b.by_x, b.by_y, x.data<E>() + c * h * w, from, gx, gy);
          if (dx) loops.scatter(n, m.along, b.at, b.weights, from, dx.data<E>() + c * h * w);
        }
        for (int64_t k = 0; dgrid && k < n; k++) {
          E* const to = (part ? others + (part - 1) * numbers : dgrid.data<E>()) + 2 * (image * count + first + k);
          to[0] = gx[k], to[1] = gy[k];
        }
      }
    }
  });
  if (dgrid && parts > 1)
    parallel_for(0, numbers, row_grain(parts), [&](int64_t begin, int64_t end) {
      for (int64_t part = 0; part < parts - 1; part++)
        for (int64_t k = begin; k < end; k++) dgrid.data<E>()[k] += others[part * numbers + k];
    });
  const auto finished = [&](const Tensor& t, const Tensor& like) { return t ? to_dtype(t, like.dtype()) : t; };
  return {finished(dx, input), finished(dgrid, grid)};
}

}  // namespace

Tensor grid_sample_2d(const Tensor& input, const Tensor& grid, std::string_view interpolation, std::string_view padding_mode, bool align_corners) {
  if (input.size(2) * input.size(3) > INT32_MAX) return ops::_grid_sample(input, grid, interpolation, padding_mode, align_corners);
  const Mode m(interpolation, padding_mode, align_corners);
  if (input.dtype() == ARGAND_FLOAT64) return sample<double>(pick_grid_kernels().f64, ARGAND_FLOAT64, input, grid, m);
  return sample<float>(pick_grid_kernels().f32, ARGAND_FLOAT32, input, grid, m);
}

std::tuple<Tensor, Tensor> grid_sample_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid, std::string_view interpolation,
                                                   std::string_view padding_mode, bool align_corners, IntList output_mask) {
  if (input.size(2) * input.size(3) > INT32_MAX)
    return ops::_grid_sample_backward(grad_output, input, grid, interpolation, padding_mode, align_corners, output_mask);
  const Mode m(interpolation, padding_mode, align_corners);
  if (input.dtype() == ARGAND_FLOAT64) return gradients<double>(pick_grid_kernels().f64, ARGAND_FLOAT64, grad_output, input, grid, m, output_mask);
  return gradients<float>(pick_grid_kernels().f32, ARGAND_FLOAT32, grad_output, input, grid, m, output_mask);
}

}  // namespace argand::kernels::cpu
