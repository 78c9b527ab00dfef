#include "packages/autograd/csrc/saved_tensor.h"

#include "packages/autograd/csrc/history.h"

namespace argand::autograd {

namespace {

thread_local SavedTensorHooks* t_hooks = nullptr;

// Gives a tensor without history that of `edge`.
void attach_history(ArgandTensor* t, const Edge& edge) {
  if (!edge.fn->is_accumulate_grad()) {
    set_history(t, edge.fn, edge.input_nr);
    return;
  }
  t->flags |= ARGAND_TENSOR_REQUIRES_GRAD;
  t->keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  AutogradMeta& meta = ensure_meta(t);
  SpinGuard guard(meta.lock);
  meta.accumulator = edge.fn.get();  // gradients go to the leaf that was saved
  meta.lent_accumulator = edge.fn;
}

}  // namespace

SavedTensorHooks* set_saved_tensor_hooks(SavedTensorHooks* hooks) { return std::exchange(t_hooks, hooks); }

void SavedTensor::save_argument(const Tensor& t) {
  if (!t) return;
  if (t->flags & ARGAND_TENSOR_INFERENCE)
    fail(ARGAND_RUNTIME_ERROR,
         "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal tensor and use it in autograd.");
  defined_ = true;
  version_ = t.version();
  replaced_ = t->meta ? meta_of(t.get())->replaced : 0;
  if (t_hooks) {
    edge_ = gradient_edge(t.get());
    pack(t, t_hooks);
  } else {
    data_ = t;
  }
}

void SavedTensor::save_result(const Tensor& t, uint32_t output_nr, bool differentiable) {
  if (!t) return;
  defined_ = true;
  is_result_ = true;
  has_history_ = differentiable && is_differentiable(t.dtype());
  output_nr_ = output_nr;
  version_ = t.version();
  if (t_hooks) {
    pack(detach(t.get()), t_hooks);
  } else {
    data_ = detach(t.get());
  }
}

void SavedTensor::pack(const Tensor& t, SavedTensorHooks* hooks) {
  {
    StateGuard state;
    state->grad_mode = 0;
    packed_.reset(hooks->pack(t));
  }
  if (t.version() != version_)
    fail(ARGAND_RUNTIME_ERROR,
         "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by in-place "
         "operations, "
         "as this can lead to unexpected side-effects; change a copy.");
}

void SavedTensor::check_version(const Tensor& data, Node* node) const {
  if (!is_result_ && (data->meta ? meta_of(data.get())->replaced : 0) != replaced_)
    fail(ARGAND_RUNTIME_ERROR,
         "one of the variables needed for gradient computation has been modified by an inplace operation: [%s %s] was given other memory by set_() "
         "since; "
         "call set_() after backward, or on a tensor of its own",
         dtype_title(data.dtype()).c_str(), to_string(data.sizes()).c_str());
  const uint32_t now = data.version();
  if (now == version_) return;
  Node* fn = is_result_ ? node : grad_fn(data.get());
  const uint32_t nr = is_result_ ? output_nr_ : output_nr(data.get());
  const std::string origin = fn ? ", which is output " + std::to_string(nr) + " of " + fn->name() + "," : "";
  fail(ARGAND_RUNTIME_ERROR,
       "one of the variables needed for gradient computation has been modified by an inplace operation: [%s %s]%s is at version %u; expected version "
       "%u "
       "instead. Hint: enable anomaly detection (set_detect_anomaly(True)) to find the operation that failed to compute its gradient.",
       dtype_title(data.dtype()).c_str(), to_string(data.sizes()).c_str(), origin.c_str(), now, version_);
}

Tensor SavedTensor::unpack(Node* node, Node* owner) const {
  if (!defined_) return {};
  const bool recording = api->thread_state()->grad_mode;
  Tensor data;
  std::shared_ptr<PackedTensor> packed;
  Edge edge;
  {
    SpinGuard guard(lock_);
    data = data_;
    packed = packed_;
    edge = edge_;
  }
  if (packed) {
    Tensor t = packed->unpack();
    if (has_history_) edge = {NodeRef::borrow(node), output_nr_};
    if (!recording || !edge.fn || !t) return t;
    t = detach(t.get());
    attach_history(t.get(), edge);
    return t;
  }
  if (!data) fail_released();
  check_version(data, node);
  if (!has_history_ || !recording) return data;
  Tensor t = detach(data.get());
  edge = owner ? owner->owned_result_edge() : Edge{NodeRef::borrow(node), output_nr_};
  set_history(t.get(), edge.fn, edge.input_nr);
  return t;
}

void SavedTensor::release() {
  Tensor data;  // destroyed outside of the lock
  Edge edge;
  std::shared_ptr<PackedTensor> packed;
  SpinGuard guard(lock_);
  std::swap(data, data_);
  std::swap(edge, edge_);
  std::swap(packed, packed_);
}

void fail_released() {
  fail(ARGAND_RUNTIME_ERROR,
       "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). What the graph "
       "saved is "
       "freed by backward() and grad(). Specify retain_graph=True if you need to backward through the graph a second time or to access saved tensors "
       "after calling backward.");
}

}  // namespace argand::autograd
