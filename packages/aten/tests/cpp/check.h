// Checks and tensor helpers for the C++ test programs: a failed check says where and ends the program with status 1.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "packages/aten/csrc/core/operand.h"
#include "packages/c10/csrc/core/strided.h"

#define CHECK(condition, ...)                                                     \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: CHECK failed: %s", __FILE__, __LINE__, #condition); \
      fprintf(stderr, " " __VA_ARGS__);                                           \
      fputc('\n', stderr);                                                        \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

#define CHECK_THROWS(text, ...) check_throws(__FILE__, __LINE__, text, [&] { __VA_ARGS__; })
template <class Body>
void check_throws(const char* file, int line, const char* text, Body&& body) {
  try {
    body();
  } catch (const argand::Error& e) {
    if (e.message.find(text) != std::string::npos) return;
    fprintf(stderr, "%s:%d: got error '%s', expected one with '%s'\n", file, line, e.message.c_str(), text);
    exit(1);
  }
  fprintf(stderr, "%s:%d: got no error, expected one with '%s'\n", file, line, text);
  exit(1);
}

#define RUN(test)          \
  do {                     \
    printf("%s\n", #test); \
    fflush(stdout);        \
    test();                \
  } while (0)

namespace testing {

inline constexpr int kComputedDTypes = ARGAND_FLOAT8_E4M3FN;  // dtypes below it are computed in, float8 is stored only
using argand::Dims;
using argand::IntList;
using argand::Tensor;

inline uint64_t random_state = 88172645463325252u;
inline uint64_t random_bits() {  // xorshift64
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}
inline double random_real(double low, double high) { return low + (high - low) * static_cast<double>(random_bits() >> 11) * 0x1p-53; }
inline int64_t random_below(int64_t n) { return static_cast<int64_t>(random_bits() % static_cast<uint64_t>(n)); }

inline float half_to_float(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const double sign = h & 0x8000 ? -1 : 1;
  if (exponent == 31) return mantissa ? std::nanf("") : static_cast<float>(sign * INFINITY);
  return static_cast<float>(sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24)));
}
inline uint16_t float_to_half(float x) {  // by search: the nearest, ties to even
  if (x != x) return 0x7e00;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double a = std::fabs(static_cast<double>(x));
  if (a >= 65520.0) return sign | 0x7c00;
  uint16_t low = 0, high = 0x7bff;
  while (low < high) {
    const uint16_t middle = static_cast<uint16_t>((low + high + 1) / 2);
    if (half_to_float(middle) <= a)
      low = middle;
    else
      high = middle - 1;
  }
  const double below = half_to_float(low), above = low == 0x7bff ? 65536.0 : half_to_float(low + 1);
  if (a - below > above - a || (a - below == above - a && (low & 1))) low++;
  return sign | low;
}

// Element at a byte address, whatever its dtype.
[[gnu::noinline]] inline double get(const void* p, int dtype) {
  switch (dtype) {
    case ARGAND_BOOL:
    case ARGAND_UINT8:
      return *static_cast<const uint8_t*>(p);
    case ARGAND_INT8:
      return *static_cast<const int8_t*>(p);
    case ARGAND_INT16:
      return *static_cast<const int16_t*>(p);
    case ARGAND_INT32:
      return *static_cast<const int32_t*>(p);
    case ARGAND_INT64:
      return static_cast<double>(*static_cast<const int64_t*>(p));
    case ARGAND_FLOAT16:
      return half_to_float(*static_cast<const uint16_t*>(p));
    case ARGAND_BFLOAT16: {
      const uint32_t u = static_cast<uint32_t>(*static_cast<const uint16_t*>(p)) << 16;
      float f;
      memcpy(&f, &u, 4);
      return f;
    }
    case ARGAND_FLOAT64:
    case ARGAND_COMPLEX128:
      return *static_cast<const double*>(p);
    default:
      return *static_cast<const float*>(p);
  }
}
[[gnu::noinline]] inline void set(void* p, int dtype, double v) {
  switch (dtype) {
    case ARGAND_BOOL:
      *static_cast<uint8_t*>(p) = v != 0;
      return;
    case ARGAND_UINT8:
      *static_cast<uint8_t*>(p) = static_cast<uint8_t>(static_cast<int64_t>(v));
      return;
    case ARGAND_INT8:
      *static_cast<int8_t*>(p) = static_cast<int8_t>(static_cast<int64_t>(v));
      return;
    case ARGAND_INT16:
      *static_cast<int16_t*>(p) = static_cast<int16_t>(static_cast<int64_t>(v));
      return;
    case ARGAND_INT32:
      *static_cast<int32_t*>(p) = static_cast<int32_t>(static_cast<int64_t>(v));
      return;
    case ARGAND_INT64:
      *static_cast<int64_t*>(p) = static_cast<int64_t>(v);
      return;
    case ARGAND_FLOAT16:
      *static_cast<uint16_t*>(p) = float_to_half(static_cast<float>(v));
      return;
    case ARGAND_BFLOAT16: {
      const float f = static_cast<float>(v);
      uint32_t u;
      memcpy(&u, &f, 4);
      *static_cast<uint16_t*>(p) = static_cast<uint16_t>(f != f ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
      return;
    }
    case ARGAND_FLOAT64:
      *static_cast<double*>(p) = v;
      return;
    case ARGAND_FLOAT32:
      *static_cast<float*>(p) = static_cast<float>(v);
      return;
    case ARGAND_COMPLEX64:
      static_cast<float*>(p)[0] = static_cast<float>(v), static_cast<float*>(p)[1] = 0;
      return;
    case ARGAND_COMPLEX128:
      static_cast<double*>(p)[0] = v, static_cast<double*>(p)[1] = 0;
      return;
  }
}
inline double rounded(double v, int dtype) {
  alignas(16) char bytes[16] = {};
  set(bytes, dtype, v);
  return get(bytes, dtype);
}

// Address of the flat row-major index.
inline char* address(const Tensor& t, int64_t index) {
  int64_t offset = 0;
  for (int64_t d = t.dim() - 1; d >= 0; d--) {
    offset += index % t.size(d) * t.stride(d);
    index /= t.size(d);
  }
  return t.data<char>() + offset * t.itemsize();
}
inline double at(const Tensor& t, int64_t index) { return get(address(t, index), t.dtype()); }
inline void put(const Tensor& t, int64_t index, double v) { set(address(t, index), t.dtype(), v); }
// The element of t that index of `sizes` sees when t is broadcast to it.
inline double at_broadcast(const Tensor& t, IntList sizes, int64_t index) {
  int64_t flat = 0, stride = 1;
  for (int64_t d = sizes.size() - 1, from = t.dim() - 1; d >= 0; d--, from--) {
    const int64_t i = index % sizes[d];
    index /= sizes[d];
    if (from < 0) continue;
    if (t.size(from) != 1) flat += i * stride;
    stride *= t.size(from);
  }
  return at(t, flat);
}

// Small values that every dtype holds exactly.
inline Tensor random_tensor(IntList sizes, int dtype, int low = -8, int high = 8) {
  Tensor t = argand::empty(sizes, dtype);
  const int least = dtype == ARGAND_UINT8 && low < 0 ? 0 : low;
  for (int64_t i = 0; i < t.numel(); i++) put(t, i, dtype == ARGAND_BOOL ? random_below(2) : least + random_below(high - least + 1));
  return t;
}
inline Tensor transposed(const Tensor& t, int64_t a, int64_t b) {
  Dims sizes(t.sizes()), strides(t.strides());
  std::swap(sizes.d[a], sizes.d[b]);
  std::swap(strides.d[a], strides.d[b]);
  return argand::view_of(t, sizes, strides, t->offset);
}
// Every `step`th element of the last dimension, from `start`.
inline Tensor sliced(const Tensor& t, int64_t start, int64_t step) {
  Dims sizes(t.sizes()), strides(t.strides());
  const int64_t d = t.dim() - 1;
  sizes[d] = (sizes[d] - start + step - 1) / step;
  const int64_t stride = strides[d];
  strides[d] = stride * step;
  return argand::view_of(t, sizes, strides, t->offset + start * stride);
}
}  // namespace testing
