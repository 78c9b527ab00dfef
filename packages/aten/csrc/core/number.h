// Numbers as elements of tensors.
#pragma once

#include <bit>
#include <cmath>

#include "packages/c10/csrc/abi/tensor.h"
#include "packages/c10/csrc/core/float8.h"

namespace argand {

// Stores a number as one element of `dtype`; wraps integers around.
inline void write_number(void* to, int dtype, const ArgandValue& number) {
  const Scalar s = as_scalar(number);
  const bool integer = s.tag == ARGAND_TAG_INT || s.tag == ARGAND_TAG_BOOL;
  switch (dtype) {
    case ARGAND_FLOAT16: {
      const auto h = static_cast<_Float16>(static_cast<float>(s.re));
      std::memcpy(to, &h, 2);
      return;
    }
    case ARGAND_BFLOAT16: {
      const auto f = static_cast<float>(s.re);
      uint32_t u;
      std::memcpy(&u, &f, 4);
      const auto h = static_cast<uint16_t>(f != f ? u >> 16 | 0x40 : (u + 0x7fffu + (u >> 16 & 1)) >> 16);
      std::memcpy(to, &h, 2);
      return;
    }
    case ARGAND_FLOAT8_E4M3FN: {
      const uint8_t bits = Float8E4M3::encode(static_cast<float>(s.re));
      std::memcpy(to, &bits, 1);
      return;
    }
    case ARGAND_FLOAT8_E5M2: {
      const uint8_t bits = Float8E5M2::encode(static_cast<float>(s.re));
      std::memcpy(to, &bits, 1);
      return;
    }
    case ARGAND_FLOAT32: {
      const float f = static_cast<float>(s.re);
      std::memcpy(to, &f, 4);
      return;
    }
    case ARGAND_FLOAT64:
      std::memcpy(to, &s.re, 8);
      return;
    case ARGAND_COMPLEX64: {
      const float c[] = {static_cast<float>(s.re), static_cast<float>(s.im)};
      std::memcpy(to, c, 8);
      return;
    }
    case ARGAND_COMPLEX128: {
      const double c[] = {s.re, s.im};
      std::memcpy(to, c, 16);
      return;
    }
    case ARGAND_BOOL: {
      const bool b = integer ? s.i != 0 : s.re != 0 || s.im != 0;
      std::memcpy(to, &b, 1);
      return;
    }
    case ARGAND_UINT64:
      if (!integer && s.re >= 0x1p63 && s.re < 0x1p64) {
        const auto u = static_cast<uint64_t>(s.re);
        std::memcpy(to, &u, 8);
        return;
      }
      [[fallthrough]];
    default: {
      const bool fits = s.re > -9.3e18 && s.re < 9.2e18;
      const int64_t i = integer ? s.i : fits ? static_cast<int64_t>(s.re) : INT64_MIN;
      std::memcpy(to, &i, kItemSize[dtype]);  // little-endian: the low bytes
    }
  }
}

// A number as a dtype of half precision holds it.
inline double rounded(int dtype, double number) {
  uint16_t bits;
  write_number(&bits, dtype, value(number));
  if (dtype == ARGAND_BFLOAT16) return std::bit_cast<float>(uint32_t{bits} << 16);
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

inline bool is_half(int dtype) { return dtype == ARGAND_FLOAT16 || dtype == ARGAND_BFLOAT16; }

// Whether an element of `dtype` can hold a number: what lies behind the point of a floating-point number is cut off; negative integers may wrap into
// unsigned dtypes; infinities and NaN are none of the integers.
inline bool fits(int dtype, const Scalar& s) {
  const bool integer = s.tag == ARGAND_TAG_INT || s.tag == ARGAND_TAG_BOOL;
  if (dtype == ARGAND_BOOL || (integer && s.i > -128 && s.i < 128 && !s.beyond_int64())) return true;
  if (is_integral(dtype, false)) {
    const bool is_unsigned = dtype == ARGAND_UINT8 || is_wide_unsigned(dtype);
    const __int128 high = (__int128{1} << (8 * kItemSize[dtype] - !is_unsigned)) - 1;
    if (!integer) return s.re >= (is_unsigned ? 0 : static_cast<double>(-high - 1)) && s.re <= static_cast<double>(high);
    const __int128 i = s.beyond_int64() ? __int128{static_cast<uint64_t>(s.i)} : __int128{s.i};
    return i <= high && i >= (is_unsigned ? -high : -high - 1);
  }
  const double high = dtype == ARGAND_FLOAT16                                ? 65504
                      : dtype == ARGAND_BFLOAT16                             ? 0x1.FEp127
                      : dtype == ARGAND_FLOAT32 || dtype == ARGAND_COMPLEX64 ? 0x1.FFFFFEp127
                                                                             : HUGE_VAL;
  const auto held = [high](double x) { return !(std::fabs(x) > high) || std::isinf(x); };
  return held(s.re) && held(s.im);
}

inline bool fits(int dtype, const ArgandValue& number) { return fits(dtype, as_scalar(number)); }

[[noreturn]] inline void fail_to_fit(const char* name, int dtype) {
  fail(ARGAND_RUNTIME_ERROR, "%s: value cannot be converted to type %s without overflow", name, kDTypeName[dtype]);
}

inline void check_fits(const char* name, int dtype, const ArgandValue& number) {
  if (!fits(dtype, number)) fail_to_fit(name, dtype);
}

}  // namespace argand
