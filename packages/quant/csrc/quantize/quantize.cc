// Quantize, dequantize and fake quantize: checks, parameters and the split over threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"
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

// How channels lie in a contiguous tensor: `rows` runs of `channels` runs of `inner` elements; and lists of their parameters.
class Channels {
 public:
  Channels(IntList sizes, int64_t axis, bool one) : channels(one ? 1 : sizes[axis]) {
    for (int64_t i = one ? 0 : axis + 1; i < sizes.size(); i++) inner *= sizes[i];
    each_ = inner < 16 && channels > 1;  // short runs: parameters element by element
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

  // of(c): the parameter of channel c.
  template <class T, class F>
  std::vector<T> list(const F& of) const {
    std::vector<T> found;
    for (int64_t c = 0; c < channels; c++) found.insert(found.end(), each_ ? inner : 1, of(c));
    return found;
  }

  int stride() const { return each_; }

 private:
  int64_t channels, inner = 1;
  bool each_;
};

// The parameters of quantize and dequantize, checked.
struct ChannelParameters : Channels {
  static bool single(const Tensor& t, const Tensor& scales) { return t.dim() == 0 || scales.numel() == 1; }

  static int64_t checked_axis(const char* op, const Tensor& t, const Tensor& scales, const Tensor& zero_points, int64_t axis) {
    const bool one = single(t, scales);
    const int64_t dim = axis < 0 ? axis + t.dim() : axis;
    if (!one && (dim < 0 || dim >= t.dim()))
      fail(ARGAND_INDEX_ERROR, "%s: got axis %lld for a tensor of %lld dimensions", op, static_cast<long long>(axis),
           static_cast<long long>(t.dim()));
    const int64_t channels = one ? 1 : t.size(dim);
    if (scales.numel() != channels || (zero_points && zero_points.numel() != channels))
      fail(ARGAND_SHAPE_ERROR, "%s: got %lld scales and %lld zero points, expected %lld of each, the size along axis %lld", op,
           static_cast<long long>(scales.numel()), static_cast<long long>(zero_points ? zero_points.numel() : scales.numel()),
           static_cast<long long>(channels), static_cast<long long>(axis));
    return dim;
  }

  ChannelParameters(const char* op, const Tensor& t, const Tensor& scales, const Tensor& zero_points, int64_t axis)
      : Channels(t.sizes(), checked_axis(op, t, scales, zero_points, axis), single(t, scales)) {
    const Tensor s = ops::contiguous(ops::_to_copy(scales, ARGAND_FLOAT64));
    const Tensor z = zero_points ? ops::contiguous(ops::_to_copy(zero_points, ARGAND_INT64)) : Tensor();
    scale = list<float>([&](int64_t c) { return checked_scale(op, s.data<double>()[c]); });
    inverse = list<float>([&](int64_t c) { return static_cast<float>(1.0 / s.data<double>()[c]); });
    zero = list<int32_t>([&](int64_t c) { return z ? checked_zero_point(op, z.data<int64_t>()[c]) : 0; });
  }

  Parameters inverses(int64_t first) const { return {inverse.data() + first, zero.data() + first, stride()}; }
  Parameters scales(int64_t first) const { return {scale.data() + first, zero.data() + first, stride()}; }

  std::vector<float> scale, inverse;
  std::vector<int32_t> zero;
};

Tensor quantized(const char* op, const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis, int64_t quant_min,
                 int64_t quant_max, int dtype) {
  if (!is_floating(input.dtype())) fail(ARGAND_DTYPE_ERROR, "%s: got %s, expected a floating-point tensor", op, kDTypeName[input.dtype()]);
  const Range range = checked_range(op, quant_min, quant_max, dtype);
  const ChannelParameters channels(op, input, scales, zero_points, axis);
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
  const ChannelParameters channels(op, input, scales, zero_points, axis);
  const auto loop = loops().dequantize[integer_kind(op, dtype)];
  const Tensor q = ops::contiguous(input), x = empty(input.sizes(), ARGAND_FLOAT32);
  const int64_t size = item_size(dtype);
  channels.for_each_run(q.numel(), [&](int64_t at, int64_t n, int64_t first) {
    loop(n, q.data<const char>() + at * size, x.data<float>() + at, channels.scales(first));
  });
  return out_dtype == ARGAND_DTYPE_NONE || out_dtype == ARGAND_FLOAT32 ? x : ops::_to_copy(x, out_dtype);
}

// ---- fake quantize ---------------------------------------------------------------------------------------------------

struct FakeRange {
  int64_t low, high;
};

FakeRange fake_range(const char* op, int64_t quant_min, int64_t quant_max) {
  if (quant_min > quant_max)
    fail(ARGAND_RUNTIME_ERROR, "%s: got quant_min %lld and quant_max %lld, expected no more than that", op, static_cast<long long>(quant_min),
         static_cast<long long>(quant_max));
  return {quant_min, quant_max};
}

void check_zero_point(const char* op, int64_t zero_point, FakeRange range) {
  if (zero_point < range.low || zero_point > range.high)
    fail(ARGAND_RUNTIME_ERROR, "%s: got zero_point %lld, expected one between quant_min %lld and quant_max %lld", op,
         static_cast<long long>(zero_point), static_cast<long long>(range.low), static_cast<long long>(range.high));
}

// How one call fakes: a scale and a zero point for each position along `axis`, or (float32 of one element each) for all.
struct Faking {
  const char* op;
  Tensor scales, zero_points;  // contiguous float32
  int64_t axis;
  FakeRange range;
  FakeForm form;
};

// Calls run(loops of the dtype, x, y, channels): over memory, as `self` and the result, of `dtype`, lie alike. 16-bit floats go through float32.
template <class F>
Tensor fake_with(const Tensor& self, const Faking& f, int dtype, const F& run) {
  if (!is_floating(self.dtype()))
    fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for %s, expected a floating dtype; convert with .float()", f.op,
         kDTypeName[self.dtype()]);
  const int working = self.dtype() == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32;
  const Tensor y = ops::empty_like(self, dtype == ARGAND_DTYPE_NONE ? working : dtype);
  std::vector<int64_t> order(self.dim()), sizes;
  for (int64_t i = 0; i < self.dim(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return y.stride(a) != y.stride(b) ? y.stride(a) > y.stride(b) : y.size(a) > y.size(b); });
  int64_t axis = 0;
  for (int64_t i = 0; i < self.dim(); i++) {
    sizes.push_back(self.size(order[i]));
    if (order[i] == f.axis) axis = i;
  }
  const Tensor in_order = ops::permute(self, {order.data(), self.dim()});
  const Tensor x = ops::contiguous(self.dtype() == working ? in_order : ops::_to_copy(in_order, working));
  const Channels channels({sizes.data(), self.dim()}, axis, f.form != kFakeRounded && f.form != kFakeChannels);
  const float* given = f.scales.data<float>();
  const float* zeros = f.zero_points.data<float>();
  const auto scale = channels.list<float>([&](int64_t c) { return given[c]; });
  const auto inverse = channels.list<float>([&](int64_t c) { return 1.0f / given[c]; });
  const auto zero = channels.list<float>([&](int64_t c) { return zeros[c]; });
  const char* from = x.data<const char>();
  char* to = y.data<char>();
  const int64_t size = item_size(working), out_size = item_size(y.dtype());
  channels.for_each_run(x.numel(), [&](int64_t at, int64_t n, int64_t first) {
    const FakeParameters p{inverse.data() + first, scale.data() + first, zero.data() + first, channels.stride(), f.range.low, f.range.high};
    run(working == ARGAND_FLOAT64, n, from + at * size, to + at * out_size, p);
  });
  return y;
}

Tensor faked(const Tensor& self, const Faking& f) {
  const Tensor y = fake_with(self, f, ARGAND_DTYPE_NONE, [&](bool wide, int64_t n, const void* x, void* y, const FakeParameters& p) {
    loops().fake_quantize[wide][f.form](n, x, y, p);
  });
  return y.dtype() == self.dtype() ? y : ops::_to_copy(y, self.dtype());
}

// `grad` where no integer of `self` was clamped, else 0.
Tensor faked_backward(const Tensor& grad, const Tensor& self, const Faking& f) {
  const Tensor kept = fake_with(self, f, ARGAND_BOOL, [&](bool wide, int64_t n, const void* x, void* y, const FakeParameters& p) {
    loops().fake_quantize_kept[wide][f.form](n, x, static_cast<bool*>(y), p);
  });
  return ops::mul(kept, grad);  // lies as `self` does
}

Tensor float_of(double v) {
  const Tensor t = empty({1}, ARGAND_FLOAT32);
  *t.data<float>() = static_cast<float>(v);
  return t;
}

Faking of_numbers(double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max) {
  const char* op = "fake_quantize_per_tensor_affine";
  const FakeRange range = fake_range(op, quant_min, quant_max);
  check_zero_point(op, zero_point, range);
  return {op, float_of(scale), float_of(static_cast<double>(zero_point)), 0, range, kFakeTensor};
}

// The zero point need not lie in the range.
Faking of_tensors(const Tensor& scale, const Tensor& zero_point, int64_t quant_min, int64_t quant_max) {
  const char* op = "fake_quantize_per_tensor_affine";
  const FakeRange range = fake_range(op, quant_min, quant_max);
  return {op, float_of(only_number(op, "scale", scale)), float_of(std::trunc(only_number(op, "zero_point", zero_point))), 0, range, kFakeTensor};
}

Faking of_channels(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t quant_min, int64_t quant_max) {
  const char* op = "fake_quantize_per_channel_affine";
  if (scale.dtype() != ARGAND_FLOAT32)
    fail(ARGAND_DTYPE_ERROR, "%s: got scales of %s, expected float32; convert with .float()", op, kDTypeName[scale.dtype()]);
  const bool real = zero_point.dtype() == ARGAND_FLOAT32 || zero_point.dtype() == ARGAND_FLOAT16;
  if (!real && zero_point.dtype() != ARGAND_INT32)
    fail(ARGAND_DTYPE_ERROR, "%s: got zero points of %s, expected int32, float32 or float16; convert with .int()", op,
         kDTypeName[zero_point.dtype()]);
  if (scale.dim() != 1 || zero_point.dim() != 1 || scale.numel() != zero_point.numel())
    fail(ARGAND_SHAPE_ERROR, "%s: got scales of shape %s and zero points of shape %s, expected one dimension and one size", op,
         to_string(scale.sizes()).c_str(), to_string(zero_point.sizes()).c_str());
  if (axis < 0 && axis >= -self.dim()) fail(ARGAND_RUNTIME_ERROR, "%s: got axis %lld, expected one from 0", op, static_cast<long long>(axis));
  if (axis < 0 || axis >= self.dim())
    fail(ARGAND_INDEX_ERROR, "%s: got axis %lld for a tensor of %lld dimensions", op, static_cast<long long>(axis),
         static_cast<long long>(self.dim()));
  if (scale.numel() != self.size(axis))
    fail(ARGAND_SHAPE_ERROR, "%s: got %lld scales, expected %lld, the size along axis %lld", op, static_cast<long long>(scale.numel()),
         static_cast<long long>(self.size(axis)), static_cast<long long>(axis));
  const FakeRange range = fake_range(op, quant_min, quant_max);
  if (!real) {
    const Tensor z = ops::contiguous(zero_point);
    for (int64_t c = 0; c < z.numel(); c++) check_zero_point(op, z.data<int32_t>()[c], range);
  }
  return {op, ops::contiguous(scale), as_float32(zero_point), axis, range, real ? kFakeRounded : kFakeChannels};
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
  return faked(self, of_numbers(scale, zero_point, quant_min, quant_max));
}

Tensor fake_quantize_per_tensor_affine_backward(const Tensor& grad, const Tensor& self, double scale, int64_t zero_point, int64_t quant_min,
                                                int64_t quant_max) {
  return faked_backward(grad, self, of_numbers(scale, zero_point, quant_min, quant_max));
}

Tensor fake_quantize_per_tensor_affine_tensor_qparams(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t quant_min,
                                                      int64_t quant_max) {
  return faked(self, of_tensors(scale, zero_point, quant_min, quant_max));
}

Tensor fake_quantize_per_tensor_affine_tensor_qparams_backward(const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                                                               int64_t quant_min, int64_t quant_max) {
  return faked_backward(grad, self, of_tensors(scale, zero_point, quant_min, quant_max));
}

Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t quant_min,
                                        int64_t quant_max) {
  return faked(self, of_channels(self, scale, zero_point, axis, quant_min, quant_max));
}

Tensor fake_quantize_per_channel_affine_backward(const Tensor& grad, const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                                                 int64_t quant_min, int64_t quant_max) {
  return faked_backward(grad, self, of_channels(self, scale, zero_point, axis, quant_min, quant_max));
}

}  // namespace kernels::cpu
}  // namespace argand
