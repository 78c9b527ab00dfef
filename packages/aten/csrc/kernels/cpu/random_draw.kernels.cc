#include "packages/aten/csrc/kernels/cpu/random_draw.h"

#include "packages/aten/csrc/kernels/cpu/vec.h"

namespace argand::kernels::cpu::ARGAND_TIER {
namespace {

constexpr int W = ARGAND_LANES_F32;

// 64-bit products of the even lanes.
[[gnu::always_inline]] inline vu64 even_products(vu32 a, vu32 b) {
#if defined(ARGAND_TIER_AVX512)
  typedef int V __attribute__((vector_size(64)));
  typedef long long R __attribute__((vector_size(64)));
  return (vu64)__builtin_ia32_pmuludq512_mask((V)a, (V)b, R{}, -1);
#elif defined(ARGAND_TIER_AVX2)
  typedef int V __attribute__((vector_size(32)));
  return (vu64)__builtin_ia32_pmuludq256((V)a, (V)b);
#else
  typedef int V __attribute__((vector_size(16)));
  return (vu64)__builtin_ia32_pmuludq128((V)a, (V)b);
#endif
}
[[gnu::always_inline]] inline void multiply(vu32 a, unsigned m, vu32* high, vu32* low) {
  const vu32 factor = vu32{} + m;
  const vu64 even = even_products(a, factor), odd = even_products((vu32)((vu64)a >> 32), factor);
  *high = (vu32)((even >> 32) | (odd & ~0xffffffffUL));
  *low = (vu32)((even & 0xffffffffUL) | (odd << 32));
}

// out[4 * i + k] = w[k][i]
[[gnu::always_inline]] inline void interleave(unsigned* out, const vu32* w) {
  for (int part = 0; part < 4; part++) {
    vi32 from{}, pair{};
    for (int lane = 0; lane < W; lane++) {
      const int element = part * W + lane, counter = element / 4;
      from[lane] = counter + (element & 1 ? W : 0);  // of two words' vectors
      pair[lane] = lane + (element & 2 ? W : 0);
    }
    const vu32 low = __builtin_shuffle(w[0], w[1], from), high = __builtin_shuffle(w[2], w[3], from);
    const vu32 v = __builtin_shuffle(low, high, pair);
    __builtin_memcpy(out + part * W, &v, sizeof v);
  }
}

// Philox 4x32-10 (Salmon et al. 2011) on W counters at once.
void words(long n, unsigned long seed, unsigned long counter, unsigned* out) {
  alignas(64) static constexpr unsigned kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  vu32 lanes;
  __builtin_memcpy(&lanes, kLanes, sizeof lanes);
  for (long i = 0; i < n; i += 4 * W, counter += W) {
    const unsigned low = (unsigned)counter;
    vu32 c0 = lanes + low, c1 = vu32{} + (unsigned)(counter >> 32), c2{}, c3{};
    c1 -= (vu32)(c0 < low);  // carry: the mask is -1
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
    for (int round = 0; round < 10; round++) {
      vu32 high0, low0, high1, low1;
      multiply(c0, 0xD2511F53u, &high0, &low0);
      multiply(c2, 0xCD9E8D57u, &high1, &low1);
      c0 = high1 ^ c1 ^ k0;
      c1 = low1;
      c2 = high0 ^ c3 ^ k1;
      c3 = low0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const vu32 w[] = {c0, c1, c2, c3};
    interleave(out + i, w);
  }
}

[[gnu::always_inline]] inline vu32 load_words(const unsigned* p) {
  vu32 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline vf32 to_float(vu32 bits24) { return __builtin_convertvector((vi32)bits24, vf32); }

void uniform(long n, float* out, const unsigned* words, float from, float span, float to) {
  for (long i = 0; i < n; i += W) {
    vf32 v = from + span * (to_float(load_words(words + i) >> 8) * 0x1p-24f);
    v = v < to ? v : vf32{} + from;
    __builtin_memcpy(out + i, &v, sizeof v);
  }
}

// log u of u in [2^-24, 1]: u = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), and a minimax polynomial (relative error 8e-10).
[[gnu::always_inline]] inline vf32 log_unit(vf32 u) {
  vi32 e = ((vi32)u >> 23) - 126;
  vf32 m = (vf32)(((vi32)u & 0x7fffff) | 0x3f000000);  // [1/2, 1)
  const vi32 small = m < 0.70710678f;
  m = small ? m + m : m;
  e += small;  // -1 where doubled
  const vf32 f = m - 1.0f, z = f * f;
  vf32 p = vf32{} + 0.067466244f;
  p = p * f - 0.116756462f;
  p = p * f + 0.118881665f;
  p = p * f - 0.12405590f;
  p = p * f + 0.142195523f;
  p = p * f - 0.16667996f;
  p = p * f + 0.200021192f;
  p = p * f - 0.25000009f;
  p = p * f + 0.333333135f;
  const vf32 k = __builtin_convertvector(e, vf32);
  return (f - 0.5f * z) + f * z * p + k * 0.69314718f;
}
// cos(2 pi t) of t in [-1/4, 1): folded to |t| <= 1/4, then a minimax polynomial (absolute error 3e-10).
[[gnu::always_inline]] inline vf32 cos_turns(vf32 t) {
  t = t > 0.5f ? t - 1.0f : t;
  vf32 a = t < 0 ? -t : t;
  const vi32 far = a > 0.25f;
  a = far ? 0.5f - a : a;
  const vf32 s = a * a;
  vf32 p = vf32{} - 25.0067978f;
  p = p * s + 60.1482048f;
  p = p * s - 85.4538345f;
  p = p * s + 64.9393540f;
  p = p * s - 19.7392082f;
  const vf32 c = 1.0f + s * p;
  return far ? -c : c;
}

// G. Box, M. Muller (1958): an even and the following odd element share one radius; they are its cosine and sine parts.
void normal(long n, float* out, const unsigned* words, float mean, float std) {
  alignas(64) static constexpr int kEven[16] = {0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14};
  vi32 even;
  __builtin_memcpy(&even, kEven, sizeof even);
  vf32 shift{};
  for (int lane = 1; lane < W; lane += 2) shift[lane] = 0.25f;  // sin x = cos(x - a quarter turn)
  for (long i = 0; i < n; i += W) {
    const vu32 bits = load_words(words + i) >> 8;
    const vf32 u = (to_float(__builtin_shuffle(bits, even)) + 1.0f) * 0x1p-24f, v = to_float(__builtin_shuffle(bits, even + 1)) * 0x1p-24f;
    const vf32 r = argand_sqrt_f32(-2.0f * log_unit(u));
    const vf32 z = mean + std * (r * cos_turns(v - shift));
    __builtin_memcpy(out + i, &z, sizeof z);
  }
}

void exponential(long n, float* out, const unsigned* words, float scale) {
  for (long i = 0; i < n; i += W) {
    vf32 u = (to_float(load_words(words + i) >> 8) + 1.0f) * 0x1p-24f;
    u = u < 1.0f ? u : vf32{} + (1 - 0x1p-24f);  // never 0
    const vf32 v = scale * log_unit(u);
    __builtin_memcpy(out + i, &v, sizeof v);
  }
}

void dropout(long n, float* out, unsigned char* mask, const float* in, const unsigned* words, unsigned threshold, float scale) {
  for (long i = 0; i < n; i += W) {
    const vi32 keep = load_words(words + i) >= threshold;
    vf32 x;
    __builtin_memcpy(&x, in + i, sizeof x);
    x *= keep ? scale - vf32{} : vf32{};
    __builtin_memcpy(out + i, &x, sizeof x);
    simd::store<bool, W>((char*)mask + i, keep);
  }
}

}  // namespace

extern const RandomDraw random_draw;
const RandomDraw random_draw = {words, uniform, normal, exponential, dropout};

}  // namespace argand::kernels::cpu::ARGAND_TIER
