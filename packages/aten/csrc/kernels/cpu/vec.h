// The element language in C++: overloads on the tier's vectors (math.h), on bool vectors and on float scalars, under the
// names of docs/notes/registry.md. No system headers; everything lives in the tier's own namespace and is inlined, since a
// source is compiled once a tier and the copies are linked together.
#pragma once

#include "packages/aten/csrc/kernels/cpu/half.h"
#include "packages/aten/csrc/kernels/cpu/loops.h"

#ifndef ARGAND_TIER
#define ARGAND_TIER baseline
#endif
#define ARGAND_FN [[gnu::always_inline, maybe_unused]] static inline

namespace argand::simd {
inline namespace ARGAND_TIER {

// bool elements: 0 or 1 a byte. Sums and products are logical.
struct vbool {
  vu8 v;
};

// ---- vectors of type T ----------------------------------------------------------------------------------------------
template <class T>
struct VectorOf;
template <class V>
struct Elements;  // of a full vector: element type, mask
#define ARGAND_PAIR(V, T, M) \
  template <>                \
  struct VectorOf<T> {       \
    using type = V;          \
  };                         \
  template <>                \
  struct Elements<V> {       \
    using type = T;          \
    using mask = M;          \
  };
ARGAND_PAIR(vf32, float, vi32)
ARGAND_PAIR(vf64, double, vi64)
ARGAND_PAIR(vi8, signed char, vi8)
ARGAND_PAIR(vi16, short, vi16)
ARGAND_PAIR(vi32, int, vi32)
ARGAND_PAIR(vi64, long, vi64)
ARGAND_PAIR(vu8, unsigned char, vi8)
ARGAND_PAIR(vu64, unsigned long, vi64)
ARGAND_PAIR(vbool, bool, vi8)
#undef ARGAND_PAIR

// ---- literals: lit(x, c) is the constant c in x's type ----------------------------------------------------------------
#define ARGAND_LIT(V, T)                              \
  ARGAND_FN V lit(V, double c) { return (T)c - V{}; } \
  ARGAND_FN V lit(V, long c) { return (T)c - V{}; }   \
  ARGAND_FN V lit(V, int c) { return (T)c - V{}; }
ARGAND_LIT(vf32, float)
ARGAND_LIT(vf64, double)
ARGAND_LIT(vi8, signed char)
ARGAND_LIT(vi16, short)
ARGAND_LIT(vi32, int)
ARGAND_LIT(vi64, long)
ARGAND_LIT(vu8, unsigned char)
ARGAND_LIT(vu64, unsigned long)
#undef ARGAND_LIT
template <class C>
ARGAND_FN vbool lit(vbool, C c) {
  return {c != 0 ? vu8{} + 1 : vu8{}};
}
template <class C>
ARGAND_FN float lit(float, C c) {
  return (float)c;
}
template <class C>
ARGAND_FN double lit(double, C c) {
  return (double)c;
}
template <class C>
ARGAND_FN long lit(long, C c) {
  return (long)c;
}
template <class C>
ARGAND_FN bool lit(bool, C c) {
  return c != 0;
}

// ---- floating functions -------------------------------------------------------------------------------------------------
// Scalars go through the vector function, so that they have its bits.
#define ARGAND_UNARY(name)                                                              \
  ARGAND_FN vf32 name(vf32 x) { return argand_##name##_f32(x); }                        \
  ARGAND_FN vf64 name(vf64 x) { return argand_##name##_f64(x); }                        \
  ARGAND_FN float name(float x) { return argand_##name##_f32(argand_splat_f32(x))[0]; } \
  ARGAND_FN double name(double x) { return argand_##name##_f64(argand_splat_f64(x))[0]; }
ARGAND_UNARY(exp)
ARGAND_UNARY(exp2)
ARGAND_UNARY(expm1)
ARGAND_UNARY(log)
ARGAND_UNARY(log2)
ARGAND_UNARY(log10)
ARGAND_UNARY(log1p)
ARGAND_UNARY(sin)
ARGAND_UNARY(cos)
ARGAND_UNARY(tan)
ARGAND_UNARY(asin)
ARGAND_UNARY(acos)
ARGAND_UNARY(atan)
ARGAND_UNARY(sinh)
ARGAND_UNARY(cosh)
ARGAND_UNARY(tanh)
ARGAND_UNARY(asinh)
ARGAND_UNARY(acosh)
ARGAND_UNARY(atanh)
ARGAND_UNARY(erf)
ARGAND_UNARY(erfc)
ARGAND_UNARY(sqrt)
ARGAND_UNARY(rsqrt)
ARGAND_UNARY(reciprocal)
ARGAND_UNARY(floor)
ARGAND_UNARY(ceil)
ARGAND_UNARY(trunc)
ARGAND_UNARY(round)
ARGAND_UNARY(frac)
ARGAND_UNARY(sign)
ARGAND_UNARY(abs)
ARGAND_UNARY(neg)
ARGAND_UNARY(sigmoid)
ARGAND_UNARY(lgamma)
ARGAND_UNARY(digamma)
ARGAND_UNARY(frexp_mantissa)
ARGAND_UNARY(frexp_exponent)
ARGAND_UNARY(erfinv)
ARGAND_UNARY(angle)
ARGAND_SPECIAL_UNARY(ARGAND_UNARY)
ARGAND_SPECIAL_WIDE(ARGAND_UNARY)
#undef ARGAND_UNARY

#define ARGAND_BINARY(name)                                                                                           \
  ARGAND_FN vf32 name(vf32 x, vf32 y) { return argand_##name##_f32(x, y); }                                           \
  ARGAND_FN vf64 name(vf64 x, vf64 y) { return argand_##name##_f64(x, y); }                                           \
  ARGAND_FN float name(float x, float y) { return argand_##name##_f32(argand_splat_f32(x), argand_splat_f32(y))[0]; } \
  ARGAND_FN double name(double x, double y) { return argand_##name##_f64(argand_splat_f64(x), argand_splat_f64(y))[0]; }
ARGAND_BINARY(pow)
ARGAND_BINARY(atan2)
ARGAND_BINARY(hypot)
ARGAND_BINARY(fmod)
ARGAND_BINARY(remainder)
ARGAND_BINARY(floor_divide)
ARGAND_BINARY(copysign)
ARGAND_BINARY(minimum)
ARGAND_BINARY(maximum)
ARGAND_BINARY(fmin)
ARGAND_BINARY(fmax)
ARGAND_BINARY(nextafter)
ARGAND_SPECIAL_BINARY(ARGAND_BINARY)
#undef ARGAND_BINARY

ARGAND_FN vf32 polynomial(vf32 x, vf32 degree, vf32 kind) { return argand_polynomial_f32(x, degree, kind); }
ARGAND_FN vf64 polynomial(vf64 x, vf64 degree, vf64 kind) { return argand_polynomial_f64(x, degree, kind); }

#define ARGAND_TEST(name)                                                              \
  ARGAND_FN vi32 name(vf32 x) { return argand_##name##_f32(x); }                       \
  ARGAND_FN vi64 name(vf64 x) { return argand_##name##_f64(x); }                       \
  ARGAND_FN bool name(float x) { return argand_##name##_f32(argand_splat_f32(x))[0]; } \
  ARGAND_FN bool name(double x) { return argand_##name##_f64(argand_splat_f64(x))[0]; }
ARGAND_TEST(signbit)
ARGAND_TEST(isnan)
ARGAND_TEST(isinf)
ARGAND_TEST(isfinite)
#undef ARGAND_TEST

// ---- where ----------------------------------------------------------------------------------------------------------------
#define ARGAND_WHERE(V) \
  ARGAND_FN V where(Elements<V>::mask m, V a, V b) { return m ? a : b; }
ARGAND_WHERE(vf32)
ARGAND_WHERE(vf64)
ARGAND_WHERE(vi8)
ARGAND_WHERE(vi16)
ARGAND_WHERE(vi32)
ARGAND_WHERE(vi64)
ARGAND_WHERE(vu8)
ARGAND_WHERE(vu64)
#undef ARGAND_WHERE
ARGAND_FN vbool where(vi8 m, vbool a, vbool b) { return {(vu8)(m ? a.v : b.v)}; }
ARGAND_FN vbool where(vbool m, vbool a, vbool b) { return where((vi8)(m.v != 0), a, b); }
ARGAND_FN vi8 where(vbool m, vi8 a, vi8 b) { return (vi8)(m.v != 0) ? a : b; }
ARGAND_FN vu8 where(vbool m, vu8 a, vu8 b) { return (vi8)(m.v != 0) ? a : b; }
ARGAND_FN float where(bool m, float a, float b) { return m ? a : b; }
ARGAND_FN double where(bool m, double a, double b) { return m ? a : b; }

// ---- integers -------------------------------------------------------------------------------------------------------------
#define ARGAND_INTEGER(V, U, s)                                                             \
  ARGAND_FN V floor_divide(V x, V y) { return argand_floor_divide_##s(x, y); }              \
  ARGAND_FN V trunc_divide(V x, V y) { return argand_trunc_divide_##s(x, y); }              \
  ARGAND_FN V remainder(V x, V y) { return argand_remainder_##s(x, y); }                    \
  ARGAND_FN V fmod(V x, V y) { return argand_fmod_##s(x, y); }                              \
  ARGAND_FN V pow(V x, V y) { return argand_pow_##s(x, y); }                                \
  ARGAND_FN V gcd(V x, V y) { return argand_gcd_##s(x, y); }                                \
  ARGAND_FN V neg(V x) { return (V)(U{} - (U)x); }                                          \
  ARGAND_FN V abs(V x) { return x < 0 ? neg(x) : x; }                                       \
  ARGAND_FN V sign(V x) { return (V)(x < 0) + (V)((x > 0) & 1); }                           \
  ARGAND_FN V minimum(V x, V y) { return x < y ? x : y; }                                   \
  ARGAND_FN V maximum(V x, V y) { return x > y ? x : y; }                                   \
  ARGAND_FN V fmin(V x, V y) { return minimum(x, y); }                                      \
  ARGAND_FN V fmax(V x, V y) { return maximum(x, y); }                                      \
  ARGAND_FN V floor(V x) { return x; }                                                      \
  ARGAND_FN V ceil(V x) { return x; }                                                       \
  ARGAND_FN V trunc(V x) { return x; }                                                      \
  ARGAND_FN V round(V x) { return x; }                                                      \
  ARGAND_FN V lshift(V x, V y) { /* by the width or more, or less than 0: all bits leave */ \
    constexpr int bits = 8 * sizeof(x[0]);                                                  \
    return (U)y < bits ? (V)((U)x << ((U)y & (bits - 1))) : V{};                            \
  }                                                                                         \
  ARGAND_FN V rshift(V x, V y) { /* the sign comes in */                                    \
    constexpr int bits = 8 * sizeof(x[0]);                                                  \
    return (U)y < bits ? x >> (V)((U)y & (bits - 1)) : (V)(x < 0);                          \
  }                                                                                         \
  ARGAND_FN Elements<V>::mask signbit(V x) { return x < 0; }                                \
  ARGAND_FN Elements<V>::mask isnan(V) { return Elements<V>::mask{}; }                      \
  ARGAND_FN Elements<V>::mask isinf(V) { return Elements<V>::mask{}; }                      \
  ARGAND_FN Elements<V>::mask isfinite(V) { return Elements<V>::mask{} - 1; }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
ARGAND_INTEGER(vi8, vu8, i8)
ARGAND_INTEGER(vi16, vu16, i16)
ARGAND_INTEGER(vi32, vu32, i32)
ARGAND_INTEGER(vi64, vu64, i64)
ARGAND_INTEGER(vu8, vu8, u8)
ARGAND_INTEGER(vu64, vu64, u64)
#pragma GCC diagnostic pop
#undef ARGAND_INTEGER

ARGAND_FN vf32 trunc_divide(vf32 x, vf32 y) { return trunc(x / y); }
ARGAND_FN vf64 trunc_divide(vf64 x, vf64 y) { return trunc(x / y); }

// ---- bool -----------------------------------------------------------------------------------------------------------------
ARGAND_FN vbool operator&(vbool x, vbool y) { return {x.v & y.v}; }
ARGAND_FN vbool operator|(vbool x, vbool y) { return {x.v | y.v}; }
ARGAND_FN vbool operator^(vbool x, vbool y) { return {x.v ^ y.v}; }
ARGAND_FN vbool operator~(vbool x) { return {x.v ^ 1}; }
ARGAND_FN vbool operator+(vbool x, vbool y) { return x | y; }
ARGAND_FN vbool operator*(vbool x, vbool y) { return x & y; }
ARGAND_FN vi8 operator==(vbool x, vbool y) { return x.v == y.v; }
ARGAND_FN vi8 operator!=(vbool x, vbool y) { return x.v != y.v; }
ARGAND_FN vi8 operator<(vbool x, vbool y) { return x.v < y.v; }
ARGAND_FN vi8 operator<=(vbool x, vbool y) { return x.v <= y.v; }
ARGAND_FN vi8 operator>(vbool x, vbool y) { return x.v > y.v; }
ARGAND_FN vi8 operator>=(vbool x, vbool y) { return x.v >= y.v; }
ARGAND_FN vbool minimum(vbool x, vbool y) { return x & y; }
ARGAND_FN vbool maximum(vbool x, vbool y) { return x | y; }
ARGAND_FN vbool fmin(vbool x, vbool y) { return x & y; }
ARGAND_FN vbool fmax(vbool x, vbool y) { return x | y; }
ARGAND_FN vbool abs(vbool x) { return x; }
ARGAND_FN vbool sign(vbool x) { return x; }
ARGAND_FN vi8 signbit(vbool) { return vi8{}; }
ARGAND_FN vi8 isnan(vbool) { return vi8{}; }
ARGAND_FN vi8 isinf(vbool) { return vi8{}; }
ARGAND_FN vi8 isfinite(vbool) { return vi8{} - 1; }

// real, conj of real values are the values.
#define ARGAND_REAL(V)                \
  ARGAND_FN V real(V x) { return x; } \
  ARGAND_FN V conj(V x) { return x; }
ARGAND_REAL(vf32)
ARGAND_REAL(vf64)
ARGAND_REAL(vi8)
ARGAND_REAL(vi16)
ARGAND_REAL(vi32)
ARGAND_REAL(vi64)
ARGAND_REAL(vu8)
ARGAND_REAL(vbool)
ARGAND_REAL(float)
ARGAND_REAL(double)
ARGAND_REAL(vu64)
#undef ARGAND_REAL

// ---- loads and stores: elements of storage type T in a loop of W lanes ---------------------------------------------------
template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

template <int W>
struct MaskOf;  // the integer vector with W lanes
template <>
struct MaskOf<ARGAND_VECTOR_BYTES> {
  using type = vi8;
};
template <>
struct MaskOf<ARGAND_VECTOR_BYTES / 2> {
  using type = vi16;
};
template <>
struct MaskOf<ARGAND_VECTOR_BYTES / 4> {
  using type = vi32;
};
template <>
struct MaskOf<ARGAND_VECTOR_BYTES / 8> {
  using type = vi64;
};

template <class To, class From>
ARGAND_FN To bits_as(From x) {  // same size
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &x, sizeof to);
  return to;
}

// W storage elements as a vector of any width.
template <int Bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using type = unsigned char;
};
template <>
struct BitsOf<2> {
  using type = unsigned short;
};
template <>
struct BitsOf<4> {
  using type = unsigned int;
};
template <>
struct BitsOf<8> {
  using type = unsigned long;
};
template <class T, int W>
struct Raw {
  typedef T type __attribute__((vector_size(sizeof(T) * W)));
};
template <class T, int W>
ARGAND_FN typename Raw<T, W>::type load_raw(const char* p) {
  typename Raw<T, W>::type v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Converts lane by lane; bytes to wider lanes by way of integers.
template <class To, class From>
ARGAND_FN To widen(From v) {
  constexpr int size = sizeof(To{}[0]), lanes = sizeof(To) / size;
  constexpr bool is_signed = !is_same<From, typename Raw<unsigned char, lanes>::type>;
  if constexpr (sizeof(From) != lanes || sizeof(To) != ARGAND_VECTOR_BYTES || size < 4)
    return __builtin_convertvector(v, To);
  else if constexpr (size == 4)
    return __builtin_convertvector(is_signed ? argand_load_i8_i32(&v) : argand_load_u8_i32(&v), To);
  else
    return __builtin_convertvector(is_signed ? argand_load_i8_i64(&v) : argand_load_u8_i64(&v), To);
}

// Complex elements, whose parts lie in turns: W of them as a vector of real parts beside one of imaginary parts.
template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<cx<T>> = true;
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<cx<T>> {
  using type = T;
};
template <int... I>
struct Indices {};
template <class T, int W>
using LaneOrder = typename Raw<typename BitsOf<sizeof(T)>::type, W>::type;
template <class T, int... I>
ARGAND_FN auto load_parts(const char* p, Indices<I...>) {
  constexpr int W = sizeof...(I);
  using Half = typename Raw<T, W>::type;  // lanes of half the elements
  constexpr LaneOrder<T, W> even = {2 * I...}, odd = {2 * I + 1 ...};
  const Half a = load_raw<T, W>(p), b = load_raw<T, W>(p + sizeof a);
  const Half re = __builtin_shuffle(a, b, even), im = __builtin_shuffle(a, b, odd);
  if constexpr (sizeof(Half) == ARGAND_VECTOR_BYTES)
    return cx<typename VectorOf<T>::type>{re, im};
  else
    return cx<Half>{re, im};
}
template <class T, class V, int... I>
ARGAND_FN void store_parts(char* p, cx<V> v, Indices<I...>) {
  constexpr int W = sizeof...(I);
  constexpr LaneOrder<T, W> first = {(I / 2 + I % 2 * W)...}, second = {(W / 2 + I / 2 + I % 2 * W)...};
  const V a = __builtin_shuffle(v.re, v.im, first), b = __builtin_shuffle(v.re, v.im, second);
  __builtin_memcpy(p, &a, sizeof a);
  __builtin_memcpy(p + sizeof a, &b, sizeof b);
}

// The value of W elements of T: a full vector of T's compute type; bool: a mask of W lanes, or vbool if Logical.
template <class T, int W, bool Logical>
ARGAND_FN auto load(const char* p) {
  if constexpr (kIsComplex<T>) {
    return load_parts<typename RealOf<T>::type>(p, Indices<__integer_pack(W)...>{});
  } else if constexpr (is_same<T, f16>) {
    return argand_load_f16(p);
  } else if constexpr (is_same<T, bf16>) {
    return argand_load_bf16(p);
  } else if constexpr (is_same<T, bool> && Logical) {
    return vbool{load_raw<unsigned char, W>(p)};
  } else if constexpr (is_same<T, bool>) {
    using Mask = typename MaskOf<W>::type;
    return (Mask)(widen<Mask>(load_raw<signed char, W>(p)) != 0);
  } else if constexpr (sizeof(T) * W == ARGAND_VECTOR_BYTES) {
    return bits_as<typename VectorOf<T>::type>(load_raw<T, W>(p));
  } else {
    return load_raw<T, W>(p);
  }
}

template <class T, int W, class V>
ARGAND_FN void store(char* p, V v) {
  if constexpr (kIsComplex<T>) {
    static_assert(sizeof(v) == sizeof(T) * W, "the expression's type is not the result's: cast it");
    store_parts<typename RealOf<T>::type>(p, v, Indices<__integer_pack(W)...>{});
  } else if constexpr (is_same<T, f16>) {
    argand_store_f16(p, v);
  } else if constexpr (is_same<T, bf16>) {
    argand_store_bf16(p, v);
  } else if constexpr (is_same<T, bool> && is_same<V, vbool>) {
    __builtin_memcpy(p, &v.v, W);
  } else if constexpr (is_same<T, bool>) {  // a mask
    const auto bytes = __builtin_convertvector(v, typename Raw<signed char, W>::type) & 1;
    __builtin_memcpy(p, &bytes, W);
  } else {
    static_assert(sizeof(V) == sizeof(T) * W, "the expression's type is not the result's: cast it");
    __builtin_memcpy(p, &v, sizeof v);
  }
}

// cast<T>(x): lane-wise conversion between vectors, masks (as 0 and 1) and bool vectors of one lane count.
template <class V>
inline constexpr int kLanes = sizeof(V) / sizeof(V{}[0]);
template <>
inline constexpr int kLanes<vbool> = ARGAND_VECTOR_BYTES;
template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<f16> {
  using type = float;
};
template <>
struct ComputeOf<bf16> {
  using type = float;
};
template <class T, class V>
ARGAND_FN auto cast(V v) {
  if constexpr (is_same<V, vbool>) {
    if constexpr (is_same<T, bool>)
      return v;
    else
      return widen<typename Raw<typename ComputeOf<T>::type, kLanes<V>>::type>(v.v);
  } else if constexpr (is_same<V, float> || is_same<V, double>) {
    return (typename ComputeOf<T>::type)v;
  } else if constexpr (is_same<T, bool>) {
    if constexpr (kLanes<V> == ARGAND_VECTOR_BYTES)
      return vbool{(vu8)((v != 0) & 1)};
    else
      return v != 0;
  } else {
    return widen<typename Raw<typename ComputeOf<T>::type, kLanes<V>>::type>(v);
  }
}
// By ArgandDType number, as generated code prints it.
template <int D>
struct TypeOf;
#define ARGAND_TYPE(number, T) \
  template <>                  \
  struct TypeOf<number> {      \
    using type = T;            \
  };
ARGAND_TYPE(0, bool)
ARGAND_TYPE(1, unsigned char)
ARGAND_TYPE(2, signed char)
ARGAND_TYPE(3, short)
ARGAND_TYPE(4, int)
ARGAND_TYPE(5, long)
ARGAND_TYPE(6, f16)
ARGAND_TYPE(7, bf16)
ARGAND_TYPE(8, float)
ARGAND_TYPE(9, double)
ARGAND_TYPE(10, cx<float>)
ARGAND_TYPE(11, cx<double>)
#undef ARGAND_TYPE
template <int D, class V>
ARGAND_FN auto cast(V v) {
  return cast<typename TypeOf<D>::type>(v);
}

// A mask as numbers 0 and 1 of a vector type: cast<float>(x > 0) prints as from_mask<float>(x > 0).
template <class T, class M>
ARGAND_FN auto from_mask(M m) {
  if constexpr (is_same<M, bool>)
    return (typename ComputeOf<T>::type)m;
  else
    return cast<T>(m & 1);
}

}  // namespace ARGAND_TIER
}  // namespace argand::simd
