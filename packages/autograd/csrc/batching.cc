#include "packages/autograd/csrc/batching.h"

#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/tape.h"

namespace argand::autograd {

namespace {

constexpr uint64_t kAutogradBit = ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD), kBatchedBit = ARGAND_KEYBIT(ARGAND_KEY_BATCHED);

bool (*g_classify)(const ArgandOperator*) = nullptr;
ArgandKernel g_rule = nullptr;
Tensor (*g_first)(const Tensor& t, int64_t level) = nullptr;
// What an operator's key_data says: it has a rule, or a body.
int g_has_rule, g_has_body;

template <class F>
void for_each_tensor(const ArgandOperator* op, const ArgandValue* args, F&& f) {
  for (int i = 0; i < op->n_args; i++) {
    if (args[i].tag == ARGAND_TAG_TENSOR && args[i].t) f(args[i].t);
    for (uint32_t k = 0; args[i].tag == ARGAND_TAG_TENSOR_LIST && k < args[i].len; k++)
      if (args[i].tensors[k]) f(args[i].tensors[k]);
  }
}

bool has_entries(const ArgandOperator* op, const ArgandValue* args) {
  bool found = false;
  for_each_tensor(op, args, [&](ArgandTensor* t) { found = found || is_batched(t); });
  return found;
}

// Whether what the call shares among all entries has a history, which recording the entries' operators does not see.
bool shares_history(const ArgandOperator* op, const ArgandValue* args) {
  int64_t level = 0;
  for_each_tensor(op, args, [&](ArgandTensor* t) { level = std::max(level, level_of(t)); });
  bool found = false;
  for_each_tensor(op, args, [&](ArgandTensor* t) { found = found || (level_of(t) < level && requires_grad(t)); });
  return found;
}

void strip_histories(const ArgandOperator* op, ArgandValue* rets) {
  const auto strip = [](ArgandTensor*& t) {
    if (t && is_batched(t) && requires_grad(t)) Tensor::release(std::exchange(t, detach(t).take()));
  };
  for (int i = 0; i < op->n_rets; i++) {
    if (rets[i].tag == ARGAND_TAG_TENSOR) strip(rets[i].t);
    for (uint32_t k = 0; rets[i].tag == ARGAND_TAG_TENSOR_LIST && k < rets[i].len; k++) strip(rets[i].tensors[k]);
  }
}

// Below the tape the body's operators record nothing, but for the histories of what entries share, which lie further below.
int run_body(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  const ArgandKernel body = __atomic_load_n(&op->kernels[ARGAND_KEY_COMPOSITE], __ATOMIC_ACQUIRE);
  ArgandThreadState* state = api->thread_state();
  const uint64_t excluded = state->exclude_keys;
  if (!(excluded & kAutogradBit) || !shares_history(op, args)) return body(op, keys & ~kBatchedBit, args, rets);
  state->exclude_keys = excluded & ~kAutogradBit;
  // In place, the first argument is returned, whose history is not what the body recorded.
  const bool by_rule = op->flags & ARGAND_OP_INPLACE;
  const int status = by_rule ? g_rule(op, kBatchedBit, args, rets) : body(op, keys & ~kBatchedBit, args, rets);
  state->exclude_keys = excluded;
  if (!status && !by_rule) strip_histories(op, rets);
  return status;
}

int batched_kernel(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  if (!has_entries(op, args)) {                                                                  // while entries run the key is in every call
    const bool draws = (op->flags & (ARGAND_OP_RANDOM | ARGAND_OP_CUSTOM)) == ARGAND_OP_RANDOM;  // what a program's own one draws is seen in it
    return draws ? g_rule(op, kBatchedBit, args, rets) : api->redispatch(op, keys & ~kBatchedBit, args, rets);
  }
  if (keys & kAutogradBit) return record(op, keys, args, rets);  // entries' own histories come first, as in a call with one
  const void* known = op->key_data[ARGAND_KEY_BATCHED];
  if (!known) {
    known = g_classify(op) ? &g_has_rule : &g_has_body;
    if (known == &g_has_body && !op->kernels[ARGAND_KEY_COMPOSITE]) known = &g_has_rule;
    if (int status = api->op_set_kernel(const_cast<ArgandOperator*>(op), ARGAND_KEY_BATCHED, batched_kernel, const_cast<void*>(known))) return status;
  }
  if (known == &g_has_body) return run_body(op, keys, args, rets);
  ArgandThreadState* state = api->thread_state();
  const uint64_t excluded = state->exclude_keys;
  state->exclude_keys = excluded & ~kAutogradBit;  // what the entries are of has histories, too
  const int status = g_rule(op, kBatchedBit, args, rets);
  state->exclude_keys = excluded;
  return status;
}

}  // namespace

Tensor make_batched(const Tensor& whole, int64_t level, ArgandTensor* base) {
  if (whole.dim() < 1) fail(ARGAND_INTERNAL_ERROR, "make_batched: got a tensor without dimensions, expected one for the entries");
  ArgandTensor* out = nullptr;
  const auto ndim = static_cast<int32_t>(whole.dim()) - 1;
  if (base && base->storage == whole->storage) {
    check(api->tensor_view(base, ndim, whole->sizes + 1, whole->strides + 1, whole->offset, whole.dtype(), &out));
  } else {
    check(api->tensor_from_storage(whole->storage, ndim, whole->sizes + 1, whole->strides + 1, whole->offset, whole.dtype(), &out));
  }
  Tensor entry = Tensor::steal(out);
  out->keys |= kBatchedBit;
  AutogradMeta& meta = ensure_meta(out);
  meta.whole = whole;
  meta.level = level;
  return entry;
}

Tensor whole_of(const ArgandTensor* t) { return t->meta ? meta_of(t)->whole : Tensor(); }
int64_t level_of(const ArgandTensor* t) { return t->meta && meta_of(t)->whole ? meta_of(t)->level : 0; }

void share_entries(const ArgandTensor* t, ArgandTensor* alias) {
  if (!t->meta || !meta_of(t)->whole) return;
  AutogradMeta& meta = ensure_meta(alias);
  meta.whole = meta_of(t)->whole;
  meta.level = meta_of(t)->level;
}

void see_every_call(bool on) {
  uint64_t& keys = api->thread_state()->include_keys;
  keys = on ? keys | kBatchedBit : keys & ~kBatchedBit;
}

void turn_entry(ArgandTensor* entry, const Tensor& whole) {
  check(api->tensor_set_storage(entry, whole->storage, whole.dtype()));
  check(api->tensor_set_geometry(entry, static_cast<int32_t>(whole.dim()) - 1, whole->sizes + 1, whole->strides + 1, whole->offset));
  ensure_meta(entry).whole = whole;
}

Tensor first_entry(const Tensor& t, int64_t level) { return g_first(t, level); }

void install_batching(bool (*classify)(const ArgandOperator* op), ArgandKernel rule, Tensor (*first)(const Tensor& t, int64_t level)) {
  g_classify = classify;
  g_rule = rule;
  g_first = first;
  check(api->set_fallback(ARGAND_KEY_BATCHED, batched_kernel));
}

}  // namespace argand::autograd
