// Matrix products on CUDA devices: operands are laid out for cuBLASLt without copies where their strides allow it.
#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/cuda/csrc/blas/integer_product.h"
#include "packages/aten/cuda/csrc/blas/product.h"
#include "packages/aten/cuda/csrc/blas/rows_product.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

using argand::cuda::Operand2d;
using argand::cuda::Product;
using argand::cuda::run_product;

// The leading dimension of rows x cols matrices whose rows are contiguous, 0 if they are not.
int64_t leading_dimension(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  if (cols > 1 && col_stride != 1) return 0;
  if (rows <= 1) return cols;
  return row_stride >= cols && row_stride > 0 ? row_stride : 0;
}

// The last two dimensions of a tensor (of two, or three with the batch first) as an operand; `owner` keeps a copy alive.
Operand2d operand(const Tensor& t, Tensor& owner) {
  const int d = t->ndim - 2;
  const int64_t rows = t.size(d), cols = t.size(d + 1);
  const int64_t batch_stride = d && t.size(0) > 1 ? t.stride(0) : 0;
  if (const int64_t ld = leading_dimension(rows, cols, t.stride(d), t.stride(d + 1))) return {t->data, ld, batch_stride, false};
  if (const int64_t ld = leading_dimension(cols, rows, t.stride(d + 1), t.stride(d))) return {t->data, ld, batch_stride, true};
  owner = ops::contiguous(t);
  return {owner->data, cols, d ? rows * cols : 0, false};
}

void check_operands(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  for (const Tensor* t : tensors) {
    if (!*t) continue;
    if (t->dtype() != first.dtype())
      fail(ARGAND_DTYPE_ERROR, "%s: expected tensors of one dtype, but got %s and %s", op, kDTypeName[first.dtype()], kDTypeName[t->dtype()]);
    if (t->device() != first.device()) fail(ARGAND_DEVICE_ERROR, "%s: Expected all tensors to be on the same device; move them with .to(device)", op);
  }
}

// alpha * a @ b into `out` (row-major), plus beta * c or bias; false: nothing was done, the bias must be added otherwise.
bool product(const char* op, const Tensor& a, const Tensor& b, const Tensor& out, const Tensor& c, const Tensor& bias, const Scalar& alpha,
             const Scalar& beta) {
  const int d = a->ndim - 2;
  if (is_integral(a.dtype(), false)) {
    const Tensor added = bias ? view_of(bias, {a.size(d), b.size(d + 1)}, {0, 1}, bias->offset) : c;
    integer_product(op, a, b, out, added, alpha, bias ? Scalar(1) : beta);
    return true;
  }
  Tensor a_copy, b_copy;
  Product p{};
  p.op = op;
  p.dtype = a.dtype();
  p.m = a.size(d), p.k = a.size(d + 1), p.n = b.size(d + 1);
  p.batch = d ? a.size(0) : 1;
  p.a = operand(a, a_copy), p.b = operand(b, b_copy);
  p.d = out->data, p.ldd = p.n, p.d_batch_stride = p.m * p.n;
  if (c) p.c = c->data, p.ldc = p.m > 1 ? c.stride(d) : p.n, p.c_batch_stride = d ? c.stride(0) : 0;
  if (bias) p.bias = bias->data;
  p.alpha = alpha, p.beta = beta;
  if (is_rows_product(p)) {
    rows_product(p);
    return true;
  }
  return run_product(p, out.device());
}

bool is_zero(const Scalar& s) { return s.re == 0 && s.im == 0; }
bool is_one(const Scalar& s) { return s.re == 1 && s.im == 0; }

// Rows that all read the same n contiguous elements.
bool is_bias(const Tensor& self, int64_t n) {
  if (self->ndim == 0 || self.size(-1) != n || (n > 1 && self.stride(-1) != 1)) return false;
  return self.numel() == n;
}

Tensor plain_product(const char* op, const Tensor& a, const Tensor& b, IntList shape) {
  check_operands(op, {&a, &b});
  const DeviceGuard guard(a);
  const Tensor out = empty(shape, a.dtype(), a.device());
  if (out.numel() == 0) return out;
  if (a.size(-1) == 0) {
    ops::zero_(out);
    return out;
  }
  product(op, a, b, out, Tensor(), Tensor(), Scalar(1), Scalar(0));
  return out;
}

}  // namespace

Tensor mm(const Tensor& self, const Tensor& mat2) { return plain_product("mm", self, mat2, {self.size(0), mat2.size(1)}); }

Tensor bmm(const Tensor& self, const Tensor& mat2) { return plain_product("bmm", self, mat2, {self.size(0), self.size(1), mat2.size(2)}); }

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  check_operands("addmm", {&mat1, &mat2, &self});
  for (const Scalar& factor : {beta, alpha}) check_scalar("addmm", mat1.dtype(), false, value(factor));
  const DeviceGuard guard(mat1);
  const int64_t m = mat1.size(0), n = mat2.size(1);
  const int64_t shape[] = {m, n};
  const Tensor full = ops::expand(self, IntList(shape, 2));
  if (full.numel() == 0) return empty({m, n}, mat1.dtype(), mat1.device());
  if (mat1.size(1) == 0) return is_zero(beta) ? ops::zeros_like(full) : ops::mul(full, beta);
  const Tensor out = empty({m, n}, mat1.dtype(), mat1.device());
  if (is_zero(beta)) {
    product("addmm", mat1, mat2, out, Tensor(), Tensor(), alpha, beta);
    return out;
  }
  if (is_one(beta) && is_bias(self, n) && !is_complex(self.dtype()) && product("addmm", mat1, mat2, out, Tensor(), self, alpha, Scalar(0)))
    return out;
  const bool rows = leading_dimension(m, n, full.stride(0), full.stride(1)) > 0;
  product("addmm", mat1, mat2, out, rows ? full : ops::contiguous(full), Tensor(), alpha, beta);
  return out;
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_operands("linear", {&input, &weight, &bias});
  const DeviceGuard guard(input);
  const int64_t k = weight.size(1), n = weight.size(0), m = k ? input.numel() / k : 0;
  Dims shape(input.sizes());
  shape[shape.n - 1] = n;
  if (k == 0 || m * n == 0) {
    const Tensor out = ops::zeros(shape, input.dtype(), input.device());
    return bias && out.numel() ? ops::add(out, bias) : out;
  }
  const Tensor out = empty(shape, input.dtype(), input.device());
  const int64_t flat[] = {m, k};
  const Tensor rows = input->ndim == 2 ? input : ops::reshape(input, IntList(flat, 2));
  const Tensor columns = view_of(weight, {k, n}, {weight.stride(1), weight.stride(0)}, weight->offset);
  const bool fused = bias && is_bias(bias, n) && !is_complex(bias.dtype());
  if (fused && product("linear", rows, columns, out, Tensor(), bias, Scalar(1), Scalar(0))) return out;
  product("linear", rows, columns, out, Tensor(), Tensor(), Scalar(1), Scalar(0));
  return bias ? ops::add_(out, bias) : out;
}

}  // namespace argand::kernels::cuda
