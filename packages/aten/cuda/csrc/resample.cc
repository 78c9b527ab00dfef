// Images resized, or sampled at a grid (argand_aten_cuda/kernels/resample.py).
#include <string_view>

#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"

namespace argand::kernels::cuda {
namespace {

constexpr int64_t kPlaces = 128, kElements = 256;  // of a program
constexpr int64_t kWanted = 1056;                  // programs that fill a device

enum Mode { kNearest, kNearestExact, kLinear, kCubic, kModes };

Mode mode_of(std::string_view name) {
  return name == "nearest" ? kNearest : name == "nearest-exact" ? kNearestExact : name == "linear" || name == "bilinear" ? kLinear : kCubic;
}

int32_t channels_of(const char* op, const Tensor& images) {
  size32(op, images.size(2) * images.size(3));
  return size32(op, images.size(1));
}

// Elements of the input between neighbours of the result.
double step_of(int64_t n, int64_t size, bool align_corners, std::optional<double> scale) {
  if (align_corners) return size > 1 ? static_cast<double>(n - 1) / static_cast<double>(size - 1) : 0;
  return scale && *scale > 0 ? 1 / *scale : static_cast<double>(n) / static_cast<double>(size);
}

}  // namespace

Tensor upsample_2d(const Tensor& input, IntList output_size, std::string_view mode_name, bool align_corners, std::optional<double> scale0,
                   std::optional<double> scale1) {
  static Slot slots[kFloats][kModes][2];
  const char* op = "interpolate";
  const places::Below below;
  const Mode mode = mode_of(mode_name);
  const bool align = align_corners && mode >= kLinear;
  const int index = float_index(op, input.dtype());
  const Tensor x = places::dense(input), out = empty_on(input, {input.size(0), input.size(1), output_size[0], output_size[1]}, input.dtype());
  channels_of(op, x), channels_of(op, out);
  if (out.numel() == 0) return out;
  const Kernel* k = slots[index][mode][align].get("upsample_2d;T=%s;MODE=%d;ALIGN=%s;BLOCK=%d", kDTypeName[x.dtype()], mode, align ? "True" : "False",
                                                  static_cast<int>(kElements));
  launch(k, grid(op, cdiv(out.numel(), kElements)), address(out), address(x), out.numel(), static_cast<int32_t>(x.size(2)),
         static_cast<int32_t>(x.size(3)), static_cast<int32_t>(out.size(2)), static_cast<int32_t>(out.size(3)),
         step_of(x.size(2), out.size(2), align, scale0), step_of(x.size(3), out.size(3), align, scale1));
  return out;
}

Tensor grid_sample_2d(const Tensor& input, const Tensor& grid_places, std::string_view interpolation, std::string_view padding_mode,
                      bool align_corners) {
  static Slot slots[kFloats][kModes][3][2];
  const char* op = "grid_sample";
  const places::Below below;
  const Mode mode = mode_of(interpolation);
  const int padding = padding_mode == "zeros" ? 0 : padding_mode == "border" ? 1 : 2, index = float_index(op, input.dtype());
  const Tensor x = places::dense(input), at = places::dense(grid_places),
               out = empty_on(input, {input.size(0), input.size(1), at.size(1), at.size(2)}, input.dtype());
  const int32_t channels = channels_of(op, x);
  if (out.numel() == 0) return out;
  const Kernel* k = slots[index][mode][padding][align_corners].get("grid_sample_2d;T=%s;MODE=%d;PADDING=%d;ALIGN=%s;BLOCK=%d", kDTypeName[x.dtype()],
                                                                   mode, padding, align_corners ? "True" : "False", static_cast<int>(kPlaces));
  const int64_t total = at.numel() / 2, tiles = cdiv(total, kPlaces);
  const int64_t group = cdiv(channels, std::min<int64_t>(channels, cdiv(kWanted, tiles)));
  launch(k, grid(op, tiles, cdiv(channels, group)), address(out), address(x), address(at), total, channels, at.size(1) * at.size(2),
         static_cast<int32_t>(x.size(2)), static_cast<int32_t>(x.size(3)), static_cast<int32_t>(group));
  return out;
}

}  // namespace argand::kernels::cuda
