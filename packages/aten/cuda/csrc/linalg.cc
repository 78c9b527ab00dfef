// Many small matrices: LU and Cholesky factors, singular values, eigenvalues of symmetric ones, inverses and what solves with them
// (argand_aten_cuda/kernels/linalg.py). Larger and complex ones are cuSOLVER's.
#include "packages/aten/cuda/csrc/linalg.h"

#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/matrix.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kTiles[] = {8, 16, 32, 64};
constexpr int kColumns = 16;    // of right sides that a program solves for
constexpr int64_t kBlock = 32;  // rows of larger triangular matrices that are solved at a time

void check_dtype(const char* op, int dtype) {
  if (dtype != ARGAND_FLOAT32 && dtype != ARGAND_FLOAT64) leave_to_cpu(op);
}

// Which of kTiles holds n rows and columns.
int tile_of(const char* op, int64_t n) {
  const int found = block_index(kTiles, n);
  if (found < 0) leave_to_cpu(op);
  return found;
}

// Whether a program holds one of these matrices, or of their right sides.
bool is_small(const Tensor& t, int64_t side) { return block_index(kTiles, side) >= 0 && !is_complex(t.dtype()); }

}  // namespace

Tensor flat(const Tensor& t) {
  const int64_t sizes[] = {count_of(t), t.size(-2), t.size(-1)};
  return ops::reshape(t, IntList(sizes, 3));
}

Tensor flat_columns(const Tensor& t) {
  return view_of(t, {count_of(t), t.size(-2), t.size(-1)}, {t.size(-2) * t.size(-1), 1, t.size(-2)}, t->offset);
}

void solve_tile(const char* op, const Tensor& t, const Tensor& b, const Tensor& x, bool upper, bool unit) {
  static Slot slots[2][2][2][std::size(kTiles)];
  const int64_t n = x.size(1), columns = x.size(2);
  const int tile = tile_of(op, n);
  const Kernel* k =
      slots[x.dtype() == ARGAND_FLOAT64][upper][unit][tile].get("triangular_solve;T=%s;UPPER=%s;UNIT=%s;N=%d;C=%d", kDTypeName[x.dtype()],
                                                                upper ? "True" : "False", unit ? "True" : "False", kTiles[tile], kColumns);
  launch(k, grid(op, x.size(0), cdiv(columns, kColumns)), address(x), address(t), address(b), static_cast<int32_t>(n), columns, t.stride(0),
         t.stride(1), t.stride(2), b.stride(0), b.stride(1), b.stride(2), x.stride(0), x.stride(1), x.stride(2));
}

Tensor row_order(const char* op, const Tensor& pivots, int64_t n) {
  constexpr int kSizes[] = {64, 512, 2048, 8192};
  static Slot slots[std::size(kSizes)];
  const int size = block_index(kSizes, n);
  if (size < 0 || pivots.dtype() != ARGAND_INT32 || pivots.dim() == 0) leave_to_cpu(op);
  const int64_t steps = pivots.size(-1), count = elements_in(pivots.sizes(), 0, pivots.dim() - 1);
  Dims sizes(pivots.sizes());
  sizes[sizes.n - 1] = n;
  const Tensor order = empty_on(pivots, sizes, ARGAND_INT64), exchanges = ops::contiguous(pivots);
  if (order.numel())
    launch(slots[size].get("row_order;N=%d", kSizes[size]), grid(op, count), address(order), address(exchanges), static_cast<int32_t>(steps),
           static_cast<int32_t>(n));
  return order;
}

namespace {

Factors factorize_small(const char* op, const Tensor& self) {
  static Slot slots[2][std::size(kTiles)];
  check_dtype(op, self.dtype());
  const int64_t rows = self.size(-2), columns = self.size(-1), steps = std::min(rows, columns), count = count_of(self);
  const int tile = tile_of(op, std::max(rows, columns));
  const Factors f{column_major(self.sizes(), self), empty_on(self, sizes_of(self, {steps}), ARGAND_INT32),
                  empty_on(self, batch_of(self), ARGAND_INT32)};
  if (steps == 0 || count == 0) {
    ops::zero_(f.info);
    return f;
  }
  const Tensor x = flat(self);
  const Kernel* k = slots[self.dtype() == ARGAND_FLOAT64][tile].get("lu_factor;T=%s;N=%d", kDTypeName[self.dtype()], kTiles[tile]);
  launch(k, grid(op, count), address(f.lu), address(f.pivots), address(f.info), address(x), x.stride(0), x.stride(1), x.stride(2),
         static_cast<int32_t>(rows), static_cast<int32_t>(columns));
  return f;
}

Factors factorize(const char* op, const Tensor& self, bool pivot, bool check_errors) {
  const bool small = pivot && is_small(self, std::max(self.size(-2), self.size(-1)));
  const Factors f = small ? factorize_small(op, self) : large::lu_factor(op, self, pivot);
  if (check_errors) check_info(op, f.info);
  return f;
}

// x = A^-1 b, or A^-T b; all of (count, n, columns), lu column by column.
void solve_factored(const char* op, const Tensor& lu, const Tensor& pivots, const Tensor& b, const Tensor& x, bool transposed) {
  static Slot slots[2][2][std::size(kTiles)];
  const int64_t count = x.size(0), n = x.size(1), columns = x.size(2);
  const int tile = tile_of(op, n);
  const Kernel* k = slots[x.dtype() == ARGAND_FLOAT64][transposed][tile].get("lu_solve;T=%s;TRANSPOSED=%s;N=%d;C=%d", kDTypeName[x.dtype()],
                                                                             transposed ? "True" : "False", kTiles[tile], kColumns);
  if (x.numel())
    launch(k, grid(op, count, cdiv(columns, kColumns)), address(x), address(lu), address(pivots), address(b), static_cast<int32_t>(n), columns,
           b.stride(0), b.stride(1), b.stride(2), x.stride(0), x.stride(1), x.stride(2));
}

void check_right_sides(const char* op, const Tensor& a, const Tensor& b, int64_t columns) {
  check_dtype(op, a.dtype());
  if (a.dtype() != b.dtype() || columns > 65535 * kColumns) leave_to_cpu(op);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& self, bool pivot, bool check_errors) {
  const places::Below below;
  const Factors f = factorize("linalg.lu_factor", self, pivot, check_errors);
  return {f.lu, f.pivots, f.info};
}

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& self, bool check_errors) {
  const char* op = "linalg.inv";
  const places::Below below;
  const Factors f = factorize(op, self, true, check_errors);
  const int64_t n = self.size(-1), sizes[] = {count_of(self), n, n};
  if (!is_small(self, n)) return {large::inverse(op, f), f.info};
  const Tensor ones = ops::eye(n, std::nullopt, self.dtype(), self.device());
  const Tensor out = column_major(self.sizes(), self);
  solve_factored(op, f.lu, f.pivots, ops::expand(ones, IntList(sizes, 3)), flat_columns(out), false);
  return {out, f.info};
}

// All of one batch. On the right, X A = B is A^T X^T = B^T.
Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) {
  const char* op = "linalg.lu_solve";
  const places::Below below;
  if (!is_small(LU, LU.size(-1))) return large::lu_solve(op, LU, pivots, B, left, adjoint);
  check_right_sides(op, LU, B, left ? B.size(-1) : B.size(-2));
  if (pivots.dtype() != ARGAND_INT32) leave_to_cpu(op);
  const Tensor columns = ops::contiguous(ops::transpose(LU, -2, -1)), steps = ops::contiguous(pivots), b = flat(B);
  const Tensor out = left ? column_major(B.sizes(), B) : empty_on(B, B.sizes(), B.dtype());
  if (left)
    solve_factored(op, columns, steps, b, flat_columns(out), adjoint);
  else
    solve_factored(op, columns, steps, ops::transpose(b, 1, 2), ops::transpose(flat(out), 1, 2), !adjoint);
  return out;
}

// All of one batch. Many larger matrices are solved by blocks of rows, each after what is known is taken from its right side.
Tensor _solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular) {
  const char* op = "linalg.solve_triangular";
  const places::Below below;
  if (!is_small(self, self.size(-1)) && large::takes(self) && B.numel()) return large::solve_triangular(op, self, B, upper, left, unitriangular);
  check_right_sides(op, self, B, left ? B.size(-1) : B.size(-2));
  const Tensor out = column_major(B.sizes(), B);
  if (out.numel() == 0) return out;
  Tensor t = flat(self), b = flat(B), x = flat_columns(out);
  if (!left) t = ops::transpose(t, 1, 2), b = ops::transpose(b, 1, 2), x = ops::transpose(x, 1, 2), upper = !upper;
  const int64_t n = t.size(1);
  if (n <= kTiles[std::size(kTiles) - 1]) {
    solve_tile(op, t, b, x, upper, unitriangular);
    return out;
  }
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t rows = std::min(kBlock, n - done), first = upper ? n - done - rows : done;
    const Tensor band = ops::narrow(t, 1, first, rows);
    Tensor right = ops::narrow(b, 1, first, rows);
    if (done) {
      const int64_t from = upper ? first + rows : 0;
      right = ops::sub(right, ops::bmm(ops::narrow(band, 2, from, done), ops::narrow(x, 1, from, done)));
    }
    solve_tile(op, ops::narrow(band, 2, first, rows), right, ops::narrow(x, 1, first, rows), upper, unitriangular);
  }
  return out;
}

Tensor _pivots_to_permutation(const Tensor& pivots, int64_t n, int dtype) {
  const places::Below below;
  const Tensor order = row_order("lu_unpack", pivots, n);
  Dims sizes(order.sizes());
  sizes.push_back(n);
  const Tensor out = ops::zeros(sizes, dtype, pivots.device());
  return out.numel() ? ops::scatter_(out, -2, ops::unsqueeze(order, -2), Operand(1.0)) : out;
}

namespace {

// The upper factor is the transposed lower one of the transposed matrix.
std::tuple<Tensor, Tensor> cholesky_small(const char* op, const Tensor& self, bool upper) {
  static Slot slots[2][std::size(kTiles)];
  check_dtype(op, self.dtype());
  const int64_t n = self.size(-1), count = count_of(self);
  const int tile = tile_of(op, n);
  const Tensor out = column_major(self.sizes(), self), info = empty_on(self, batch_of(self), ARGAND_INT32);
  if (out.numel() == 0) {
    ops::zero_(info);
    return {out, info};
  }
  Tensor x = flat(self);
  const Kernel* k = slots[self.dtype() == ARGAND_FLOAT64][tile].get("cholesky_factor;T=%s;N=%d", kDTypeName[self.dtype()], kTiles[tile]);
  const int64_t row = upper ? 2 : 1;
  launch(k, grid(op, count), address(out), address(info), address(x), x.stride(0), x.stride(row), x.stride(3 - row), upper ? n : int64_t{1},
         upper ? int64_t{1} : n, static_cast<int32_t>(n));
  return {out, info};
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  const char* op = "linalg.cholesky";
  const places::Below below;
  auto found = is_small(self, self.size(-1)) ? cholesky_small(op, self, upper) : large::cholesky(op, self, upper);
  if (check_errors) check_info(op, std::get<1>(found));
  return found;
}

// With more columns than rows that of the transposed matrix, whose vectors change sides.
std::tuple<Tensor, Tensor, Tensor> _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv) {
  constexpr int kSides[] = {8, 16, 32};
  static Slot slots[2][std::size(kSides)];
  const char* op = "linalg.svd";
  const places::Below below;
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), count = count_of(A);
  const int tile = block_index(kSides, std::max(m, n));
  if (tile < 0 || A.dtype() != ARGAND_FLOAT32 || (compute_uv && full_matrices && m != n)) return large::svd(op, A, full_matrices, compute_uv);
  if (A.numel() == 0) leave_to_cpu(op);
  Dims values(batch_of(A)), left(A.sizes()), right(A.sizes());
  values.push_back(k);
  left[A.dim() - 1] = right[A.dim() - 2] = k;
  const Tensor none = empty_on(A, {0}, A.dtype()), U = compute_uv ? column_major(left, A) : none, S = empty_on(A, values, A.dtype()),
               V = compute_uv ? column_major(right, A) : none, info = empty_on(A, {count}, ARGAND_INT32);
  const bool wide = m < n;
  const Tensor x = wide ? ops::transpose(flat(A), 1, 2) : flat(A);
  const Kernel* f = slots[compute_uv][tile].get("svd_jacobi;T=float32;VECTORS=%s;N=%d", compute_uv ? "True" : "False", kSides[tile]);
  // The strides of rows and of vectors: of U 1 and m, of V^T k and 1.
  launch(f, grid(op, count), address(S), address(wide ? V : U), address(wide ? U : V), address(info), address(x), x.stride(0), x.stride(1),
         x.stride(2), wide ? k : int64_t{1}, wide ? int64_t{1} : m, wide ? int64_t{1} : k, wide ? m : int64_t{1}, static_cast<int32_t>(x.size(1)),
         static_cast<int32_t>(k));
  check_info(op, info);
  return {U, S, V};
}

std::tuple<Tensor, Tensor> _linalg_eigh(const Tensor& A, std::string_view uplo, bool compute_v) {
  constexpr int kSides[] = {8, 16, 32};
  static Slot slots[2][2][std::size(kSides)];
  const char* op = "linalg.eigh";
  const places::Below below;
  const int64_t n = A.size(-1), count = count_of(A);
  const int tile = block_index(kSides, n);
  const bool upper = uplo == "U" || uplo == "u";
  // The library's float64 results are closer, as derivatives by finite differences need them.
  if (tile < 0 || A.dtype() != ARGAND_FLOAT32) return large::eigh(op, A, upper, compute_v);
  Dims sizes(batch_of(A));
  sizes.push_back(n);
  const Tensor values = empty_on(A, sizes, A.dtype()), vectors = compute_v ? column_major(A.sizes(), A) : empty_on(A, {0}, A.dtype());
  if (A.numel() == 0) return {values, vectors};
  const Tensor x = flat(A), info = empty_on(A, {count}, ARGAND_INT32);
  const Kernel* k = slots[upper][compute_v][tile].get("eigh_jacobi;T=float32;UPPER=%s;VECTORS=%s;N=%d", upper ? "True" : "False",
                                                      compute_v ? "True" : "False", kSides[tile]);
  launch(k, grid(op, count), address(values), address(vectors), address(info), address(x), x.stride(0), x.stride(1), x.stride(2),
         static_cast<int32_t>(n));
  check_info(op, info);
  return {values, vectors};
}

}  // namespace argand::kernels::cuda
