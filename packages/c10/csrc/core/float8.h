// float8 as bits: e4m3fn (no infinities, NaN is all ones) and e5m2 (as a float16 cut in half).
// Source: P. Micikevicius et al., FP8 formats for deep learning, 2022.
#pragma once

#include <cstdint>
#include <cstring>

namespace argand {

// 1 sign bit, kExponent and kMantissa bits, and a bias. Numbers beyond the largest become infinite (e5m2) or the largest (e4m3fn).
template <int kExponent, int kMantissa, int kBias, bool kInfinite>
struct Float8 {
  static constexpr uint32_t kInfinity = ((1u << kExponent) - 1) << kMantissa;
  static constexpr uint8_t kNaN = kInfinite ? kInfinity | 1u << (kMantissa - 1) : 0x7f;
  static constexpr uint32_t kLargest = kInfinite ? kInfinity - 1 : kNaN - 1u;

  static uint8_t encode(float f) {  // to nearest even
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return sign | kNaN;
    uint32_t found;
    if (bits >= static_cast<uint32_t>(128 - kBias) << 23) {  // a normal number: drop the low bits of the mantissa
      constexpr int kDropped = 23 - kMantissa;
      const uint32_t rounded = bits + (1u << (kDropped - 1)) - 1 + (bits >> kDropped & 1);
      found = (rounded >> kDropped) - (static_cast<uint32_t>(127 - kBias) << kMantissa);
    } else {  // multiples of the smallest number: the adder rounds
      constexpr uint32_t kMagic = static_cast<uint32_t>(127 + 23 + 1 - kBias - kMantissa) << 23;
      float magic, magnitude;
      std::memcpy(&magic, &kMagic, 4);
      std::memcpy(&magnitude, &bits, 4);
      magnitude += magic;
      std::memcpy(&found, &magnitude, 4);
      found -= kMagic;
    }
    return sign | (found <= kLargest ? static_cast<uint8_t>(found) : static_cast<uint8_t>(kInfinite ? kInfinity : kLargest));
  }

  static float decode(uint8_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, magnitude = bits & 0x7f;
    uint32_t wide;
    float f;
    if (kInfinite ? magnitude > kInfinity : magnitude == kNaN) {
      wide = 0x7fc00000u;
    } else if (kInfinite && magnitude == kInfinity) {
      wide = 0x7f800000u;
    } else if (magnitude >> kMantissa == 0) {
      constexpr uint32_t kUnit = static_cast<uint32_t>(127 + 1 - kBias - kMantissa) << 23;
      float unit;
      std::memcpy(&unit, &kUnit, 4);
      f = static_cast<float>(magnitude) * unit;
      std::memcpy(&wide, &f, 4);
    } else {
      wide = (magnitude << (23 - kMantissa)) + (static_cast<uint32_t>(127 - kBias) << 23);
    }
    wide |= sign;
    std::memcpy(&f, &wide, 4);
    return f;
  }
};

using Float8E4M3 = Float8<4, 3, 7, false>;
using Float8E5M2 = Float8<5, 2, 15, true>;

}  // namespace argand
