// Factorizations and what solves with them, matrix by matrix in column-major copies: Cholesky, LU, LDL, QR, triangular systems.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/lapack.h"
#include "packages/aten/csrc/kernels/cpu/linalg_triangle.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

constexpr const char* kNotDefinite = "the factorization needs a positive-definite matrix, but the leading minor of order %lld is not";
constexpr const char* kSingular = "the matrix is singular: diagonal element %lld of U is zero";

// int32 copies of LAPACK's 64-bit pivots.
void narrow_pivots(const int64_t* from, int64_t n, int32_t* to) {
  for (int64_t i = 0; i < n; i++) to[i] = static_cast<int32_t>(from[i]);
}

template <class P>
void check_pivots_within(const char* op, const P* pivots, int64_t n, int64_t rows) {
  for (int64_t i = 0; i < n; i++)
    if (pivots[i] == 0 || pivots[i] > rows || pivots[i] < -rows)
      fail(ARGAND_RUNTIME_ERROR, "%s: got pivot %lld, expected 1 to %lld", op, static_cast<long long>(pivots[i]), static_cast<long long>(rows));
}

std::vector<int64_t> wide_pivots(const char* op, const int32_t* from, int64_t n, int64_t rows) {
  check_pivots_within(op, from, n, rows);
  return {from, from + n};
}

void check_pivots(const char* op, const Tensor& pivots) {
  if (pivots.dim() == 0) fail(ARGAND_SHAPE_ERROR, "%s: got pivots without dimensions, expected at least one", op);
  if (pivots.dtype() != ARGAND_INT32) fail(ARGAND_DTYPE_ERROR, "%s: got pivots of dtype %s, expected int32", op, kDTypeName[pivots.dtype()]);
}

// Small real square matrices by functions of our own, which do what LAPACK's of their names do: calling those takes longer than the work.
constexpr int64_t kSmall = 16;

template <class E>
int64_t small_getrf(int64_t n, E* a, int64_t* pivots) {
  int64_t info = 0;
  for (int64_t k = 0; k < n; k++) {
    E* const column = a + k * n;
    int64_t p = k;
    for (int64_t r = k + 1; r < n; r++)
      if (std::abs(column[r]) > std::abs(column[p]) || column[r] != column[r]) p = r;
    pivots[k] = p + 1;
    if (column[p] == E(0)) {
      if (!info) info = k + 1;
      continue;
    }
    if (p != k)
      for (int64_t c = 0; c < n; c++) std::swap(a[c * n + k], a[c * n + p]);
    for (int64_t r = k + 1; r < n; r++) column[r] /= column[k];
    for (int64_t c = k + 1; c < n; c++)
      for (int64_t r = k + 1; r < n; r++) a[c * n + r] -= column[r] * a[c * n + k];
  }
  return info;
}

template <class E>
void small_getri(int64_t n, E* a, const int64_t* pivots) {
  E x[kSmall * kSmall] = {};
  int64_t order[kSmall];
  for (int64_t r = 0; r < n; r++) order[r] = r;
  for (int64_t r = 0; r < n; r++) std::swap(order[r], order[pivots[r] - 1]);
  for (int64_t r = 0; r < n; r++) {
    E* const b = x + order[r] * n;  // L U b is the column that has its 1 in row r
    b[r] = E(1);
    for (int64_t k = r; k < n; k++)
      for (int64_t i = k + 1; i < n; i++) b[i] -= a[k * n + i] * b[k];
    for (int64_t k = n - 1; k >= 0; k--) {
      b[k] /= a[k * n + k];
      for (int64_t i = 0; i < k; i++) b[i] -= a[k * n + i] * b[k];
    }
  }
  std::copy_n(x, n * n, a);
}

template <class E>
void small_getrs(bool transposed, int64_t n, int64_t columns, const E* a, const int32_t* pivots, E* x) {
  for (E* b = x; b < x + n * columns; b += n) {
    if (!transposed) {
      for (int64_t r = 0; r < n; r++) std::swap(b[r], b[std::abs(pivots[r]) - 1]);
      for (int64_t k = 0; k < n; k++)
        for (int64_t i = k + 1; i < n; i++) b[i] -= a[k * n + i] * b[k];
      for (int64_t k = n - 1; k >= 0; k--) {
        b[k] /= a[k * n + k];
        for (int64_t i = 0; i < k; i++) b[i] -= a[k * n + i] * b[k];
      }
    } else {
      for (int64_t k = 0; k < n; k++) {
        for (int64_t i = 0; i < k; i++) b[k] -= a[k * n + i] * b[i];
        b[k] /= a[k * n + k];
      }
      for (int64_t k = n - 1; k >= 0; k--)
        for (int64_t i = k + 1; i < n; i++) b[k] -= a[k * n + i] * b[i];
      for (int64_t r = n - 1; r >= 0; r--) std::swap(b[r], b[std::abs(pivots[r]) - 1]);
    }
  }
}

template <class E>
int64_t small_potrf(bool upper, int64_t n, E* a) {
  const int64_t down = upper ? n : 1, across = upper ? 1 : n;  // from element to element of a column of L, of a row
  for (int64_t k = 0; k < n; k++) {
    E* const column = a + k * across;
    if (!(column[k * down] > E(0))) return k + 1;
    const E root = std::sqrt(column[k * down]);
    column[k * down] = root;
    for (int64_t r = k + 1; r < n; r++) column[r * down] /= root;
    for (int64_t c = k + 1; c < n; c++)
      for (int64_t r = c; r < n; r++) a[r * down + c * across] -= column[r * down] * column[c * down];
  }
  return 0;
}

// LU of an m x n matrix, with row exchanges; column-major as all of these.
template <class E>
int64_t getrf(const Lapack<E>& l, int64_t m, int64_t n, E* a, int64_t* pivots) {
  if constexpr (!kIsComplex<E>)
    if (m == n && n <= kSmall) return small_getrf(n, a, pivots);
  return m && n ? l.getrf(kColumnMajor, m, n, a, m, pivots) : 0;
}
// The inverse from that.
template <class E>
int64_t getri(const Lapack<E>& l, int64_t n, E* a, const int64_t* pivots) {
  if constexpr (!kIsComplex<E>)
    if (n <= kSmall) return small_getri(n, a, pivots), 0;
  return n ? l.getri(kColumnMajor, n, a, n, pivots) : 0;
}
// What the triangles of a singular matrix give: infinities and NaN.
template <class E>
void invert_singular(const Lapack<E>& l, int64_t n, E* a, const int64_t* pivots) {
  if constexpr (!kIsComplex<E>)
    if (n <= kSmall) return small_getri(n, a, pivots);
  std::vector<E> x(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; i++) x[static_cast<size_t>(i * (n + 1))] = E(1);
  l.getrs(kColumnMajor, 'N', n, n, a, n, pivots, x.data(), n);
  std::copy_n(x.data(), n * n, a);
}
// Cholesky's triangle.
template <class E>
int64_t potrf(const Lapack<E>& l, bool upper, int64_t n, E* a) {
  if constexpr (!kIsComplex<E>)
    if (n <= kSmall) return small_potrf(upper, n, a);
  return n ? l.potrf(kColumnMajor, upper ? 'U' : 'L', n, a, n) : 0;
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors) {
  const Tensor work = column_major_copy(self), info = empty(batch_sizes(self), ARGAND_INT32);
  const int64_t n = self.size(-1);
  dispatch_lapack("linalg.cholesky", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.cholesky");
    for_matrices(info.numel(), cubed(n) / 3, [&](int64_t i) {
      E* const a = work.data<E>() + i * n * n;
      info.data<int32_t>()[i] = info_of("linalg.cholesky", potrf(l, upper, n, a));
      for (int64_t c = 0; c < n; c++)  // the other triangle of column c
        std::fill(a + c * n + (upper ? c + 1 : 0), a + c * n + (upper ? n : c), E(0));
    });
  });
  if (check_errors) check_info("linalg.cholesky", info, kNotDefinite);
  return {work, info};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& self, bool pivot, bool check_errors) {
  if (!pivot && self.numel()) fail(ARGAND_RUNTIME_ERROR, "linalg.lu_factor: got pivot=False, which is not implemented on the CPU; use pivot=True");
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n);
  const Tensor work = column_major_copy(self), pivots = empty(with_vector(self, k), ARGAND_INT32), info = empty(batch_sizes(self), ARGAND_INT32);
  dispatch_lapack("linalg.lu_factor", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.lu_factor");
    for_matrices(info.numel(), static_cast<double>(m) * n * k, [&](int64_t i) {
      int64_t few[kSmall];
      std::vector<int64_t> many(static_cast<size_t>(k > kSmall ? k : 0));
      int64_t* const p = k > kSmall ? many.data() : few;
      info.data<int32_t>()[i] = info_of("linalg.lu_factor", getrf(l, m, n, work.data<E>() + i * m * n, p));
      narrow_pivots(p, k, pivots.data<int32_t>() + i * k);
    });
  });
  if (check_errors) check_info("linalg.lu_factor", info, kSingular);
  return {work, pivots, info};
}

// All of A and B have the same batch; B is a matrix (n x k, or k x n on the right).
Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) {
  check_same_dtype("linalg.lu_solve", LU, B);
  check_pivots("linalg.lu_solve", pivots);
  const int64_t n = LU.size(-1), k = left ? B.size(-1) : B.size(-2);
  const Tensor a = column_major_copy(LU), p = contiguous(pivots);
  Tensor x;
  dispatch_lapack("linalg.lu_solve", LU.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.lu_solve");
    auto conjugate = [](const Tensor& t) {
      if constexpr (kIsComplex<E>)
        for (int64_t i = 0; i < t.numel(); i++) t.data<E>()[i] = std::conj(t.data<E>()[i]);
    };
    // x A = b is A^T x^T = b^T, and column-major x^T is row-major x; x A^H = b is A conj(x^T) = conj(b^T).
    x = left ? column_major_copy(B) : dense_copy(B);
    const bool flip = !left && adjoint;
    if (flip) conjugate(x);
    const char trans = left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T');
    if (n && k)
      for_matrices(matrix_count(LU), static_cast<double>(n) * n * k, [&](int64_t i) {
        if constexpr (!kIsComplex<E>)
          if (n <= kSmall) {
            check_pivots_within("linalg.lu_solve", p.data<int32_t>() + i * n, n, n);
            return small_getrs(trans != 'N', n, k, a.data<E>() + i * n * n, p.data<int32_t>() + i * n, x.data<E>() + i * n * k);
          }
        const std::vector<int64_t> wide = wide_pivots("linalg.lu_solve", p.data<int32_t>() + i * n, n, n);
        solve_lu(l, trans, n, k, a.data<E>() + i * n * n, wide.data(), x.data<E>() + i * n * k);
      });
    if (flip) conjugate(x);
  });
  return x;
}

Tensor pivots_sign(const Tensor& pivots, int dtype) {
  check_pivots("_pivots_sign", pivots);
  const Tensor p = contiguous(pivots);
  const int64_t k = pivots.size(-1), count = product(pivots.sizes(), 0, pivots.dim() - 1);
  const Tensor out = empty(IntList(pivots.sizes().begin(), pivots.dim() - 1), dtype);
  dispatch_lapack("_pivots_sign", dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; i++) {
      bool odd = false;
      for (int64_t r = 0; r < k; r++) odd ^= p.data<int32_t>()[i * k + r] != r + 1;
      out.data<E>()[i] = odd ? E(-1) : E(1);
    }
  });
  return out;
}

// A permutation matrix P of LAPACK's row exchanges: A = P L U.
Tensor _pivots_to_permutation(const Tensor& pivots, int64_t n, int dtype) {
  check_pivots("lu_unpack", pivots);
  const Tensor p = contiguous(pivots);
  const int64_t k = pivots.size(-1), count = product(pivots.sizes(), 0, pivots.dim() - 1);
  Dims sizes(pivots.sizes());
  sizes[sizes.n - 1] = n;
  sizes.push_back(n);
  const Tensor out = zeros(sizes, dtype);
  dispatch_lapack("lu_unpack", dtype, [&](auto tag) {
    using E = typename decltype(tag)::type;
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t i = 0; i < count; i++) {
      const std::vector<int64_t> wide = wide_pivots("lu_unpack", p.data<int32_t>() + i * k, k, n);
      for (int64_t r = 0; r < n; r++) order[r] = r;
      for (int64_t r = 0; r < k; r++) std::swap(order[r], order[wide[r] - 1]);
      for (int64_t r = 0; r < n; r++) out.data<E>()[i * n * n + order[r] * n + r] = E(1);
    }
  });
  return out;
}

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& self, bool check_errors) {
  const Tensor work = column_major_copy(self), info = empty(batch_sizes(self), ARGAND_INT32);
  const int64_t n = self.size(-1);
  dispatch_lapack("linalg.inv", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.inv");
    for_matrices(info.numel(), 2 * cubed(n), [&](int64_t i) {
      E* const a = work.data<E>() + i * n * n;
      std::vector<int64_t> p(static_cast<size_t>(n));
      int64_t status = getrf(l, n, n, a, p.data());
      if (status == 0)
        status = getri(l, n, a, p.data());
      else
        invert_singular(l, n, a, p.data());
      info.data<int32_t>()[i] = info_of("linalg.inv", status);
      for (int64_t j = 0; j < n * n; j++) a[j] += E(0);  // -0 becomes 0
    });
  });
  if (check_errors) check_info("linalg.inv", info, kSingular);
  return {work, info};
}

// self (..., n, n) triangular, B (..., n, k) or (..., k, n) on the right, one batch.
Tensor _solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular) {
  check_same_dtype("linalg.solve_triangular", self, B);
  const Tensor a = column_major_copy(self), x = column_major_copy(B);
  const int64_t m = B.size(-2), k = B.size(-1), n = self.size(-1);
  dispatch_lapack("linalg.solve_triangular", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.solve_triangular");
    if (m && k)
      for_matrices(matrix_count(B), static_cast<double>(n) * m * k, [&](int64_t i) {
        solve_triangle(l, {left, upper, false, unitriangular}, n, left ? k : m, a.data<E>() + i * n * n, n, x.data<E>() + i * m * k, m);
      });
  });
  return x;
}

std::tuple<Tensor, Tensor, Tensor> linalg_ldl_factor_ex(const Tensor& self, bool hermitian, bool check_errors) {
  const int64_t n = self.size(-1);
  const Tensor work = column_major_copy(self), pivots = empty(with_vector(self, n), ARGAND_INT32), info = empty(batch_sizes(self), ARGAND_INT32);
  dispatch_lapack("linalg.ldl_factor", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.ldl_factor");
    for_matrices(info.numel(), cubed(n) / 3, [&](int64_t i) {
      E* const a = work.data<E>() + i * n * n;
      std::vector<int64_t> p(static_cast<size_t>(n));
      info.data<int32_t>()[i] = n ? info_of("linalg.ldl_factor", (hermitian ? l.hetrf : l.sytrf)(kColumnMajor, 'L', n, a, n, p.data())) : 0;
      narrow_pivots(p.data(), n, pivots.data<int32_t>() + i * n);
      for (int64_t c = 0; c < n; c++) std::fill(a + c * n, a + c * n + c, E(0));
    });
  });
  if (check_errors) check_info("linalg.ldl_factor", info, "the matrix is singular: block %lld of D is zero");
  return {work, pivots, info};
}

// LD, pivots and B have the same batch.
Tensor _ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  check_same_dtype("linalg.ldl_solve", LD, B);
  check_pivots("linalg.ldl_solve", pivots);
  const int64_t n = LD.size(-1), k = B.size(-1);
  const Tensor a = column_major_copy(LD), x = column_major_copy(B), p = contiguous(pivots);
  dispatch_lapack("linalg.ldl_solve", LD.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.ldl_solve");
    if (n && k)
      for_matrices(matrix_count(LD), static_cast<double>(n) * n * k, [&](int64_t i) {
        const std::vector<int64_t> wide = wide_pivots("linalg.ldl_solve", p.data<int32_t>() + i * n, n, n);
        (hermitian ? l.hetrs : l.sytrs)(kColumnMajor, 'L', n, k, a.data<E>() + i * n * n, n, wide.data(), x.data<E>() + i * n * k, n);
      });
  });
  return x;
}

// Householder reflectors below the diagonal and R above it, and the reflectors' factors.
std::tuple<Tensor, Tensor> geqrf(const Tensor& self) {
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n);
  const Tensor work = column_major_copy(self), tau = empty(with_vector(self, k), self.dtype());
  dispatch_lapack("geqrf", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("geqrf");
    if (k)
      for_matrices(matrix_count(self), 2.0 * m * n * k,
                   [&](int64_t i) { info_of("geqrf", l.geqrf(kColumnMajor, m, n, work.data<E>() + i * m * n, m, tau.data<E>() + i * k)); });
  });
  return {work, tau};
}

// The first n columns of the product of the reflectors in `input` (m x n, n <= m).
Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  check_same_dtype("linalg.householder_product", input, tau);
  const int64_t m = input.size(-2), n = input.size(-1), k = tau.size(-1);
  const Tensor work = column_major_copy(input), t = contiguous(tau);
  dispatch_lapack("linalg.householder_product", input.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.householder_product");
    if (m && n)
      for_matrices(matrix_count(input), 4.0 * m * n * (k + 1), [&](int64_t i) {
        E* const a = work.data<E>() + i * m * n;
        if (k) {
          info_of("linalg.householder_product", l.orgqr(kColumnMajor, m, n, k, a, m, t.data<E>() + i * k));
        } else {  // no reflectors: the identity
          std::fill(a, a + m * n, E(0));
          for (int64_t c = 0; c < n; c++) a[c * m + c] = E(1);
        }
      });
  });
  return work;
}

// Q or its adjoint times `other`, from the left or the right; Q is the product of all reflectors.
Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose) {
  check_same_dtype("ormqr", self, input2);
  check_same_dtype("ormqr", self, input3);
  const int64_t q = self.size(-2), columns = self.size(-1), k = input2.size(-1), m = input3.size(-2), n = input3.size(-1);
  const Tensor a = column_major_copy(self), tau = contiguous(input2), c = column_major_copy(input3);
  dispatch_lapack("ormqr", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("ormqr");
    if (m && n && k)
      for_matrices(matrix_count(self), 4.0 * m * n * k, [&](int64_t i) {
        info_of("ormqr", l.ormqr(kColumnMajor, left ? 'L' : 'R', transpose ? (kIsComplex<E> ? 'C' : 'T') : 'N', m, n, k,
                                 a.data<E>() + i * q * columns, q, tau.data<E>() + i * k, c.data<E>() + i * m * n, m));
      });
  });
  return c;
}

std::tuple<Tensor, Tensor> _linalg_qr(const Tensor& A, bool complete, bool compute_q) {
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), columns = complete ? m : k;
  const auto [reflectors, tau] = geqrf(A);
  const Tensor R = column_major_zeros(with_matrix(A, columns, n), A.dtype());
  const Tensor Q = column_major_zeros(compute_q ? with_matrix(A, m, columns) : Dims(IntList({0})), A.dtype());
  dispatch_lapack("linalg.qr", A.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.qr");
    for_matrices(matrix_count(A), 4.0 * m * n * columns, [&](int64_t i) {
      const E* const a = reflectors.data<E>() + i * m * n;
      for (int64_t c = 0; c < n; c++) std::copy_n(a + c * m, std::min(c + 1, k), R.data<E>() + (i * n + c) * columns);
      if (!compute_q || m == 0) return;
      E* const q = Q.data<E>() + i * m * columns;
      if (k == 0)
        for (int64_t r = 0; r < columns; r++) q[r * m + r] = E(1);
      std::copy_n(a, m * k, q);
      if (k) info_of("linalg.qr", l.orgqr(kColumnMajor, m, columns, k, q, m, tau.data<E>() + i * k));
    });
  });
  return {Q, R};
}

}  // namespace argand::kernels::cpu
