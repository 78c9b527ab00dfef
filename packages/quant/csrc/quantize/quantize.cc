// Quantize, dequantize and fake quantize: checks, parameters and the split over threads.
#include <cmath>
#include <limits>

#include "packages/aten/generated/ops.h"
#include "packages/quant/csrc/quantize/parameters.h"
#include "packages/quant/generated/kernels.h"

namespace argand {
namespace quant {

const QuantizeLoops& loops() {
  const int tier = api->cpu_tier();
  return tier == 2 ? tier_avx512::quantize_loops : tier == 1 ? tier_avx2::quantize_loops : tier_baseline::quantize_loops;
}

IntegerKind integer_kind(const char* op, int dtype) {
  switch (dtype) {
    case ARGAND_UINT8:
      return kUInt8;
    case ARGAND_INT8:
      return kInt8;
    case ARGAND_INT16:
      return kInt16;
    case ARGAND_INT32:
      return kInt32;
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected uint8, int8, int16 or int32", op, kDTypeName[dtype]);
  }
}

Range checked_range(const char* op, int64_t quant_min, int64_t quant_max, int dtype) {
  constexpr int64_t kLow[] = {0, -128, -32768, std::numeric_limits<int32_t>::min()};
  constexpr int64_t kHigh[] = {255, 127, 32767, std::numeric_limits<int32_t>::max()};
  const int kind = integer_kind(op, dtype);
  if (quant_min > quant_max || quant_min < kLow[kind] || quant_max > kHigh[kind])
    fail(ARGAND_VALUE_ERROR, "%s: got quant_min %lld and quant_max %lld, expected a range within %lld..%lld, that of %s", op,
         static_cast<long long>(quant_min), static_cast<long long>(quant_max), static_cast<long long>(kLow[kind]),
         static_cast<long long>(kHigh[kind]), kDTypeName[dtype]);
  return {static_cast<int32_t>(quant_min), static_cast<int32_t>(quant_max)};
}

float checked_scale(const char* op, double scale) {
  const float single = static_cast<float>(scale);
  if (!(single > 0) || !std::isfinite(single)) fail(ARGAND_VALUE_ERROR, "%s: got scale %g, expected a positive finite number", op, scale);
  return single;
}

int32_t checked_zero_point(const char* op, int64_t zero_point) {
  if (zero_point < std::numeric_limits<int32_t>::min() || zero_point > std::numeric_limits<int32_t>::max())
    fail(ARGAND_VALUE_ERROR, "%s: got zero point %lld, expected an integer of 32 bits", op, static_cast<long long>(zero_point));
  return static_cast<int32_t>(zero_point);
}

double only_number(const char* op, const char* name, const Tensor& t) {
  if (t.numel() != 1) fail(ARGAND_SHAPE_ERROR, "%s: got %s of shape %s, expected one element", op, name, to_string(t.sizes()).c_str());
  const Tensor wide = ops::_to_copy(t, ARGAND_FLOAT64);
  return *wide.data<double>();
}

Tensor as_float32(const Tensor& t) { return ops::contiguous(t.dtype() == ARGAND_FLOAT32 ? t : ops::_to_copy(t, ARGAND_FLOAT32)); }

}  // namespace quant

namespace kernels::cpu {

using namespace quant;

namespace {

constexpr int64_t kGrain = 1 << 15;  // elements of a thread's part

// Parameters of every channel, and how the channels lie in a contiguous tensor: `rows` runs of `channels` runs of `inner` elements.
class Channels {
 public:
  Channels(const char* op, const Tensor& t, const Tensor& scales, const Tensor& zero_points, int64_t axis) {
    const int64_t dim = axis < 0 ? axis + t.dim() : axis;
    const bool one = t.dim() == 0 || scales.numel() == 1;
    if (!one && (dim < 0 || dim >= t.dim()))
      fail(ARGAND_INDEX_ERROR, "%s: got axis %lld for a tensor of %lld dimensions", op, static_cast<long long>(axis),
           static_cast<long long>(t.dim()));
    channels = one ? 1 : t.size(dim);
    if (scales.numel() != channels || (zero_points && zero_points.numel() != channels))
      fail(ARGAND_SHAPE_ERROR, "%s: got %lld scales and %lld zero points, expected %lld of each, the size along axis %lld", op,
           static_cast<long long>(scales.numel()), static_cast<long long>(zero_points ? zero_points.numel() : scales.numel()),
           static_cast<long long>(channels), static_cast<long long>(axis));
    for (int64_t i = one ? 0 : dim + 1; i < t.dim(); i++) inner *= t.size(i);
    const Tensor s = ops::contiguous(ops::_to_copy(scales, ARGAND_FLOAT64));
    const Tensor z = zero_points ? ops::contiguous(ops::_to_copy(zero_points, ARGAND_INT64)) : Tensor();
    each_ = inner < 16 && channels > 1;  // short runs: parameters element by element
    const int64_t copies = each_ ? inner : 1;
    for (int64_t c = 0; c < channels; c++) {
      const float scale = checked_scale(op, s.data<double>()[c]);
      const float inverse = static_cast<float>(1.0 / s.data<double>()[c]);
      const int32_t zero = z ? checked_zero_point(op, z.data<int64_t>()[c]) : 0;
      scale_.insert(scale_.end(), copies, scale);
      inverse_.insert(inverse_.end(), copies, inverse);
      zero_.insert(zero_.end(), copies, zero);
    }
  }

  // run(at, n, first): elements at..at+n, whose parameters begin at `first` of the lists.
  template <class F>
  void for_each_run(int64_t numel, const F& run) const {
    const int64_t length = each_ ? channels * inner : inner;
    if (numel == 0) return;
    if (channels == 1) return parallel_for(0, numel, kGrain, [&](int64_t b, int64_t e) { run(b, e - b, int64_t{0}); });
    parallel_for(0, numel / length, std::max<int64_t>(1, kGrain / length), [&](int64_t b, int64_t e) {
      for (int64_t row = b; row < e; row++) run(row * length, length, each_ ? 0 : row % channels);
    });
  }

  Parameters inverses(int64_t first) const { return {inverse_.data() + first, zero_.data() + first, each_}; }
  Parameters scales(int64_t first) const { return {scale_.data() + first, zero_.data() + first, each_}; }

  void check_zero_points(const char* op, Range range) const {
    for (int32_t zero : zero_)
      if (zero < range.low || zero > range.high)
        fail(ARGAND_RUNTIME_ERROR, "%s: got zero_point %d, expected one between quant_min %lld and quant_max %lld", op, zero,
             static_cast<long long>(range.low), static_cast<long long>(range.high));
  }

  int64_t channels, inner = 1;

 private:
  bool each_;
  std::vector<float> scale_, inverse_;
  std::vector<int32_t> zero_;
};

Tensor quantized(const char* op, const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis, int64_t quant_min,
                 int64_t quant_max, int dtype) {
  if (!is_floating(input.dtype())) fail(ARGAND_DTYPE_ERROR, "%s: got %s, expected a floating-point tensor", op, kDTypeName[input.dtype()]);
  const Range range = checked_range(op, quant_min, quant_max, dtype);
  const Channels channels(op, input, scales, zero_points, axis);
  const auto loop = loops().quantize[integer_kind(op, dtype)];
  const Tensor x = as_float32(input), q = empty(input.sizes(), dtype);
  const int64_t size = item_size(dtype);
  channels.for_each_run(x.numel(), [&](int64_t at, int64_t n, int64_t first) {
    loop(n, x.data<float>() + at, q.data<char>() + at * size, channels.inverses(first), range);
  });
  return q;
}

Tensor dequantized(const char* op, const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis, int dtype, int out_dtype) {
  if (input.dtype() != dtype)
    fail(ARGAND_DTYPE_ERROR, "%s: got a tensor of %s, expected %s, the dtype that was named", op, kDTypeName[input.dtype()], kDTypeName[dtype]);
  const Channels channels(op, input, scales, zero_points, axis);
  const auto loop = loops().dequantize[integer_kind(op, dtype)];
  const Tensor q = ops::contiguous(input), x = empty(input.sizes(), ARGAND_FLOAT32);
  const int64_t size = item_size(dtype);
  channels.for_each_run(q.numel(), [&](int64_t at, int64_t n, int64_t first) {
    loop(n, q.data<const char>() + at * size, x.data<float>() + at, channels.scales(first));
  });
  return out_dtype == ARGAND_DTYPE_NONE || out_dtype == ARGAND_FLOAT32 ? x : ops::_to_copy(x, out_dtype);
}

Range integer_range(const char* op, int64_t quant_min, int64_t quant_max) { return checked_range(op, quant_min, quant_max, ARGAND_INT32); }

Tensor faked(const char* op, const Tensor& self, const Tensor& scales, const Tensor& zero_points, int64_t axis, int64_t quant_min,
             int64_t quant_max) {
  const Range range = integer_range(op, quant_min, quant_max);
  const Channels channels(op, self, scales, zero_points, axis);
  channels.check_zero_points(op, range);
  const Tensor x = as_float32(self), y = empty(self.sizes(), ARGAND_FLOAT32);
  const auto loop = loops().fake_quantize;
  channels.for_each_run(x.numel(), [&](int64_t at, int64_t n, int64_t first) {
    loop(n, x.data<float>() + at, y.data<float>() + at, channels.inverses(first), channels.scales(first).factor, range);
  });
  return self.dtype() == ARGAND_FLOAT32 ? y : ops::_to_copy(y, self.dtype());
}

Tensor faked_backward(const char* op, const Tensor& grad, const Tensor& self, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                      int64_t quant_min, int64_t quant_max) {
  const Range range = integer_range(op, quant_min, quant_max);
  const Channels channels(op, self, scales, zero_points, axis);
  const Tensor x = as_float32(self), dy = as_float32(grad), dx = empty(self.sizes(), ARGAND_FLOAT32);
  const auto loop = loops().fake_quantize_backward;
  channels.for_each_run(x.numel(), [&](int64_t at, int64_t n, int64_t first) {
    loop(n, dy.data<float>() + at, x.data<float>() + at, dx.data<float>() + at, channels.inverses(first), range);
  });
  return self.dtype() == ARGAND_FLOAT32 ? dx : ops::_to_copy(dx, self.dtype());
}

// A number as a tensor of one element, so that one code serves all forms.
Tensor number(double v) {
  const Tensor t = empty({}, ARGAND_FLOAT64);
  *t.data<double>() = v;
  return t;
}
Tensor number(int64_t v) {
  const Tensor t = empty({}, ARGAND_INT64);
  *t.data<int64_t>() = v;
  return t;
}

constexpr const char* kQuantize = "quantize_per_tensor";
constexpr const char* kDequantize = "dequantize_per_tensor";
constexpr const char* kFake = "fake_quantize_per_tensor_affine";
constexpr const char* kFakeChannels = "fake_quantize_per_channel_affine";

void check_single(const char* op, const Tensor& scale, const Tensor& zero_point) {
  only_number(op, "scale", scale);
  only_number(op, "zero_point", zero_point);
}

}  // namespace

Tensor quantize_per_tensor(const Tensor& input, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max, int dtype) {
  return quantized(kQuantize, input, number(scale), number(zero_point), 0, quant_min, quant_max, dtype);
}

Tensor quantize_per_tensor_tensor(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t quant_min, int64_t quant_max,
                                  int dtype) {
  check_single(kQuantize, scale, zero_point);
  return quantized(kQuantize, input, scale, zero_point, 0, quant_min, quant_max, dtype);
}

Tensor quantize_per_channel(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis, int64_t quant_min, int64_t quant_max,
                            int dtype) {
  return quantized("quantize_per_channel", input, scales, zero_points, axis, quant_min, quant_max, dtype);
}

Tensor dequantize_per_tensor(const Tensor& input, double scale, int64_t zero_point, int64_t, int64_t, int dtype, int out_dtype) {
  return dequantized(kDequantize, input, number(scale), number(zero_point), 0, dtype, out_dtype);
}

Tensor dequantize_per_tensor_tensor(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t, int64_t, int dtype, int out_dtype) {
  check_single(kDequantize, scale, zero_point);
  return dequantized(kDequantize, input, scale, zero_point, 0, dtype, out_dtype);
}

Tensor dequantize_per_channel(const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis, int64_t, int64_t, int dtype,
                              int out_dtype) {
  return dequantized("dequantize_per_channel", input, scales, zero_points, axis, dtype, out_dtype);
}

Tensor fake_quantize_per_tensor_affine(const Tensor& self, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max) {
  return faked(kFake, self, number(scale), number(zero_point), 0, quant_min, quant_max);
}

Tensor fake_quantize_per_tensor_affine_backward(const Tensor& grad, const Tensor& self, double scale, int64_t zero_point, int64_t quant_min,
                                                int64_t quant_max) {
  return faked_backward(kFake, grad, self, number(scale), number(zero_point), 0, quant_min, quant_max);
}

Tensor fake_quantize_per_tensor_affine_tensor_qparams(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t quant_min,
                                                      int64_t quant_max) {
  check_single(kFake, scale, zero_point);
  return faked(kFake, self, scale, zero_point, 0, quant_min, quant_max);
}

Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t quant_min,
                                        int64_t quant_max) {
  return faked(kFakeChannels, self, scale, zero_point, axis, quant_min, quant_max);
}

Tensor fake_quantize_per_channel_affine_backward(const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                                                 int64_t quant_min, int64_t quant_max) {
  return faked_backward(kFakeChannels, grad, self, scale, zero_point, axis, quant_min, quant_max);
}

}  // namespace kernels::cpu
}  // namespace argand
