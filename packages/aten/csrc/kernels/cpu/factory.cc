// Ranges.
#include <cmath>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kGrain = 16384;

// out[i] = at(i), computed in T and converted to out's dtype by blocks.
template <class T, class F>
void fill_range(const Tensor& out, int dtype, F at) {
  char* const data = out.data<char>();
  const int64_t size = out.itemsize();
  argand::parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    T block[256];
    for (int64_t i = begin; i < end; i += 256) {
      const int64_t n = std::min<int64_t>(256, end - i);
      for (int64_t k = 0; k < n; k++) block[k] = at(i + k);
      convert(n, out.dtype(), data + i * size, size, dtype, block, sizeof(T));
    }
  });
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, int dtype, std::optional<ArgandDevice>, bool) {
  if (dtype != ARGAND_UINT64 && builtins::arange_dtype(start, end, step) == ARGAND_INT64)
    for (const Scalar& s : {start, end, step}) check_fits("arange", ARGAND_INT64, value(s));
  if (dtype == ARGAND_INT64 && step.to_int() == 0 && step.to_double() != 0)
    fail(ARGAND_VALUE_ERROR, "arange: step must be nonzero, got %g for int64", step.to_double());
  if (dtype == ARGAND_INT64 && (start.is_floating() || end.is_floating() || step.is_floating()))
    return arange(start.to_int(), end.to_int(), step.to_int(), dtype, std::nullopt, false);
  const Tensor out =
      argand::empty({builtins::arange_length(start, end, step)}, dtype == ARGAND_DTYPE_NONE ? builtins::arange_dtype(start, end, step) : dtype);
  if (is_integral(out.dtype(), true) && !start.is_floating() && !step.is_floating()) {
    const int64_t first = start.to_int(), by = step.to_int();
    fill_range<int64_t>(out, ARGAND_INT64, [=](int64_t i) { return first + i * by; });
  } else {
    double first = start.to_double(), by = step.to_double();
    if (is_integral(out.dtype(), true)) first = std::trunc(first), by = std::trunc(by);
    fill_range<double>(out, ARGAND_FLOAT64, [=](int64_t i) { return first + static_cast<double>(i) * by; });
  }
  return out;
}

// Both halves count from their own end, so that the last element is exactly `end`.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, int dtype, std::optional<ArgandDevice>, bool) {
  const Tensor out = argand::empty({steps}, dtype == ARGAND_DTYPE_NONE ? builtins::default_dtype() : dtype);
  for (const Scalar& s : {start, end}) check_fits("linspace", out.dtype(), value(s));
  double a = start.to_double(), b = end.to_double();
  if (is_integral(out.dtype(), true)) a = std::trunc(a), b = std::trunc(b);
  const double by = steps > 1 ? (b - a) / static_cast<double>(steps - 1) : 0;
  fill_range<double>(out, ARGAND_FLOAT64,
                     [=](int64_t i) { return i < (steps + 1) / 2 ? a + by * static_cast<double>(i) : b - by * static_cast<double>(steps - 1 - i); });
  return out;
}

}  // namespace argand::kernels::cpu
