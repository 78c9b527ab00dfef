// Conversions between all dtypes, one loop a pair.
#include "packages/aten/csrc/kernels/cpu/pointwise.h"

namespace argand::kernels::cpu::ARGAND_TIER {
using namespace argand::simd;

namespace {

template <class Dst, class Src>
struct Convert {
  template <class V>
  [[gnu::always_inline]] auto operator()(V x) const {
    if constexpr (is_same<Src, Dst>)
      return x;
    else if constexpr (kIsComplex<Src> && kIsComplex<Dst>)
      return simd::cast<Dst>(x);
    else if constexpr (kIsComplex<Src> && is_same<Dst, bool>)
      return (x.re != 0) | (x.im != 0);
    else if constexpr (kIsComplex<Src>)
      return simd::cast<Dst>(x.re);
    else if constexpr (kIsComplex<Dst>)
      return cx{Convert<typename RealOf<Dst>::type, Src>{}(x), decltype(Convert<typename RealOf<Dst>::type, Src>{}(x)){}};
    else if constexpr (is_same<Dst, bool>)
      return x != 0;
    else if constexpr (is_same<Src, bool>)
      return from_mask<Dst>(x);
    else
      return simd::cast<Dst>(x);
  }
};

template <class Dst, class Src>
void loop(long n, char* const* ptrs, const long* strides) {
  map<Dst, Src>(n, ptrs, strides, Convert<Dst, Src>{});
}
// 16-bit floats and 64-bit numbers have no common vector: in blocks through float.
template <class Dst, class Src>
void loop_through_float(long n, char* const* ptrs, const long* strides) {
  float middle[512];
  for (long i = 0; i < n; i += 512) {
    const long m = n - i < 512 ? n - i : 512, first[] = {4, strides[1]}, second[] = {strides[0], 4};
    char* const from[] = {(char*)middle, ptrs[1] + i * strides[1]};
    char* const to[] = {ptrs[0] + i * strides[0], (char*)middle};
    loop<float, Src>(m, from, first);
    loop<Dst, float>(m, to, second);
  }
}
template <class Dst, class Src>
constexpr auto pick() {
  constexpr bool half_dst = is_same<Dst, f16> || is_same<Dst, bf16>, half_src = is_same<Src, f16> || is_same<Src, bf16>;
  if constexpr ((half_dst && kComputeSize<Src> == 8) || (half_src && kComputeSize<Dst> == 8))
    return loop_through_float<Dst, Src>;
  else
    return loop<Dst, Src>;
}

// To unsigned 64 bits: what is 2^63 or more without its highest bit, which is then set; negative numbers wrap.
struct ToUnsigned {
  template <class V>
  [[gnu::always_inline]] auto operator()(V x) const {
    const V half = (__typeof__(x[0] + 0))0x1p63 - V{};
    const auto large = x >= half;
    const V rest = large ? x - half : x;
    return (vu64)simd::cast<long>(rest) ^ ((vu64) __builtin_convertvector(large, vi64) & 1ul << 63);
  }
};
template <class Src>
void to_unsigned(long n, char* const* ptrs, const long* strides) {
  map<unsigned long, Src>(n, ptrs, strides, ToUnsigned{});
}

}  // namespace

using Loop = void (*)(long n, char* const* ptrs, const long* strides);
#define ARGAND_ROW(Dst)                                                                                                                     \
  {pick<Dst, bool>(), pick<Dst, unsigned char>(), pick<Dst, signed char>(), pick<Dst, short>(),  pick<Dst, int>(),       pick<Dst, long>(), \
   pick<Dst, f16>(),  pick<Dst, bf16>(),          pick<Dst, float>(),       pick<Dst, double>(), pick<Dst, cx<float>>(), pick<Dst, cx<double>>()}
extern const Loop cast_table[12][12];
const Loop cast_table[12][12] = {// [dst][src] by ArgandDType
                                 ARGAND_ROW(bool),  ARGAND_ROW(unsigned char), ARGAND_ROW(signed char), ARGAND_ROW(short),
                                 ARGAND_ROW(int),   ARGAND_ROW(long),          ARGAND_ROW(f16),         ARGAND_ROW(bf16),
                                 ARGAND_ROW(float), ARGAND_ROW(double),        ARGAND_ROW(cx<float>),   ARGAND_ROW(cx<double>)};

// Conversions in which wide unsigned numbers differ from signed ones: see cast.cc.
extern const Loop unsigned_casts[6];
const Loop unsigned_casts[6] = {loop<int, unsigned short>,   loop<long, unsigned int>, loop<float, unsigned long>,
                                loop<double, unsigned long>, to_unsigned<float>,       to_unsigned<double>};

}  // namespace argand::kernels::cpu::ARGAND_TIER
