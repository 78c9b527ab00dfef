#include "packages/aten/csrc/kernels/cpu/recurrent.h"
#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

ARGAND_INLINE vf sigmoid(vf x) { return argand_sigmoid_f32(x); }
ARGAND_INLINE vd sigmoid(vd x) { return argand_sigmoid_f64(x); }
// exp(2x) - 1; beyond 10 the hyperbolic tangent of float32 is 1.
ARGAND_INLINE vf expm1_twice(vf x) {
  const vf a = max(splat<vf>(-10), min(splat<vf>(10), x));  // NaN stays
  return argand_expm1_f32(a + a);
}
ARGAND_INLINE vf tanh(vf x) {
  const vf e = expm1_twice(x);
  return e / (e + splat<vf>(2));
}
ARGAND_INLINE vd tanh(vd x) { return argand_tanh_f64(x); }
// sigmoid(x) * tanh(y), by one division.
ARGAND_INLINE vf gated(vf x, vf y) {
  const vf e = expm1_twice(y);
  return e / ((e + splat<vf>(2)) * (splat<vf>(1) + exp(-x)));
}
ARGAND_INLINE vd gated(vd x, vd y) { return sigmoid(x) * tanh(y); }

// A vector's place: elements [at, at + lanes) behind a pointer, and `skip` behind it those of another gate.
template <class T>
struct Place {
  using V = vec_t<T>;
  using E = elem_t<T>;
  int64_t at, lanes;

  template <class S>
  ARGAND_INLINE V get(const S* p, int64_t skip = 0) const {
    p += skip + at;
    return lanes == Lanes<V>::n ? load(p) : load_n(p, lanes);
  }
  ARGAND_INLINE V get(const void* p, int64_t skip = 0) const { return get(static_cast<const T*>(p), skip); }
  ARGAND_INLINE V get_if(const void* p, int64_t skip = 0) const { return p ? get(p, skip) : V{}; }
  template <class S>
  ARGAND_INLINE void put(S* p, V v, int64_t skip = 0) const {
    p += skip + at;
    if (lanes == Lanes<V>::n)
      store(p, v);
    else
      store_n(p, v, lanes);
  }
  ARGAND_INLINE void put(void* p, V v, int64_t skip = 0) const { put(static_cast<T*>(p), v, skip); }
  ARGAND_INLINE void put_if(void* p, V v, int64_t skip = 0) const {
    if (p) put(p, v, skip);
  }
};
template <class T, class F>
ARGAND_INLINE void for_places(int64_t count, F&& f) {
  constexpr int64_t L = Lanes<vec_t<T>>::n;
  int64_t i = 0;
  for (; i + L <= count; i += L) f(Place<T>{i, L});
  if (i < count) f(Place<T>{i, count - i});
}

// The next product reads the output as it is rounded.
template <class T, class V>
ARGAND_INLINE void put_output(const Place<T>& p, const StepRow<elem_t<T>>& r, V h) {
  p.put(r.output, h);
  p.put(r.next, sizeof(T) == 2 ? p.get(r.output) : h);
}

template <class T>
void lstm_forward(const StepRow<elem_t<T>>& r) {
  using V = vec_t<T>;
  for_places<T>(r.count, [&](const Place<T>& p) __attribute__((always_inline)) {
    const auto gate = [&](int i) __attribute__((always_inline)) {
      const V sum = p.get(r.x, i * r.size) + p.get(r.product, i * r.product_size);
      p.put_if(r.gates, sum, i * r.size);
      return sum;
    };
    const V enter = gate(0), forget = gate(1), candidate = gate(2), leave = gate(3);
    const V c = fma(sigmoid(forget), p.get(r.cell), gated(enter, candidate));
    p.put(r.cell, c);
    p.put_if(r.cells, c);
    put_output(p, r, gated(leave, c));
  });
}

template <class T>
void lstm_backward(const StepRowBackward<elem_t<T>>& r) {
  using V = vec_t<T>;
  const V one = splat<V>(1);
  for_places<T>(r.count, [&](const Place<T>& p) __attribute__((always_inline)) {
    const V enter = sigmoid(p.get(r.gates)), forget = sigmoid(p.get(r.gates, r.size)), candidate = tanh(p.get(r.gates, 2 * r.size)),
            leave = sigmoid(p.get(r.gates, 3 * r.size)), bent = tanh(p.get(r.cells));
    const V dh = p.get(r.grad_hidden) + p.get(r.grad_output);
    const V dc = fma(dh * leave, one - bent * bent, p.get(r.grad_cell) + p.get_if(r.grad_cells));
    const auto give = [&](int i, V grad) __attribute__((always_inline)) {
      grad += p.get_if(r.grad_gates, i * r.size);
      p.put(r.grads, grad, i * r.size);
      p.put(r.grad_x, grad, i * r.size);
    };
    give(0, dc * candidate * enter * (one - enter));
    give(1, dc * p.get(r.cell) * forget * (one - forget));
    give(2, dc * enter * (one - candidate * candidate));
    give(3, dh * bent * leave * (one - leave));
    p.put(r.grad_cell, dc * forget);
  });
}

template <class T>
void gru_forward(const StepRow<elem_t<T>>& r) {
  using V = vec_t<T>;
  for_places<T>(r.count, [&](const Place<T>& p) __attribute__((always_inline)) {
    const auto product = [&](int i) __attribute__((always_inline)) {
      const V sum = r.bias ? p.get(r.product, i * r.product_size) + p.get(r.bias, i * r.size) : p.get(r.product, i * r.product_size);
      p.put_if(r.gates, sum, i * r.size);
      return sum;
    };
    const V reset = sigmoid(p.get(r.x) + product(0)), update = sigmoid(p.get(r.x, r.size) + product(1)),
            candidate = tanh(fma(reset, product(2), p.get(r.x, 2 * r.size)));
    put_output(p, r, fma(update, p.get(r.hidden) - candidate, candidate));
  });
}

template <class T>
void gru_backward(const StepRowBackward<elem_t<T>>& r) {
  using V = vec_t<T>;
  const V one = splat<V>(1);
  for_places<T>(r.count, [&](const Place<T>& p) __attribute__((always_inline)) {
    const V y = p.get(r.gates, 2 * r.size);
    const V reset = sigmoid(p.get(r.x) + p.get(r.gates)), update = sigmoid(p.get(r.x, r.size) + p.get(r.gates, r.size)),
            candidate = tanh(fma(reset, y, p.get(r.x, 2 * r.size)));
    const V dh = p.get(r.grad_hidden) + p.get(r.grad_output);
    const V bent = dh * (one - update) * (one - candidate * candidate);
    const auto give = [&](int i, V grad_x, V grad) __attribute__((always_inline)) {
      p.put(r.grad_x, grad_x, i * r.size);
      grad += p.get_if(r.grad_gates, i * r.size);
      p.put(r.grads, grad, i * r.size);
      p.put(r.grad_product, grad, i * r.size);
    };
    const V dr = bent * y * reset * (one - reset), du = dh * (p.get(r.hidden) - candidate) * update * (one - update);
    give(0, dr, dr);
    give(1, du, du);
    give(2, bent, bent * reset);
    p.put(r.grad_hidden, dh * update);
  });
}

template <class T, bool Relu>
void rnn_forward(const StepRow<elem_t<T>>& r) {
  using V = vec_t<T>;
  for_places<T>(r.count, [&](const Place<T>& p) __attribute__((always_inline)) {
    const V sum = p.get(r.x) + p.get(r.product);
    put_output(p, r, Relu ? max(V{}, sum) : tanh(sum));  // NaN stays
  });
}

template <class T, bool Relu>
void rnn_backward(const StepRowBackward<elem_t<T>>& r) {
  using V = vec_t<T>;
  for_places<T>(r.count, [&](const Place<T>& p) __attribute__((always_inline)) {
    const V y = p.get(r.output), dh = p.get(r.grad_hidden) + p.get(r.grad_output);
    const V slope = Relu ? (V)(y > V{} ? splat<V>(1) : V{}) : splat<V>(1) - y * y;
    p.put(r.grads, dh * slope);
    p.put(r.grad_x, dh * slope);
  });
}

template <class T>
inline constexpr RecurrentLoops<elem_t<T>> loops = {{lstm_forward<T>, gru_forward<T>, rnn_forward<T, false>, rnn_forward<T, true>},
                                                    {lstm_backward<T>, gru_backward<T>, rnn_backward<T, false>, rnn_backward<T, true>}};

}  // namespace

const RecurrentKernels recurrent_kernels = {loops<float>, loops<bf16>, loops<f16>, loops<double>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
