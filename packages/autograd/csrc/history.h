// The gradient history of a tensor: its meta record, its edge into the graph, and what in-place changes and views do to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "packages/autograd/csrc/node.h"

namespace argand::autograd {

// Where a view with a history came from, as far as in-place changes are concerned.
enum class ViewOrigin : uint8_t {
  kOperator,        // a differentiable operator: in-place changes are carried over to the base
  kCustomFunction,  // made inside a user's Function: an in-place change would bypass its backward and is refused
};

// Hooks of a leaf; those of other tensors are with the node that made them.
struct LeafHooks {
  std::vector<std::shared_ptr<TensorHook>> on_grad;
  std::vector<std::shared_ptr<LeafHook>> post_accumulate;
};

// AutogradMeta::grad_dtype where it is no dtype.
constexpr int16_t kDTypeOfTensor = -1, kAnyDType = -2;

// Hangs on ArgandTensor::meta. Invariant: a tensor's own key set has AUTOGRAD exactly if it is a leaf that requires grad or `grad_fn` is set.
struct AutogradMeta : ArgandTensorMeta {
  NodeRef grad_fn;
  Node* accumulator = nullptr;  // AccumulateGrad of a leaf, not owned; guarded by `lock`, cleared by the node
  NodeRef lent_accumulator;     // what keeps `accumulator` where it is that of another leaf, which clears only its own
  Tensor grad;
  Ref<RetainedGrad> retained;
  std::unique_ptr<LeafHooks> hooks;
  uint32_t output_nr = 0;
  uint32_t view_version = 0;  // views: the storage's version for which grad_fn holds; made in no_grad: the number of their base's node
  uint32_t replaced = 0;      // how often set_() gave the tensor other memory
  ViewOrigin origin = ViewOrigin::kOperator;
  int16_t grad_dtype = kDTypeOfTensor;  // of a leaf: what its gradients are cast to
  SpinLock lock;
  Tensor whole;  // of an entry that stands for all: what has them along its first dimension
  int64_t level = 0;

  LeafHooks& ensure_hooks() {
    if (!hooks) hooks = std::make_unique<LeafHooks>();
    return *hooks;
  }
  static void* operator new(size_t nbytes) { return Node::allocate(nbytes); }
  static void operator delete(void* p) { Node::deallocate(p); }
};

inline AutogradMeta* meta_of(const ArgandTensor* t) { return static_cast<AutogradMeta*>(t->meta); }
AutogradMeta& ensure_meta(ArgandTensor* t);

// The function that made `t`, NULL for leaves. A view whose base was changed in place gets a new one here.
Node* grad_fn(ArgandTensor* t);
uint32_t output_nr(const ArgandTensor* t);

// Keeps in a view that was just made in no_grad which history its base has.
void note_view_without_history(ArgandTensor* view);

bool requires_grad_slow(ArgandTensor* t);
inline bool requires_grad(ArgandTensor* t) {
  constexpr uint64_t bit = ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  if (!t->base) return t->keys & bit;
  return ((t->keys | t->base->keys) & bit) && requires_grad_slow(t);
}
inline bool is_leaf(ArgandTensor* t) { return !requires_grad(t) || grad_fn(t) == nullptr; }

// Where gradients of `t` go; empty if it does not require grad.
Edge gradient_edge(ArgandTensor* t);
NodeRef grad_accumulator(ArgandTensor* leaf);

// Makes `t` result number `output_nr` of `fn`.
void set_history(ArgandTensor* t, const NodeRef& fn, uint32_t output_nr, ViewOrigin origin = ViewOrigin::kOperator);
// The same after `t` was changed in place by `fn`: a view hands the change over to its base. Returns the node that owns `fn` for a view.
void rebase_history(ArgandTensor* t, const NodeRef& fn, uint32_t output_nr);
// Refuses in-place changes with gradients of leaves, of views of leaves and of views without history.
void check_inplace(const char* op, ArgandTensor* t, bool others_require_grad);

void set_requires_grad(ArgandTensor* leaf, bool value);  // throws for non-leaves, integers and inference tensors
Tensor detach(ArgandTensor* t);                          // shares storage, version and entries
void detach_in_place(ArgandTensor* t);

Tensor grad_of(ArgandTensor* t);
void set_grad(ArgandTensor* t, Tensor grad);  // unchecked
// The dtype of a leaf's gradients, kAnyDType where each keeps its own.
int grad_dtype(ArgandTensor* leaf);
void set_grad_dtype(ArgandTensor* leaf, int dtype);
void retain_grad(ArgandTensor* t);

std::string dtype_title(int dtype);  // "Float"

}  // namespace argand::autograd
