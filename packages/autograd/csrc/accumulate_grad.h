// The node at the end of every path: adds the gradient that arrives to a leaf's `.grad`.
#pragma once

#include "packages/autograd/csrc/node.h"

namespace argand::autograd {

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable);
  ~AccumulateGrad() override;
  const char* name() const override { return "AccumulateGrad"; }
  bool is_accumulate_grad() const override { return true; }
  void apply(Gradients& g) override;
  const Tensor& variable() const { return variable_; }
  void set_grad_dtype(int dtype);  // as AutogradMeta::grad_dtype
  bool is_current() const;         // whether the leaf still has the shape, dtype and device that gradients are checked for

 private:
  Tensor variable_;
  TensorFacts facts_;
  int64_t inline_sizes_[ARGAND_INLINE_DIMS];
  std::unique_ptr<int64_t[]> many_sizes_;  // beyond that
};

// Whether nobody but the holder of this one reference can see the tensor or its memory, which has one place for each element, so that it may be
// changed or given away.
bool owned_alone(const Tensor& t);

}  // namespace argand::autograd
