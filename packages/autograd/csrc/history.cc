#include "packages/autograd/csrc/history.h"

#include "packages/autograd/csrc/accumulate_grad.h"
#include "packages/autograd/csrc/anomaly.h"
#include "packages/autograd/csrc/batching.h"
#include "packages/autograd/csrc/tensor_ops.h"
#include "packages/autograd/csrc/view_nodes.h"

namespace argand::autograd {

namespace {

constexpr uint64_t kAutogradBit = ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);

void destroy_meta(ArgandTensorMeta* base) {
  auto* meta = static_cast<AutogradMeta*>(base);
  if (meta->retained) meta->retained->forget();
  delete meta;
}

uint32_t storage_version(const ArgandTensor* t) { return __atomic_load_n(&t->storage->version, __ATOMIC_RELAXED); }

// Moves the target of retain_grad() from the node that made the tensor to the one that makes it now.
void move_retained(AutogradMeta& meta, ArgandTensor* t) {
  if (!meta.retained) return;
  meta.retained->forget();
  meta.retained = Ref<RetainedGrad>::steal(new RetainedGrad(t));
  meta.grad_fn->ensure_hooks().retained.push_back({meta.output_nr, meta.retained});
}

// Stands for the history of a tensor that is no view: 0 without one.
uint32_t history_number(const ArgandTensor* t) {
  const Node* fn = t->meta ? meta_of(t)->grad_fn.get() : nullptr;
  return fn ? static_cast<uint32_t>(fn->sequence()) + 1 : 0;
}

// Did the base of a view that was made in no_grad get another history since: a gradient through the view would be lost.
bool lost_history(const ArgandTensor* t) {
  return (t->flags & ARGAND_TENSOR_VIEW_NO_GRAD) && history_number(t->base) != (t->meta ? meta_of(t)->view_version : 0);
}

// grad_fn of a view under the lock of its meta: made anew if the base changed since.
Node* view_grad_fn(ArgandTensor* t) {
  if (lost_history(t))
    fail(ARGAND_RUNTIME_ERROR,
         "grad_fn: A view was created in no_grad mode and its base or another view of its base has been modified inplace with grad mode enabled. "
         "Given "
         "that this use case is ambiguous and error-prone, it is forbidden; put both the view and the in-place operation inside the no_grad block "
         "(not "
         "tracked), or both outside (tracked)");
  if (t->flags & ARGAND_TENSOR_VIEW_NO_GRAD) return nullptr;
  ArgandTensor* base = t->base;
  // Views that were made before their base had a history follow it once an in-place change has given it one.
  if (!t->meta && !(base->meta && meta_of(base)->grad_fn)) return nullptr;
  AutogradMeta& m = ensure_meta(t);
  const uint32_t version = storage_version(t);
  NodeRef old;  // destroyed outside of the lock
  SpinGuard guard(m.lock);
  if (m.view_version == version) return m.grad_fn.get();
  Edge edge = gradient_edge(base);
  m.view_version = version;
  if (!edge.fn || !is_differentiable(t->dtype)) return m.grad_fn.get();
  if (m.grad_fn && m.origin == ViewOrigin::kCustomFunction)
    fail(ARGAND_RUNTIME_ERROR,
         "%s: got a view that was made inside a custom Function and whose base has since been modified in place, expected an unmodified base; "
         "clone the view before the base is modified",
         m.grad_fn->name());
  old = std::exchange(m.grad_fn, make_view_node(t, std::move(edge)));
  m.output_nr = 0;
  t->keys |= kAutogradBit;
  move_retained(m, t);
  return m.grad_fn.get();
}

bool is_leaf_requiring_grad(const ArgandTensor* t) { return (t->flags & ARGAND_TENSOR_REQUIRES_GRAD) && !(t->meta && meta_of(t)->grad_fn); }

}  // namespace

void RetainedGrad::store(const Tensor& grad) {
  Tensor target;
  {
    SpinGuard guard(lock_);
    if (!target_) return;
    int32_t n = __atomic_load_n(&target_->refcount, __ATOMIC_RELAXED);
    while (n > 0 && !__atomic_compare_exchange_n(&target_->refcount, &n, n + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    if (n <= 0) return;
    target = Tensor::steal(target_);
  }
  const Tensor before = grad_of(target.get());
  // Others may share the gradient's memory, or its own elements do (expanded).
  set_grad(target.get(), before ? tensor_ops::add(before, grad) : tensor_ops::clone(grad));
}

void RetainedGrad::forget() {
  SpinGuard guard(lock_);
  target_ = nullptr;
}

AutogradMeta& ensure_meta(ArgandTensor* t) {
  if (!t->meta) {
    auto* meta = new AutogradMeta;
    meta->destroy = destroy_meta;
    // A base with a grad_fn got it after the view was made, else the view would have a record: its history is out of date.
    // (Of a view made in no_grad then: 0, its base had no history.)
    if (t->base && !(t->flags & ARGAND_TENSOR_VIEW_NO_GRAD))
      meta->view_version = storage_version(t) - (t->base->meta && meta_of(t->base)->grad_fn ? 1 : 0);
    ArgandTensorMeta* expected = nullptr;
    if (!__atomic_compare_exchange_n(&t->meta, &expected, static_cast<ArgandTensorMeta*>(meta), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      delete meta;  // another thread was first
  }
  return *meta_of(t);
}

Node* grad_fn(ArgandTensor* t) {
  if (t->base && !(t->flags & ARGAND_TENSOR_REQUIRES_GRAD)) return view_grad_fn(t);
  return t->meta ? meta_of(t)->grad_fn.get() : nullptr;
}

uint32_t output_nr(const ArgandTensor* t) { return t->meta ? meta_of(t)->output_nr : 0; }

void note_view_without_history(ArgandTensor* view) {
  view->flags |= ARGAND_TENSOR_VIEW_NO_GRAD;
  const uint32_t number = history_number(view->base);
  if (number || view->meta) ensure_meta(view).view_version = number;
}

bool requires_grad_slow(ArgandTensor* t) { return (t->flags & ARGAND_TENSOR_REQUIRES_GRAD) || (t->base && lost_history(t)) || grad_fn(t) != nullptr; }

Edge gradient_edge(ArgandTensor* t) {
  if (Node* fn = grad_fn(t)) return {NodeRef::borrow(fn), meta_of(t)->output_nr};
  if (t->flags & ARGAND_TENSOR_REQUIRES_GRAD) return {grad_accumulator(t), 0};
  return {};
}

NodeRef grad_accumulator(ArgandTensor* leaf) {
  AutogradMeta& meta = ensure_meta(leaf);
  NodeRef outdated;  // an older graph's, from before `leaf.data` was replaced; let go of without the lock, which its end takes
  SpinGuard guard(meta.lock);
  if (meta.accumulator && meta.accumulator->try_retain()) {
    NodeRef found = NodeRef::steal(meta.accumulator);
    if (static_cast<AccumulateGrad*>(meta.accumulator)->is_current()) return found;
    outdated = std::move(found);
  }
  auto* node = new AccumulateGrad(Tensor::borrow(leaf));
  meta.accumulator = node;
  return NodeRef::steal(node);
}

void set_history(ArgandTensor* t, const NodeRef& fn, uint32_t output_nr, ViewOrigin origin) {
  AutogradMeta& meta = ensure_meta(t);
  meta.grad_fn = fn;
  meta.output_nr = output_nr;
  meta.origin = origin;
  if (ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_CPU) fn->note_device(t->storage->device);
  if (t->base) {
    meta.view_version = storage_version(t);
    t->flags &= ~ARGAND_TENSOR_VIEW_NO_GRAD;
  }
  t->flags &= ~ARGAND_TENSOR_REQUIRES_GRAD;
  t->keys |= kAutogradBit;
  move_retained(meta, t);
  if (anomaly_mode()) anomaly_created(fn.get());
}

void rebase_history(ArgandTensor* t, const NodeRef& fn, uint32_t output_nr) {
  if (!t->base) {
    set_history(t, fn, output_nr);
    return;
  }
  ArgandTensor* base = t->base;
  NodeRef copy = make_copy_slices(base, t, fn, output_nr);
  set_history(base, copy, 0);
  set_history(t, make_view_node(t, {copy, 0}), 0);
}

void check_inplace(const char* op, ArgandTensor* t, bool others_require_grad) {
  if (t->flags & ARGAND_TENSOR_INFERENCE)
    fail(ARGAND_RUNTIME_ERROR, "%s: inplace update to inference tensor outside inference_mode is not allowed; clone it first to get a normal tensor",
         op);
  if (is_leaf_requiring_grad(t))
    fail(ARGAND_RUNTIME_ERROR,
         "%s: a leaf Variable that requires grad is being used in an in-place operation; do it inside no_grad(), or on a clone()", op);
  ArgandTensor* base = t->base;
  if (!base) return;
  const bool base_requires = requires_grad(base);
  if ((t->flags & ARGAND_TENSOR_VIEW_NO_GRAD) && (base_requires || others_require_grad))
    fail(ARGAND_RUNTIME_ERROR,
         "%s: A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case is ambiguous and "
         "error-prone, it is forbidden; put both the view and the in-place operation inside the no_grad block (not tracked), or both outside "
         "(tracked)",
         op);
  if (is_leaf_requiring_grad(base))
    fail(ARGAND_RUNTIME_ERROR,
         "%s: a view of a leaf Variable that requires grad is being used in an in-place operation; do it inside no_grad(), or on a clone()", op);
  if (t->meta && meta_of(t)->grad_fn && meta_of(t)->origin == ViewOrigin::kCustomFunction)
    fail(ARGAND_RUNTIME_ERROR,
         "%s: Output %u of %s is a view and is being modified inplace. This view was created inside a custom Function (or because an input was "
         "returned "
         "as-is) and the change would bypass the Function's backward; clone the output of the Function first",
         op, meta_of(t)->output_nr, meta_of(t)->grad_fn->name());
}

void set_requires_grad(ArgandTensor* t, bool value) {
  const bool leaf = grad_fn(t) == nullptr;
  if (!leaf) {
    if (value) return;
    fail(ARGAND_RUNTIME_ERROR,
         "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require "
         "differentiation use var_no_grad = var.detach().");
  }
  if (value && !is_differentiable(t->dtype))
    fail(ARGAND_RUNTIME_ERROR, "only Tensors of floating point and complex dtype can require gradients; got dtype %s", kDTypeName[t->dtype]);
  if (value && (t->flags & ARGAND_TENSOR_INFERENCE) && !api->thread_state()->inference_mode)
    fail(ARGAND_RUNTIME_ERROR,
         "Setting requires_grad=True on inference tensor outside inference_mode is not allowed; clone it first to get a normal tensor");
  if (value) {
    t->flags |= ARGAND_TENSOR_REQUIRES_GRAD;
    t->keys |= kAutogradBit;
  } else {
    t->flags &= ~ARGAND_TENSOR_REQUIRES_GRAD;
    t->keys &= ~kAutogradBit;
  }
}

Tensor detach(ArgandTensor* t) {
  ArgandTensor* out = nullptr;
  check(api->tensor_alias(t, &out));
  Tensor detached = Tensor::steal(out);
  share_entries(t, out);
  return detached;
}

// A detached alias whose entries, if it stands for some, have no history either.
static Tensor detach_with_wholes(ArgandTensor* t) {
  Tensor out = detach(t);
  if (out->meta && meta_of(out.get())->whole) meta_of(out.get())->whole = detach_with_wholes(meta_of(t)->whole.get());
  return out;
}

void detach_in_place(ArgandTensor* t) {
  if (t->base) fail(ARGAND_RUNTIME_ERROR, "detach_: got a view, expected a tensor that is no view; use detach() instead of detach_()");
  if (t->meta) {
    AutogradMeta& meta = *meta_of(t);
    if (meta.retained) {
      meta.retained->forget();
      meta.retained = {};
    }
    meta.grad_fn = {};
    meta.output_nr = 0;
    if (meta.whole) meta.whole = detach_with_wholes(meta.whole.get());
  }
  t->flags &= ~ARGAND_TENSOR_REQUIRES_GRAD;
  t->keys &= ~kAutogradBit;
}

Tensor grad_of(ArgandTensor* t) {
  if (!t->meta) return {};
  SpinGuard guard(meta_of(t)->lock);
  return meta_of(t)->grad;
}

void set_grad(ArgandTensor* t, Tensor grad) {
  if (!grad && !t->meta) return;
  AutogradMeta& meta = ensure_meta(t);
  Tensor old;  // destroyed outside of the lock
  SpinGuard guard(meta.lock);
  old = std::exchange(meta.grad, std::move(grad));
}

int grad_dtype(ArgandTensor* leaf) {
  if (!is_leaf(leaf)) fail(ARGAND_RUNTIME_ERROR, "grad_dtype can only be accessed on leaf tensors.");
  return leaf->meta && meta_of(leaf)->grad_dtype != kDTypeOfTensor ? meta_of(leaf)->grad_dtype : leaf->dtype;
}

void set_grad_dtype(ArgandTensor* leaf, int dtype) {
  if (!is_leaf(leaf)) fail(ARGAND_RUNTIME_ERROR, "grad_dtype can only be set on leaf tensors.");
  const Tensor grad = grad_of(leaf);
  if (grad && dtype != kAnyDType && grad.dtype() != dtype)
    fail(ARGAND_RUNTIME_ERROR,
         "Cannot set grad_dtype to %s because there is already a gradient of dtype %s; set .grad to None before, or take the gradient's dtype",
         kDTypeName[dtype], kDTypeName[grad.dtype()]);
  AutogradMeta& meta = ensure_meta(leaf);
  SpinGuard guard(meta.lock);
  meta.grad_dtype = static_cast<int16_t>(dtype);
  if (meta.accumulator) static_cast<AccumulateGrad*>(meta.accumulator)->set_grad_dtype(dtype);
}

void retain_grad(ArgandTensor* t) {
  if (!requires_grad(t)) fail(ARGAND_RUNTIME_ERROR, "can't retain_grad on Tensor that has requires_grad=False");
  Node* fn = grad_fn(t);
  if (!fn) return;  // leaves keep their gradient anyway
  AutogradMeta& meta = *meta_of(t);
  if (meta.retained) return;
  meta.retained = Ref<RetainedGrad>::steal(new RetainedGrad(t));
  fn->ensure_hooks().retained.push_back({meta.output_nr, meta.retained});
}

std::string dtype_title(int dtype) {
  static constexpr const char* titles[ARGAND_NUM_DTYPES] = {"Bool",          "Byte",        "Char",   "Short",  "Int",          "Long",
                                                            "Half",          "BFloat16",    "Float",  "Double", "ComplexFloat", "ComplexDouble",
                                                            "Float8_e4m3fn", "Float8_e5m2", "UInt16", "UInt32", "UInt64"};
  return dtype < ARGAND_NUM_DTYPES ? titles[dtype] : "Undefined";
}

}  // namespace argand::autograd
