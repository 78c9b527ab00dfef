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

}  // namespace

const RowKernels row_kernels = {add<float, float>, add<double, double>, add<bf16, float>, add<f16, float>};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
