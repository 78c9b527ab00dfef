// LU factors of several real matrices of some hundred rows, and what solves with them (argand_aten_cuda/kernels/linalg.py).
#include "packages/aten/cuda/csrc/blas/product.h"
#include "packages/aten/cuda/csrc/linalg.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda::blocked {
namespace {

using argand::cuda::Operand2d;
using argand::cuda::Product;

constexpr int64_t kLeastRows = 256, kLeastMatrices = 3;  // what is smaller takes cuBLAS, and fewer cuSOLVER, no longer
constexpr int kPanel = 16;                               // columns that a program factors
constexpr int64_t kTile = 64;                            // rows of a triangle that a program solves with
constexpr int kColumns = 64;                             // in which a program exchanges rows
constexpr int kRows[] = {64, 128, 256, 512, 1024, 2048};

int64_t most_rows(int dtype) { return dtype == ARGAND_FLOAT32 ? 2048 : 1024; }  // whose panel a program holds

// Rows of (count, rows, columns), with one of the last two strides 1, as the transposed operand.
Operand2d transposed(const Tensor& t) {
  if (t.stride(1) == 1) return {t->data, t.stride(2), t.stride(0), false};
  return {t->data, t.stride(1), t.stride(0), true};
}

// d -= a b; d lies column by column.
void subtract_product(const char* op, const Tensor& d, const Tensor& a, const Tensor& b) {
  Product p{};
  p.op = op;
  p.dtype = d.dtype();
  p.m = d.size(2), p.n = d.size(1), p.k = a.size(2), p.batch = d.size(0);
  p.a = transposed(b), p.b = transposed(a);
  p.c = p.d = d->data;
  p.ldc = p.ldd = d.stride(2), p.c_batch_stride = p.d_batch_stride = d.stride(0);
  p.alpha = Scalar(-1), p.beta = Scalar(1);
  p.exact = true;
  argand::cuda::run_product(p, d.device());
}

Tensor block(const Tensor& t, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  return ops::narrow(ops::narrow(t, 1, row, rows), 2, column, columns);
}

int64_t half_of(int64_t n, int64_t step) { return (n / step + 1) / 2 * step; }

// x becomes T^-1 x.
void solve(const char* op, const Tensor& t, const Tensor& x, bool upper, bool unit) {
  const int64_t n = t.size(1);
  if (n <= kTile) return solve_tile(op, t, x, x, upper, unit);
  const int64_t cut = half_of(n, kTile), rest = n - cut;
  const Tensor above = ops::narrow(x, 1, 0, cut), below = ops::narrow(x, 1, cut, rest);
  const Tensor first = block(t, 0, cut, 0, cut), last = block(t, cut, rest, cut, rest);
  solve(op, upper ? last : first, upper ? below : above, upper, unit);
  if (upper)
    subtract_product(op, above, block(t, 0, cut, cut, rest), below);
  else
    subtract_product(op, below, block(t, cut, rest, 0, cut), above);
  solve(op, upper ? first : last, upper ? above : below, upper, unit);
}

// A factorization, by halves (S. Toledo, "Locality of reference in LU decomposition with partial pivoting", 1997).
class Factorization {
 public:
  Factorization(const char* op, const Factors& f) : op_(op), f_(f), a_(flat_columns(f.lu)), n_(f.lu.size(-1)), count_(a_.size(0)) {
    source_ = empty_on(a_, {count_, kPanel}, ARGAND_INT32), target_ = empty_on(a_, {count_, kPanel}, ARGAND_INT32);
  }

  void columns(int64_t first, int64_t width) const {
    if (width <= kPanel) return panel(first, width);
    const int64_t cut = half_of(width, kPanel), right = first + cut, rest = width - cut, rows = n_ - right;
    columns(first, cut);
    solve(op_, block(a_, first, cut, first, cut), block(a_, first, cut, right, rest), false, true);
    subtract_product(op_, block(a_, right, rows, right, rest), block(a_, right, rows, first, cut), block(a_, first, cut, right, rest));
    columns(right, rest);
  }

 private:
  void panel(int64_t first, int64_t width) const {
    static Slot panels[2][std::size(kRows)], exchanges[2];
    const bool full = a_.dtype() == ARGAND_FLOAT64;
    const char* type = kDTypeName[a_.dtype()];
    const int rows = block_index(kRows, n_ - first);
    const auto n = static_cast<int32_t>(n_), at = static_cast<int32_t>(first), columns = static_cast<int32_t>(width);
    launch(panels[full][rows].get("lu_panel;T=%s;R=%d;C=%d", type, kRows[rows], kPanel), grid(op_, count_), address(a_), address(f_.pivots),
           address(source_), address(target_), address(f_.info), n, at, columns);
    launch(exchanges[full].get("exchange_rows;T=%s;K=%d;C=%d", type, kPanel, kColumns), grid(op_, count_, cdiv(n_ - width, kColumns)), address(a_),
           address(source_), address(target_), n, at, columns);
  }

  const char* op_;
  const Factors& f_;
  Tensor a_, source_, target_;
  int64_t n_, count_;
};

}  // namespace

bool takes(const Tensor& t) {
  const int64_t n = t.size(-1);
  return (t.dtype() == ARGAND_FLOAT32 || t.dtype() == ARGAND_FLOAT64) && t.size(-2) == n && n > kLeastRows && n <= most_rows(t.dtype()) &&
         count_of(t) >= kLeastMatrices && count_of(t) <= std::numeric_limits<int32_t>::max();
}

Factors lu_factor(const char* op, const Tensor& self) {
  const Factors f{column_major(self.sizes(), self), empty_on(self, sizes_of(self, {self.size(-1)}), ARGAND_INT32),
                  ops::zeros(batch_of(self), ARGAND_INT32, self.device())};
  ops::copy_(f.lu, self);
  const DeviceGuard guard(self);
  Factorization(op, f).columns(0, self.size(-1));
  return f;
}

void lu_solve(const char* op, const Tensor& lu, const Tensor& pivots, const Tensor& x, bool is_transposed) {
  const DeviceGuard guard(lu);
  const Tensor a = flat_columns(lu), rows = ops::transpose(x, 1, 2);
  const int64_t sizes[] = {a.size(0), 1, a.size(1)};
  const Tensor order = ops::expand(ops::reshape(row_order(op, pivots, a.size(1)), IntList(sizes, 3)), rows.sizes());
  if (is_transposed) {
    const Tensor t = ops::transpose(a, 1, 2);
    solve(op, t, x, false, false);
    solve(op, t, x, true, true);
    ops::scatter_(rows, -1, order, ops::clone(rows, 0));
  } else {
    ops::copy_(rows, ops::gather(rows, -1, order));
    solve(op, a, x, false, true);
    solve(op, a, x, true, false);
  }
}

}  // namespace argand::kernels::cuda::blocked
