#include "packages/quant/csrc/gemm/layout.h"

#include <algorithm>

#include "packages/aten/generated/ops/view.h"
#include "packages/quant/csrc/gemm/gemm.h"

namespace argand::quant {

Tensor channels_last(const Tensor& t) {
  if (t.itemsize() != 1 || !t.is_contiguous() || t.numel() == 0) return ops::contiguous(ops::permute(t, {0, 2, 3, 1}));
  const int64_t channels = t.size(1), pixels = t.size(2) * t.size(3);
  const Tensor out = empty({t.size(0), t.size(2), t.size(3), channels}, t.dtype());
  const auto transpose = gemm_kernels().transpose;
  parallel_for(0, t.size(0), 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; i++) {
      const int64_t image = i * channels * pixels;
      transpose(channels, pixels, t.data<uint8_t>() + image, pixels, out.data<uint8_t>() + image, channels, 0);
    }
  });
  return out;
}

Tensor channels_first(const Tensor& t, IntList sizes) {
  if (t.itemsize() != 1) return ops::contiguous(ops::permute(t, {0, 3, 1, 2}));
  const Tensor out = empty(sizes, t.dtype());
  const int64_t columns = sizes[1], pixels = sizes[2] * sizes[3], parts = (columns + kPanel - 1) / kPanel;
  const auto transpose = gemm_kernels().transpose;
  parallel_for(0, sizes[0] * parts, std::max<int64_t>(1, (1 << 16) / (pixels * kPanel)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; i++) {
      // The last columns may be those of the part before, too: the same bytes again.
      const int64_t image = i / parts * pixels * columns, width = std::min<int64_t>(columns, kPanel),
                    first = std::min(i % parts * kPanel, columns - width);
      transpose(pixels, width, t.data<uint8_t>() + image + first, columns, out.data<uint8_t>() + image + first * pixels, pixels, 0);
    }
  });
  return out;
}

Tensor empty_image(IntList sizes, int dtype, bool is_last) {
  const int64_t channels = sizes[1], height = sizes[2], width = sizes[3];
  return is_last ? empty_strided(sizes, {height * width * channels, 1, width * channels, channels}, dtype)
                 : empty({sizes[0], height, width, channels}, dtype);
}

}  // namespace argand::quant
