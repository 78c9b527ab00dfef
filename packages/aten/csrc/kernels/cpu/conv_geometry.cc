#include "packages/aten/csrc/kernels/cpu/conv_geometry.h"

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/util.h"

namespace argand::kernels::cpu {
namespace {

// One spatial dimension: its sizes, and the number of outputs.
struct Axis {
  int64_t in, kernel, stride, padding, dilation;
  int64_t padded() const { return in + 2 * padding; }
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  int64_t out() const { return (padded() - extent()) / stride + 1; }
};

void check_arguments(const char* op, const Tensor& input, const Tensor& weight, IntList stride, IntList padding, IntList dilation, int64_t groups) {
  const int64_t n = input.dim() - 2;
  if (n < 1 || n > 3 || weight.dim() != input.dim())
    fail(n > 3 ? ARGAND_NOT_IMPLEMENTED_ERROR : ARGAND_SHAPE_ERROR,
         "%s: got input of shape %s and weight of shape %s, expected (batch, channels, [[depth,] height,] width) and (out_channels, channels / "
         "groups, [[depth,] height,] width)",
         op, to_string(input.sizes()).c_str(), to_string(weight.sizes()).c_str());
  if (stride.n != n || padding.n != n || dilation.n != n)
    fail(ARGAND_SHAPE_ERROR, "%s: got stride %s, padding %s and dilation %s, expected %ld numbers each", op, to_string(stride).c_str(),
         to_string(padding).c_str(), to_string(dilation).c_str(), static_cast<long>(n));
  for (int64_t i = 0; i < n; i++)
    if (stride[i] < 1 || dilation[i] < 1 || padding[i] < 0 || std::max(padding[i], dilation[i]) > INT32_MAX)
      fail(
          ARGAND_SHAPE_ERROR,
          "%s: got stride %s, padding %s and dilation %s, expected positive strides and dilations, no negative padding, and the last two below 2**31",
          op, to_string(stride).c_str(), to_string(padding).c_str(), to_string(dilation).c_str());
  if (groups < 1 || input.size(1) != weight.size(1) * groups || weight.size(0) % groups)
    fail(ARGAND_SHAPE_ERROR, "%s: Given groups=%ld, weight of size %s, expected input%s to have %ld channels, but got %ld channels instead", op,
         static_cast<long>(groups), to_string(weight.sizes()).c_str(), to_string(input.sizes()).c_str(), static_cast<long>(weight.size(1) * groups),
         static_cast<long>(input.size(1)));
  bool positive = weight.size(0) > 0;
  for (int64_t i = 0; i < n; i++) positive = positive && weight.size(2 + i) > 0;
  if (!positive)
    fail(ARGAND_SHAPE_ERROR, "%s: got weight of size %s, expected output channels and a kernel of positive sizes", op,
         to_string(weight.sizes()).c_str());
  check_same_dtype(op, input, weight);
}

}  // namespace

Geometry conv_geometry(const char* op, const Tensor& input, const Tensor& weight, IntList stride, IntList padding, IntList dilation, int64_t groups) {
  check_arguments(op, input, weight, stride, padding, dilation, groups);
  const int64_t n = stride.n;
  Axis axes[3] = {{1, 1, 1, 0, 1}, {1, 1, 1, 0, 1}, {1, 1, 1, 0, 1}};
  std::vector<int64_t> padded, kernel;
  for (int64_t i = 0; i < n; i++) {
    Axis& a = axes[3 - n + i] = {input.size(2 + i), weight.size(2 + i), stride[i], padding[i], dilation[i]};
    padded.push_back(a.padded());
    kernel.push_back(a.extent());
  }
  for (int64_t i = 0; i < n; i++)
    if (padded[i] < kernel[i])
      fail(ARGAND_SHAPE_ERROR,
           "%s: Calculated padded input size per channel: %s. Kernel size: %s. Kernel size can't be greater than actual input size", op,
           to_string(IntList(padded)).c_str(), to_string(IntList(kernel)).c_str());
  Geometry g{input.size(0), groups, weight.size(1), weight.size(0) / groups};
  const auto set = [](const Axis& a, int64_t* in, int64_t* out, int64_t* k, int64_t* s, int64_t* p, int64_t* d) {
    *in = a.in, *out = a.out(), *k = a.kernel, *p = a.padding, *d = a.dilation;
    *s = std::min(a.stride, std::max<int64_t>(a.padded(), 1));
  };
  set(axes[0], &g.d, &g.od, &g.kd, &g.sd, &g.pd, &g.dd);
  set(axes[1], &g.h, &g.oh, &g.kh, &g.sh, &g.ph, &g.dh);
  set(axes[2], &g.w, &g.ow, &g.kw, &g.sw, &g.pw, &g.dw);
  return g;
}

}  // namespace argand::kernels::cpu
