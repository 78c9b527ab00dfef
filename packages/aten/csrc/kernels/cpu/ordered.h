// Keys that sorting and selection compare.
#pragma once

#include "packages/aten/csrc/kernels/cpu/util.h"

namespace argand::kernels::cpu {

// Numbers as unsigned integers in the same order: -0 equals 0, NaN is the greatest.
template <class T>
inline auto ordered(T x) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
    constexpr uint32_t sign = 0x8000, infinity = std::is_same_v<T, f16> ? 0x7c00 : 0x7f80;
    uint16_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const uint32_t magnitude = bits & ~sign;
    return magnitude > infinity ? uint32_t{0xffff} : bits > sign ? ~bits & 0xffffu : magnitude | sign;
  } else if constexpr (std::is_floating_point_v<T>) {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr U sign = U{1} << (8 * sizeof(U) - 1);
    if (x != x) return static_cast<U>(~U{0});
    U bits;
    const T positive_zero = x + T(0);
    std::memcpy(&bits, &positive_zero, sizeof bits);
    return static_cast<U>(bits & sign ? ~bits : bits | sign);
  } else if constexpr (std::is_signed_v<T>) {
    using U = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
    return static_cast<U>(static_cast<U>(static_cast<std::make_signed_t<U>>(x)) ^ (U{1} << (8 * sizeof(U) - 1)));
  } else {
    return static_cast<std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>>(x);
  }
}

}  // namespace argand::kernels::cpu
