// Hooks of nodes and tensors. The binding implements them over Python callables.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "packages/autograd/csrc/intrusive.h"
#include "packages/autograd/csrc/spin_lock.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::autograd {

// Anything that is kept alive and destroyed with its owner.
class Keeper {
 public:
  virtual ~Keeper() = default;
  virtual bool live() const { return true; }  // false: it was removed and does nothing any more
};

// Sees, and may replace, the gradient of one tensor.
class TensorHook : public Keeper {
 public:
  virtual void call(Tensor& grad) = 0;
};

// Before a node runs: sees and may replace the gradients of its forward results.
class NodePreHook : public Keeper {
 public:
  virtual void call(Tensor* grads, uint32_t n) = 0;
};

// After a node ran: may replace the gradients it made.
class NodePostHook : public Keeper {
 public:
  virtual void call(Tensor* made, uint32_t n_made, const Tensor* given, uint32_t n_given) = 0;
};

// After a leaf's gradient was accumulated.
class LeafHook : public Keeper {
 public:
  virtual void call(const Tensor& leaf) = 0;
};

// The target of `retain_grad()`: a pointer to the tensor that the tensor clears when it goes away, so that graph and tensor form no cycle.
class RetainedGrad {
 public:
  explicit RetainedGrad(ArgandTensor* target) : target_(target) {}
  void store(const Tensor& grad);  // adds to the target's `.grad`
  void forget();
  void retain() { refcount_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refcount_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  std::atomic<int32_t> refcount_{1};
  SpinLock lock_;
  ArgandTensor* target_;
};

struct NodeHooks {
  struct OnTensor {
    uint32_t input_nr;
    std::shared_ptr<TensorHook> hook;
  };
  struct Retained {
    uint32_t input_nr;
    Ref<RetainedGrad> target;
  };
  std::vector<OnTensor> on_tensor;  // in order of registration, before the node's own hooks
  std::vector<Retained> retained;   // after on_tensor
  std::vector<std::shared_ptr<NodePreHook>> pre;
  std::vector<std::shared_ptr<NodePostHook>> post;
};

}  // namespace argand::autograd
