// What a dtype holds of the numbers that a random fill is asked for.
#pragma once

#include <limits>

#include "packages/aten/csrc/core/builtins.h"

namespace argand {

// Integers from [from, to) into a tensor of `dtype`.
inline void check_random_bounds(const char* op, int dtype, int64_t from, int64_t to) {
  if (from >= to)
    fail(ARGAND_RUNTIME_ERROR, "%s expects 'from' to be less than 'to', but got from=%lld >= to=%lld", op, static_cast<long long>(from),
         static_cast<long long>(to));
  if (is_complex(dtype))
    fail(ARGAND_RUNTIME_ERROR, "%s: got dtype %s, expected a real dtype; fill its real and imaginary parts", op, kDTypeName[dtype]);
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  switch (dtype) {
    case ARGAND_BOOL:
      low = 0, high = 1;
      break;
    case ARGAND_UINT8:
      low = 0, high = UINT8_MAX;
      break;
    case ARGAND_UINT16:
    case ARGAND_UINT32:
      low = 0, high = (int64_t{1} << (8 * item_size(dtype))) - 1;
      break;
    case ARGAND_UINT64:
      low = 0;
      break;
    case ARGAND_INT8:
    case ARGAND_INT16:
    case ARGAND_INT32:
      high = (int64_t{1} << (8 * item_size(dtype) - 1)) - 1, low = -high - 1;
      break;
    case ARGAND_FLOAT16:
    case ARGAND_FLOAT8_E4M3FN:
    case ARGAND_FLOAT8_E5M2:
      high = static_cast<int64_t>(builtins::finfo_max(dtype)), low = -high;
      break;
    default:
      break;
  }
  if (from < low || to - 1 > high)
    fail(ARGAND_RUNTIME_ERROR, "%s: got numbers from %lld to %lld, of which some are out of bounds for %s; expected them within [%lld, %lld]", op,
         static_cast<long long>(from), static_cast<long long>(to - 1), kDTypeName[dtype], static_cast<long long>(low), static_cast<long long>(high));
}

// Uniform numbers from [from, to) into a tensor of `dtype`: bounds and their distance are numbers of it.
inline void check_uniform_bounds(const char* op, int dtype, double from, double to) {
  if (!(from <= to)) fail(ARGAND_RUNTIME_ERROR, "%s: expects to return a [from, to) range, but found from=%g > to=%g", op, from, to);
  const double high = builtins::finfo_max(dtype);
  if (from < -high || to > high || to - from > high)
    fail(ARGAND_RUNTIME_ERROR, "%s: got from=%g and to=%g, expected bounds and a distance between them that %s holds, at most %g", op, from, to,
         kDTypeName[dtype], high);
}

}  // namespace argand
