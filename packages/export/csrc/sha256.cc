#include "packages/export/csrc/sha256.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

namespace argand::package {
namespace {

// Fractional parts of the cube roots of the first 64 primes.
const uint32_t kRound[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
                             0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
                             0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
                             0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
                             0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
                             0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
                             0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void portable_block(uint32_t* state, const uint8_t* p) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++) {
    memcpy(&w[i], p + 4 * i, 4);
    w[i] = __builtin_bswap32(w[i]);
  }
  for (int i = 16; i < 64; i++) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] + (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  memcpy(v, state, sizeof v);
  for (int i = 0; i < 64; i += 8) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {  // the roles of the eight words move by one
      const uint32_t a = v[-k & 7], b = v[(1 - k) & 7], c = v[(2 - k) & 7], e = v[(4 - k) & 7], f = v[(5 - k) & 7], g = v[(6 - k) & 7];
      uint32_t& h = v[(7 - k) & 7];
      h += (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[i + k] + w[i + k];
      v[(3 - k) & 7] += h;
      h += (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    }
  }
  for (int i = 0; i < 8; i++) state[i] += v[i];
}

#ifdef __x86_64__
bool has_instructions() {
  unsigned a, b = 0, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

__attribute__((target("sha,sse4.1"))) void block_by_instructions(uint32_t* state, const uint8_t* p) {
  const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  const auto word = [&](int i) { return static_cast<int>(state[i]); };
  // The instructions want a, b, e, f and c, d, g, h together.
  __m128i abef = _mm_set_epi32(word(0), word(1), word(4), word(5)), cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7));
  const __m128i old_abef = abef, old_cdgh = cdgh;
  __m128i m[4];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {  // four rounds each
    __m128i& now = m[i & 3];
    if (i < 4) {
      now = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i), swap);
    } else {
      const __m128i last = m[(i + 3) & 3], seven_ago = _mm_alignr_epi8(last, m[(i + 2) & 3], 4);
      now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, m[(i + 1) & 3]), seven_ago), last);
    }
    const __m128i sum = _mm_add_epi32(now, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kRound) + i));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
  }
  alignas(16) uint32_t out[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(out), _mm_add_epi32(abef, old_abef));
  _mm_store_si128(reinterpret_cast<__m128i*>(out) + 1, _mm_add_epi32(cdgh, old_cdgh));
  static const int kPlace[8] = {5, 4, 1, 0, 7, 6, 3, 2};
  for (int i = 0; i < 8; i++) state[kPlace[i]] = out[i];
}

void (*const one_block)(uint32_t*, const uint8_t*) = has_instructions() ? block_by_instructions : portable_block;
#else
constexpr auto one_block = portable_block;
#endif

}  // namespace

void Sha256::update(const void* data, size_t nbytes) {
  auto* p = static_cast<const uint8_t*>(data);
  size_t kept = total_ % 64;
  total_ += nbytes;
  if (kept) {
    const size_t n = std::min(64 - kept, nbytes);
    memcpy(rest_ + kept, p, n);
    if (kept + n < 64) return;
    one_block(state_, rest_);
    p += n;
    nbytes -= n;
  }
  for (; nbytes >= 64; p += 64, nbytes -= 64) one_block(state_, p);
  memcpy(rest_, p, nbytes);
}

std::string Sha256::hex() {
  const uint64_t bits = __builtin_bswap64(total_ * 8);
  const uint8_t padding[64] = {0x80};
  update(padding, 1 + (119 - total_ % 64) % 64);
  update(&bits, 8);
  static const char kDigits[] = "0123456789abcdef";
  std::string out;
  for (uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) out += kDigits[word >> shift & 15];
  return out;
}

}  // namespace argand::package
