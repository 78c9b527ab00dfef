// Products of integer matrices (argand_aten_cuda/kernels/product.py).
#include "packages/aten/cuda/csrc/blas/integer_product.h"

#include "packages/aten/cuda/csrc/fused.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kBlock = 32, kDepth = 8;

// Strides of a matrix, or of a batch of them.
struct Steps {
  int64_t batch = 0, row = 0, column = 0;
  explicit Steps(const Tensor& t) {
    if (!t) return;
    const int d = t->ndim - 2;
    batch = d ? t.stride(0) : 0, row = t.stride(d), column = t.stride(d + 1);
  }
};

}  // namespace

void integer_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& out, const Tensor& c, const Scalar& alpha, const Scalar& beta) {
  static Slot slots[ARGAND_NUM_DTYPES][2];
  const int dtype = same_width_signed(out.dtype()), d = a->ndim - 2;
  const int64_t m = a.size(d), k = a.size(d + 1), n = b.size(d + 1), batch = d ? a.size(0) : 1;
  const Kernel* kernel =
      slots[dtype][bool(c)].get("integer_product;T=%s;BLOCK=%d;DEPTH=%d;ADD=%s", kDTypeName[dtype], kBlock, kDepth, c ? "True" : "False");
  const Steps x(a), y(b), z(c);
  launch(kernel, grid(op, batch * cdiv(m, kBlock) * cdiv(n, kBlock)), out->data, a->data, b->data, address(c), m, n, k, x.batch, x.row, x.column,
         y.batch, y.row, y.column, z.batch, z.row, z.column, alpha.to_int(), beta.to_int());
}

}  // namespace argand::kernels::cuda
