/* Philox 4x32-10 (Salmon et al. 2011) in generated kernels: the words that eager draws (docs/notes/random.md). */
#ifndef ARGAND_INDUCTOR_RANDOM_H_
#define ARGAND_INDUCTOR_RANDOM_H_

#include "argand_inductor/codegen/c/argand_vec.h"

/* 64-bit products of the even lanes. */
ARGAND_MATH vu64 argand_even_products(vu32 a, vu32 b) {
#if defined(ARGAND_TIER_AVX512)
  typedef int V __attribute__((vector_size(64)));
  typedef long long R __attribute__((vector_size(64)));
  return (vu64)__builtin_ia32_pmuludq512_mask((V)a, (V)b, (R){}, -1);
#elif defined(ARGAND_TIER_AVX2)
  typedef int V __attribute__((vector_size(32)));
  return (vu64)__builtin_ia32_pmuludq256((V)a, (V)b);
#else
  typedef int V __attribute__((vector_size(16)));
  return (vu64)__builtin_ia32_pmuludq128((V)a, (V)b);
#endif
}
ARGAND_MATH void argand_multiply(vu32 a, unsigned m, vu32* high, vu32* low) {
  const vu32 factor = (vu32){} + m;
  const vu64 even = argand_even_products(a, factor), odd = argand_even_products((vu32)((vu64)a >> 32), factor);
  *high = (vu32)((even >> 32) | (odd & ~0xffffffffUL));
  *low = (vu32)((even & 0xffffffffUL) | (odd << 32));
}

/* The words of elements e with element <= e < element + n, element e's at out[e - element / 4 * 4]; of `counter` on, four a counter.
 * A word's highest bit is flipped, so that comparing ints compares words. `out` has room for n + 4 * ARGAND_LANES_F32 + 4. */
static __attribute__((unused, noinline)) void argand_random_words(int* out, long element, long n, unsigned long seed, unsigned long counter) {
  vu32 lanes;
  for (int l = 0; l < ARGAND_LANES_F32; l++) lanes[l] = l;
  counter += element / 4;
  n += element % 4;
  for (long i = 0; i < n; i += 4 * ARGAND_LANES_F32, counter += ARGAND_LANES_F32) {
    const unsigned low = (unsigned)counter;
    vu32 c0 = lanes + low, c1 = (vu32){} + (unsigned)(counter >> 32), c2 = {}, c3 = {};
    c1 -= (vu32)(c0 < low); /* carry: the mask is -1 */
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
    for (int round = 0; round < 10; round++) {
      vu32 high0, low0, high1, low1;
      argand_multiply(c0, 0xD2511F53u, &high0, &low0);
      argand_multiply(c2, 0xCD9E8D57u, &high1, &low1);
      c0 = high1 ^ c1 ^ k0;
      c1 = low1;
      c2 = high0 ^ c3 ^ k1;
      c3 = low0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const vu32 w[4] = {c0 ^ 0x80000000u, c1 ^ 0x80000000u, c2 ^ 0x80000000u, c3 ^ 0x80000000u};
    for (int part = 0; part < 4; part++) {
      vi32 from = {}, pair = {};
      for (int lane = 0; lane < ARGAND_LANES_F32; lane++) {
        const int e = part * ARGAND_LANES_F32 + lane;
        from[lane] = e / 4 + (e & 1 ? ARGAND_LANES_F32 : 0);
        pair[lane] = lane + (e & 2 ? ARGAND_LANES_F32 : 0);
      }
      const vu32 a = __builtin_shuffle(w[0], w[1], from), b = __builtin_shuffle(w[2], w[3], from), v = __builtin_shuffle(a, b, pair);
      __builtin_memcpy(out + i + part * ARGAND_LANES_F32, &v, sizeof v);
    }
  }
}

#endif /* ARGAND_INDUCTOR_RANDOM_H_ */
