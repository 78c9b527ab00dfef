#include "packages/aten/csrc/autocast.h"

#include <cstring>
#include <unordered_map>
#include <vector>

#include "packages/aten/csrc/init.h"
#include "packages/aten/generated/ops/creation.h"

namespace argand {
namespace {

// A weight that was cast, and for what: gradients must be able to reach it, and it must not have been changed since.
struct CastWeight {
  Tensor weight, result;
  uint32_t version;
  bool recorded;
};
// Absent outside of regions: nothing is left to release when a thread ends.
thread_local std::unordered_map<const ArgandTensor*, CastWeight>* t_weights = nullptr;

// A leaf's casts are the same for every use in a region, and its gradient is then summed in the lower precision once.
bool is_weight(const ArgandTensor* t) { return t->dtype == ARGAND_FLOAT32 && t->flags & ARGAND_TENSOR_REQUIRES_GRAD && !t->base; }

Tensor cast_weight(const Tensor& t, int dtype) {
  const bool recorded = api->thread_state()->grad_mode;
  if (!t_weights) t_weights = new std::unordered_map<const ArgandTensor*, CastWeight>;
  CastWeight& kept = (*t_weights)[t.get()];
  if (!kept.result || kept.version != t.version() || kept.recorded != recorded || kept.result.dtype() != dtype)
    kept = {t, ops::_to_copy(t, dtype), t.version(), recorded};
  return kept.result;
}

class Casts {
 public:
  Casts(const ArgandThreadState& state, uint64_t keys) : type_(63 - __builtin_clzll(keys & kBackendKeys)), state_(state) {}

  bool is_on() const { return state_.autocast[type_] & ARGAND_AUTOCAST_ON; }
  int lower() const { return state_.autocast[type_] & ~ARGAND_AUTOCAST_ON; }
  AutocastPolicy policy(const AutocastRule& rule) const { return type_ == ARGAND_CPU ? rule.cpu : rule.accelerator; }

  // Tensors that casts are about: of the region's device, floating-point, narrower than float64.
  bool is_eligible(const ArgandTensor* t) const {
    return t && is_floating(t->dtype) && t->dtype != ARGAND_FLOAT64 && ARGAND_DEVICE_TYPE(t->storage->device) == type_;
  }

  ArgandTensor* cast(ArgandTensor* t, int dtype, TensorList& owned) const {
    if (!is_eligible(t) || t->dtype == dtype) return t;
    const Tensor source = Tensor::borrow(t);
    const bool keep = dtype == lower() && is_weight(t) && state_.autocast[ARGAND_AUTOCAST_CACHE];
    owned.push_back(keep ? cast_weight(source, dtype) : ops::_to_copy(source, dtype));
    return owned.back().get();
  }

 private:
  static constexpr uint64_t kBackendKeys = ARGAND_KEYBIT(ARGAND_KEY_COMPOSITE) - 1;
  int type_;
  const ArgandThreadState& state_;
};

template <class F>
void for_each_tensor(const ArgandOperator* op, const ArgandValue* args, F&& f) {
  for (int i = 0; i < op->n_args; i++) {
    if (args[i].tag == ARGAND_TAG_TENSOR) f(args[i].t);
    if (args[i].tag == ARGAND_TAG_TENSOR_LIST)
      for (uint32_t j = 0; j < args[i].len; j++) f(args[i].tensors[j]);
  }
}

int target_dtype(const Casts& casts, AutocastPolicy policy, const ArgandOperator* op, const ArgandValue* args) {
  if (policy != AutocastPolicy::kPromote) return policy == AutocastPolicy::kLower ? casts.lower() : ARGAND_FLOAT32;
  int widest = casts.lower();
  for_each_tensor(op, args, [&](const ArgandTensor* t) {
    if (casts.is_eligible(t) && t->dtype == ARGAND_FLOAT32) widest = ARGAND_FLOAT32;
  });
  return widest;
}

}  // namespace

int autocast_kernel(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  return guarded([&] {
    StateGuard state;
    const Casts casts(*state.operator->(), keys);
    if (!casts.is_on()) return check(api->redispatch(op, keys & ~ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST), args, rets));
    state->exclude_keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST);
    const AutocastPolicy policy = casts.policy(*static_cast<const AutocastRule*>(op->key_data[ARGAND_KEY_AUTOCAST]));
    if (policy == AutocastPolicy::kNone) return check(api->redispatch(op, keys & ~ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST), args, rets));
    const int dtype = target_dtype(casts, policy, op, args);
    TensorList owned;
    std::vector<ArgandValue> values(args, args + op->n_args);
    std::vector<std::vector<ArgandTensor*>> lists;
    lists.reserve(op->n_args);  // values point into them
    for (ArgandValue& v : values) {
      if (v.tag == ARGAND_TAG_TENSOR) v.t = casts.cast(v.t, dtype, owned);
      if (v.tag == ARGAND_TAG_TENSOR_LIST) {
        auto& list = lists.emplace_back(v.tensors, v.tensors + v.len);
        for (ArgandTensor*& t : list) t = casts.cast(t, dtype, owned);
        v.tensors = list.data();
      }
    }
    check(api->call(op, values.data(), rets));
  });
}

}  // namespace argand

uint64_t argand_aten_autocast_state(void) {
  uint64_t state;
  std::memcpy(&state, argand::api->thread_state()->autocast, sizeof state);
  return state;
}

void argand_aten_set_autocast_state(uint64_t value) {
  ArgandThreadState* state = argand::api->thread_state();
  std::memcpy(state->autocast, &value, sizeof value);
  bool on = false;
  for (int type = 0; type < ARGAND_NUM_BACKENDS; type++) on |= state->autocast[type] & ARGAND_AUTOCAST_ON;
  const uint64_t bit = ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST);
  state->include_keys = on ? state->include_keys | bit : state->include_keys & ~bit;
}

void argand_aten_clear_autocast_cache(void) {
  delete argand::t_weights;
  argand::t_weights = nullptr;
}
