#include "packages/c10/csrc/dispatch/dispatcher.h"

#include <string>

#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/device/device.h"
#include "packages/c10/csrc/dispatch/thread_state.h"

namespace argand::core {

__thread ArgandThreadState t_state __attribute__((tls_model("initial-exec"))) = {
    0,
    0,
    1,
    0,
    {ARGAND_BFLOAT16, ARGAND_FLOAT16, ARGAND_FLOAT16, ARGAND_BFLOAT16, ARGAND_FLOAT16, ARGAND_FLOAT16, ARGAND_FLOAT16, ARGAND_AUTOCAST_ON},
    nullptr};

namespace {

ArgandKernel g_fallbacks[ARGAND_NUM_KEYS];

constexpr uint64_t kBackendKeys = ARGAND_KEYBIT(ARGAND_KEY_COMPOSITE) - 1;

inline uint64_t tensor_keys(const ArgandTensor* t) { return t->keys | (t->base ? t->base->keys : 0); }

// Without tensors a device argument names the backend, else the CPU.
__attribute__((noinline)) uint64_t backend_without_tensors(const ArgandOperator* op, const ArgandValue* args) {
  for (uint16_t i = 0; i < op->n_args; i++) {
    if (args[i].tag != ARGAND_TAG_DEVICE) continue;
    const auto type = static_cast<uint64_t>(args[i].i >> 8);
    if (type < ARGAND_NUM_BACKENDS) return ARGAND_KEYBIT(type);
  }
  return ARGAND_KEYBIT(ARGAND_KEY_CPU);
}

__attribute__((noinline)) int no_kernel(const ArgandOperator* op, uint64_t keys) {
  std::string present;
  for (int k = 0; k < ARGAND_KEY_COMPOSITE; k++) {
    if (op->kernels[k]) present += (present.empty() ? "" : ", ") + std::string(device_type_name(static_cast<ArgandDeviceType>(k)));
  }
  const uint64_t backends = keys & kBackendKeys;
  const int backend = backends ? 63 - __builtin_clzll(backends) : ARGAND_NUM_BACKENDS;
  return error(ARGAND_NOT_IMPLEMENTED_ERROR,
               "%s: no kernel for device '%s'; expected a device among: %s; move the tensors, as with .cpu(), or register a kernel", op->name,
               device_type_name(static_cast<ArgandDeviceType>(backend)), present.empty() ? "(none has a kernel)" : present.c_str());
}

// A factory may be the first to name a device whose kernels come in a package of their own.
__attribute__((noinline)) int without_kernel(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  const uint64_t backends = keys & kBackendKeys;
  const auto type = static_cast<ArgandDeviceType>(backends ? 63 - __builtin_clzll(backends) : ARGAND_NUM_BACKENDS);
  if (!awaits_loader(type)) return no_kernel(op, keys);
  ArgandDevice device = 0;
  if (int status = resolve_device(op->name, ARGAND_DEVICE(type, 0xff), &device)) return status;
  return redispatch(op, keys, args, rets);
}

// Failures of kernels show up later; launches made meanwhile carry this operator's name. A kernel that is not for the arguments' dtypes says so
// before it does anything: the device's fallback gets the call.
__attribute__((noinline)) int call_on_device(ArgandKernel kernel, int key, const ArgandOperator* op, uint64_t keys, const ArgandValue* args,
                                             ArgandValue* rets) {
  const ArgandOperator* outer = t_state.device_operator;
  t_state.device_operator = op;
  int status = kernel(op, keys, args, rets);
  if (__builtin_expect(status == ARGAND_NOT_IMPLEMENTED_ERROR, 0) && kernel == __atomic_load_n(&op->kernels[key], __ATOMIC_ACQUIRE)) {
    const ArgandKernel fallback = __atomic_load_n(&g_fallbacks[key], __ATOMIC_ACQUIRE);
    if (fallback) status = fallback(op, keys, args, rets);
  }
  t_state.device_operator = outer;
  return status;
}

}  // namespace

int set_fallback(ArgandDispatchKey key, ArgandKernel kernel) {
  if (static_cast<unsigned>(key) >= ARGAND_NUM_KEYS)
    return error(ARGAND_VALUE_ERROR, "set_fallback: got dispatch key %d, expected one below %d", static_cast<int>(key),
                 static_cast<int>(ARGAND_NUM_KEYS));
  __atomic_store_n(&g_fallbacks[key], kernel, __ATOMIC_RELEASE);
  return 0;
}

int redispatch(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  while (keys) {
    const int k = 63 - __builtin_clzll(keys);
    ArgandKernel kernel = __atomic_load_n(&op->kernels[k], __ATOMIC_ACQUIRE);
    const bool backend = k < ARGAND_KEY_COMPOSITE;
    if (!kernel && backend) kernel = __atomic_load_n(&op->kernels[ARGAND_KEY_COMPOSITE], __ATOMIC_ACQUIRE);
    if (!kernel && k < ARGAND_NUM_KEYS) kernel = __atomic_load_n(&g_fallbacks[k], __ATOMIC_ACQUIRE);
    if (kernel) {
      const bool on_device = static_cast<unsigned>(k - 1) < ARGAND_KEY_COMPOSITE - 1u;  // a backend's key, not the CPU's
      return __builtin_expect(on_device, 0) ? call_on_device(kernel, k, op, keys, args, rets) : kernel(op, keys, args, rets);
    }
    if (backend) break;  // a lower backend must not stand in for the one that was asked for
    keys &= ~ARGAND_KEYBIT(k);
  }
  return without_kernel(op, keys, args, rets);
}

static inline uint64_t keys_of_call(const ArgandOperator* op, const ArgandValue* args) {
  uint64_t keys = 0;
  for (const ArgandValue *v = args, *end = args + op->n_args; v != end; v++) {
    if (v->tag == ARGAND_TAG_TENSOR) {
      if (v->t) keys |= tensor_keys(v->t);
    } else if (v->tag == ARGAND_TAG_TENSOR_LIST) {
      for (uint32_t i = 0; i < v->len; i++) {
        if (v->tensors[i]) keys |= tensor_keys(v->tensors[i]);
      }
    }
  }
  const ArgandThreadState& state = t_state;
  if (!(keys & kBackendKeys) && !(state.include_keys & kBackendKeys)) keys |= backend_without_tensors(op, args);
  keys = (keys | state.include_keys) & ~state.exclude_keys;
  // Views and in-place operators keep histories consistent even while gradients are off.
  if (!state.grad_mode && !(op->flags & (ARGAND_OP_VIEW | ARGAND_OP_INPLACE))) keys &= ~ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  return keys;
}

int call(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets) { return redispatch(op, keys_of_call(op, args), args, rets); }

int call_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue) {
  const uint64_t keys = keys_of_call(op, args);
  const ArgandEpilogueKernel kernel = __atomic_load_n(&op->epilogue, __ATOMIC_ACQUIRE);
  epilogue->done = 0;
  return kernel && keys == ARGAND_KEYBIT(ARGAND_KEY_CPU) ? kernel(op, args, rets, epilogue) : redispatch(op, keys, args, rets);
}

}  // namespace argand::core
