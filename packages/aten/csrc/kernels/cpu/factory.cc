// Ranges.
#include <cmath>
#include <complex>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/dtype_checks.h"
#include "packages/aten/csrc/core/linspace_dtype.h"
#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kGrain = 16384;
constexpr int64_t kBlock = 256;
typedef double Doubles __attribute__((vector_size(16), aligned(8)));

// out[i] for i in [from, to), converted from `dtype` by blocks that fill(first i, block) makes; it may be asked for a block that ends beyond.
template <class T, class F>
void fill_blocks(const Tensor& out, int dtype, int64_t from, int64_t to, F fill) {
  char* const data = out.data<char>();
  const int64_t size = out.itemsize();
  argand::parallel_for(from, to, kGrain, [&](int64_t begin, int64_t end) {
    T block[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      if (out.dtype() == dtype && end - i >= kBlock) {
        fill(i, reinterpret_cast<T*>(data + i * size));
        continue;
      }
      fill(i, block);
      convert(std::min<int64_t>(kBlock, end - i), out.dtype(), data + i * size, size, dtype, block, sizeof(T));
    }
  });
}

// out[i] = at(i), in double precision.
template <class F>
void fill_range(const Tensor& out, int64_t from, int64_t to, F at) {
  fill_blocks<double>(out, ARGAND_FLOAT64, from, to, [at](int64_t first, double* block) {
    Doubles base = static_cast<double>(first) + Doubles{0, 1};
    for (int64_t k = 0; k < kBlock; k += 8, base += 8)
#pragma GCC unroll 4
      for (int j = 0; j < 8; j += 2) *reinterpret_cast<Doubles*>(block + k + j) = at(base + static_cast<double>(j));
  });
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, int dtype, std::optional<ArgandDevice>, bool) {
  check_not_bool("arange", dtype);
  if (dtype != ARGAND_DTYPE_NONE && is_complex(dtype))
    fail(ARGAND_NOT_IMPLEMENTED_ERROR, "arange: not implemented for %s; convert the result", kDTypeName[dtype]);
  for (const Scalar& s : {start, end, step})
    if (s.im != 0) fail_to_fit("arange", ARGAND_FLOAT64);
  if (dtype != ARGAND_UINT64 && builtins::arange_dtype(start, end, step) == ARGAND_INT64)
    for (const Scalar& s : {start, end, step}) check_fits("arange", ARGAND_INT64, value(s));
  if (dtype == ARGAND_INT64 && step.to_int() == 0 && step.to_double() != 0)
    fail(ARGAND_VALUE_ERROR, "arange: step must be nonzero, got %g for int64", step.to_double());
  if (dtype == ARGAND_INT64 && (start.is_floating() || end.is_floating() || step.is_floating()))
    return arange(start.to_int(), end.to_int(), step.to_int(), dtype, std::nullopt, false);
  const Tensor out =
      argand::empty({builtins::arange_length(start, end, step)}, dtype == ARGAND_DTYPE_NONE ? builtins::arange_dtype(start, end, step) : dtype);
  if (is_integral(out.dtype(), true) && !start.is_floating() && !step.is_floating()) {
    const uint64_t first = static_cast<uint64_t>(start.to_int()), by = static_cast<uint64_t>(step.to_int());  // so that they wrap
    dispatch_integral("arange", out.dtype(), [&](auto tag) {
      using T = std::make_unsigned_t<typename decltype(tag)::type>;
      typedef T V __attribute__((vector_size(16), aligned(sizeof(T))));
      constexpr int64_t kLanes = 16 / sizeof(T);
      V ahead;
      for (int64_t k = 0; k < kLanes; k++) ahead[k] = static_cast<T>(static_cast<uint64_t>(k) * by);
      const T next = static_cast<T>(kLanes * by);
      fill_blocks<T>(out, out.dtype(), 0, out.numel(), [=](int64_t i, T* block) {
        V value = static_cast<T>(first + static_cast<uint64_t>(i) * by) + ahead;
        for (int64_t k = 0; k < kBlock; k += kLanes, value += next) *reinterpret_cast<V*>(block + k) = value;
      });
    });
  } else {
    double first = start.to_double(), by = step.to_double();
    if (is_integral(out.dtype(), true)) first = std::trunc(first), by = std::trunc(by);
    fill_range(out, 0, out.numel(), [=](Doubles i) { return first + i * by; });
  }
  return out;
}

// Both halves count from their own end, so that the last element is exactly `end`.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, int dtype, std::optional<ArgandDevice>, bool) {
  const Tensor out = argand::empty({steps}, linspace_dtype(start, end, dtype));
  const int64_t half = (steps + 1) / 2;
  const double last = static_cast<double>(steps - 1);
  const auto part = [&](double a, double b) { return steps > 1 ? (b - a) / last : 0; };
  if (is_complex(out.dtype())) {
    const std::complex<double> a(start.re, start.im), b(end.re, end.im), by(part(a.real(), b.real()), part(a.imag(), b.imag()));
    fill_blocks<std::complex<double>>(out, ARGAND_COMPLEX128, 0, steps, [=](int64_t first, std::complex<double>* block) {
      for (int64_t i = first; i < first + kBlock; i++)
        block[i - first] = i < half ? a + by * static_cast<double>(i) : b - by * (last - static_cast<double>(i));
    });
  } else {
    double a = start.re, b = end.re;
    if (is_integral(out.dtype(), true)) a = std::trunc(a), b = std::trunc(b);
    const double by = part(a, b);
    fill_range(out, 0, half, [=](Doubles i) { return a + by * i; });
    fill_range(out, half, steps, [=](Doubles i) { return b - by * (last - i); });
  }
  return out;
}

}  // namespace argand::kernels::cpu
