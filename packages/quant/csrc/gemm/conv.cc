// qconv2d: products whose rows are read from the image at the kernel's taps, channels last.
#include "packages/aten/generated/ops/view.h"
#include "packages/quant/csrc/gemm/layout.h"
#include "packages/quant/csrc/gemm/product.h"
#include "packages/quant/csrc/quantize/parameters.h"
#include "packages/quant/generated/kernels.h"

namespace argand {
namespace quant {
namespace {

struct Window {
  int64_t kernel[2], stride[2], padding[2], dilation[2], groups;
};

// The input as bytes with the channels last, its padding filled in; the channels of a group begin `group` bytes apart.
struct Image {
  Tensor holder;
  const uint8_t* data;
  int64_t batch_stride, row_stride, pixel_stride, group;
};

struct Filling {
  const Tensor& input;
  const Window& window;
  uint8_t mask, zero;
};

// One row of the padded image; y counts from the top of the padding.
void fill_row(const Filling& f, const Image& image, int64_t batch, int64_t y, uint8_t* to) {
  const Tensor& t = f.input;
  const int64_t channels = t.size(1), width = t.size(3), per_group = channels / f.window.groups;
  const int64_t inside = y - f.window.padding[0];
  std::memset(to, f.zero, image.row_stride);
  if (inside < 0 || inside >= t.size(2)) return;
  to += f.window.padding[1] * image.pixel_stride;
  const uint8_t* from = t.data<const uint8_t>() + batch * t.stride(0) + inside * t.stride(2);
  const int64_t step = t.stride(3), plane = t.stride(1);
  if (step == 1 && per_group == image.group) return gemm_kernels().transpose(channels, width, from, plane, to, image.pixel_stride, f.mask);
  for (int64_t c = 0; c < channels; c++) {
    const uint8_t* source = from + c * plane;
    uint8_t* target = to + c / per_group * image.group + c % per_group;
    for (int64_t x = 0; x < width; x++) target[x * image.pixel_stride] = source[x * step] ^ f.mask;
  }
}

// As fill_row, from an image that has its channels last already.
void copy_row(const Filling& f, const Image& image, int64_t batch, int64_t y, uint8_t* to) {
  const Tensor& t = f.input;
  const int64_t channels = t.size(1), width = t.size(3), per_group = channels / f.window.groups;
  const int64_t inside = y - f.window.padding[0];
  std::memset(to, f.zero, image.row_stride);
  if (inside < 0 || inside >= t.size(2)) return;
  to += f.window.padding[1] * image.pixel_stride;
  const uint8_t* from = t.data<const uint8_t>() + batch * t.stride(0) + inside * t.stride(2);
  const auto copy = gemm_kernels().copy_row;
  if (t.stride(3) == channels && image.pixel_stride == channels) {
    copy(width * channels, from, to, f.mask);
    return;
  }
  const int64_t run = per_group == image.group ? channels : per_group;
  for (int64_t x = 0; x < width; x++)
    for (int64_t c = 0; c < channels; c += run)
      copy(run, from + x * t.stride(3) + c, to + x * image.pixel_stride + c / per_group * image.group, f.mask);
}

Image image_of(const Tensor& input, const Window& w, const Activation& activation, bool is_depthwise) {
  const int64_t channels = input.size(1);
  const int64_t group = is_depthwise ? 1 : round_up(channels / w.groups, kStep), pixel = is_depthwise ? round_up(channels, kPanel) : w.groups * group;
  const bool is_last = input.stride(1) == 1 || channels == 1;
  if (!activation.flip && is_last && pixel == channels && w.padding[0] == 0 && w.padding[1] == 0)
    return {input, input.data<uint8_t>(), input.stride(0), input.stride(2), input.stride(3), group};
  const int64_t height = input.size(2) + 2 * w.padding[0], width = input.size(3) + 2 * w.padding[1], batch = input.size(0);
  Image image{empty({batch, height, width, pixel}, ARGAND_UINT8), nullptr, height * width * pixel, width * pixel, pixel, group};
  image.data = image.holder.data<uint8_t>();
  const Filling filling{input, w, static_cast<uint8_t>(activation.flip ? 0x80 : 0), static_cast<uint8_t>(activation.zero_point)};
  parallel_for(0, batch * height, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(image.row_stride, 1)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; i++) {
      uint8_t* to = image.holder.data<uint8_t>() + i * image.row_stride;
      (is_last ? copy_row : fill_row)(filling, image, i / height, i % height, to);
    }
  });
  return image;
}

// Where a result's rows are read, relative to the first: taps, and steps of four bytes at each.
void add_taps(const Image& image, const Window& w, bool is_depthwise, Product& product) {
  // Taps along the width that follow one another in memory are one.
  const bool joined = !is_depthwise && w.groups == 1 && w.dilation[1] == 1 && image.pixel_stride == image.group;
  product.depth = image.group / kStep * (joined ? w.kernel[1] : 1);
  for (int64_t y = 0; y < w.kernel[0]; y++)
    for (int64_t x = 0; x < (joined ? 1 : w.kernel[1]); x++)
      product.taps.push_back(y * w.dilation[0] * image.row_stride + x * w.dilation[1] * image.pixel_stride);
}

int64_t extent(const Tensor& input, const Window& w, int i) {
  return (input.size(2 + i) + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1) / w.stride[i] + 1;
}

}  // namespace
}  // namespace quant

namespace kernels::cpu {

using namespace quant;

Tensor qconv2d(const Tensor& input, double input_scale, int64_t input_zero_point, const Tensor& weight, const Tensor& weight_scales,
               const Tensor& bias, IntList kernel_size, IntList stride, IntList padding, IntList dilation, int64_t groups, double output_scale,
               int64_t output_zero_point, int output_dtype, const Tensor& other, double other_scale, int64_t other_zero_point,
               std::string_view post_op, bool is_last) {
  const char* op = "qconv2d";
  const Window w{{kernel_size[0], kernel_size[1]}, {stride[0], stride[1]}, {padding[0], padding[1]}, {dilation[0], dilation[1]}, groups};
  const Activation activation = activation_of(op, input, input_scale, input_zero_point);
  const int64_t n = weight_scales.size(0), height = extent(input, w, 0), width = extent(input, w, 1), batch = input.size(0);
  const bool is_depthwise = input.size(1) == groups && n == groups && groups > 1;
  Outcome outcome{output_scale, output_zero_point, output_dtype, other, other_scale, other_zero_point, post_op};
  if (other) {
    if (!(other.sizes() == IntList{batch, n, height, width}))
      fail(ARGAND_SHAPE_ERROR, "%s: got the other summand of shape %s, expected the result's, [%lld, %lld, %lld, %lld]", op,
           to_string(other.sizes()).c_str(), static_cast<long long>(batch), static_cast<long long>(n), static_cast<long long>(height),
           static_cast<long long>(width));
    outcome.other = channels_last(other);
  }
  const Image image = image_of(input, w, activation, is_depthwise);
  const Tensor panels = ops::contiguous(weight);
  const Tensor out = empty_image({batch, n, height, width}, output_dtype, is_last);
  const int64_t steps = panels.size(1), parts = is_depthwise ? 1 : groups, per_part = n / parts, part_panels = (per_part + kPanel - 1) / kPanel;
  Product product{{image.data, width, height, {w.stride[1] * image.pixel_stride, w.stride[0] * image.row_stride, image.batch_stride}},
                  batch * height * width,
                  per_part,
                  {},
                  0,
                  panels.data<int8_t>(),
                  {},
                  0,
                  0};
  add_taps(image, w, is_depthwise, product);
  Columns columns(op, activation, weight_scales, bias, n);
  for (int64_t g = 0; g < parts; g++) {
    columns.subtract_zero_point(product.panels, steps, g * per_part, per_part, activation.zero_point);
    columns.finish(op, outcome, g * per_part, product, out->data, n);
    is_depthwise ? run_depthwise(product) : run(product);
    product.rows.data += image.group;
    product.panels += part_panels * steps * kPanelStep;
  }
  return is_last ? out : channels_first(out, {batch, n, height, width});
}

}  // namespace kernels::cpu
}  // namespace argand
