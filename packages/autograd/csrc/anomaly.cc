#include "packages/autograd/csrc/anomaly.h"

#include <cmath>

#include "packages/autograd/csrc/tensor_ops.h"

namespace argand::autograd {

namespace {

std::atomic<bool> g_on{false}, g_check_nan{true};
AnomalyCallbacks g_callbacks{nullptr, nullptr};

template <class T>
bool has_nan(const Tensor& t, int64_t n) {
  const T* p = t.data<T>();
  for (int64_t i = 0; i < n; i++) {
    if (std::isnan(p[i])) return true;
  }
  return false;
}

// NaN in float16 and bfloat16: all exponent bits and some fraction bit.
bool has_nan_half(const Tensor& t, uint16_t infinity) {
  const auto* p = t.data<uint16_t>();
  for (int64_t i = 0; i < t.numel(); i++) {
    if ((p[i] & 0x7fff) > infinity) return true;
  }
  return false;
}

bool has_nan(const Tensor& grad) {
  if (!grad || grad.numel() == 0 || ARGAND_DEVICE_TYPE(grad.device()) != ARGAND_CPU) return false;
  StateGuard state;
  state->grad_mode = 0;
  const Tensor t = grad.is_contiguous() ? grad : [&] {
    Tensor copy = empty(grad.sizes(), grad.dtype(), grad.device());
    tensor_ops::copy_(copy, grad);
    return copy;
  }();
  switch (t.dtype()) {
    case ARGAND_FLOAT16:
      return has_nan_half(t, 0x7c00);
    case ARGAND_BFLOAT16:
      return has_nan_half(t, 0x7f80);
    case ARGAND_FLOAT32:
      return has_nan<float>(t, t.numel());
    case ARGAND_FLOAT64:
      return has_nan<double>(t, t.numel());
    case ARGAND_COMPLEX64:
      return has_nan<float>(t, 2 * t.numel());
    case ARGAND_COMPLEX128:
      return has_nan<double>(t, 2 * t.numel());
    default:
      return false;
  }
}

}  // namespace

bool anomaly_mode() { return g_on.load(std::memory_order_relaxed); }
bool anomaly_checks_nan() { return g_check_nan.load(std::memory_order_relaxed); }
void set_anomaly_mode(bool on, bool check_nan) {
  g_check_nan = check_nan;
  g_on = on;
}
void set_anomaly_callbacks(const AnomalyCallbacks& callbacks) { g_callbacks = callbacks; }
void anomaly_created(Node* node) {
  if (g_callbacks.created) g_callbacks.created(node);
}
void anomaly_failed(Node* node) {
  if (g_callbacks.failed) g_callbacks.failed(node);
}

void check_for_nan(Node* node, const Tensor* made, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (has_nan(made[i])) fail(ARGAND_RUNTIME_ERROR, "Function '%s' returned nan values in its %uth output.", node->name(), i);
  }
}

}  // namespace argand::autograd
