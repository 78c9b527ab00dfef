// qlinear in its forms, and qmatmul.
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"
#include "packages/quant/csrc/gemm/product.h"
#include "packages/quant/csrc/quantize/parameters.h"
#include "packages/quant/generated/kernels.h"

namespace argand {
namespace quant {
namespace {

// Rows of bytes that kernels may read in whole steps: the tensor's own where they are such, else a copy.
struct ByteRows {
  Tensor holder;
  Rows rows;
};

ByteRows byte_rows(const Tensor& t, bool flip, std::vector<int32_t>* sums) {
  const int64_t k = t.size(-1), stride = round_up(k, kStep), n = k ? t.numel() / k : 0;
  const Tensor dense = ops::contiguous(t);
  const auto rows_at = [&](const Tensor& holder) { return Rows{holder.data<uint8_t>(), std::max<int64_t>(n, 1), 1, {stride, 0, 0}}; };
  if (!flip && stride == k && !sums) return {dense, rows_at(dense)};
  const Tensor copy = empty({n, stride}, ARGAND_UINT8);
  if (sums) sums->resize(n);
  const auto copy_row = gemm_kernels().copy_row;
  parallel_for(0, n, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(k, 1)), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; r++) {
      uint8_t* to = copy.data<uint8_t>() + r * stride;
      const int32_t sum = copy_row(k, dense.data<uint8_t>() + r * k, to, flip);
      if (sums) (*sums)[r] = sum;
      std::memset(to + k, 0, stride - k);
    }
  });
  return {copy, rows_at(copy)};
}

Dims result_sizes(const Tensor& input, int64_t columns) {
  Dims sizes(input.sizes());
  sizes[input.dim() - 1] = columns;
  return sizes;
}

int64_t rows_of(IntList sizes) {
  int64_t n = 1;
  for (int64_t i = 0; i + 1 < sizes.n; i++) n *= sizes[i];
  return n;
}

Tensor linear(const char* op, const Tensor& input, double scale, int64_t zero_point, const Tensor& weight, const Tensor& weight_scales,
              const Tensor& bias, Outcome outcome) {
  const Activation activation = activation_of(op, input, scale, zero_point);
  const int64_t n = weight_scales.size(0), steps = weight.size(1);
  const Tensor out = empty(result_sizes(input, n), outcome.dtype);
  if (outcome.other) {
    if (!(outcome.other.sizes() == out.sizes()))
      fail(ARGAND_SHAPE_ERROR, "%s: got the other summand of shape %s, expected %s, the result's", op, to_string(outcome.other.sizes()).c_str(),
           to_string(out.sizes()).c_str());
    outcome.other = ops::contiguous(outcome.other);
  }
  const ByteRows bytes = byte_rows(input, activation.flip, nullptr);
  const Tensor panels = ops::contiguous(weight);
  Columns columns(op, activation, weight_scales, bias, n);
  columns.subtract_zero_point(panels.data<int8_t>(), steps, 0, n, activation.zero_point);
  Product product{bytes.rows, rows_of(input.sizes()), n, {0}, steps - 1, panels.data<int8_t>(), {}, 0, 0};
  columns.finish(op, outcome, 0, product, out->data, n);
  run(product);
  return out;
}

void check_real(const char* op, int dtype) {
  if (!is_floating(dtype))
    fail(ARGAND_DTYPE_ERROR, "%s: got output_dtype %s, expected float32 or bfloat16; qlinear gives integers", op, kDTypeName[dtype]);
}

}  // namespace
}  // namespace quant

namespace kernels::cpu {

using namespace quant;

Tensor qlinear(const Tensor& input, double input_scale, int64_t input_zero_point, const Tensor& weight, const Tensor& weight_scales,
               const Tensor& bias, double output_scale, int64_t output_zero_point, int output_dtype, const Tensor& other, double other_scale,
               int64_t other_zero_point, std::string_view post_op) {
  return linear("qlinear", input, input_scale, input_zero_point, weight, weight_scales, bias,
                {output_scale, output_zero_point, output_dtype, other, other_scale, other_zero_point, post_op});
}

Tensor qlinear_tensor(const Tensor& input, const Tensor& input_scale, const Tensor& input_zero_point, const Tensor& weight,
                      const Tensor& weight_scales, const Tensor& bias, int output_dtype, std::string_view post_op) {
  check_real("qlinear", output_dtype);
  const double scale = only_number("qlinear", "input_scale", input_scale), zero_point = only_number("qlinear", "input_zero_point", input_zero_point);
  Outcome outcome;
  outcome.dtype = output_dtype;
  outcome.post_op = post_op;
  return linear("qlinear", input, scale, static_cast<int64_t>(zero_point), weight, weight_scales, bias, outcome);
}

Tensor qlinear_dynamic(const Tensor& input, int64_t quant_min, int64_t quant_max, double eps, int input_dtype, const Tensor& weight,
                       const Tensor& weight_scales, const Tensor& bias, int output_dtype, std::string_view post_op) {
  check_real("qlinear_dynamic", output_dtype);
  const Range range = checked_range("qlinear_dynamic", quant_min, quant_max, input_dtype);
  const Tensor x = as_float32(input);
  const ScaleAndZero p = choose_affine("qlinear_dynamic", x, range, eps);
  Outcome outcome;
  outcome.dtype = output_dtype;
  outcome.post_op = post_op;
  const Tensor q = quantize_per_tensor(x, p.scale, p.zero_point, quant_min, quant_max, input_dtype);
  return linear("qlinear_dynamic", q, p.scale, p.zero_point, weight, weight_scales, bias, outcome);
}

// With mat2 as the weight w, less 128 where it is unsigned, and a zero point z of its own:
// sum of (x - zero) * (w - z) = sum of x * w - zero * (sum of w) - z * (sum of x - k * zero)
Tensor qmatmul(const Tensor& input, double input_scale, int64_t input_zero_point, const Tensor& mat2, double mat2_scale, int64_t mat2_zero_point,
               double output_scale, int64_t output_zero_point, int output_dtype) {
  const char* op = "qmatmul";
  const Activation left = activation_of(op, input, input_scale, input_zero_point);
  const Activation right = activation_of(op, mat2, mat2_scale, mat2_zero_point);
  const int32_t right_zero = right.zero_point - 128;
  const int64_t m = input.size(-2), k = input.size(-1), n = mat2.size(-1), batch = m ? rows_of(input.sizes()) / m : 0;
  if (k > kMaxProducts / 2)  // the differences take nine bits on both sides
    fail(ARGAND_SHAPE_ERROR, "%s: got k = %lld, expected at most %lld", op, static_cast<long long>(k), static_cast<long long>(kMaxProducts / 2));
  Outcome outcome;
  outcome.scale = output_scale;
  outcome.zero_point = output_zero_point;
  outcome.dtype = output_dtype;
  const Tensor out = empty(result_sizes(input, n), output_dtype);
  std::vector<int32_t> terms;
  const ByteRows bytes = byte_rows(input, left.flip, &terms);
  terms.resize(batch * m);  // without k there are no rows of bytes
  for (int32_t& sum : terms) sum = right_zero * (sum - static_cast<int32_t>(k) * left.zero_point);
  const Tensor scale = empty({1}, ARGAND_FLOAT32);
  *scale.data<float>() = right.scale;
  Columns columns(op, left, scale, Tensor(), n);
  const int64_t steps = (k + kStep - 1) / kStep + 1, n_panels = (n + kPanel - 1) / kPanel;
  const Tensor panels = empty({n_panels, steps, kPanel, kStep}, ARGAND_INT8);
  const Tensor flat = batch > 1 ? ops::reshape(mat2, {batch, k, n}) : mat2;
  for (int64_t i = 0; i < batch; i++) {
    const uint8_t* from = flat.data<uint8_t>() + (batch > 1 ? i * flat.stride(0) : 0);
    pack_panels(from, n, k, flat.stride(-1), flat.stride(-2), mat2.dtype() == ARGAND_UINT8 ? 0x80 : 0, panels.data<int8_t>());
    columns.subtract_zero_point(panels.data<int8_t>(), steps, 0, n, left.zero_point);
    Product product{bytes.rows, m, n, {0}, steps - 1, panels.data<int8_t>(), {}, 0, 0};
    product.rows.data += i * m * bytes.rows.strides[0];
    columns.finish(op, outcome, 0, product, static_cast<char*>(out->data) + i * m * n * out.itemsize(), n);
    product.finish.row_term = terms.data() + i * m;
    run(product);
  }
  return out;
}

Tensor qembedding(const Tensor& weight, const Tensor& scales, const Tensor& zero_points, const Tensor& indices) {
  const IntegerKind kind = integer_kind("qembedding", weight.dtype());
  const Tensor table = ops::contiguous(weight), s = as_float32(scales), z = ops::contiguous(ops::_to_copy(zero_points, ARGAND_INT32));
  const Tensor at = ops::contiguous(ops::_to_copy(indices, ARGAND_INT64));
  const int64_t width = weight.size(1), count = weight.size(0);
  for (int64_t i = 0; i < at.numel(); i++) {
    const int64_t index = at.data<int64_t>()[i];
    if (index < 0 || index >= count)
      fail(ARGAND_INDEX_ERROR, "qembedding: got index %lld, expected one in 0..%lld", static_cast<long long>(index),
           static_cast<long long>(count - 1));
  }
  Dims sizes(indices.sizes());
  sizes.push_back(width);
  const Tensor out = empty(sizes, ARGAND_FLOAT32);
  const auto loop = loops().dequantize[kind];
  const int64_t row = width * weight.itemsize();
  parallel_for(0, at.numel(), std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(width, 1)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; i++) {
      const int64_t index = at.data<int64_t>()[i];
      loop(width, table.data<char>() + index * row, out.data<float>() + i * width, {s.data<float>() + index, z.data<int32_t>() + index, 0});
    }
  });
  return out;
}

}  // namespace kernels::cpu
}  // namespace argand
