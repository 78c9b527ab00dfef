// Scales and zero points from the range of data.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "packages/quant/csrc/quantize/parameters.h"
#include "packages/quant/generated/kernels.h"

namespace argand {
namespace quant {
namespace {

struct Extent {
  float low, high;  // both sides of 0
};

Extent extent_of(const char* op, const Tensor& x) {
  Extent total = {0, 0};
  std::mutex mutex;
  parallel_for(0, x.numel(), 1 << 16, [&](int64_t b, int64_t e) {
    Extent part = {0, 0};
    loops().extend_range(e - b, x.data<float>() + b, &part.low, &part.high);
    const std::lock_guard<std::mutex> lock(mutex);
    total.low = std::min(total.low, part.low);
    total.high = std::max(total.high, part.high);
  });
  if (!std::isfinite(total.high - total.low))
    fail(ARGAND_VALUE_ERROR, "%s: got values from %g to %g or NaN, expected finite ones whose range float32 holds", op,
         static_cast<double>(total.low), static_cast<double>(total.high));
  return total;
}

float at_least(float scale, double eps) { return std::max(scale, static_cast<float>(eps)); }

std::tuple<Tensor, Tensor> as_tensors(ScaleAndZero p) {
  const Tensor scale = empty({1}, ARGAND_FLOAT64), zero_point = empty({1}, ARGAND_INT64);
  *scale.data<double>() = p.scale;
  *zero_point.data<int64_t>() = p.zero_point;
  return {scale, zero_point};
}

}  // namespace

ScaleAndZero choose_affine(const char* op, const Tensor& x, Range range, double eps) {
  const Extent extent = extent_of(op, x);
  const float scale = at_least((extent.high - extent.low) / static_cast<float>(range.high - range.low), eps);
  const float zero = static_cast<float>(range.low) - std::rint(extent.low / scale);
  return {scale, static_cast<int32_t>(std::clamp(zero, static_cast<float>(range.low), static_cast<float>(range.high)))};
}

}  // namespace quant

namespace kernels::cpu {

std::tuple<Tensor, Tensor> choose_qparams(const Tensor& input, int64_t quant_min, int64_t quant_max, double eps, int dtype) {
  const quant::Range range = quant::checked_range("choose_qparams", quant_min, quant_max, dtype);
  return quant::as_tensors(quant::choose_affine("choose_qparams", quant::as_float32(input), range, eps));
}

std::tuple<Tensor, Tensor> choose_qparams_symmetric(const Tensor& input, int64_t quant_min, int64_t quant_max, double eps, int dtype) {
  const quant::Range range = quant::checked_range("choose_qparams_symmetric", quant_min, quant_max, dtype);
  const quant::Extent extent = quant::extent_of("choose_qparams_symmetric", quant::as_float32(input));
  const float steps = static_cast<float>(range.high - range.low) / 2;
  const float scale = quant::at_least(std::max(-extent.low, extent.high) / steps, eps);
  const int64_t middle = (quant_min + quant_max + 1) / 2;
  return quant::as_tensors({scale, dtype == ARGAND_UINT8 ? static_cast<int32_t>(middle) : 0});
}

}  // namespace kernels::cpu
}  // namespace argand
