// Inner loops of scans: running combinations along a row, or one step of many neighbouring rows. Included by sources that are
// compiled once a tier; the driver is scan_driver.h.
#pragma once

#include "packages/aten/csrc/kernels/cpu/reduce.h"

namespace argand::simd {
inline namespace ARGAND_TIER {

// Running extremes on scalars; `maximum` and `minimum` of floats are vec.h's.
#define ARGAND_ENDS(T, low, high)       \
  ARGAND_FN T lowest(T) { return low; } \
  ARGAND_FN T highest(T) { return high; }
#define ARGAND_EXTREMES(T, low, high)                     \
  ARGAND_ENDS(T, low, high)                               \
  ARGAND_FN T maximum(T x, T y) { return x > y ? x : y; } \
  ARGAND_FN T minimum(T x, T y) { return x < y ? x : y; }
ARGAND_ENDS(float, -__builtin_inff(), __builtin_inff())
ARGAND_ENDS(double, -__builtin_inf(), __builtin_inf())
ARGAND_EXTREMES(unsigned char, 0, 255)
ARGAND_EXTREMES(signed char, -128, 127)
ARGAND_EXTREMES(short, -32768, 32767)
ARGAND_EXTREMES(unsigned long, 0, -1ul)
ARGAND_EXTREMES(int, -0x7fffffff - 1, 0x7fffffff)
ARGAND_EXTREMES(long, -0x7fffffffffffffffL - 1, 0x7fffffffffffffffL)
#undef ARGAND_EXTREMES
#undef ARGAND_ENDS

// In, Acc, Out: storage types; Init(like), Combine(a, b): captureless functors on scalars and vectors of Acc's compute type.
template <class Acc, class In, class Out, class Init, class Combine>
struct Scan {
  ARGAND_FN auto load_element(const char* p) {
    if constexpr (kIsComplex<Acc>)
      return load_one<In>(p);
    else
      return (typename ComputeOf<Acc>::type)load_one<In>(p);
  }
  static constexpr auto widened = [](auto x) {  // an element of In as one of Acc
    if constexpr (kIsComplex<Acc>)
      return x;
    else if constexpr (is_same<In, bool>)
      return from_mask<Acc>(x);
    else
      return simd::cast<Acc>(x);
  };
  static void init(char* acc) { store_one<Acc>(acc, Init{}(decltype(load_one<Acc>(acc)){})); }
  static void row(long n, char* out, long out_stride, const char* in, long in_stride, char* acc) {
    auto a = load_one<Acc>(acc);
    if constexpr (!is_same<In, f16> && !is_same<In, bf16>) {
      for (long i = 0; i < n; i++, out += out_stride, in += in_stride) {
        a = Combine{}(a, load_element(in));
        store_one<Out>(out, a);
      }
    } else {  // converted by vectors, an element alone costs as much
      constexpr long size = sizeof(Acc), count = 128;
      Acc block[count];
      for (long i = 0; i < n; i += count, out += count * out_stride, in += count * in_stride) {
        const long m = n - i < count ? n - i : count;
        char* const from[] = {(char*)block, (char*)in};
        const long from_strides[] = {size, in_stride};
        map<Acc, In>(m, from, from_strides, widened);
        for (long k = 0; k < m; k++) block[k] = a = Combine{}(a, block[k]);
        char* const to[] = {out, (char*)block};
        const long to_strides[] = {out_stride, size};
        map<Out, Acc>(m, to, to_strides, [](auto x) { return simd::cast<Out>(x); });
      }
    }
    store_one<Acc>(acc, a);
  }
  static void step(long columns, char* out, long out_stride, const char* in, long in_stride, char* acc) {
    char* const ptrs[] = {acc, acc, (char*)in};
    const long strides[] = {sizeof(Acc), sizeof(Acc), in_stride};
    map<Acc, Acc, In>(columns, ptrs, strides, [](auto a, auto x) { return Combine{}(a, bits_as<decltype(a)>(widened(x))); });
    char* const results[] = {out, acc};
    const long result_strides[] = {out_stride, sizeof(Acc)};
    map<Out, Acc>(columns, results, result_strides, [](auto a) { return simd::cast<Out>(a); });
  }
};

template <class Acc, class In, class Out, class Init, class Combine>
constexpr ScanKernel scan_kernel(int in_dtype, int acc_dtype, int out_dtype, Init, Combine) {
  using S = Scan<Acc, In, Out, Init, Combine>;
  return {(signed char)in_dtype, (signed char)acc_dtype, (signed char)out_dtype, S::init, S::row, S::step};
}

}  // namespace ARGAND_TIER
}  // namespace argand::simd
