// Cross products (argand_aten_cuda/kernels/cross.py).
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/joining.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {

// Both of one shape, with three elements along `dim`.
Tensor _cross(const Tensor& x, const Tensor& y, int64_t dim) {
  constexpr int64_t kBlock = 256;
  const places::Below below;
  if (is_complex(x.dtype()) || x.dtype() != y.dtype()) {
    const auto turned = [&](const Tensor& t) { return ops::roll(t, {-1}, {dim}); };
    return turned(ops::sub(ops::mul(x, turned(y)), ops::mul(turned(x), y)));
  }
  const Tensor a = places::dense(x), b = places::dense(y), out = empty(x.sizes(), x.dtype(), x.device());
  if (out.numel() == 0) return out;
  const auto* k = argand::cuda::kernel("cross;T=" + std::string(places::real_name(x.dtype())) + ";BLOCK=256");
  const int64_t total = out.numel() / 3;
  argand::cuda::launch(k, places::programs("linalg.cross", places::divide_up(total, kBlock)), out->data, a->data, b->data, total,
                       places::product(out.sizes(), dim + 1, out.dim()));
  return out;
}

}  // namespace argand::kernels::cuda
