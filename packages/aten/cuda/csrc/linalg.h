// Linear algebra's ways: many small matrices, each in a program's registers (linalg.cc), LU factors of several larger ones by panels (blocked_lu.cc)
// or by cuBLAS, few by cuSOLVER (solver/). Whatever else is left to the CPU, which also says what is wrong with matrices that have no factors.
#pragma once

#include <string_view>
#include <tuple>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/cuda/csrc/places.h"

namespace argand::kernels::cuda {

[[noreturn]] inline void leave_to_cpu(const char* op) {
  fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for these matrices on device 'cuda'", op);
}

inline int64_t count_of(const Tensor& t) { return elements_in(t.sizes(), 0, t.dim() - 2); }
inline IntList batch_of(const Tensor& t) { return IntList(t->sizes, t.dim() - 2); }
// The batch, and behind it other sizes.
inline Dims sizes_of(const Tensor& t, std::initializer_list<int64_t> rest) {
  Dims sizes(batch_of(t));
  for (const int64_t n : rest) sizes.push_back(n);
  return sizes;
}

inline Tensor column_major(IntList sizes, const Tensor& like) {
  const builtins::Strided s = builtins::column_major(sizes);
  return empty_strided(s.sizes, s.strides, like.dtype(), like.device());
}

// Whether what a factorization found needs the CPU's error.
void check_info(const char* op, const Tensor& info);

// Column by column; pivots and info are LAPACK's.
struct Factors {
  Tensor lu, pivots, info;
};

// (count, rows, columns).
Tensor flat(const Tensor& t);

// A view of matrices that lie column by column.
Tensor flat_columns(const Tensor& t);

// x = T^-1 b with triangular T of at most 64 rows, all of (count, rows, columns); x and b may be one.
void solve_tile(const char* op, const Tensor& t, const Tensor& b, const Tensor& x, bool upper, bool unit);

// Which of n rows comes to each one by LAPACK's exchanges, of int32 (..., steps), as int64 (..., n).
Tensor row_order(const char* op, const Tensor& pivots, int64_t n);

// Several real matrices of some hundred rows at once (blocked_lu.cc): panels of columns by programs, what is to their right by products.
namespace blocked {

constexpr int64_t kMostColumns = int64_t{1} << 19;  // of right sides

bool takes(const Tensor& matrices);

Factors lu_factor(const char* op, const Tensor& self);
// x, (count, n, columns) column by column, becomes the solutions with A, or A^T.
void lu_solve(const char* op, const Tensor& lu, const Tensor& pivots, const Tensor& x, bool transposed);

}  // namespace blocked

// By cuSOLVER and cuBLAS, a call a matrix, or for LU factors of several up to 512 one for all.
namespace large {

// Few and large enough: those that are not are done sooner by the CPU, copies included.
bool takes(const Tensor& matrices);

Factors lu_factor(const char* op, const Tensor& self, bool pivot);
Tensor inverse(const char* op, const Factors& factors);
Tensor lu_solve(const char* op, const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint);
Tensor solve_triangular(const char* op, const Tensor& t, const Tensor& b, bool upper, bool left, bool unit);
std::tuple<Tensor, Tensor> cholesky(const char* op, const Tensor& self, bool upper);
std::tuple<Tensor, Tensor> eigh(const char* op, const Tensor& self, bool upper, bool vectors);
std::tuple<Tensor, Tensor, Tensor> svd(const char* op, const Tensor& self, bool full_matrices, bool vectors);

}  // namespace large
}  // namespace argand::kernels::cuda
