// Weighted sums of named elements by gathers, tap by tap, for backends without kernels of their own.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/joining.h"
#include "packages/aten/generated/ops/reduction.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::composite {
namespace {

// A tap's indices or weights as (batch, 1, places).
Tensor tap_of(const Tensor& t, int64_t tap) { return ops::unsqueeze(ops::select(t, 2, tap), 1); }

Tensor spread(const Tensor& index, const Tensor& over) {
  return ops::expand(ops::clamp_min(index, int64_t{0}), {over.size(0), over.size(1), index.size(2)});
}

Tensor taken(const Tensor& self, const Tensor& index) {
  return ops::masked_fill(ops::gather(self, 2, spread(index, self)), ops::lt(index, int64_t{0}), int64_t{0});
}

}  // namespace

Tensor weighted_gather(const Tensor& self, const Tensor& index, const Tensor& weights) {
  Tensor sum;
  for (int64_t t = 0; t < index.size(2); t++) {
    const Tensor at = tap_of(index, t);
    const Tensor w = ops::masked_fill(tap_of(weights, t), ops::lt(at, int64_t{0}), int64_t{0});
    const Tensor part = ops::mul(taken(self, at), w);
    sum = sum ? ops::add(sum, part) : part;
  }
  return ops::_to_copy(sum, self.dtype());
}

Tensor weighted_scatter(const Tensor& grad, const Tensor& index, const Tensor& weights, int64_t size) {
  const Tensor sum = ops::zeros({grad.size(0), grad.size(1), size}, weights.dtype(), grad.device());
  for (int64_t t = 0; t < index.size(2); t++) {
    const Tensor at = tap_of(index, t);
    const Tensor part = ops::masked_fill(ops::mul(grad, tap_of(weights, t)), ops::lt(at, int64_t{0}), int64_t{0});
    ops::scatter_add_(sum, 2, spread(at, grad), ops::_to_copy(part, weights.dtype()));
  }
  return ops::_to_copy(sum, grad.dtype());
}

Tensor weighted_gather_weights(const Tensor& grad, const Tensor& self, const Tensor& index) {
  std::vector<Tensor> parts;
  for (int64_t t = 0; t < index.size(2); t++) parts.push_back(ops::sum(ops::mul(grad, taken(self, tap_of(index, t))), IntList({1})));
  return ops::_to_copy(ops::stack(parts, 2), self.dtype());
}

}  // namespace argand::kernels::composite
