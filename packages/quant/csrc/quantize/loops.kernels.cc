#include "packages/quant/csrc/quantize/loops.h"

#include <type_traits>

namespace argand::quant::ARGAND_TIER_NAMESPACE {
namespace {

// The integer of x, not yet clamped. A sum that is not exact lies far outside of any range of 16 bits; 32 bits take float64.
template <class Real>
inline Real integer_of(float x, float inverse, int32_t zero_point) {
  return static_cast<Real>(__builtin_rintf(x * inverse)) + static_cast<Real>(zero_point);
}

// NaN becomes the lower end.
template <class Real>
inline Real clamp(Real v, Real low, Real high) {
  v = v > low ? v : low;
  return v < high ? v : high;
}

template <class T>
struct Wide {
  using type = float;
};
template <>
struct Wide<int32_t> {
  using type = double;
};

template <class T, int kStride>
inline void quantize_run(int64_t n, const float* __restrict x, T* __restrict q, Parameters p, Range range) {
  using Real = typename Wide<T>::type;
  const Real low = static_cast<Real>(range.low), high = static_cast<Real>(range.high);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const Real v = integer_of<Real>(x[i], p.factor[i * kStride], p.zero_point[i * kStride]);
    q[i] = static_cast<T>(static_cast<int32_t>(clamp(v, low, high)));
  }
}

template <class T>
void quantize(int64_t n, const float* x, void* q, Parameters p, Range range) {
  p.stride ? quantize_run<T, 1>(n, x, static_cast<T*>(q), p, range) : quantize_run<T, 0>(n, x, static_cast<T*>(q), p, range);
}

template <class T, int kStride>
inline void dequantize_run(int64_t n, const T* __restrict q, float* __restrict x, Parameters p) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) x[i] = (static_cast<float>(q[i]) - static_cast<float>(p.zero_point[i * kStride])) * p.factor[i * kStride];
}

template <class T>
void dequantize(int64_t n, const void* q, float* x, Parameters p) {
  p.stride ? dequantize_run<T, 1>(n, static_cast<const T*>(q), x, p) : dequantize_run<T, 0>(n, static_cast<const T*>(q), x, p);
}

// Before clamping; with real zero points before rounding too.
template <class T, FakeForm kForm>
inline T fake_integer(T x, float inverse, float zero_point) {
  if constexpr (kForm == kFakeRounded)
    return x * static_cast<T>(inverse) + static_cast<T>(zero_point);
  else
    return __builtin_rint(x * static_cast<T>(inverse)) + static_cast<T>(zero_point);
}

template <class T, FakeForm kForm, int kStride>
inline void fake_quantize_run(int64_t n, const T* __restrict x, T* __restrict y, const FakeParameters& p) {
  using Product = std::conditional_t<kForm == kFakeTensor || (kForm == kFakeChannels && sizeof(T) == 4), float, double>;
  const T low = static_cast<T>(p.low), high = static_cast<T>(p.high);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    const float zero_point = p.zero_point[i * kStride];
    T q = clamp(fake_integer<T, kForm>(x[i], p.inverse[i * kStride], zero_point), low, high);
    if constexpr (kForm == kFakeRounded) q = static_cast<T>(__builtin_rint(q));
    y[i] = static_cast<T>((static_cast<Product>(q) - static_cast<Product>(zero_point)) * static_cast<Product>(p.scale[i * kStride]));
  }
}

template <class T, FakeForm kForm>
void fake_quantize(int64_t n, const void* x, void* y, const FakeParameters& p) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  p.stride ? fake_quantize_run<T, kForm, 1>(n, from, to, p) : fake_quantize_run<T, kForm, 0>(n, from, to, p);
}

template <class T, FakeForm kForm, int kStride>
inline void fake_quantize_kept_run(int64_t n, const T* __restrict x, bool* __restrict kept, const FakeParameters& p) {
  const T low = static_cast<T>(p.low), high = static_cast<T>(p.high);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    T q = fake_integer<T, kForm>(x[i], p.inverse[i * kStride], p.zero_point[i * kStride]);
    if constexpr (kForm == kFakeRounded) q = static_cast<T>(__builtin_rint(q));
    kept[i] = (q >= low) & (q <= high);
  }
}

template <class T, FakeForm kForm>
void fake_quantize_kept(int64_t n, const void* x, bool* kept, const FakeParameters& p) {
  const T* from = static_cast<const T*>(x);
  p.stride ? fake_quantize_kept_run<T, kForm, 1>(n, from, kept, p) : fake_quantize_kept_run<T, kForm, 0>(n, from, kept, p);
}

// Several running extremes, so that none waits for the one before.
void extend_range(int64_t n, const float* x, float* low, float* high) {
  constexpr int kLanes = 64;
  float lows[kLanes], highs[kLanes];
  int32_t nans[kLanes];
  for (int k = 0; k < kLanes; k++) lows[k] = *low, highs[k] = *high, nans[k] = 0;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; k++) {
      lows[k] = x[i + k] < lows[k] ? x[i + k] : lows[k];
      highs[k] = x[i + k] > highs[k] ? x[i + k] : highs[k];
      nans[k] |= x[i + k] != x[i + k];
    }
  for (int k = 0; i + k < n; k++) {
    lows[k] = x[i + k] < lows[k] ? x[i + k] : lows[k];
    highs[k] = x[i + k] > highs[k] ? x[i + k] : highs[k];
    nans[k] |= x[i + k] != x[i + k];
  }
  for (int k = 0; k < kLanes; k++) {
    *low = lows[k] < *low ? lows[k] : *low;
    *high = highs[k] > *high ? highs[k] : *high;
    if (nans[k]) *low = -__builtin_inff(), *high = __builtin_inff();
  }
}

}  // namespace

const QuantizeLoops quantize_loops = {
    {quantize<uint8_t>, quantize<int8_t>, quantize<int16_t>, quantize<int32_t>},
    {dequantize<uint8_t>, dequantize<int8_t>, dequantize<int16_t>, dequantize<int32_t>},
    {{fake_quantize<float, kFakeTensor>, fake_quantize<float, kFakeChannels>, fake_quantize<float, kFakeRounded>},
     {fake_quantize<double, kFakeTensor>, fake_quantize<double, kFakeChannels>, fake_quantize<double, kFakeRounded>}},
    {{fake_quantize_kept<float, kFakeTensor>, fake_quantize_kept<float, kFakeChannels>, fake_quantize_kept<float, kFakeRounded>},
     {fake_quantize_kept<double, kFakeTensor>, fake_quantize_kept<double, kFakeChannels>, fake_quantize_kept<double, kFakeRounded>}},
    extend_range,
};

}  // namespace argand::quant::ARGAND_TIER_NAMESPACE
