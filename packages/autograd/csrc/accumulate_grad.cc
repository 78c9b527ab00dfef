#include "packages/autograd/csrc/accumulate_grad.h"

#include <mutex>

#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/tensor_ops.h"

namespace argand::autograd {

namespace {

// Several threads may run backward to the same leaf at once.
std::mutex g_leaf_mutexes[32];
std::mutex& leaf_mutex(const ArgandTensor* leaf) { return g_leaf_mutexes[(reinterpret_cast<uintptr_t>(leaf) >> 7) % 32]; }

// A gradient is laid out as its leaf is, where the leaf's strides could be a result's; else row-major.
bool has_layout_for(const Tensor& grad, const Tensor& leaf) {
  if (grad.is_contiguous() && leaf.is_contiguous()) return true;
  return grad.sizes() == leaf.sizes() && grad.strides() == leaf.strides();
}

Tensor copy_with_layout_of(const Tensor& grad, const Tensor& leaf) {
  if (leaf.is_contiguous() || api->thread_state()->grad_mode) return tensor_ops::clone(grad);
  Tensor out = empty(leaf.sizes(), grad.dtype(), grad.device());
  tensor_ops::copy_(out, grad);
  return out;
}

}  // namespace

bool owned_alone(const Tensor& t) {
  return __atomic_load_n(&t->refcount, __ATOMIC_ACQUIRE) == 1 && !t->base && !t->pyobject &&
         __atomic_load_n(&t->storage->refcount, __ATOMIC_ACQUIRE) == 1 && !(t->flags & ARGAND_TENSOR_INFERENCE) &&
         !(t->storage->flags & ARGAND_STORAGE_READONLY);
}

AccumulateGrad::AccumulateGrad(Tensor variable) : VectorNode(kAccumulateSequence), variable_(std::move(variable)) {
  std::vector<OwnedFacts> inputs;
  inputs.emplace_back(variable_);
  set_inputs(std::move(inputs));
}

AccumulateGrad::~AccumulateGrad() {
  AutogradMeta* meta = meta_of(variable_.get());
  SpinGuard guard(meta->lock);
  if (meta->accumulator == this) meta->accumulator = nullptr;
}

void AccumulateGrad::apply(Gradients& g) {
  Tensor grad = std::move(g.in[0]);
  if (!grad) return;
  ArgandTensor* leaf = variable_.get();
  if (!(leaf->flags & ARGAND_TENSOR_REQUIRES_GRAD)) return;  // it was switched off after the forward
  const bool recording = api->thread_state()->grad_mode;
  {
    std::lock_guard<std::mutex> lock(leaf_mutex(leaf));
    Tensor sum = grad_of(leaf);
    if (!sum) {
      if (recording) {
        sum = tensor_ops::clone(grad);
      } else {
        sum = owned_alone(grad) && has_layout_for(grad, variable_) ? std::move(grad) : copy_with_layout_of(grad, variable_);
      }
      set_grad(leaf, std::move(sum));
    } else if (recording || requires_grad(sum.get())) {
      set_grad(leaf, tensor_ops::add(sum, grad));
    } else {
      tensor_ops::add_(sum, grad);
    }
  }
  AutogradMeta* meta = meta_of(leaf);
  const auto hooks = meta->post_accumulate_hooks;  // they may remove themselves
  for (const auto& hook : hooks) hook->call(variable_);
}

}  // namespace argand::autograd
