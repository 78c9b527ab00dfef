// Philox 4x32-10, a counter-based generator: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011. Header-only, without state: the word block of (seed, counter) is the same on every device and in every order.
#pragma once

#include <cstdint>

namespace argand {

struct PhiloxBlock {
  uint32_t word[4];
};

// The block of the 64-bit counter under the 64-bit seed; the upper half of the 128-bit counter is `stream`.
inline PhiloxBlock philox(uint64_t seed, uint64_t counter, uint64_t stream = 0) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform in [0, 1): every multiple of 2^-24, 2^-53.
inline float philox_uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
inline double philox_uniform64(uint32_t high, uint32_t low) { return static_cast<double>((static_cast<uint64_t>(high) << 32 | low) >> 11) * 0x1p-53; }

}  // namespace argand
