// Negative log likelihood over (batch, class) or (class). Reductions: 0 none, 1 mean, 2 sum.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

struct Problem {
  int64_t rows, classes;
  Tensor target, weight;  // int64; weight in the compute dtype of the input, or undefined
};

Problem checked(const Tensor& self, const Tensor& target, const Tensor& weight) {
  if (self.dim() < 1 || self.dim() > 2) builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("input tensor should be 1D or 2D, got ", self.sizes()));
  const int64_t rows = self.dim() == 2 ? self.size(0) : 1;
  if (target.dim() > 1 || target.numel() != rows || (self.dim() == 2 && target.dim() != 1))
    builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("size mismatch (got input: ", self.sizes(), ", target: ", target.sizes(), ")"));
  if (target.dtype() != ARGAND_INT64 && target.dtype() != ARGAND_INT32 && target.dtype() != ARGAND_UINT8)
    builtins::raise(ARGAND_DTYPE_ERROR, builtins::text("expected target of dtype int64, got ", target.dtype()));
  if (weight && (weight.dim() != 1 || weight.numel() != self.size(-1)))
    builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("weight tensor should be defined either for all ", self.size(-1),
                                                       " classes or no classes but got weight tensor of shape: ", weight.sizes()));
  const int compute = self.dtype() == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32;
  return {rows, self.size(-1), to_dtype(contiguous(target), ARGAND_INT64), weight ? to_dtype(contiguous(weight), compute) : Tensor()};
}

void check_class(int64_t c, int64_t classes) {
  if (c < 0 || c >= classes) builtins::raise(ARGAND_INDEX_ERROR, builtins::text("Target ", c, " is out of bounds."));
}

}  // namespace

std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore_index) {
  const Problem p = checked(self, target, weight);
  const Tensor input = contiguous(self);
  const Tensor total = argand::empty({}, self.dtype());
  const Tensor out = argand::empty(reduction == 0 ? target.sizes() : IntList(), self.dtype());
  dispatch_floating("nll_loss", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const int64_t* y = p.target.data<int64_t>();
    const C* w = p.weight ? p.weight.data<C>() : nullptr;
    double sum = 0, weights = 0;
    for (int64_t r = 0; r < p.rows; r++) {
      C loss = 0;
      if (y[r] != ignore_index) {
        check_class(y[r], p.classes);
        const C factor = w ? w[y[r]] : C(1);
        loss = -factor * static_cast<C>(widen(input.data<T>()[r * p.classes + y[r]]));
        weights += factor;
      }
      if (reduction == 0)
        out.data<T>()[r] = narrow<T>(loss);
      else
        sum += loss;
    }
    if (reduction != 0) out.data<T>()[0] = narrow<T>(static_cast<C>(reduction == 1 ? sum / weights : sum));
    total.data<T>()[0] = narrow<T>(static_cast<C>(weights));
  });
  return {out, total};
}

Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                         int64_t ignore_index, const Tensor& total_weight) {
  const Problem p = checked(self, target, weight);
  const int64_t grads = reduction == 0 ? p.rows : 1;
  if (grad_output.numel() != grads || total_weight.numel() != 1)
    builtins::raise(ARGAND_SHAPE_ERROR, builtins::text("got grad_output of shape ", grad_output.sizes(), " and total_weight of shape ",
                                                       total_weight.sizes(), ", expected ", grads, " elements and one"));
  const Tensor grad = to_dtype(contiguous(grad_output), self.dtype()), total = to_dtype(total_weight, self.dtype());
  const Tensor out = zeros(self.sizes(), self.dtype());
  dispatch_floating("nll_loss_backward", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const int64_t* y = p.target.data<int64_t>();
    const C* w = p.weight ? p.weight.data<C>() : nullptr;
    for (int64_t r = 0; r < p.rows; r++) {
      if (y[r] == ignore_index) continue;
      check_class(y[r], p.classes);
      C g = widen(grad.data<T>()[reduction == 0 ? r : 0]);
      if (reduction == 1) g /= static_cast<C>(widen(total.data<T>()[0]));
      out.data<T>()[r * p.classes + y[r]] = narrow<T>(-g * (w ? w[y[r]] : C(1)));
    }
  });
  return out;
}

}  // namespace argand::kernels::cpu
