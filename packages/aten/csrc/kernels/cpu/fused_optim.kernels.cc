#include "packages/aten/csrc/kernels/cpu/fused_optim.h"

#pragma GCC optimize("O3", "no-math-errno")  // the loops below are vectorised by the compiler

namespace argand::kernels::cpu {
namespace {

template <class T>
inline T root(T x) {
  if constexpr (sizeof(T) == 4)
    return __builtin_sqrtf(x);
  else
    return __builtin_sqrt(x);
}

// D. Kingma, J. Ba, "Adam", 2015; I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", 2019.
template <class T, bool kMax>
void adam(int64_t n, T* __restrict p, const T* __restrict g, T* __restrict m, T* __restrict v, [[maybe_unused]] T* __restrict vmax, const AdamOptions& o, const AdamCorrection& c) {
  const T beta1 = static_cast<T>(o.beta1), beta2 = static_cast<T>(o.beta2), rest1 = static_cast<T>(1 - o.beta1), rest2 = static_cast<T>(1 - o.beta2);
  const T shrink = o.decoupled ? static_cast<T>(1 - o.lr * o.weight_decay) : T(1), decay = o.decoupled ? T(0) : static_cast<T>(o.weight_decay);
  const T sign = o.maximize ? T(-1) : T(1), rate = static_cast<T>(o.lr / c.first), scale = static_cast<T>(1 / c.root_second), eps = static_cast<T>(o.eps);
  for (int64_t i = 0; i < n; i++) {
    const T x = p[i] * shrink, grad = sign * g[i] + decay * p[i];
    m[i] = beta1 * m[i] + rest1 * grad;
    v[i] = beta2 * v[i] + rest2 * grad * grad;
    T second = v[i];
    if constexpr (kMax) vmax[i] = second = vmax[i] > second ? vmax[i] : second;
    p[i] = x - rate * m[i] / (root(second) * scale + eps);
  }
}

template <class T>
void adam_any(int64_t n, T* p, const T* g, T* m, T* v, T* vmax, const AdamOptions& o, const AdamCorrection& c) {
  if (vmax)
    adam<T, true>(n, p, g, m, v, vmax, o, c);
  else
    adam<T, false>(n, p, g, m, v, vmax, o, c);
}

}  // namespace

namespace ARGAND_TIER_NS {
extern const FusedOptim fused_optim;
const FusedOptim fused_optim = {adam_any<float>, adam_any<double>};
}  // namespace ARGAND_TIER_NS

}  // namespace argand::kernels::cpu
