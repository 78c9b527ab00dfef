#include "packages/aten/cuda/csrc/fused.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kRows = 32, kColumns = 32;

void sum(const char* op, const Tensor& partial, int64_t from, const Tensor& first, const Tensor& second) {
  static Slot slots[kFloats][kFloats][2];
  const int64_t parts = partial.size(1), n = partial.size(2);
  const bool both = second.defined();
  const char *t = kDTypeName[first.dtype()], *a = kDTypeName[partial.dtype()];
  const Kernel* k = slots[float_index(op, first.dtype())][float_index(op, partial.dtype())][both].get(
      "sum_partials;T=%s;A=%s;BOTH=%d;BLOCK_P=%d;BLOCK_N=%d", t, a, both, kRows, kColumns);
  const void* at = partial.data<char>() + from * parts * n * partial.itemsize();
  launch(k, grid(op, cdiv(n, kColumns), both ? 2 : 1), at, address(first), address(second), size32(op, parts), size32(op, n));
}

}  // namespace

void sum_partials(const char* op, const Tensor& partial, const Tensor& first, const Tensor& second) {
  if (first && second && first.dtype() == second.dtype()) return sum(op, partial, 0, first, second);
  if (first) sum(op, partial, 0, first, Tensor());
  if (second) sum(op, partial, 1, second, Tensor());
}

}  // namespace argand::kernels::cuda
