/* float16 and bfloat16: storage types that compute in float32. A vector's lanes are vf32's; rounding is to nearest even. */
#ifndef ARGAND_KERNELS_CPU_HALF_H_
#define ARGAND_KERNELS_CPU_HALF_H_

#include "packages/aten/csrc/kernels/cpu/math.h"

/* Loads as many 16-bit elements as vf32 has lanes from an address of any alignment. */
ARGAND_MATH vu32 argand_load_u16_u32(const void* p) {
  vi16_half bits;
  __builtin_memcpy(&bits, p, sizeof bits);
#if defined(ARGAND_TIER_AVX512)
  return (vu32)__builtin_ia32_pmovzxwd512_mask(bits, (vi32){}, -1);
#elif defined(ARGAND_TIER_AVX2)
  return (vu32)__builtin_ia32_pmovzxwd256(bits);
#else
  return __builtin_convertvector((vu16_half)bits, vu32);
#endif
}
ARGAND_MATH void argand_store_u32_u16(void* p, vu32 x) {
  const vu16_half bits = __builtin_convertvector(x, vu16_half);
  __builtin_memcpy(p, &bits, sizeof bits);
}

ARGAND_MATH vf32 argand_load_bf16(const void* p) { return (vf32)(argand_load_u16_u32(p) << 16); }
/* Twice as many elements, the even ones and the odd ones, which take no shuffle. */
ARGAND_MATH void argand_load_bf16_pair(const void* p, vf32* even, vf32* odd) {
  vu32 both;
  __builtin_memcpy(&both, p, sizeof both);
  *even = (vf32)(both << 16);
  *odd = (vf32)(both & 0xffff0000u);
}
ARGAND_MATH vu32 argand_round_bf16(vf32 x) { /* in the upper halves; the lower ones are of no use */
  const vu32 u = (vu32)x, rounded = u + 0x7fffu + ((u >> 16) & 1u);
#if defined(ARGAND_TIER_AVX512)
  /* the table's answer to both kinds of NaN is x itself, quiet; all else keeps what it is */
  return (vu32)__builtin_ia32_fixupimmps512_mask((vf32)rounded, x, (vi32){} + 0x22, 0, -1, 4);
#else
  return (vu32)ARGAND_SELECT(vu32, x != x, u | 0x400000u, rounded);
#endif
}
ARGAND_MATH void argand_store_bf16(void* p, vf32 x) {
#if defined(ARGAND_TIER_AVX512)
  typedef short v32hi __attribute__((vector_size(64)));
  const v32hi upper = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
  const v32hi bits = (v32hi)argand_round_bf16(x), packed = (v32hi)__builtin_ia32_permvarhi512_mask(bits, upper, bits, -1);
  __builtin_memcpy(p, &packed, 32);
#else
  argand_store_u32_u16(p, argand_round_bf16(x) >> 16);
#endif
}
ARGAND_MATH void argand_store_bf16_pair(void* p, vf32 even, vf32 odd) {
  const vu32 both = argand_round_bf16(even) >> 16 | (argand_round_bf16(odd) & 0xffff0000u);
  __builtin_memcpy(p, &both, sizeof both);
}

#if defined(ARGAND_TIER_AVX512)
ARGAND_MATH vf32 argand_load_f16(const void* p) {
  typedef short v16hi __attribute__((vector_size(32)));
  v16hi bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return (vf32)__builtin_ia32_vcvtph2ps512_mask(bits, (vf32){}, -1, 4);
}
ARGAND_MATH void argand_store_f16(void* p, vf32 x) {
  typedef short v16hi __attribute__((vector_size(32)));
  const v16hi bits = (v16hi)__builtin_ia32_vcvtps2ph512_mask(x, 0, (v16hi){}, -1);
  __builtin_memcpy(p, &bits, sizeof bits);
}
#elif defined(ARGAND_TIER_AVX2)
ARGAND_MATH vf32 argand_load_f16(const void* p) {
  vi16_half bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return (vf32)__builtin_ia32_vcvtph2ps256(bits);
}
ARGAND_MATH void argand_store_f16(void* p, vf32 x) {
  const vi16_half bits = (vi16_half)__builtin_ia32_vcvtps2ph256(x, 0);
  __builtin_memcpy(p, &bits, sizeof bits);
}
#else
ARGAND_MATH vf32 argand_load_f16(const void* p) {
  const vu32 h = argand_load_u16_u32(p), sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
  /* scaling by 2^112 moves the exponent and makes subnormals normal, both exactly */
  const vf32 finite = (vf32)(magnitude << 13) * 0x1p112f;
  const vu32 special = (magnitude << 13) | 0x7f800000u | ((vu32)(magnitude > 0x7c00u) & 0x400000u);
  return (vf32)((vu32)ARGAND_SELECT(vu32, magnitude >= 0x7c00u, special, (vu32)finite) | sign);
}
ARGAND_MATH void argand_store_f16(void* p, vf32 x) {
  const vu32 u = (vu32)x, sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  const vu32 normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  /* adding 0.5 leaves a subnormal's rounded bits at the end of the mantissa */
  const vu32 subnormal = (vu32)((vf32)magnitude + 0.5f) - (126u << 23);
  vu32 h = (vu32)ARGAND_SELECT(vu32, magnitude < (113u << 23), subnormal, normal);
  h = (vu32)ARGAND_SELECT(vu32, magnitude >= 0x477ff000u, (vu32){} + 0x7c00u, h); /* rounds beyond 65504 */
  h = (vu32)ARGAND_SELECT(vu32, magnitude > 0x7f800000u, 0x7e00u | (magnitude >> 13), h);
  argand_store_u32_u16(p, (h & 0x7fffu) | sign);
}
#endif

/* Single elements, by the same code as the vectors. */
ARGAND_MATH float argand_f16_to_f32(unsigned short bits) {
  unsigned short in[ARGAND_LANES_F32] = {bits};
  return argand_load_f16(in)[0];
}
ARGAND_MATH unsigned short argand_f32_to_f16(float x) {
  unsigned short out[ARGAND_LANES_F32];
  argand_store_f16(out, argand_splat_f32(x));
  return out[0];
}
ARGAND_MATH float argand_bf16_to_f32(unsigned short bits) {
  unsigned short in[ARGAND_LANES_F32] = {bits};
  return argand_load_bf16(in)[0];
}
ARGAND_MATH unsigned short argand_f32_to_bf16(float x) {
  unsigned short out[ARGAND_LANES_F32];
  argand_store_bf16(out, argand_splat_f32(x));
  return out[0];
}

#endif /* ARGAND_KERNELS_CPU_HALF_H_ */
