#include "packages/aten/csrc/kernels/cpu/fused_optim.h"
#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu {
namespace ARGAND_TIER_NS {
namespace {

#if ARGAND_TIER_LEVEL == 2
ARGAND_INLINE vf root(vf x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
ARGAND_INLINE vd root(vd x) { return _mm512_maskz_sqrt_pd(0xff, x); }
#elif ARGAND_TIER_LEVEL == 1
ARGAND_INLINE vf root(vf x) { return _mm256_sqrt_ps(x); }
ARGAND_INLINE vd root(vd x) { return _mm256_sqrt_pd(x); }
#else
ARGAND_INLINE vf root(vf x) { return _mm_sqrt_ps(x); }
ARGAND_INLINE vd root(vd x) { return _mm_sqrt_pd(x); }
#endif

// D. Kingma, J. Ba, "Adam", 2015; I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", 2019.
template <class T, bool kMax>
void adam(int64_t n, T* p, const T* g, T* m, T* v, [[maybe_unused]] T* vmax, const AdamOptions& o, const AdamCorrection& c) {
  using V = vec_t<T>;
  constexpr int64_t kLanes = Lanes<V>::n;
  const V beta1 = splat<V>(static_cast<T>(o.beta1)), beta2 = splat<V>(static_cast<T>(o.beta2));
  const V rest1 = splat<V>(static_cast<T>(1 - o.beta1)), rest2 = splat<V>(static_cast<T>(1 - o.beta2));
  const V shrink = splat<V>(o.decoupled ? static_cast<T>(1 - o.lr * o.weight_decay) : T(1));
  const V decay = splat<V>(o.decoupled ? T(0) : static_cast<T>(o.weight_decay)), sign = splat<V>(o.maximize ? T(-1) : T(1));
  const V rate = splat<V>(static_cast<T>(o.lr / c.first)), scale = splat<V>(static_cast<T>(1 / c.root_second)), eps = splat<V>(static_cast<T>(o.eps));
  for (int64_t i = 0; i < n; i += kLanes) {  // bound by memory: the prefetches save a tenth, nearer or farther ones less
    const int64_t left = n - i;
    auto read = [&](const T* from) {
      __builtin_prefetch(from + i + 32 * kLanes);
      return left >= kLanes ? load(from + i) : load_n(from + i, left);
    };
    auto write = [&](T* to, V x) { left >= kLanes ? store(to + i, x) : store_n(to + i, x, left); };
    const V old = read(p), grad = sign * read(g) + decay * old;
    const V first = beta1 * read(m) + rest1 * grad, raw = beta2 * read(v) + rest2 * grad * grad;
    V second = raw;
    if constexpr (kMax) write(vmax, second = max(read(vmax), raw));
    write(m, first);
    write(v, raw);
    write(p, old * shrink - rate * first / (root(second) * scale + eps));
  }
}

template <class T>
void adam_any(int64_t n, T* p, const T* g, T* m, T* v, T* vmax, const AdamOptions& o, const AdamCorrection& c) {
  if (vmax)
    adam<T, true>(n, p, g, m, v, vmax, o, c);
  else
    adam<T, false>(n, p, g, m, v, vmax, o, c);
}

// I. Sutskever, J. Martens, G. Dahl, G. Hinton, "On the importance of initialization and momentum in deep learning", 2013.
template <class T>
void sgd(int64_t n, T* p, const T* g, T* m, const SgdOptions& o) {
  using V = vec_t<T>;
  constexpr int64_t kLanes = Lanes<V>::n;
  const V rate = splat<V>(static_cast<T>(o.lr)), decay = splat<V>(static_cast<T>(o.weight_decay)), mu = splat<V>(static_cast<T>(o.momentum));
  const V keep = splat<V>(static_cast<T>(1 - o.dampening)), sign = splat<V>(o.maximize ? T(-1) : T(1));
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t left = n - i;
    auto read = [&](const T* from) {
      __builtin_prefetch(from + i + 32 * kLanes);
      return left >= kLanes ? load(from + i) : load_n(from + i, left);
    };
    auto write = [&](T* to, V x) { left >= kLanes ? store(to + i, x) : store_n(to + i, x, left); };
    const V old = read(p);
    V grad = sign * read(g);
    if (o.weight_decay != 0) grad += decay * old;
    if (m) {
      const V velocity = o.is_first_step ? grad : mu * read(m) + keep * grad;
      write(m, velocity);
      grad = o.nesterov ? grad + mu * velocity : velocity;
    }
    write(p, old - rate * grad);
  }
}

}  // namespace

const FusedOptim fused_optim = {adam_any<float>, adam_any<double>, sgd<float>, sgd<double>};
}  // namespace ARGAND_TIER_NS

}  // namespace argand::kernels::cpu
