// LAPACK of the OpenBLAS that matrix products use: one table of LAPACKE functions (64-bit integers) a dtype, and the loops around them.
#pragma once

#include <complex>

#include "packages/aten/csrc/kernels/cpu/blas.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/c10/csrc/abi/linalg_error.h"

namespace argand::kernels::cpu {

template <class E>
struct RealOf {
  using type = E;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class E>
using real_t = typename RealOf<E>::type;
template <class E>
inline constexpr bool kIsComplex = !std::is_same_v<E, real_t<E>>;

inline constexpr int kRowMajor = 101, kColumnMajor = 102;

// E: float, double, std::complex of them. Names of the real functions; orgqr is ungqr and syevd heevd for complex E.
template <class E>
struct Lapack {
  using R = real_t<E>;
  using I = int64_t;
  I (*potrf)(int layout, char uplo, I n, E* a, I lda);
  I (*getrf)(int layout, I m, I n, E* a, I lda, I* pivots);
  I (*getrs)(int layout, char trans, I n, I columns, const E* a, I lda, const I* pivots, E* b, I ldb);
  I (*getri)(int layout, I n, E* a, I lda, const I* pivots);
  I (*geqrf)(int layout, I m, I n, E* a, I lda, E* tau);
  I (*orgqr)(int layout, I m, I n, I k, E* a, I lda, const E* tau);
  I (*ormqr)(int layout, char side, char trans, I m, I n, I k, const E* a, I lda, const E* tau, E* c, I ldc);
  I (*gesdd)(int layout, char job, I m, I n, E* a, I lda, R* s, E* u, I ldu, E* vt, I ldvt);
  I (*syevd)(int layout, char job, char uplo, I n, E* a, I lda, R* w);
  std::conditional_t<kIsComplex<E>, I (*)(int layout, char left, char right, I n, E* a, I lda, E* w, E* vl, I ldvl, E* vr, I ldvr),
                     I (*)(int layout, char left, char right, I n, E* a, I lda, R* re, R* im, E* vl, I ldvl, E* vr, I ldvr)>
      geev;
  I (*gels)(int layout, char trans, I m, I n, I columns, E* a, I lda, E* b, I ldb);
  I (*gelsy)(int layout, I m, I n, I columns, E* a, I lda, E* b, I ldb, I* jpvt, R rcond, I* rank);
  I (*gelsd)(int layout, I m, I n, I columns, E* a, I lda, E* b, I ldb, R* s, R rcond, I* rank);
  I (*gelss)(int layout, I m, I n, I columns, E* a, I lda, E* b, I ldb, R* s, R rcond, I* rank);
  I (*sytrf)(int layout, char uplo, I n, E* a, I lda, I* pivots);
  I (*hetrf)(int layout, char uplo, I n, E* a, I lda, I* pivots);  // for real E: sytrf
  I (*sytrs)(int layout, char uplo, I n, I columns, const E* a, I lda, const I* pivots, E* b, I ldb);
  I (*hetrs)(int layout, char uplo, I n, I columns, const E* a, I lda, const I* pivots, E* b, I ldb);
  // op(a) x = b (left) or x op(a) = b, in place; cblas constants.
  std::conditional_t<kIsComplex<E>,
                     void (*)(int order, int side, int uplo, int trans, int diag, I m, I n, const E* alpha, const E* a, I lda, E* b, I ldb),
                     void (*)(int order, int side, int uplo, int trans, int diag, I m, I n, E alpha, const E* a, I lda, E* b, I ldb)>
      trsm;
};

// The table of E; loads the library at first use, naming `op` where it fails.
template <class E>
const Lapack<E>& lapack(const char* op);

template <class F>
inline void dispatch_lapack(const char* op, int dtype, F&& f) {
  switch (dtype) {
    case ARGAND_FLOAT32:
      return f(Tag<float>{});
    case ARGAND_FLOAT64:
      return f(Tag<double>{});
    case ARGAND_COMPLEX64:
      return f(Tag<std::complex<float>>{});
    case ARGAND_COMPLEX128:
      return f(Tag<std::complex<double>>{});
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got a tensor of dtype %s, expected float32, float64, complex64 or complex128; convert it first", op,
           kDTypeName[dtype]);
  }
}

inline int real_dtype(int dtype) { return dtype == ARGAND_COMPLEX64 ? ARGAND_FLOAT32 : dtype == ARGAND_COMPLEX128 ? ARGAND_FLOAT64 : dtype; }
inline int complex_dtype(int dtype) { return dtype == ARGAND_FLOAT32 ? ARGAND_COMPLEX64 : dtype == ARGAND_FLOAT64 ? ARGAND_COMPLEX128 : dtype; }

// Batches of matrices (..., rows, columns).
inline int64_t matrix_count(const Tensor& t) { return product(t.sizes(), 0, t.dim() - 2); }
Dims batch_sizes(const Tensor& t);                              // the leading sizes
Dims with_matrix(const Tensor& t, int64_t rows, int64_t cols);  // they and two more
Dims with_vector(const Tensor& t, int64_t n);

// New dense tensors whose matrices lie column by column, as LAPACK wants them (ld = rows): not set, zeros, or the values of t.
Tensor column_major(IntList sizes, int dtype);
Tensor column_major_zeros(IntList sizes, int dtype);
Tensor column_major_copy(const Tensor& t);
// A new row-major tensor of the values of t.
Tensor dense_copy(const Tensor& t);

// f(i) for each matrix; `work` is the number of operations of one.
template <class F>
inline void for_matrices(int64_t count, double work, F&& f) {
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(1e5 / (work + 1)));
  argand::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    const BlasCall call("linalg");
    for (int64_t i = begin; i < end; i++) f(i);
  });
}
inline double cubed(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

// What LAPACKE returned, as an info; throws where it found no memory for its work arrays, so that no result was made.
int32_t info_of(const char* op, int64_t status);
// Throws LinAlgError "op: (Batch element i): <what for info>" for the first info that is not 0; `what` describes a positive one with one %lld.
void check_info(const char* op, const Tensor& info, const char* what);

}  // namespace argand::kernels::cpu
