// qmax_pool2d, channels last.
#include <algorithm>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/quant/csrc/gemm/gemm.h"
#include "packages/quant/csrc/gemm/layout.h"
#include "packages/quant/generated/kernels.h"

namespace argand {
namespace kernels::cpu {

using namespace quant;

Tensor qmax_pool2d(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation, bool ceil_mode, bool is_last) {
  if (input.dtype() != ARGAND_UINT8 && input.dtype() != ARGAND_INT8)
    fail(ARGAND_DTYPE_ERROR, "qmax_pool2d: got an input of %s, expected uint8 or int8", kDTypeName[input.dtype()]);
  const IntList steps = stride.n ? stride : kernel;
  const Tensor x = channels_last(input);
  const int64_t batch = input.size(0), channels = input.size(1), rows = input.size(2), columns = input.size(3);
  const auto sizes = builtins::pool2d_shape(input.sizes(), kernel, stride, padding, dilation, ceil_mode);
  const int64_t height = sizes[2], width = sizes[3];
  const Tensor out = empty_image(sizes, input.dtype(), is_last);
  const auto largest = gemm_kernels().largest[input.dtype() == ARGAND_INT8];
  parallel_for(
      0, batch * height, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, width * channels * kernel[0] * kernel[1])), [&](int64_t b, int64_t e) {
        std::vector<const uint8_t*> window(kernel[0] * kernel[1]);
        for (int64_t line = b; line < e; line++)
          for (int64_t column = 0; column < width; column++) {
            int64_t n = 0;
            for (int64_t i = 0; i < kernel[0]; i++)
              for (int64_t j = 0; j < kernel[1]; j++) {
                const int64_t y = line % height * steps[0] - padding[0] + i * dilation[0], z = column * steps[1] - padding[1] + j * dilation[1];
                if (y >= 0 && y < rows && z >= 0 && z < columns)
                  window[n++] = x.data<uint8_t>() + ((line / height * rows + y) * columns + z) * channels;
              }
            largest(channels, window.data(), n, out.data<uint8_t>() + (line * width + column) * channels);
          }
      });
  return is_last ? out : channels_first(out, sizes);
}

}  // namespace kernels::cpu
}  // namespace argand
