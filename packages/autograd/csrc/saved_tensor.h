// A tensor kept for backward.
#pragma once

#include "packages/autograd/csrc/node.h"

namespace argand::autograd {

// What a user's pack hook made of a saved tensor; destroyed with it.
class PackedTensor : public Keeper {
 public:
  virtual Tensor unpack() = 0;
};

// The innermost pair of saved-tensor hooks of a thread; NULL when there is none.
class SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks() = default;
  virtual PackedTensor* pack(const Tensor& t) = 0;  // the caller owns the result
};
SavedTensorHooks* set_saved_tensor_hooks(SavedTensorHooks* hooks);  // of this thread; returns the previous one

// An argument is kept as it is. A result of the node that keeps it is kept without its history, which would be a cycle, and gets it back
// when it is unpacked. Both remember the version they had.
class SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(const SavedTensor&) = delete;
  SavedTensor& operator=(const SavedTensor&) = delete;

  void save_argument(const Tensor& t);
  void save_result(const Tensor& t, uint32_t output_nr, bool differentiable);
  bool defined() const { return defined_; }

  // `node` keeps this tensor; `owner` is the node of the base if `node` changed a view in place. Throws if the tensor has changed since.
  Tensor unpack(Node* node, Node* owner) const;
  void release();  // drops the data; another thread may be unpacking

 private:
  void pack(const Tensor& t, SavedTensorHooks* hooks);
  void check_version(const Tensor& data, Node* node) const;

  Tensor data_;
  Edge edge_;  // of packed arguments
  std::shared_ptr<PackedTensor> packed_;
  mutable SpinLock lock_;  // guards the three above
  uint32_t version_ = 0;
  uint32_t replaced_ = 0;  // AutogradMeta::replaced of an argument
  uint32_t output_nr_ = 0;
  bool is_result_ = false;
  bool has_history_ = false;  // results: do gradients flow through it
  bool defined_ = false;
};

[[noreturn]] void fail_released();

}  // namespace argand::autograd
