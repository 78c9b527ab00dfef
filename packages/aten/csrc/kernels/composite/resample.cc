// Resampling by gathers, tap by tap, for backends without a kernel of their own.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/resampling.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::composite {
namespace {

// A tap's weights, as a factor along `dim` of a tensor.
Tensor weights_of(const Tensor& weights, int64_t tap, int64_t dim, int64_t ndim) {
  Dims sizes;
  for (int64_t i = 0; i < ndim; i++) sizes.push_back(i == dim ? weights.size(0) : 1);
  return ops::reshape(ops::select(weights, 1, tap), IntList(sizes));
}

}  // namespace

Tensor resample(const Tensor& self, const Tensor& starts, const Tensor& weights, int64_t dim) {
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  Tensor sum;
  for (int64_t t = 0; t < weights.size(1); t++) {
    const Tensor part = ops::mul(ops::index_select(self, d, ops::add(starts, t)), weights_of(weights, t, d, self.dim()));
    sum = sum ? ops::add(sum, part) : part;
  }
  return ops::_to_copy(sum, self.dtype());
}

Tensor resample_backward(const Tensor& grad_output, const Tensor& starts, const Tensor& weights, int64_t dim, int64_t size) {
  const int64_t d = builtins::wrap_dim(dim, grad_output.dim());
  Dims sizes(grad_output.sizes());
  sizes[static_cast<int32_t>(d)] = size;
  const Tensor sum = ops::zeros(IntList(sizes), weights.dtype(), grad_output.device());
  for (int64_t t = 0; t < weights.size(1); t++)
    ops::index_add_(sum, d, ops::add(starts, t), ops::mul(grad_output, weights_of(weights, t, d, grad_output.dim())));
  return ops::_to_copy(sum, grad_output.dtype());
}

Tensor upsample_2d(const Tensor& input, IntList output_size, std::string_view mode, bool align_corners, std::optional<double> scale0,
                   std::optional<double> scale1) {
  return ops::contiguous(ops::_upsample_separably(input, output_size, mode, align_corners, scale0, scale1, std::nullopt));
}

Tensor grid_sample_2d(const Tensor& input, const Tensor& grid, std::string_view interpolation, std::string_view padding_mode, bool align_corners) {
  return ops::_grid_sample(input, grid, interpolation, padding_mode, align_corners);
}

std::tuple<Tensor, Tensor> grid_sample_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid, std::string_view interpolation,
                                                   std::string_view padding_mode, bool align_corners, IntList output_mask) {
  return ops::_grid_sample_backward(grad_output, input, grid, interpolation, padding_mode, align_corners, output_mask);
}

}  // namespace argand::kernels::composite
