// Convolutions on CUDA devices by cuDNN; one spatial dimension is computed as two with a height of 1.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/cuda/csrc/core/settings.h"
#include "packages/aten/cuda/csrc/dnn/convolution_plan.h"
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/reduction.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

using argand::cuda::ConvolutionPart;
using argand::cuda::ConvolutionProblem;
using argand::cuda::run_convolution;
using argand::cuda::settings;

struct Spatial {
  IntList stride, padding, dilation;
  int64_t groups;
};

void check_alike(const char* op, const Tensor& input, const Tensor& other) {
  if (!other) return;
  if (other.dtype() != input.dtype())
    fail(ARGAND_DTYPE_ERROR, "%s: expected tensors of one dtype, but got %s and %s", op, kDTypeName[input.dtype()], kDTypeName[other.dtype()]);
  if (other.device() != input.device())
    fail(ARGAND_DEVICE_ERROR, "%s: Expected all tensors to be on the same device; move them with .to(device)", op);
}

void check_spatial(const char* op, const Tensor& input) {
  if (input->ndim < 3 || input->ndim > 5)
    fail(ARGAND_SHAPE_ERROR, "%s: got an input of shape %s, expected one to three spatial dimensions", op, to_string(input.sizes()).c_str());
}

// All sizes of a tensor; a missing height is 1.
void fill_sizes(int64_t out[5], IntList sizes) {
  const bool one = sizes.size() == 3;
  for (int64_t i = 0; i < sizes.size(); i++) out[one && i == 2 ? 3 : i] = sizes[i];
  if (one) out[2] = 1;
}
void fill_spatial(int64_t out[3], IntList values, int64_t otherwise) {
  const bool one = values.size() == 1;
  for (int64_t i = 0; i < values.size(); i++) out[one ? 1 : i] = values[i];
  if (one) out[0] = otherwise;
}

ConvolutionProblem problem_of(ConvolutionPart part, const Tensor& like, IntList x, IntList w, IntList y, const Spatial& s) {
  ConvolutionProblem p{};
  p.part = part;
  p.dtype = static_cast<uint8_t>(like.dtype());
  p.spatial = like->ndim == 5 ? 3 : 2;
  p.device = static_cast<int16_t>(ARGAND_DEVICE_INDEX(like.device()));
  fill_sizes(p.x, x), fill_sizes(p.w, w), fill_sizes(p.y, y);
  fill_spatial(p.padding, s.padding, 0), fill_spatial(p.stride, s.stride, 1), fill_spatial(p.dilation, s.dilation, 1);
  p.tf32 = like.dtype() == ARGAND_FLOAT32 && settings().conv_tf32.load(std::memory_order_relaxed);
  p.deterministic = settings().conv_deterministic.load(std::memory_order_relaxed);
  return p;
}

// Dense, and where cuDNN's engines may read it in vectors of 16 bytes.
Tensor prepared(const Tensor& t) {
  const Tensor dense = ops::contiguous(t);
  return reinterpret_cast<uintptr_t>(dense->data) % 16 ? ops::clone(dense) : dense;
}

Tensor computed(const char* op, ConvolutionPart part, const Tensor& like, IntList shape, const ConvolutionProblem& p, void* x, void* w, void* y) {
  const Tensor out = empty(shape, like.dtype(), like.device());
  void* const target = out->data;
  run_convolution(op, p, part == ConvolutionPart::kData ? target : x, part == ConvolutionPart::kFilter ? target : w,
                  part == ConvolutionPart::kForward ? target : y);
  return out;
}

// out (batch, channel, ...) += bias (channel), in place.
void add_bias(const Tensor& out, const Tensor& bias) {
  constexpr int kBlock = 1024;
  if (bias->ndim != 1 || bias.numel() != out.size(1))
    fail(ARGAND_SHAPE_ERROR, "convolution: expected bias to be 1-dimensional with %lld elements, but got bias of size %s instead",
         static_cast<long long>(out.size(1)), to_string(bias.sizes()).c_str());
  static Slot slots[kFloats][2];
  const Tensor values = bias.is_contiguous() ? bias : ops::contiguous(bias);
  const int64_t n = out.numel();
  const bool wide = n + kBlock > std::numeric_limits<int32_t>::max();
  const Kernel* k = slots[float_index("convolution", out.dtype())][wide].get("add_channel_bias;T=%s;I=%s;BLOCK=%d", kDTypeName[out.dtype()],
                                                                             wide ? "i64" : "i32", kBlock);
  const int32_t channels = size32("convolution", out.size(1)), inner = size32("convolution", n / out.size(0) / out.size(1));
  if (wide)
    launch(k, grid("convolution", cdiv(n, kBlock)), address(out), address(values), n, channels, inner);
  else
    launch(k, grid("convolution", cdiv(n, kBlock)), address(out), address(values), static_cast<int32_t>(n), channels, inner);
}

}  // namespace

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding, IntList dilation, int64_t groups) {
  check_spatial("convolution", input);
  check_alike("convolution", input, weight);
  check_alike("convolution", input, bias);
  const DeviceGuard guard(input);
  Dims shape;
  shape.push_back(input.size(0));
  shape.push_back(weight.size(0));
  for (int64_t i = 0; i < stride.size(); i++)
    shape.push_back((input.size(i + 2) + 2 * padding[i] - dilation[i] * (weight.size(i + 2) - 1) - 1) / stride[i] + 1);
  const Spatial spatial{stride, padding, dilation, groups};
  int64_t count = 1;
  for (int64_t i = 0; i < shape.size(); i++) count *= shape[i];
  const bool nothing = count == 0 || input.numel() == 0 || weight.numel() == 0;
  Tensor out;
  if (nothing) {
    out = ops::zeros(shape, input.dtype(), input.device());
  } else {
    const Tensor x = prepared(input), w = prepared(weight);
    const ConvolutionProblem p = problem_of(ConvolutionPart::kForward, input, input.sizes(), weight.sizes(), shape, spatial);
    out = computed("convolution", ConvolutionPart::kForward, input, shape, p, x->data, w->data, nullptr);
  }
  if (bias && out.numel()) add_bias(out, bias);
  // The strides that the shape gives depthwise convolutions.
  const bool depthwise = stride.size() == 2 && groups > 1 && groups == weight.size(0) && groups == input.size(1);
  const int64_t format = depthwise ? builtins::suggested_format(input.sizes(), input.strides()) : 0;
  return format ? ops::clone(out, format) : out;
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight, IntList stride,
                                                        IntList padding, IntList dilation, int64_t groups, IntList output_mask) {
  check_spatial("convolution_backward", input);
  check_alike("convolution_backward", input, weight);
  check_alike("convolution_backward", input, grad_output);
  const DeviceGuard guard(input);
  const Spatial spatial{stride, padding, dilation, groups};
  const bool nothing = grad_output.numel() == 0 || input.numel() == 0 || weight.numel() == 0;
  Tensor grad_input, grad_weight, grad_bias;
  if (nothing) {
    if (output_mask[0]) grad_input = ops::zeros(input.sizes(), input.dtype(), input.device());
    if (output_mask[1]) grad_weight = ops::zeros(weight.sizes(), input.dtype(), input.device());
  } else if (output_mask[0] || output_mask[1]) {
    const Tensor y = prepared(grad_output);
    if (output_mask[0]) {
      const Tensor w = prepared(weight);
      const ConvolutionProblem p = problem_of(ConvolutionPart::kData, input, input.sizes(), weight.sizes(), y.sizes(), spatial);
      grad_input = computed("convolution_backward", ConvolutionPart::kData, input, input.sizes(), p, nullptr, w->data, y->data);
    }
    if (output_mask[1]) {
      const Tensor x = prepared(input);
      const ConvolutionProblem p = problem_of(ConvolutionPart::kFilter, input, input.sizes(), weight.sizes(), y.sizes(), spatial);
      grad_weight = computed("convolution_backward", ConvolutionPart::kFilter, input, weight.sizes(), p, x->data, nullptr, y->data);
    }
  }
  if (output_mask[2]) {
    Dims dims;
    for (int64_t i = 0; i < grad_output->ndim; i++)
      if (i != 1) dims.push_back(i);
    grad_bias = ops::sum(grad_output, IntList(dims));
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace argand::kernels::cuda
