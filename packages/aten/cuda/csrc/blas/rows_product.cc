// Products of few rows (argand_aten_cuda/kernels/product.py). Where they end is measured on an H200: with more, cuBLASLt takes less time.
#include "packages/aten/cuda/csrc/blas/rows_product.h"

#include "packages/aten/cuda/csrc/core/settings.h"
#include "packages/aten/cuda/csrc/fused.h"

namespace argand::kernels::cuda {
namespace {

using argand::cuda::Product;

constexpr int kRows[] = {1, 8, 16, 32, 64};
constexpr int64_t kFewRows = 16, kMostRows = 64;
constexpr int64_t kLarge = 1 << 22, kSmall = 1 << 20;  // elements of b, with few rows and with more

bool is_aligned(const Product& p) {
  const auto addresses = reinterpret_cast<uintptr_t>(p.a.data) | reinterpret_cast<uintptr_t>(p.b.data) | reinterpret_cast<uintptr_t>(p.d);
  return (addresses | static_cast<uintptr_t>(p.a.ld | p.b.ld | p.k)) % 16 == 0;
}

}  // namespace

bool is_rows_product(const Product& p) {
  return p.dtype == ARGAND_FLOAT32 && p.batch == 1 && p.m <= kMostRows && !p.a.transposed && !p.c && p.alpha.re == 1 && p.alpha.im == 0 &&
         p.ldd == p.n && p.a.ld <= kLarge && (p.b.transposed ? p.n : p.k) * p.b.ld <= (p.m <= kFewRows ? kLarge : kSmall) &&
         !argand::cuda::settings().matmul_tf32.load(std::memory_order_relaxed);
}

void rows_product(const Product& p) {
  static Slot slots[5][2][2][2];
  const int rows = block_index(kRows, p.m), depth = p.m <= 8 ? 64 : 32;
  const bool wide = p.m > 8 && p.n >= 1024, aligned = is_aligned(p);
  const int64_t block = wide ? 8 : 4;
  const Kernel* k =
      slots[rows][wide][p.b.transposed][aligned].get("rows_product;ROWS=%d;BLOCK=%d;DEPTH=%d;TURNED=%s;ALIGNED=%s", kRows[rows],
                                                     static_cast<int>(block), depth, p.b.transposed ? "True" : "False", aligned ? "True" : "False");
  const auto size = [&](int64_t n) { return size32(p.op, n); };
  launch(k, grid(p.op, cdiv(p.n, block)), p.d, p.a.data, p.b.data, p.bias, size(p.m), size(p.n), size(p.k), size(p.a.ld), size(p.b.ld),
         int32_t{p.bias != nullptr});
}

}  // namespace argand::kernels::cuda
