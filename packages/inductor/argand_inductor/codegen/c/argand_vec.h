/* Vectors of generated kernels: plain C over the vector mathematics that eager kernels use, no system headers.
 *
 * A kernel handles ARGAND_VECTOR_BYTES / D elements at once, D being the bytes of what it mostly computes with: its vectors are
 * wD_f32, wD_i64 and so on, one lane an element, whatever their size. Masks are vectors of 0 and -1 in signed integers of any size.
 * `left` is how many elements remain: lanes beyond it load as 0 and are not stored.
 */
#ifndef ARGAND_INDUCTOR_VEC_H_
#define ARGAND_INDUCTOR_VEC_H_

#include "packages/aten/csrc/kernels/cpu/half.h"

#pragma GCC diagnostic ignored "-Wpsabi"

/* ---- bytes ---------------------------------------------------------------------------------------------------------- */
ARGAND_MATH void argand_copy_bytes(char* to, const char* from, long n) {
  for (; n >= 16; n -= 16, to += 16, from += 16) __builtin_memcpy(to, from, 16);
  if (n & 8) __builtin_memcpy(to, from, 8), to += 8, from += 8;
  if (n & 4) __builtin_memcpy(to, from, 4), to += 4, from += 4;
  if (n & 2) __builtin_memcpy(to, from, 2), to += 2, from += 2;
  if (n & 1) *to = *from;
}
/* Moves min(full, left) bytes; `full` is a constant. A load zeroes the rest. */
#if defined(ARGAND_TIER_AVX512)
typedef char argand_b64 __attribute__((vector_size(64)));
typedef char argand_b32 __attribute__((vector_size(32)));
typedef char argand_b16 __attribute__((vector_size(16)));
ARGAND_MATH unsigned long argand_byte_mask(long left) { return left >= 64 ? -1ul : left <= 0 ? 0 : (1ul << left) - 1; }
ARGAND_MATH void argand_load_bytes(void* to, const void* from, const long full, const long left) {
  if (__builtin_expect(left >= full, 1)) { /* masked loads of bytes are slower */
    __builtin_memcpy(to, from, full);
  } else if (full >= 64) {
#pragma GCC unroll 8
    for (long k = 0; k < full; k += 64) {
      const argand_b64 v = __builtin_ia32_loaddquqi512_mask((const char*)from + k, (argand_b64){}, argand_byte_mask(left - k));
      __builtin_memcpy((char*)to + k, &v, 64);
    }
  } else if (full == 32) {
    const argand_b32 v = __builtin_ia32_loaddquqi256_mask((const char*)from, (argand_b32){}, (unsigned)argand_byte_mask(left));
    __builtin_memcpy(to, &v, 32);
  } else {
    const argand_b16 v =
        __builtin_ia32_loaddquqi128_mask((const char*)from, (argand_b16){}, (unsigned short)argand_byte_mask(left < full ? left : full));
    __builtin_memcpy(to, &v, full);
  }
}
ARGAND_MATH void argand_store_bytes(void* to, const void* from, const long full, const long left) {
  if (__builtin_expect(left >= full, 1)) {
    __builtin_memcpy(to, from, full);
  } else if (full >= 64) {
#pragma GCC unroll 8
    for (long k = 0; k < full; k += 64) {
      argand_b64 v;
      __builtin_memcpy(&v, (const char*)from + k, 64);
      __builtin_ia32_storedquqi512_mask((char*)to + k, v, argand_byte_mask(left - k));
    }
  } else if (full == 32) {
    argand_b32 v;
    __builtin_memcpy(&v, from, 32);
    __builtin_ia32_storedquqi256_mask((char*)to, v, (unsigned)argand_byte_mask(left));
  } else {
    argand_b16 v = {};
    __builtin_memcpy(&v, from, full);
    __builtin_ia32_storedquqi128_mask((char*)to, v, (unsigned short)argand_byte_mask(left));
  }
}
#else
ARGAND_MATH void argand_load_bytes(void* to, const void* from, const long full, const long left) {
  if (__builtin_expect(left >= full, 1)) {
    __builtin_memcpy(to, from, full);
  } else {
    __builtin_memset(to, 0, full);
    argand_copy_bytes((char*)to, (const char*)from, left);
  }
}
ARGAND_MATH void argand_store_bytes(void* to, const void* from, const long full, const long left) {
  if (__builtin_expect(left >= full, 1))
    __builtin_memcpy(to, from, full);
  else
    argand_copy_bytes((char*)to, (const char*)from, left);
}
#endif
/* Past the caches, to an address that is a multiple of the vector; followed by argand_stream_end(). */
ARGAND_MATH void argand_stream_bytes(void* to, const void* from, const long full) {
#pragma GCC unroll 8
  for (long k = 0; k < full; k += ARGAND_VECTOR_BYTES) {
#if defined(ARGAND_TIER_AVX512)
    typedef long long V __attribute__((vector_size(64)));
    V v;
    __builtin_memcpy(&v, (const char*)from + k, sizeof v);
    __builtin_ia32_movntdq512((V*)((char*)to + k), v);
#elif defined(ARGAND_TIER_AVX2)
    typedef long long V __attribute__((vector_size(32)));
    V v;
    __builtin_memcpy(&v, (const char*)from + k, sizeof v);
    __builtin_ia32_movntdq256((V*)((char*)to + k), v);
#else
    typedef long long V __attribute__((vector_size(16)));
    V v;
    __builtin_memcpy(&v, (const char*)from + k, sizeof v);
    __builtin_ia32_movntdq((V*)((char*)to + k), v);
#endif
  }
}
ARGAND_MATH void argand_stream_end(void) { __builtin_ia32_sfence(); }

/* ---- applying functions on full vectors (P to Q) to vectors of any size (V to R) --------------------------------------- */
#define ARGAND_PARTS(V, P) (sizeof(V) > sizeof(P) ? sizeof(V) / sizeof(P) : 1)
#define ARGAND_MAP1(R, V, Q, P, f, x)                                                                \
  ({                                                                                                 \
    P p_[ARGAND_PARTS(V, P)] = {};                                                                   \
    Q q_[ARGAND_PARTS(V, P)];                                                                        \
    R r_;                                                                                            \
    __builtin_memcpy(p_, &(x), sizeof(V));                                                           \
    _Pragma("GCC unroll 8") for (unsigned k_ = 0; k_ < ARGAND_PARTS(V, P); k_++) q_[k_] = f(p_[k_]); \
    __builtin_memcpy(&r_, q_, sizeof r_);                                                            \
    r_;                                                                                              \
  })
#define ARGAND_MAP2(R, V, Q, P, f, x, y)                                                                     \
  ({                                                                                                         \
    P p_[ARGAND_PARTS(V, P)] = {}, o_[ARGAND_PARTS(V, P)] = {};                                              \
    Q q_[ARGAND_PARTS(V, P)];                                                                                \
    R r_;                                                                                                    \
    __builtin_memcpy(p_, &(x), sizeof(V));                                                                   \
    __builtin_memcpy(o_, &(y), sizeof(V));                                                                   \
    _Pragma("GCC unroll 8") for (unsigned k_ = 0; k_ < ARGAND_PARTS(V, P); k_++) q_[k_] = f(p_[k_], o_[k_]); \
    __builtin_memcpy(&r_, q_, sizeof r_);                                                                    \
    r_;                                                                                                      \
  })
#define ARGAND_MAP3(R, V, Q, P, f, x, y, z)                                                                          \
  ({                                                                                                                 \
    P p_[ARGAND_PARTS(V, P)] = {}, o_[ARGAND_PARTS(V, P)] = {}, s_[ARGAND_PARTS(V, P)] = {};                         \
    Q q_[ARGAND_PARTS(V, P)];                                                                                        \
    R r_;                                                                                                            \
    __builtin_memcpy(p_, &(x), sizeof(V));                                                                           \
    __builtin_memcpy(o_, &(y), sizeof(V));                                                                           \
    __builtin_memcpy(s_, &(z), sizeof(V));                                                                           \
    _Pragma("GCC unroll 8") for (unsigned k_ = 0; k_ < ARGAND_PARTS(V, P); k_++) q_[k_] = f(p_[k_], o_[k_], s_[k_]); \
    __builtin_memcpy(&r_, q_, sizeof r_);                                                                            \
    r_;                                                                                                              \
  })
#define ARGAND_SCATTER(T, p, stride, left, v)                                      \
  ({                                                                               \
    T t_[sizeof(v) / sizeof(T)];                                                   \
    __builtin_memcpy(t_, &(v), sizeof(v));                                         \
    for (long l_ = 0; l_ < (long)(sizeof(v) / sizeof(T)) && l_ < (left); l_++)     \
      __builtin_memcpy((p) + l_ * (stride) * (long)sizeof(T), &t_[l_], sizeof(T)); \
  })
/* x where the lane counts, else y. */
#define ARGAND_KEEP(V, M, lanes, left, x, y) ARGAND_SELECT(V, (lanes) < (__typeof__((lanes)[0]))((left) < 127 ? (left) : 127), x, y)

static const signed char argand_lane_numbers[64] __attribute__((unused)) = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* to[r * row + c] = from[r + c * stride], elements of `size` bytes: a part of a transposed tensor. */
#define ARGAND_DEFINE_TILE(size, T)                                                                                                              \
  static __attribute__((unused, noinline)) void argand_tile_##size(char* to, long row, const char* from, long stride, long rows, long columns) { \
    T* const t = (T*)to;                                                                                                                         \
    const T* f = (const T*)from;                                                                                                                 \
    if (rows == 16) {                                                                                                                            \
      for (long c = 0; c < columns; c++, f += stride) {                                                                                          \
        _Pragma("GCC unroll 16") for (long r = 0; r < 16; r++) t[r * row + c] = f[r];                                                            \
      }                                                                                                                                          \
      return;                                                                                                                                    \
    }                                                                                                                                            \
    for (long c = 0; c < columns; c++, f += stride)                                                                                              \
      for (long r = 0; r < rows; r++) t[r * row + c] = f[r];                                                                                     \
  }
ARGAND_DEFINE_TILE(1, unsigned char)
ARGAND_DEFINE_TILE(2, unsigned short)
ARGAND_DEFINE_TILE(4, unsigned int)
ARGAND_DEFINE_TILE(8, unsigned long)
#undef ARGAND_DEFINE_TILE

/* x in a vector register: GCC converts narrow integers that come from memory element by element. */
#if defined(__x86_64__)
#define ARGAND_IN_REGISTER(x)                    \
  ({                                             \
    __auto_type t_ = (x);                        \
    if (sizeof t_ >= 16) __asm__("" : "+x"(t_)); \
    t_;                                          \
  })
#else
#define ARGAND_IN_REGISTER(x) (x)
#endif

/* ---- the vectors of one D --------------------------------------------------------------------------------------------------- */
#define ARGAND_DEFINE_VECTOR(D, T, s)                                                                                                  \
  typedef T w##D##_##s __attribute__((vector_size(ARGAND_VECTOR_BYTES / D * sizeof(T))));                                              \
  ARGAND_MATH w##D##_##s w##D##_load_##s(const char* p, long left) {                                                                   \
    w##D##_##s v;                                                                                                                      \
    argand_load_bytes(&v, p, sizeof v, left * (long)sizeof(T));                                                                        \
    return v;                                                                                                                          \
  }                                                                                                                                    \
  ARGAND_MATH void w##D##_store_##s(char* p, long left, w##D##_##s v) { argand_store_bytes(p, &v, sizeof v, left * (long)sizeof(T)); } \
  /* lane l is element l * stride for first <= l < end, else 0 */                                                                      \
  ARGAND_MATH w##D##_##s w##D##_gather_##s(const char* p, long stride, long first, long end) {                                         \
    if (stride == 1 && first <= 0) return w##D##_load_##s(p, end > 0 ? end : 0);                                                       \
    T t[ARGAND_VECTOR_BYTES / D] = {};                                                                                                 \
    if (end > ARGAND_VECTOR_BYTES / D) end = ARGAND_VECTOR_BYTES / D;                                                                  \
    for (long l = first > 0 ? first : 0; l < end; l++) __builtin_memcpy(&t[l], p + l * stride * (long)sizeof(T), sizeof(T));           \
    w##D##_##s v;                                                                                                                      \
    __builtin_memcpy(&v, t, sizeof v);                                                                                                 \
    return v;                                                                                                                          \
  }                                                                                                                                    \
  ARGAND_MATH w##D##_##s w##D##_splat_##s(const char* p) {                                                                             \
    T x;                                                                                                                               \
    __builtin_memcpy(&x, p, sizeof x);                                                                                                 \
    return x - (w##D##_##s){};                                                                                                         \
  }
#define ARGAND_DEFINE_INTEGERS(D)              \
  ARGAND_DEFINE_VECTOR(D, signed char, i8)     \
  ARGAND_DEFINE_VECTOR(D, short, i16)          \
  ARGAND_DEFINE_VECTOR(D, int, i32)            \
  ARGAND_DEFINE_VECTOR(D, long, i64)           \
  ARGAND_DEFINE_VECTOR(D, unsigned char, u8)   \
  ARGAND_DEFINE_VECTOR(D, unsigned short, u16) \
  ARGAND_DEFINE_VECTOR(D, unsigned int, u32)   \
  ARGAND_DEFINE_VECTOR(D, unsigned long, u64)
#define ARGAND_DEFINE_WIDTHS(D)                                                                            \
  ARGAND_MATH w##D##_u32 w##D##_widen_u16(w##D##_u16 x) { return __builtin_convertvector(x, w##D##_u32); } \
  ARGAND_MATH w##D##_u16 w##D##_halve_u32(w##D##_u32 x) { return __builtin_convertvector(x, w##D##_u16); }
#define ARGAND_DEFINE_LANES(D)                                                                                                                 \
  ARGAND_DEFINE_VECTOR(D, float, f32)                                                                                                          \
  ARGAND_DEFINE_VECTOR(D, double, f64)                                                                                                         \
  ARGAND_MATH w##D##_i8 w##D##_lanes_i8(void) {                                                                                                \
    w##D##_i8 v;                                                                                                                               \
    __builtin_memcpy(&v, argand_lane_numbers, sizeof v);                                                                                       \
    return v;                                                                                                                                  \
  }                                                                                                                                            \
  ARGAND_MATH w##D##_f32 w##D##_bf16_to_f32(w##D##_u16 x) { return (w##D##_f32)(w##D##_widen_u16(x) << 16); }                                  \
  /* of a value that bfloat16 holds */                                                                                                         \
  ARGAND_MATH w##D##_u16 w##D##_f32_as_bf16(w##D##_f32 x) { return w##D##_halve_u32((w##D##_u32)x >> 16); }                                    \
  ARGAND_MATH w##D##_f32 w##D##_narrow_bf16(w##D##_f32 x) {                                                                                    \
    const w##D##_u32 u = (w##D##_u32)x, rounded = u + 0x7fffu + ((u >> 16) & 1u);                                                              \
    return (w##D##_f32)(((w##D##_u32)ARGAND_SELECT(w##D##_u32, x != x, u | 0x400000u, rounded)) & 0xffff0000u);                                \
  }                                                                                                                                            \
  ARGAND_MATH w##D##_f32 w##D##_f16_to_f32(w##D##_u16 x) {                                                                                     \
    unsigned short in[sizeof(w##D##_f32) > sizeof(vf32) ? ARGAND_VECTOR_BYTES / D : ARGAND_LANES_F32] = {};                                    \
    vf32 out[ARGAND_PARTS(w##D##_f32, vf32)];                                                                                                  \
    w##D##_f32 r;                                                                                                                              \
    __builtin_memcpy(in, &x, sizeof x);                                                                                                        \
    _Pragma("GCC unroll 8") for (unsigned k = 0; k < ARGAND_PARTS(w##D##_f32, vf32); k++) out[k] = argand_load_f16(in + k * ARGAND_LANES_F32); \
    __builtin_memcpy(&r, out, sizeof r);                                                                                                       \
    return r;                                                                                                                                  \
  }                                                                                                                                            \
  ARGAND_MATH w##D##_u16 w##D##_f32_as_f16(w##D##_f32 x) {                                                                                     \
    vf32 in[ARGAND_PARTS(w##D##_f32, vf32)] = {};                                                                                              \
    unsigned short out[sizeof(w##D##_f32) > sizeof(vf32) ? ARGAND_VECTOR_BYTES / D : ARGAND_LANES_F32];                                        \
    w##D##_u16 r;                                                                                                                              \
    __builtin_memcpy(in, &x, sizeof x);                                                                                                        \
    _Pragma("GCC unroll 8") for (unsigned k = 0; k < ARGAND_PARTS(w##D##_f32, vf32); k++) argand_store_f16(out + k * ARGAND_LANES_F32, in[k]); \
    __builtin_memcpy(&r, out, sizeof r);                                                                                                       \
    return r;                                                                                                                                  \
  }                                                                                                                                            \
  ARGAND_MATH w##D##_f32 w##D##_narrow_f16(w##D##_f32 x) { return w##D##_f16_to_f32(w##D##_f32_as_f16(x)); }

ARGAND_DEFINE_INTEGERS(1)
ARGAND_DEFINE_INTEGERS(2)
ARGAND_DEFINE_INTEGERS(4)
ARGAND_DEFINE_INTEGERS(8)
ARGAND_DEFINE_WIDTHS(1)
ARGAND_DEFINE_WIDTHS(2)
ARGAND_DEFINE_WIDTHS(8)
#if defined(ARGAND_TIER_AVX512) /* GCC 12 splits these conversions */
typedef short argand_s16 __attribute__((vector_size(32)));
typedef int argand_s32 __attribute__((vector_size(64)));
ARGAND_MATH w4_u32 w4_widen_u16(w4_u16 x) { return (w4_u32)__builtin_ia32_pmovzxwd512_mask((argand_s16)x, (argand_s32){}, (unsigned short)-1); }
ARGAND_MATH w4_u16 w4_halve_u32(w4_u32 x) { return (w4_u16)__builtin_ia32_pmovdw512_mask((argand_s32)x, (argand_s16){}, (unsigned short)-1); }
#else
ARGAND_DEFINE_WIDTHS(4)
#endif
ARGAND_DEFINE_LANES(1)
ARGAND_DEFINE_LANES(2)
ARGAND_DEFINE_LANES(4)
ARGAND_DEFINE_LANES(8)
#undef ARGAND_DEFINE_LANES
#undef ARGAND_DEFINE_WIDTHS
#undef ARGAND_DEFINE_INTEGERS
#undef ARGAND_DEFINE_VECTOR

#endif /* ARGAND_INDUCTOR_VEC_H_ */
