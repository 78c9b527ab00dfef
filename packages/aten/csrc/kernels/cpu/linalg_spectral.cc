// Singular values, eigenvalues, least squares, the matrix exponential: matrix by matrix in column-major copies.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/gemm.h"
#include "packages/aten/csrc/kernels/cpu/lapack.h"
#include "packages/aten/csrc/kernels/cpu/linalg_triangle.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

constexpr const char* kNotConverged = "the algorithm did not converge (error code %lld): the matrix is ill-conditioned or has too many equal values";

template <class E>
bool all_finite(const E* a, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!std::isfinite(std::real(a[i])) || !std::isfinite(std::imag(a[i]))) return false;
  return true;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv) {
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), count = matrix_count(A);
  const int64_t rows = full_matrices ? m : k, columns = full_matrices ? n : k;  // of U^T, of V^H
  const Tensor work = column_major_copy(A), S = empty(with_vector(A, k), real_dtype(A.dtype())), info = empty(batch_sizes(A), ARGAND_INT32);
  const Dims none(IntList({0}));
  const Tensor U = column_major(compute_uv ? with_matrix(A, m, rows) : none, A.dtype());
  const Tensor V = column_major(compute_uv ? with_matrix(A, columns, n) : none, A.dtype());
  dispatch_lapack("linalg.svd", A.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.svd");
    const char job = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
    for_matrices(count, 20.0 * m * n * k, [&](int64_t i) {
      E* const u = compute_uv ? U.data<E>() + i * m * rows : nullptr;
      E* const v = compute_uv ? V.data<E>() + i * n * columns : nullptr;
      info.data<int32_t>()[i] = 0;
      if (k) {
        const int64_t ldv = std::max<int64_t>(columns, 1);
        E* const a = work.data<E>() + i * m * n;
        const bool finite = all_finite(a, m * n);  // LAPACK may iterate for ever on infinite ones
        info.data<int32_t>()[i] =
            info_of("linalg.svd", finite ? l.gesdd(kColumnMajor, job, m, n, a, m, S.data<real_t<E>>() + i * k, u, m, v, ldv) : -1);
      } else if (compute_uv) {
        for (int64_t j = 0; j < m * rows; j++) u[j] = E(j / m == j % m);
        for (int64_t j = 0; j < n * columns; j++) v[j] = E(j / n == j % n);
      }
    });
  });
  check_info("linalg.svd", info, kNotConverged);
  return {U, S, V};
}

// Whether the triangle that is read of a column-major matrix is finite.
template <class E>
static bool is_triangle_finite(const E* a, int64_t n, bool upper) {
  for (int64_t j = 0; j < n; j++)
    if (!all_finite(a + j * n + (upper ? 0 : j), upper ? j + 1 : n - j)) return false;
  return true;
}

std::tuple<Tensor, Tensor> _linalg_eigh(const Tensor& A, std::string_view uplo, bool compute_v) {
  const int64_t n = A.size(-1);
  const Tensor work = column_major_copy(A), values = empty(with_vector(A, n), real_dtype(A.dtype())), info = empty(batch_sizes(A), ARGAND_INT32);
  dispatch_lapack("linalg.eigh", A.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.eigh");
    const char triangle = uplo == "U" || uplo == "u" ? 'U' : 'L';
    for_matrices(matrix_count(A), 9 * cubed(n), [&](int64_t i) {
      E* const a = work.data<E>() + i * n * n;
      real_t<E>* const w = values.data<real_t<E>>() + i * n;
      const bool finite = n == 1 || is_triangle_finite(a, n, triangle == 'U');
      int64_t status = 0;
      if (n && finite) {
        status = l.syevd(kColumnMajor, compute_v ? 'V' : 'N', triangle, n, a, n, w);
      } else if (n == 2) {
        std::fill_n(w, n, static_cast<real_t<E>>(NAN));
        std::fill_n(a, n * n, E(static_cast<real_t<E>>(NAN)));
      } else if (n) {
        status = -1;
      }
      info.data<int32_t>()[i] = info_of("linalg.eigh", status);
    });
  });
  check_info("linalg.eigh", info, kNotConverged);
  return {values, compute_v ? work : empty({0}, A.dtype())};
}

std::tuple<Tensor, Tensor> _linalg_eig(const Tensor& self, bool compute_v) {
  const int64_t n = self.size(-1);
  const int dtype = complex_dtype(self.dtype());
  const Tensor work = column_major_copy(self), values = empty(with_vector(self, n), dtype), info = empty(batch_sizes(self), ARGAND_INT32);
  const Tensor vectors = column_major(compute_v ? Dims(self.sizes()) : Dims(IntList({0})), dtype);
  dispatch_lapack("linalg.eig", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    using C = std::complex<real_t<E>>;
    const Lapack<E>& l = lapack<E>("linalg.eig");
    if (!all_finite(work.data<E>(), work.numel()))
      fail(ARGAND_RUNTIME_ERROR, "linalg.eig: got a matrix with infinite or NaN elements, expected finite ones");
    for_matrices(matrix_count(self), 25 * cubed(n), [&](int64_t i) {
      info.data<int32_t>()[i] = 0;
      if (n == 0) return;
      E* const a = work.data<E>() + i * n * n;
      C* const w = values.data<C>() + i * n;
      C* const v = compute_v ? vectors.data<C>() + i * n * n : nullptr;
      int64_t status;
      if constexpr (kIsComplex<E>) {
        status = l.geev(kColumnMajor, 'N', compute_v ? 'V' : 'N', n, a, n, w, nullptr, 1, v, n);
      } else {
        Scratch<E> re(n), im(n), real_vectors(compute_v ? n * n : 0);
        status = l.geev(kColumnMajor, 'N', compute_v ? 'V' : 'N', n, a, n, re, im, nullptr, 1, real_vectors, n);
        for (int64_t j = 0; j < n; j++) w[j] = C(re[j], im[j]);
        for (int64_t j = 0; compute_v && j < n; j++) {  // conjugate pairs have their real and imaginary parts in two columns
          const E* const x = real_vectors + j * n;
          const bool pair = im[j] != 0 && j + 1 < n;
          for (int64_t r = 0; r < n; r++) {
            v[j * n + r] = C(x[r], pair ? x[n + r] : E(0));
            if (pair) v[(j + 1) * n + r] = C(x[r], -x[n + r]);
          }
          j += pair;
        }
      }
      info.data<int32_t>()[i] = info_of("linalg.eig", status);
    });
  });
  check_info("linalg.eig", info, kNotConverged);
  return {values, vectors};
}

// self (..., m, n), b (..., m, k) of one batch; driver "gels" (no ranks), "gelsy", "gelsd" or "gelss" (with singular values).
std::tuple<Tensor, Tensor, Tensor> _linalg_lstsq(const Tensor& self, const Tensor& b, double rcond, std::string_view driver) {
  check_same_dtype("linalg.lstsq", self, b);
  const int64_t m = self.size(-2), n = self.size(-1), k = b.size(-1), count = matrix_count(self), ld = std::max<int64_t>({m, n, 1});
  const bool values = driver == "gelsd" || driver == "gelss", ranks = driver != "gels";
  const Tensor a = column_major_copy(self), rhs = column_major_copy(b), both = column_major_zeros(with_matrix(b, std::max(m, n), k), b.dtype());
  const Dims none(IntList({0}));
  const Tensor rank = ranks ? zeros(batch_sizes(self), ARGAND_INT64) : zeros(none, ARGAND_INT64), info = empty(batch_sizes(self), ARGAND_INT32);
  const Tensor S = values ? zeros(with_vector(self, std::min(m, n)), real_dtype(self.dtype())) : zeros(none, real_dtype(self.dtype()));
  dispatch_lapack("linalg.lstsq", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    using R = real_t<E>;
    const Lapack<E>& l = lapack<E>("linalg.lstsq");
    for_matrices(count, 4.0 * ld * ld * std::min(m, n), [&](int64_t i) {
      info.data<int32_t>()[i] = 0;
      if (m == 0 || n == 0 || k == 0) return;
      E* const x = both.data<E>() + i * ld * k;  // the right sides, then the solutions
      for (int64_t c = 0; c < k; c++) std::copy_n(rhs.data<E>() + (i * k + c) * m, m, x + c * ld);
      E* const f = a.data<E>() + i * m * n;
      int64_t status, found = 0;
      if (!ranks) {
        status = l.gels(kColumnMajor, 'N', m, n, k, f, m, x, ld);
      } else if (!values) {
        std::vector<int64_t> columns(static_cast<size_t>(n), 0);
        status = l.gelsy(kColumnMajor, m, n, k, f, m, x, ld, columns.data(), static_cast<R>(rcond), &found);
      } else {
        status = (driver == "gelsd" ? l.gelsd : l.gelss)(kColumnMajor, m, n, k, f, m, x, ld, S.data<R>() + i * std::min(m, n), static_cast<R>(rcond),
                                                         &found);
      }
      if (ranks) rank.data<int64_t>()[i] = found;
      info.data<int32_t>()[i] = info_of("linalg.lstsq", status);
    });
  });
  check_info("linalg.lstsq", info,
             "the matrix has no full rank, or its singular values did not converge (error code %lld); driver='gelsd' takes any rank");
  return {view_of(both, with_matrix(b, n, k), both.strides(), both->offset), rank, S};
}

namespace {

// c = alpha a b (+ c), square and row-major.
template <class E>
void multiply(int dtype, int64_t n, double alpha, const E* a, const E* b, double beta, E* c) {
  gemm(dtype, n, n, n, alpha, {a, n, 1}, {b, n, 1}, beta, c, n, true);
}

// Pade approximants and the norms up to which they are exact to the dtype: N. Higham, SIAM J. Matrix Anal. Appl. 26 (2005).
constexpr double kPade3[] = {120, 60, 12, 1};
constexpr double kPade5[] = {30240, 15120, 3360, 420, 30, 1};
constexpr double kPade7[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};
constexpr double kPade9[] = {17643225600., 8821612800., 2075673600., 302702400., 30270240., 2162160., 110880., 3960., 90., 1.};
constexpr double kPade13[] = {64764752532480000.,
                              32382376266240000.,
                              7771770303897600.,
                              1187353796428800.,
                              129060195264000.,
                              10559470521600.,
                              670442572800.,
                              33522128640.,
                              1323241920.,
                              40840800.,
                              960960.,
                              16380.,
                              182.,
                              1.};
struct Pade {
  int degree;
  const double* coefficients;
  double limit64, limit32;
};
constexpr Pade kPades[] = {{3, kPade3, 1.495585217958292e-2, 4.258730016922831e-1},
                           {5, kPade5, 2.539398330063230e-1, 1.880152677804762},
                           {7, kPade7, 9.504178996162932e-1, 3.925724783138660},
                           {9, kPade9, 2.097847961257068, 0},
                           {13, kPade13, 5.371920351148152, 0}};

// exp of one row-major matrix, in place: r(a / 2^s) ^ (2^s) with r = (v - u)^-1 (v + u), u the odd part of the polynomial, v the even one.
template <class E>
void exponential(int dtype, const Lapack<E>& l, int64_t n, E* a) {
  using R = real_t<E>;
  const int64_t size = n * n;
  std::vector<double> columns(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) columns[static_cast<size_t>(j)] += std::abs(a[i * n + j]);
  double norm = 0;
  for (const double column : columns) norm = !(column <= norm) ? column : norm;
  if (!std::isfinite(norm)) {
    std::fill(a, a + size, E(std::numeric_limits<R>::quiet_NaN()));
    return;
  }
  constexpr bool kDouble = sizeof(R) == 8;
  const Pade* pade = kPades;
  const Pade* const last = kPades + (kDouble ? 4 : 2);
  while (pade < last && norm > (kDouble ? pade->limit64 : pade->limit32)) pade++;
  const double limit = kDouble ? pade->limit64 : pade->limit32;
  int squarings = 0;
  if (norm > limit) squarings = static_cast<int>(std::ceil(std::log2(norm / limit)));
  for (int64_t i = 0; i < size; i++) a[i] *= static_cast<R>(std::ldexp(1.0, -squarings));
  // Even powers: a2, a4, ... up to 6 (degree 13 is a polynomial in them of two stages) or degree - 1.
  const int d = pade->degree, powers = d == 13 ? 3 : d / 2;
  const double* const b = pade->coefficients;
  Scratch<E> even(size * powers), u(size), v(size), w(size);
  for (int p = 0; p < powers; p++) multiply<E>(dtype, n, 1, p ? even + (p - 1) * size : a, p ? even.get() : a, 0, even + p * size);
  auto combine = [&](E* out, int first, int step, int count, double identity) {  // identity I + sum b[first + step p] a^(2 p + 2)
    parallel_for(0, size, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        E s(0);
        for (int p = 0; p < count; p++) s += static_cast<R>(b[first + step * p]) * even[p * size + i];
        out[i] = s;
      }
    });
    for (int64_t i = 0; i < size; i += n + 1) out[i] += static_cast<R>(identity);
  };
  combine(w, 3, 2, powers, b[1]);
  combine(v, 2, 2, powers, b[0]);
  if (d == 13) {
    Scratch<E> high(size);
    combine(high, 9, 2, 3, 0);
    multiply<E>(dtype, n, 1, even + 2 * size, high, 1, w);
    combine(high, 8, 2, 3, 0);
    multiply<E>(dtype, n, 1, even + 2 * size, high, 1, v);
  }
  multiply<E>(dtype, n, 1, a, w, 0, u);
  for (int64_t i = 0; i < size; i++) {
    w[i] = v[i] - u[i];
    v[i] += u[i];
  }
  // v and w commute, as polynomials in a, so that x w = v besides w x = v: what LAPACK, which sees them transposed, solves in place.
  std::vector<int64_t> pivots(static_cast<size_t>(n));
  l.getrf(kColumnMajor, n, n, w, n, pivots.data());
  solve_lu<E>(l, 'N', n, n, w, pivots.data(), v);
  std::copy_n(v.get(), size, a);
  for (int s = 0; s < squarings; s++) {
    multiply<E>(dtype, n, 1, a, a, 0, v);
    std::copy_n(v.get(), size, a);
  }
}

}  // namespace

Tensor linalg_matrix_exp(const Tensor& self) {
  if (self.dtype() == ARGAND_FLOAT16 || self.dtype() == ARGAND_BFLOAT16)
    return to_dtype(linalg_matrix_exp(to_dtype(self, ARGAND_FLOAT32)), self.dtype());
  const int64_t n = self.size(-1);
  const Tensor out = dense_copy(self);
  dispatch_lapack("linalg.matrix_exp", self.dtype(), [&](auto tag) {
    using E = typename decltype(tag)::type;
    const Lapack<E>& l = lapack<E>("linalg.matrix_exp");
    if (n) for_matrices(matrix_count(self), 20 * cubed(n), [&](int64_t i) { exponential<E>(self.dtype(), l, n, out.data<E>() + i * n * n); });
  });
  return out;
}

}  // namespace argand::kernels::cpu
