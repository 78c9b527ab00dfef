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
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<cx<T>> = true;
template <class T>
inline constexpr unsigned char kFill = 0;
template <>
inline constexpr unsigned char kFill<f16> = 2;
template <>
inline constexpr unsigned char kFill<bf16> = 3;
template <>
inline constexpr unsigned char kFill<float> = 4;
template <>
inline constexpr unsigned char kFill<double> = 8;

template <class... T>
constexpr int lanes_of() {
  int widest = 1;
  ((widest = kComputeSize<T> > widest ? kComputeSize<T> : widest), ...);
  return ARGAND_VECTOR_BYTES / widest;
}

// Scalar elements, for kernels with complex operands.
template <class T>
ARGAND_FN auto load_one(const char* p) {
  if constexpr (is_same<T, f16>) {
    return argand_f16_to_f32(*(const unsigned short*)p);
  } else if constexpr (is_same<T, bf16>) {
    return argand_bf16_to_f32(*(const unsigned short*)p);
  } else {
    T v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
}
template <class T, class V>
ARGAND_FN void store_one(char* p, V v) {
  if constexpr (is_same<T, f16>) {
    *(unsigned short*)p = argand_f32_to_f16(v);
  } else if constexpr (is_same<T, bf16>) {
    *(unsigned short*)p = argand_f32_to_bf16(v);
  } else {
    const T out = v;
    __builtin_memcpy(p, &out, sizeof out);
  }
}

template <int... I>
struct Indices {};

template <class Out, class... In, int... I, class F>
ARGAND_FN void map_scalars(long n, char* const* ptrs, const long* strides, F f, Indices<I...>) {
  char* out = ptrs[0];
  const char* in[] = {ptrs[I + 1]...};
  for (long i = 0; i < n; i++) {
    store_one<Out>(out, f(load_one<In>(in[I])...));
    out += strides[0];
    ((in[I] += strides[I + 1]), ...);
  }
}

template <class Out, class... In, int... I, class F>
ARGAND_FN void map_vectors(long n, char* const* ptrs, const long* strides, F f, Indices<I...>) {
  constexpr int W = lanes_of<Out, In...>(), N = sizeof...(In) + 1;
  constexpr bool logical = (is_same<bool, In> && ...) && is_same<bool, Out>;
  static_assert(sizeof...(In) <= kMaxOperands);
  static constexpr int sizes[] = {sizeof(Out), sizeof(In)...};
  static constexpr unsigned char fills[] = {0, kFill<In>...};
  alignas(64) char buffers[N][kStageBytes];
  char* buffer_list[] = {buffers[0], buffers[I + 1]...};
  Stage stage;
  stage.n_operands = N;
  stage.lanes = W;
  stage.sizes = sizes;
  stage.strides = strides;
  stage.fills = fills;
  stage.buffers = buffer_list;
  stage.rows = ptrs;
  stage.n = n;
  stage.done = stage.staged = 0;
  while (next_segment(&stage)) {
    char* out = stage.p[0];
    const char* in[] = {stage.p[I + 1]...};
    const long step[] = {stage.step[I + 1]...}, out_step = stage.step[0];
    for (long v = stage.vectors; v > 0; v--) {
      store<Out, W>(out, f(load<In, W, logical>(in[I])...));
      out += out_step;
      ((in[I] += step[I]), ...);
    }
  }
}

// result[i] = f(in_0[i], ..., in_k[i]) for i < n; strides in bytes, 0 and negative ones included. The result may be one of the
// operands itself; otherwise it overlaps none. `f` sees compute types: vectors, or scalars if an operand is complex.
template <class Out, class... In, class F>
ARGAND_FN void map(long n, char* const* ptrs, const long* strides, F f) {
  constexpr int count = sizeof...(In);
  if constexpr (kIsComplex<Out> || (kIsComplex<In> || ...))
    map_scalars<Out, In...>(n, ptrs, strides, f, Indices<__integer_pack(count)...>{});
  else
    map_vectors<Out, In...>(n, ptrs, strides, f, Indices<__integer_pack(count)...>{});
}

}  // namespace ARGAND_TIER
}  // namespace simd
}  // namespace argand
