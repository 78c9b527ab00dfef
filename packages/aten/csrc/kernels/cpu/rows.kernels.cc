#include "packages/aten/csrc/kernels/cpu/rows.h"
#include "packages/aten/csrc/kernels/cpu/simd.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

template <class T, class E>
void add(int64_t n, E* acc, const T* x, E alpha) {
  using V = vec_t<E>;
  constexpr int L = Lanes<V>::n;
  const V a = splat<V>(alpha);
  int64_t i = 0;
  for (; i + L <= n; i += L) store(acc + i, load(acc + i) + a * load(x + i));
  if (i < n) store_n(acc + i, load_n(acc + i, n - i) + a * load_n(x + i, n - i), n - i);
}

void take(int64_t n, const int64_t* index, const char* table, int64_t step, int64_t row, char* out) {
  for (int64_t i = 0; i < n; i++, out += row) {
    const char *from = table + index[i] * step, *next = table + index[i + 1 < n ? i + 1 : i] * step;
    int64_t k = 0;
    for (; k + static_cast<int64_t>(sizeof(vf)) <= row; k += sizeof(vf)) {
      __builtin_prefetch(next + k);  // no processor foresees where the next row is
      vf part;
      __builtin_memcpy(&part, from + k, sizeof part);
      __builtin_memcpy(out + k, &part, sizeof part);
    }
    __builtin_memcpy(out + k, from + k, static_cast<size_t>(row - k));
  }
}

bool in_range(int64_t n, const int64_t* index, int64_t limit) {
  typedef uint64_t vu __attribute__((vector_size(sizeof(vf))));  // unsigned, so that differences wrap
  constexpr int64_t L = sizeof(vu) / 8;
  const uint64_t last = static_cast<uint64_t>(limit) - 1;
  vu bad[2] = {};  // the top bit of index | (last - index)
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L)
#pragma GCC unroll 2
    for (int u = 0; u < 2; u++) {
      vu v;
      __builtin_memcpy(&v, index + i + u * L, sizeof v);
      bad[u] |= v | (last - v);
    }
  uint64_t any = 0;
  for (int u = 0; u < L; u++) any |= bad[0][u] | bad[1][u];
  for (; i < n; i++) any |= static_cast<uint64_t>(index[i]) | (last - static_cast<uint64_t>(index[i]));
  return any >> 63 == 0;
}

}  // namespace

const RowKernels row_kernels = {add<float, float>, add<double, double>, add<bf16, float>, add<f16, float>, take, in_range};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
