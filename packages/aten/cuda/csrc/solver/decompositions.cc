// Decompositions of few large matrices by cuSOLVER, and LU factors of several by cuBLAS, on column-major copies as LAPACK's on the CPU.
#include <complex>

#include "packages/aten/cuda/csrc/blas/cublas.h"
#include "packages/aten/cuda/csrc/blas/cublaslt.h"
#include "packages/aten/cuda/csrc/linalg.h"
#include "packages/aten/cuda/csrc/solver/cusolver.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/linalg.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

namespace blas = argand::cuda::blas;
namespace solver = argand::cuda::solver;

constexpr int64_t kRowsPerMatrix = 32;  // the CPU's cores take a matrix each
constexpr int64_t kMostRows = 1024;     // of matrices that one call of cuBLAS factors; larger ones fill the device one by one

// How many matrices of `rows` take cuSOLVER less time one by one than one call of cuBLAS (2, 6 and about 28 of 256, 512 and 1024).
int64_t few(int64_t rows) { return rows * rows / 40000; }

int type_index(const char* op, int dtype) {
  switch (dtype) {
    case ARGAND_FLOAT32:
      return 0;
    case ARGAND_FLOAT64:
      return 1;
    case ARGAND_COMPLEX64:
      return 2;
    case ARGAND_COMPLEX128:
      return 3;
    default:
      leave_to_cpu(op);
  }
}
constexpr int32_t kTypes[] = {solver::kR32F, solver::kR64F, solver::kC32F, solver::kC64F};

// The library as one operator uses it: on the current stream, with workspace of the caching allocator.
class Solver {
 public:
  Solver(const char* op, const Tensor& like)
      : l(solver::library()),
        s(solver::session(like.device())),
        type(kTypes[type_index(op, like.dtype())]),
        real_type(kTypes[type_index(op, like.dtype()) % 2]),
        typed(l.typed[type_index(op, like.dtype())]),
        op_(op),
        device_(like.device()) {}

  void check(const char* call, int status) const { solver::check_status(op_, call, status); }
  // A side of matrices for functions that take 32 bits.
  int side(int64_t n) const {
    if (n > std::numeric_limits<int32_t>::max()) leave_to_cpu(op_);
    return static_cast<int>(n);
  }
  Tensor bytes(size_t n) const { return empty({static_cast<int64_t>(std::max<size_t>(n, 1))}, ARGAND_UINT8, device_); }

  // size(&device bytes, &host bytes), then run(i, device, its bytes, host, its bytes) for each matrix.
  template <class Size, class Run>
  void for_each(const char* call, int64_t count, Size size, Run run) const {
    size_t on_device = 0, on_host = 0;
    check(call, size(&on_device, &on_host));
    const Tensor work = bytes(on_device);
    std::vector<char> host(on_host);
    for (int64_t i = 0; i < count; i++) check(call, run(i, work->data, on_device, host.data(), on_host));
  }
  // size(&elements), then run(i, workspace, elements, info).
  template <class Size, class Run>
  void for_each_typed(const char* call, int64_t count, int64_t item_size, Size size, Run run) const {
    int elements = 0;
    check(call, size(&elements));
    const Tensor work = bytes(static_cast<size_t>(elements) * static_cast<size_t>(item_size)), info = empty({1}, ARGAND_INT32, device_);
    for (int64_t i = 0; i < count; i++) check(call, run(i, work->data, elements, info.data<int32_t>()));
  }

  const solver::Library& l;
  const solver::Session s;
  const int32_t type, real_type;
  const solver::Typed& typed;

 private:
  const char* op_;
  ArgandDevice device_;
};

// The i-th of dense matrices or vectors of so many elements.
void* part(const Tensor& t, int64_t i, int64_t elements) { return static_cast<char*>(t->data) + i * elements * kItemSize[t.dtype()]; }

Tensor column_major_copy(const Tensor& t) {
  const Tensor out = column_major(t.sizes(), t);
  ops::copy_(out, t);
  return out;
}

// The same where it is read only.
Tensor column_major_form(const Tensor& t) { return t.strides() == IntList(builtins::column_major(t.sizes()).strides) ? t : column_major_copy(t); }

Tensor conjugate(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj_physical(t) : t; }
Tensor adjoint_of(const Tensor& t) { return conjugate(ops::transpose(t, -2, -1)); }

// Whether matrices that are not finite need the CPU's error.
void check_finite(const char* op, const Tensor& values) { check_info(op, ops::ne(values, values)); }

void check_taken(const char* op, const Tensor& matrices) {
  if (!large::takes(matrices)) leave_to_cpu(op);
}

// b, dense column by column, becomes the solutions with one factorization for each.
void solve_factored(const Solver& s, const Tensor& lu, const Tensor& pivots, const Tensor& b, int64_t columns, int32_t operation) {
  const int64_t n = lu.size(-1);
  const Tensor info = empty({1}, ARGAND_INT32, lu.device());
  for (int64_t i = 0; i < count_of(lu); i++)
    s.check("cusolverDnXgetrs", s.l.getrs(s.s.handle, s.s.params, operation, n, columns, s.type, part(lu, i, n * n), n,
                                          static_cast<const int64_t*>(part(pivots, i, n)), s.type, part(b, i, n * columns), n, info.data<int32_t>()));
}

// Several square matrices in one call of cuBLAS: all functions take tables of addresses.
class Batched {
 public:
  static bool takes(const Tensor& t) {
    return t.numel() && count_of(t) > 1 && count_of(t) <= std::numeric_limits<int32_t>::max() && t.size(-2) == t.size(-1) &&
           t.size(-1) <= kMostRows && !(count_of(t) <= few(t.size(-1)) && large::takes(t)) && (is_floating(t.dtype()) || is_complex(t.dtype()));
  }
  Batched(const char* op, const Tensor& matrices)
      : l(blas::library()),
        handle(blas::handle(matrices.device())),
        type(type_index(op, matrices.dtype())),
        n(static_cast<int>(matrices.size(-1))),
        count(static_cast<int>(count_of(matrices))) {}

  // Of dense matrices, one behind the other.
  static Tensor addresses(const Tensor& t) {
    const int64_t first = static_cast<int64_t>(reinterpret_cast<intptr_t>(t->data)), step = t.size(-2) * t.size(-1) * kItemSize[t.dtype()];
    return ops::arange_start_step(Scalar(first), Scalar(first + count_of(t) * step), Scalar(step), ARGAND_INT64, t.device());
  }
  static void* const* table(const Tensor& addresses) { return static_cast<void* const*>(addresses->data); }

  const blas::Library& l;
  const blas::Handle handle;
  const int type, n, count;
};

Factors lu_factor_batched(const char* op, const Tensor& self, bool pivot) {
  const Batched b(op, self);
  const int64_t n = b.n;
  const Dims steps = sizes_of(self, {n});
  const Factors f{column_major_copy(self),
                  pivot ? empty_on(self, steps, ARGAND_INT32)
                        : ops::contiguous(ops::expand(
                              ops::arange_start_step(Scalar(int64_t{1}), Scalar(n + 1), Scalar(int64_t{1}), ARGAND_INT32, self.device()), steps)),
                  empty_on(self, batch_of(self), ARGAND_INT32)};
  const Tensor matrices = Batched::addresses(f.lu);
  argand::cuda::lt::check_status(op, "cublasgetrfBatched",
                                 b.l.getrf_batched[b.type](b.handle, b.n, Batched::table(matrices), b.n, pivot ? f.pivots.data<int32_t>() : nullptr,
                                                           f.info.data<int32_t>(), b.count));
  return f;
}

// b, dense column by column, becomes the solutions.
void solve_batched(const char* op, const Tensor& lu, const Tensor& pivots, const Tensor& x, int64_t columns, int32_t operation) {
  const Batched b(op, lu);
  const Tensor matrices = Batched::addresses(lu), sides = Batched::addresses(x);
  int info = 0;
  argand::cuda::lt::check_status(op, "cublasgetrsBatched",
                                 b.l.getrs_batched[b.type](b.handle, operation, b.n, static_cast<int>(columns), Batched::table(matrices), b.n,
                                                           pivots.data<int32_t>(), Batched::table(sides), b.n, &info, b.count));
}

// The first columns of the product of reflectors that lie in `q`, which becomes it.
void expand_reflectors(const Solver& s, const Tensor& q, const Tensor& tau) {
  const int64_t rows = q.size(-2), columns = q.size(-1), k = tau.size(-1);
  const int m = s.side(rows), n = s.side(columns), steps = s.side(k);
  s.for_each_typed(
      "cusolverDnorgqr", count_of(q), kItemSize[q.dtype()],
      [&](int* elements) { return s.typed.orgqr_size(s.s.handle, m, n, steps, q->data, m, tau->data, elements); },
      [&](int64_t i, void* work, int elements, int* info) {
        return s.typed.orgqr(s.s.handle, m, n, steps, part(q, i, rows * columns), m, part(tau, i, k), work, elements, info);
      });
}

}  // namespace

void check_info(const char* op, const Tensor& info) {
  const Tensor found = ops::_to_copy(info, ARGAND_INT32, ARGAND_DEVICE(ARGAND_CPU, 0));
  for (int64_t i = 0; i < found.numel(); i++)
    if (found.data<int32_t>()[i]) leave_to_cpu(op);
}

namespace large {

bool takes(const Tensor& t) {
  return t.numel() && count_of(t) * kRowsPerMatrix <= std::max(t.size(-2), t.size(-1)) && (is_floating(t.dtype()) || is_complex(t.dtype()));
}

Factors lu_factor(const char* op, const Tensor& self, bool pivot) {
  if (pivot && blocked::takes(self)) return blocked::lu_factor(op, self);
  if (Batched::takes(self)) return lu_factor_batched(op, self, pivot);
  check_taken(op, self);
  const Solver s(op, self);
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n), count = count_of(self);
  const Tensor lu = column_major_copy(self), info = empty_on(self, batch_of(self), ARGAND_INT32);
  const Dims steps = sizes_of(self, {k});
  const Tensor pivots =
      pivot ? empty_on(self, steps, ARGAND_INT64)
            : ops::expand(ops::arange_start_step(Scalar(int64_t{1}), Scalar(k + 1), Scalar(int64_t{1}), ARGAND_INT64, self.device()), steps);
  s.for_each(
      "cusolverDnXgetrf", count,
      [&](size_t* on_device, size_t* on_host) {
        return s.l.getrf_size(s.s.handle, s.s.params, m, n, s.type, lu->data, m, s.type, on_device, on_host);
      },
      [&](int64_t i, void* work, size_t bytes, void* host, size_t host_bytes) {
        return s.l.getrf(s.s.handle, s.s.params, m, n, s.type, part(lu, i, m * n), m, pivot ? static_cast<int64_t*>(part(pivots, i, k)) : nullptr,
                         s.type, work, bytes, host, host_bytes, info.data<int32_t>() + i);
      });
  return {lu, ops::_to_copy(pivots, ARGAND_INT32), info};
}

Tensor lu_solve(const char* op, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  const int64_t columns = left ? b.size(-1) : b.size(-2);
  const bool several = blocked::takes(lu) && columns <= blocked::kMostColumns, batched = !several && Batched::takes(lu);
  if (!several && !batched) check_taken(op, lu);
  if (b.dtype() != lu.dtype() || pivots.dtype() != ARGAND_INT32 || columns > std::numeric_limits<int32_t>::max()) leave_to_cpu(op);
  // x A = b is A^T x^T = b^T, and column-major x^T is row-major x; x A^H = b is A conj(x^T) = conj(b^T).
  const bool flip = !left && adjoint;
  Tensor x = left ? column_major_copy(b) : ops::clone(flip ? conjugate(b) : b, 0);
  const int32_t operation = left ? (adjoint ? solver::kOpC : solver::kOpN) : (adjoint ? solver::kOpN : solver::kOpT);
  if (x.numel() && several)
    blocked::lu_solve(op, column_major_form(lu), ops::contiguous(pivots), left ? flat_columns(x) : ops::transpose(flat(x), 1, 2),
                      operation != solver::kOpN);
  else if (x.numel() && batched)
    solve_batched(op, column_major_form(lu), ops::contiguous(pivots), x, columns, operation);
  else if (x.numel())
    solve_factored(Solver(op, lu), column_major_form(lu), ops::contiguous(ops::_to_copy(pivots, ARGAND_INT64)), x, columns, operation);
  return flip ? conjugate(x) : x;
}

Tensor inverse(const char* op, const Factors& f) {
  const Tensor ones = ops::eye(f.lu.size(-1), std::nullopt, f.lu.dtype(), f.lu.device());
  return lu_solve(op, f.lu, f.pivots, ops::expand(ones, f.lu.sizes()), true, false);
}

Tensor solve_triangular(const char* op, const Tensor& t, const Tensor& b, bool upper, bool left, bool unit) {
  check_taken(op, t);
  if (b.dtype() != t.dtype() || std::max(b.size(-2), b.size(-1)) > std::numeric_limits<int32_t>::max()) leave_to_cpu(op);
  const int type = type_index(op, t.dtype()), n = static_cast<int>(t.size(-1)), rows = static_cast<int>(b.size(-2)),
            columns = static_cast<int>(b.size(-1));
  const blas::Library& l = blas::library();
  const blas::Handle handle = blas::handle(t.device());
  const Tensor a = column_major_copy(t), x = column_major_copy(b);
  const std::complex<float> single(1);  // the real numbers 1, too
  const std::complex<double> twice(1);
  const void* const one = type % 2 ? static_cast<const void*>(&twice) : &single;
  for (int64_t i = 0; i < count_of(a); i++)
    argand::cuda::lt::check_status(
        op, "cublastrsm",
        l.trsm[type](handle, left ? blas::kLeft : blas::kRight, upper ? blas::kUpper : blas::kLower, blas::kOpN, unit ? blas::kOnes : blas::kGiven,
                     rows, columns, one, part(a, i, int64_t{n} * n), n, part(x, i, int64_t{rows} * columns), rows));
  return x;
}

std::tuple<Tensor, Tensor> cholesky(const char* op, const Tensor& self, bool upper) {
  check_taken(op, self);
  const Solver s(op, self);
  const int64_t n = self.size(-1);
  const int32_t fill = upper ? solver::kUpper : solver::kLower;
  const Tensor out = column_major_copy(self), info = empty_on(self, batch_of(self), ARGAND_INT32);
  s.for_each(
      "cusolverDnXpotrf", count_of(self),
      [&](size_t* on_device, size_t* on_host) {
        return s.l.potrf_size(s.s.handle, s.s.params, fill, n, s.type, out->data, n, s.type, on_device, on_host);
      },
      [&](int64_t i, void* work, size_t bytes, void* host, size_t host_bytes) {
        return s.l.potrf(s.s.handle, s.s.params, fill, n, s.type, part(out, i, n * n), n, s.type, work, bytes, host, host_bytes,
                         info.data<int32_t>() + i);
      });
  upper ? ops::triu_(out) : ops::tril_(out);
  return {out, info};
}

std::tuple<Tensor, Tensor> eigh(const char* op, const Tensor& self, bool upper, bool vectors) {
  check_taken(op, self);
  const Solver s(op, self);
  const int64_t n = self.size(-1);
  const int32_t fill = upper ? solver::kUpper : solver::kLower, how = vectors ? solver::kVectors : solver::kNoVectors;
  const Tensor work_of = column_major_copy(self), values = empty_on(self, sizes_of(self, {n}), builtins::real_dtype(self.dtype())),
               info = empty_on(self, batch_of(self), ARGAND_INT32);
  s.for_each(
      "cusolverDnXsyevd", count_of(self),
      [&](size_t* on_device, size_t* on_host) {
        return s.l.syevd_size(s.s.handle, s.s.params, how, fill, n, s.type, work_of->data, n, s.real_type, values->data, s.type, on_device, on_host);
      },
      [&](int64_t i, void* work, size_t bytes, void* host, size_t host_bytes) {
        return s.l.syevd(s.s.handle, s.s.params, how, fill, n, s.type, part(work_of, i, n * n), n, s.real_type, part(values, i, n), s.type, work,
                         bytes, host, host_bytes, info.data<int32_t>() + i);
      });
  check_info(op, info);
  check_finite(op, values);
  return {values, vectors ? work_of : empty_on(self, {0}, self.dtype())};
}

std::tuple<Tensor, Tensor, Tensor> svd(const char* op, const Tensor& self, bool full_matrices, bool vectors) {
  check_taken(op, self);
  const Solver s(op, self);
  const int64_t rows = self.size(-2), columns = self.size(-1), k = std::min(rows, columns), count = count_of(self);
  const bool full = full_matrices && vectors;
  const int64_t left = full ? rows : k, right = full ? columns : k;
  const int m = s.side(rows), n = s.side(columns), economic = full ? 0 : 1;
  const int32_t how = vectors ? solver::kVectors : solver::kNoVectors;
  // Room for the vectors is written to in any case.
  const Tensor a = column_major_copy(self), values = empty_on(self, sizes_of(self, {k}), builtins::real_dtype(self.dtype())),
               u = column_major(sizes_of(self, {rows, left}), self), v = column_major(sizes_of(self, {columns, right}), self),
               info = empty_on(self, batch_of(self), ARGAND_INT32);
  s.for_each_typed(
      "cusolverDngesvdj", count, kItemSize[self.dtype()],
      [&](int* elements) {
        return s.typed.gesvdj_size(s.s.handle, how, economic, m, n, a->data, m, values->data, u->data, m, v->data, n, elements, s.s.jacobi);
      },
      [&](int64_t i, void* work, int elements, int*) {
        return s.typed.gesvdj(s.s.handle, how, economic, m, n, part(a, i, rows * columns), m, part(values, i, k), part(u, i, rows * left), m,
                              part(v, i, columns * right), n, work, elements, info.data<int32_t>() + i, s.s.jacobi);
      });
  check_info(op, info);
  check_finite(op, values);
  const Tensor none = empty_on(self, {0}, self.dtype());
  return {vectors ? u : none, values, vectors ? column_major_copy(adjoint_of(v)) : none};
}

}  // namespace large

std::tuple<Tensor, Tensor> geqrf(const Tensor& self) {
  const char* op = "geqrf";
  const places::Below below;
  check_taken(op, self);
  const Solver s(op, self);
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n), count = count_of(self);
  const Tensor a = column_major_copy(self), tau = empty_on(self, sizes_of(self, {k}), self.dtype()), info = empty({1}, ARGAND_INT32, self.device());
  s.for_each(
      "cusolverDnXgeqrf", count,
      [&](size_t* on_device, size_t* on_host) {
        return s.l.geqrf_size(s.s.handle, s.s.params, m, n, s.type, a->data, m, s.type, tau->data, s.type, on_device, on_host);
      },
      [&](int64_t i, void* work, size_t bytes, void* host, size_t host_bytes) {
        return s.l.geqrf(s.s.handle, s.s.params, m, n, s.type, part(a, i, m * n), m, s.type, part(tau, i, k), s.type, work, bytes, host, host_bytes,
                         info.data<int32_t>());
      });
  return {a, tau};
}

Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  const char* op = "linalg.householder_product";
  const places::Below below;
  check_taken(op, input);
  if (tau.dtype() != input.dtype() || tau.numel() == 0) leave_to_cpu(op);
  const Tensor q = column_major_copy(input);
  expand_reflectors(Solver(op, input), q, ops::contiguous(tau));
  return q;
}

Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose) {
  const char* op = "ormqr";
  const places::Below below;
  check_taken(op, self);
  if (self.dtype() != input2.dtype() || self.dtype() != input3.dtype() || input3.numel() == 0) leave_to_cpu(op);
  const Solver s(op, self);
  const int64_t rows = self.size(-2), columns = self.size(-1), k = input2.size(-1), m = input3.size(-2), n = input3.size(-1);
  const Tensor a = column_major_copy(self), tau = ops::contiguous(input2), c = column_major_copy(input3);
  const int32_t side = left ? solver::kLeft : solver::kRight, operation = !transpose                 ? solver::kOpN
                                                                          : is_complex(self.dtype()) ? solver::kOpC
                                                                                                     : solver::kOpT;
  const int lda = s.side(rows), c_rows = s.side(m), c_columns = s.side(n), steps = s.side(k);
  s.for_each_typed(
      "cusolverDnormqr", count_of(self), kItemSize[self.dtype()],
      [&](int* elements) {
        return s.typed.ormqr_size(s.s.handle, side, operation, c_rows, c_columns, steps, a->data, lda, tau->data, c->data, c_rows, elements);
      },
      [&](int64_t i, void* work, int elements, int* info) {
        return s.typed.ormqr(s.s.handle, side, operation, c_rows, c_columns, steps, part(a, i, rows * columns), lda, part(tau, i, k),
                             part(c, i, m * n), c_rows, work, elements, info);
      });
  return c;
}

std::tuple<Tensor, Tensor> _linalg_qr(const Tensor& A, bool complete, bool compute_q) {
  const char* op = "linalg.qr";
  const places::Below below;
  check_taken(op, A);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), columns = complete ? m : k;
  const auto [a, tau] = geqrf(A);
  const Tensor R = column_major(sizes_of(A, {columns, n}), A);
  ops::copy_(R, ops::triu(ops::narrow(a, -2, 0, columns)));
  if (!compute_q) return {empty_on(A, {0}, A.dtype()), R};
  const Tensor Q = column_major(sizes_of(A, {m, columns}), A);
  ops::copy_(ops::narrow(Q, -1, 0, k), ops::narrow(a, -1, 0, k));
  expand_reflectors(Solver(op, A), Q, tau);
  return {Q, R};
}

// By QR: of matrices of full rank, as LAPACK's gels. Of more columns than rows, the solution of least norm.
std::tuple<Tensor, Tensor, Tensor> _linalg_lstsq(const Tensor& self, const Tensor& b, double, std::string_view driver) {
  const char* op = "linalg.lstsq";
  const places::Below below;
  check_taken(op, self);
  if (driver != "gels" || b.numel() == 0 || b.dtype() != self.dtype()) leave_to_cpu(op);
  const int64_t m = self.size(-2), n = self.size(-1);
  const Tensor rank = empty_on(self, {0}, ARGAND_INT64), values = empty_on(self, {0}, builtins::real_dtype(self.dtype()));
  if (m >= n) {
    const auto [a, tau] = geqrf(self);
    const Tensor room = ormqr(a, tau, b, true, true), x = ops::narrow(room, -2, 0, n);
    ops::copy_(x, ops::_solve_triangular(ops::narrow(a, -2, 0, n), x, true, true, false));
    return {x, rank, values};
  }
  const auto [a, tau] = geqrf(adjoint_of(self));
  const Tensor room = column_major(sizes_of(self, {n, b.size(-1)}), b);
  ops::zero_(room);
  ops::copy_(ops::narrow(room, -2, 0, m), ops::_solve_triangular(adjoint_of(ops::narrow(a, -2, 0, m)), b, false, true, false));
  return {ormqr(a, tau, room, true, false), rank, values};
}

}  // namespace argand::kernels::cuda
