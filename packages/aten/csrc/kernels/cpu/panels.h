// Products whose operands are in the caches, by right-hand sides laid out in panels of columns.
#pragma once

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/gemm.h"

namespace argand::kernels::cpu {

constexpr int64_t kPanel = 48;   // columns that lie together: full register blocks in every tier
constexpr int64_t kDepth = 128;  // rows of a panel that take half of the first-level cache

// c[m, n] = alpha * a[m, k] b[k, n] + (accumulate ? c : 0) where all of it is in the caches: a library would pack each operand at each call.
template <class E>
void multiply_cached(int64_t m, int64_t n, int64_t k, E alpha, const E* a, int64_t a_ms, int64_t a_ks, const E* b, int64_t ldb, bool accumulate, E* c,
                     int64_t ldc) {
  int64_t p = 0;
  do  // once where k is 0: c becomes 0
    tile_kernels<E>().multiply(m, n, std::min(kDepth, k - p), alpha, a + p * a_ks, a_ms, a_ks, b + p * ldb, ldb, accumulate || p > 0, c, ldc);
  while ((p += kDepth) < k);
}

}  // namespace argand::kernels::cpu
