// Pointwise loops: `map` runs a functor over rows of up to kMaxOperands operands. Included by sources that are compiled once a
// tier (no system headers); the driver that calls the loops is pointwise_driver.h.
#pragma once

#include "packages/aten/csrc/kernels/cpu/complex.h"

namespace argand {
namespace simd {
inline namespace ARGAND_TIER {

template <class T>
inline constexpr int kComputeSize = sizeof(T);
template <>
inline constexpr int kComputeSize<f16> = 4;
template <>
inline constexpr int kComputeSize<bf16> = 4;
template <class T>
inline constexpr int kComputeSize<cx<T>> = sizeof(T);  // a part
// Tails are padded with values that no function is slow at or traps on: 0.5, or 1 for integers. Eight bytes of them:
template <class T>
inline constexpr long kPadding = sizeof(T) == 1   ? 0x0101010101010101
                                 : sizeof(T) == 2 ? 0x0001000100010001
                                 : sizeof(T) == 4 ? 0x0000000100000001
                                                  : 1;
template <>
inline constexpr long kPadding<f16> = 0x3800380038003800;
template <>
inline constexpr long kPadding<bf16> = 0x3f003f003f003f00;
template <>
inline constexpr long kPadding<float> = 0x3f0000003f000000;
template <>
inline constexpr long kPadding<double> = 0x3fe0000000000000;
template <class T>
inline constexpr long kPadding<cx<T>> = kPadding<T>;

template <class... T>
constexpr int lanes_of() {
  int widest = 1;
  ((widest = kComputeSize<T> > widest ? kComputeSize<T> : widest), ...);
  return ARGAND_VECTOR_BYTES / widest;
}

// Single elements; complex ones in every lane.
template <class T>
ARGAND_FN auto load_one(const char* p) {
  if constexpr (is_same<T, f16>) {
    return argand_f16_to_f32(*(const unsigned short*)p);
  } else if constexpr (is_same<T, bf16>) {
    return argand_bf16_to_f32(*(const unsigned short*)p);
  } else {
    T v;
    __builtin_memcpy(&v, p, sizeof v);
    if constexpr (kIsComplex<T>) {
      const typename VectorOf<typename RealOf<T>::type>::type zeros = {};
      return cx{lit(zeros, v.re), lit(zeros, v.im)};
    } else {
      return v;
    }
  }
}
// A number as float64; 0 for those with an imaginary part.
template <class T>
ARGAND_FN double real_number(const char* p) {
  if constexpr (kIsComplex<T>) {
    T v;
    __builtin_memcpy(&v, p, sizeof v);
    return v.im == 0 ? v.re : 0;
  } else {
    return load_one<T>(p);
  }
}
template <class T, class V>
ARGAND_FN void store_one(char* p, V v) {
  if constexpr (is_same<T, f16>) {
    *(unsigned short*)p = argand_f32_to_f16(v);
  } else if constexpr (is_same<T, bf16>) {
    *(unsigned short*)p = argand_f32_to_bf16(v);
  } else if constexpr (kIsComplex<T>) {
    const T out = {v.re[0], v.im[0]};
    __builtin_memcpy(p, &out, sizeof out);
  } else {
    const T out = v;
    __builtin_memcpy(p, &out, sizeof out);
  }
}

// A vector is written to a buffer in one piece where the tier can, so that reading it back does not stall.
template <class T>
ARGAND_FN void splat_element(char* buffer, const char* p) {
  if constexpr (kIsComplex<T>) {
    store<T, ARGAND_VECTOR_BYTES / kComputeSize<T>>(buffer, load_one<T>(p));
  } else {
    using U = typename BitsOf<sizeof(T)>::type;
    typedef U V ARGAND_VECTOR;
    U u;
    __builtin_memcpy(&u, p, sizeof u);
    const V v = u - V{};
    __builtin_memcpy(buffer, &v, sizeof v);
  }
}
#if defined(ARGAND_TIER_AVX512)
ARGAND_FN void load_tail(char* buffer, const char* p, long bytes, long padding) {
  typedef char V ARGAND_VECTOR;
  const V v = __builtin_ia32_loaddquqi512_mask(p, (V)(padding - vi64{}), (1ul << bytes) - 1);
  __builtin_memcpy(buffer, &v, sizeof v);
}
ARGAND_FN void store_tail(char* p, const char* buffer, long bytes) {
  typedef char V ARGAND_VECTOR;
  V v;
  __builtin_memcpy(&v, buffer, sizeof v);
  __builtin_ia32_storedquqi512_mask(p, v, (1ul << bytes) - 1);
}
#else
ARGAND_FN void copy_bytes(char* to, const char* from, long n) {  // below a vector, without a call
  if (ARGAND_VECTOR_BYTES > 16 && (n & 16)) __builtin_memcpy(to, from, 16), to += 16, from += 16;
  if (n & 8) __builtin_memcpy(to, from, 8), to += 8, from += 8;
  if (n & 4) __builtin_memcpy(to, from, 4), to += 4, from += 4;
  if (n & 2) __builtin_memcpy(to, from, 2), to += 2, from += 2;
  if (n & 1) *to = *from;
}
ARGAND_FN void load_tail(char* buffer, const char* p, long bytes, long padding) {
  vi64 v = padding - vi64{};
  copy_bytes((char*)&v, p, bytes);  // p may be the buffer
  __builtin_memcpy(buffer, &v, sizeof v);
}
ARGAND_FN void store_tail(char* p, const char* buffer, long bytes) { copy_bytes(p, buffer, bytes); }
#endif
// Of up to two vectors, which complex elements take.
ARGAND_FN void load_rest(char* buffer, const char* p, long bytes, long padding, bool two) {
  if (two) {
    const long first = bytes < ARGAND_VECTOR_BYTES ? 0 : ARGAND_VECTOR_BYTES;
    load_tail(buffer + ARGAND_VECTOR_BYTES, p + ARGAND_VECTOR_BYTES, first ? bytes - first : 0, padding);
    if (first) {
      __builtin_memcpy(buffer, p, ARGAND_VECTOR_BYTES);
      return;
    }
  }
  load_tail(buffer, p, bytes, padding);
}
ARGAND_FN void store_rest(char* p, const char* buffer, long bytes, bool two) {
  if (two && bytes >= ARGAND_VECTOR_BYTES) {
    __builtin_memcpy(p, buffer, ARGAND_VECTOR_BYTES);
    p += ARGAND_VECTOR_BYTES, buffer += ARGAND_VECTOR_BYTES, bytes -= ARGAND_VECTOR_BYTES;
  }
  store_tail(p, buffer, bytes);
}
// Once a source file: fills the buffers of a tail from contiguous operands and pads all.
[[gnu::noinline, maybe_unused]] static void load_tails(Stage* s, const long* paddings) {
  for (int k = 1; k < s->n_operands; k++) {
    if (s->strides[k] == 0) continue;
    const bool direct = s->strides[k] == s->sizes[k];
    const char* from = direct ? s->rows[k] + (s->done - s->tail) * s->strides[k] : s->buffers[k];
    load_rest(s->buffers[k], from, s->tail * s->sizes[k], paddings[k], s->lanes * s->sizes[k] > ARGAND_VECTOR_BYTES);
  }
}
[[gnu::noinline, maybe_unused]] static void store_tails(Stage* s) {
  if (s->staged) return;
  char* const to = s->rows[0] + (s->done - s->tail) * s->strides[0];
  store_rest(to, s->buffers[0], s->tail * s->sizes[0], s->lanes * s->sizes[0] > ARGAND_VECTOR_BYTES);
}

template <class Out, class... In>
inline constexpr bool kInPairs = is_same<bf16, Out> && ((is_same<bf16, In> || is_same<float, In>) && ...);
template <class T>
ARGAND_FN void load_pair(const char* p, vf32* even, vf32* odd) {
  if constexpr (is_same<T, bf16>)
    argand_load_bf16_pair(p, even, odd);
  else
    *even = *odd = load<float, ARGAND_VECTOR_BYTES / 4, false>(p);  // a number
}

template <bool by_lines, class Out, class... In, int... I, class F>
ARGAND_FN void map_vectors(long n, char* const* ptrs, const long* strides, F f, Indices<I...>) {
  constexpr int W = lanes_of<Out, In...>(), N = sizeof...(In) + 1;
  constexpr bool logical = (is_same<bool, In> && ...) && is_same<bool, Out>;
  static_assert(sizeof...(In) <= kMaxOperands);
  static constexpr int sizes[] = {sizeof(Out), sizeof(In)...};
  static constexpr long paddings[] = {0, kPadding<In>...};
  alignas(64) char buffers[N][kStageBytes + 64];  // not a divisor of 4096 apart, where stores would delay each other's loads
  char* buffer_list[] = {buffers[0], buffers[I + 1]...};
  Stage stage;
  stage.n_operands = N;
  stage.lanes = W;
  stage.sizes = sizes;
  stage.strides = strides;
  stage.buffers = buffer_list;
  stage.rows = ptrs;
  stage.n = n;
  stage.done = stage.staged = 0;
  ((strides[I + 1] == 0 && n > 0 ? splat_element<In>(buffers[I + 1], ptrs[I + 1]) : void()), ...);
  while (next_segment(&stage)) {
    if (stage.tail) load_tails(&stage, paddings);
    char* out = stage.p[0];
    const char* in[] = {stage.p[I + 1]...};
    const long step[] = {stage.step[I + 1]...}, out_step = stage.step[0];
    long v = stage.vectors;
    if constexpr (by_lines) {
      for (; v > 1; v -= 2) {
        if constexpr (kInPairs<Out, In...>) {
          vf32 even[N], odd[N];
          (load_pair<In>(in[I], even + I, odd + I), ...);
          argand_store_bf16_pair(out, f(even[I]...), f(odd[I]...));
        } else {
          const auto first = f(load<In, W, logical>(in[I])...), second = f(load<In, W, logical>(in[I] + step[I])...);
          store<Out, W>(out, first);
          store<Out, W>(out + out_step, second);
        }
        out += 2 * out_step;
        ((in[I] += 2 * step[I]), ...);
      }
    }
    for (; v > 0; v--) {
      store<Out, W>(out, f(load<In, W, logical>(in[I])...));
      out += out_step;
      ((in[I] += step[I]), ...);
    }
    if (stage.tail) store_tails(&stage);
  }
}

// result[i] = f(in_0[i], ..., in_k[i]) for i < n; strides in bytes, 0 and negative ones included. The result may be one of the
// operands itself; otherwise it overlaps none. `f` sees compute types: vectors, or pairs of them.
template <class Out, class... In, class F>
ARGAND_FN void map(long n, char* const* ptrs, const long* strides, F f) {
  map_vectors<false, Out, In...>(n, ptrs, strides, f, Indices<__integer_pack(sizeof...(In))...>{});
}

// The same for an `f` that costs less than memory does: both halves of a cache line are read together where it has two vectors. One
// after the other can take a Zen 3 twice as long. Lines of bfloat16 are read and written without shuffles. A float32 beside
// bfloat16s is a number: its stride is 0.
template <class Out, class... In, class F>
ARGAND_FN void map_lines(long n, char* const* ptrs, const long* strides, F f) {
  constexpr bool halves =
      ARGAND_VECTOR_BYTES == 32 ? !kIsComplex<Out> && !(kIsComplex<In> || ...) : ARGAND_VECTOR_BYTES == 64 && kInPairs<Out, In...>;
  if constexpr (halves)
    map_vectors<true, Out, In...>(n, ptrs, strides, f, Indices<__integer_pack(sizeof...(In))...>{});
  else
    map<Out, In...>(n, ptrs, strides, f);
}

}  // namespace ARGAND_TIER
}  // namespace simd
}  // namespace argand
