#include "packages/autograd/csrc/accumulate_grad.h"

#include <mutex>

#include "packages/autograd/csrc/batching.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/tensor_ops.h"
#include "packages/c10/csrc/core/strided.h"

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

bool is_sparse(const Tensor& t) { return t.has_key(ARGAND_KEY_SPARSE); }

// A sparse gradient's memory is its Python object's, which nobody else may hold.
bool sparse_alone(const Tensor& t) { return __atomic_load_n(&t->refcount, __ATOMIC_ACQUIRE) == 1 && t->flags & ARGAND_TENSOR_OWNS_PYOBJECT; }

Tensor copy_with_layout_of(const Tensor& grad, const Tensor& leaf) {
  if ((leaf.is_contiguous() && grad.is_contiguous()) || api->thread_state()->grad_mode || is_batched(grad.get())) return tensor_ops::clone(grad);
  const bool dense = is_non_overlapping_and_dense(leaf.sizes(), leaf.strides());
  Tensor out = dense ? empty_strided(leaf.sizes(), leaf.strides(), grad.dtype(), grad.device()) : empty(leaf.sizes(), grad.dtype(), grad.device());
  tensor_ops::copy_(out, grad);
  return out;
}

}  // namespace

bool owned_alone(const Tensor& t) {
  return __atomic_load_n(&t->refcount, __ATOMIC_ACQUIRE) == 1 && !t->base && !t->pyobject &&
         __atomic_load_n(&t->storage->refcount, __ATOMIC_ACQUIRE) == 1 && !(t->flags & ARGAND_TENSOR_INFERENCE) &&
         !(t->storage->flags & ARGAND_STORAGE_READONLY) && (t.is_contiguous() || internal_overlap(t.sizes(), t.strides()) == Overlap::no);
}

AccumulateGrad::AccumulateGrad(Tensor variable) : Node(kAccumulateSequence), variable_(std::move(variable)) {
  const ArgandTensor* t = variable_.get();
  int64_t* sizes = t->ndim <= ARGAND_INLINE_DIMS ? inline_sizes_ : (many_sizes_ = std::make_unique<int64_t[]>(static_cast<size_t>(t->ndim))).get();
  for (int32_t i = 0; i < t->ndim; i++) sizes[i] = t->sizes[i];
  facts_.sizes = sizes;
  facts_.ndim = t->ndim;
  facts_.device = t->storage->device;
  set_grad_dtype(meta_of(t)->grad_dtype);
  inputs_ = &facts_;
  n_inputs_ = 1;
}

AccumulateGrad::~AccumulateGrad() {
  AutogradMeta* meta = meta_of(variable_.get());
  SpinGuard guard(meta->lock);
  if (meta->accumulator == this) meta->accumulator = nullptr;
}

void AccumulateGrad::set_grad_dtype(int dtype) {
  facts_.any_dtype = dtype == kAnyDType;
  facts_.dtype = static_cast<uint8_t>(dtype < 0 ? variable_->dtype : dtype);
}

bool AccumulateGrad::is_current() const {
  const ArgandTensor* t = variable_.get();
  const int dtype = meta_of(t)->grad_dtype;
  return facts_.device == t->storage->device && (dtype != kDTypeOfTensor || facts_.dtype == t->dtype) &&
         IntList(facts_.sizes, facts_.ndim) == IntList(t->sizes, t->ndim);
}

void AccumulateGrad::apply(Gradients& g) {
  Tensor grad = std::move(g.in[0]);
  if (!grad) return;
  ArgandTensor* leaf = variable_.get();
  if (!(leaf->flags & ARGAND_TENSOR_REQUIRES_GRAD)) return;  // it was switched off after the forward
  if (level_of(grad.get()) > level_of(leaf)) grad = first_entry(grad, level_of(leaf));
  const bool recording = api->thread_state()->grad_mode;
  {
    std::lock_guard<std::mutex> lock(leaf_mutex(leaf));
    Tensor sum = grad_of(leaf);
    if (!sum) {
      if (recording || is_sparse(grad)) {
        sum = !recording && sparse_alone(grad) ? tensor_ops::contiguous(grad) : tensor_ops::clone(grad);
      } else {
        sum = owned_alone(grad) && has_layout_for(grad, variable_) ? std::move(grad) : copy_with_layout_of(grad, variable_);
      }
      set_grad(leaf, std::move(sum));
    } else if (recording || requires_grad(sum.get()) || (is_sparse(sum) && !is_sparse(grad))) {
      set_grad(leaf, is_sparse(sum) && !is_sparse(grad) ? tensor_ops::add(grad, sum) : tensor_ops::add(sum, grad));
    } else {
      tensor_ops::add_(sum, grad);
    }
  }
  AutogradMeta* meta = meta_of(leaf);
  if (!meta->hooks) return;
  const auto hooks = meta->hooks->post_accumulate;  // they may remove themselves
  for (const auto& hook : hooks) hook->call(variable_);
}

}  // namespace argand::autograd
