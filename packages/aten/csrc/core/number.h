// Numbers as elements of tensors.
#pragma once

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

}  // namespace argand
