// Where the latest extreme so far lies: the host side of argand_aten_cuda/kernels/extreme_scan.py.
#include <algorithm>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/dtype_checks.h"
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/cuda/csrc/specialization.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

constexpr int64_t kPrograms = 1056;    // about eight for each multiprocessor: fewer rows are cut into pieces
constexpr int64_t kSteps = 4;          // of the smallest piece
constexpr int64_t kLongest = 1 << 30;  // piece: the next step's place has 31 bits
constexpr int64_t kSideBySide = 16;    // rows whose elements lie so far apart are read across

}  // namespace

Tensor latest_extreme(const Tensor& self, int64_t dim, bool smallest) {
  const char* op = "_latest_extreme";
  const places::Below below;
  check_ordered(op, self.dtype());
  const int64_t d = builtins::wrap_dim(dim, self.dim()), last = std::max<int64_t>(self.dim() - 1, 0);
  const Tensor x = places::dense(self);
  const int64_t n = places::size_of(x, d), inner = places::product(x.sizes(), std::min(d + 1, x.dim()), x.dim());
  if (inner > 1 && inner < kSideBySide) return places::dense(ops::transpose(latest_extreme(ops::transpose(x, d, last), last, smallest), d, last));
  const Tensor out = empty_on(x, x.sizes(), ARGAND_INT64);
  if (out.numel() == 0) return out;
  const bool along = inner == 1;
  const int64_t rows = x.numel() / n, outer = rows / inner, row_tile = !along ? 64 : n > 512 ? 1 : 16, step = !along ? 32 : n > 512 ? 2048 : 64;
  const int64_t tiles = along ? divide_up(rows, row_tile) : outer * divide_up(inner, row_tile);
  const int64_t wanted = std::clamp<int64_t>(kPrograms / tiles, divide_up(n, kLongest), divide_up(n, kSteps * step)),
                piece = divide_up(divide_up(n, wanted), step) * step, pieces = divide_up(n, piece);
  const auto named = [&](const char* name) {
    Specialization s(name);
    s.type("T", x.dtype() == ARGAND_BOOL ? static_cast<int>(ARGAND_UINT8) : x.dtype())
        .flag("SMALLEST", smallest)
        .constant("BR", row_tile)
        .constant("BN", step)
        .flag("ALONG", along)
        .flag("ALIGNED", along && (reinterpret_cast<uintptr_t>(x->data) | static_cast<uintptr_t>(n)) % 16 == 0);
    return argand::cuda::kernel(s.text());
  };
  const Tensor parts = empty_on(x, {pieces == 1 ? 0 : 2 * rows * pieces}, ARGAND_INT64);
  const Grid programs = grid(op, tiles, pieces);
  const int32_t length = size32(op, n), each = static_cast<int32_t>(piece), count = static_cast<int32_t>(pieces);
  if (pieces > 1) launch(named("extremes_of_pieces"), programs, address(parts), address(x), rows, length, outer, inner, each, count);
  launch(named("latest_extreme"), programs, address(out), address(x), address(parts), rows, length, outer, inner, each, count);
  return out;
}

}  // namespace argand::kernels::cuda
