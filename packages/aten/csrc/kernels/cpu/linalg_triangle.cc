#include "packages/aten/csrc/kernels/cpu/linalg_triangle.h"

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/gemm.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kLarge = 128;     // order from which halves take less time than LAPACK
constexpr int64_t kTriangle = 48;   // order of a triangle that is solved with as a whole
constexpr int64_t kColumns = 48;    // that threads take at once, at least
constexpr int64_t kFewColumns = 8;  // of a right-hand side, for which products bring nothing

template <class E>
constexpr int dtype_of() {
  return sizeof(E) == 4 ? ARGAND_FLOAT32 : sizeof(E) == 16 ? ARGAND_COMPLEX128 : kIsComplex<E> ? ARGAND_COMPLEX64 : ARGAND_FLOAT64;
}

// A block of a matrix whose rows and columns lie so far apart.
template <class E>
struct Block {
  const E* data;
  int64_t row, column;
};

// c -= a b; c is column-major: its transpose is the product of the other two's. Threads take columns in numbers that depend on the sizes alone.
template <class E>
void subtract_product(int64_t m, int64_t n, int64_t k, Block<E> a, Block<E> b, E* c, int64_t ldc) {
  if (!m || !n || !k) return;
  const int64_t columns = round_up(std::clamp<int64_t>(n / 8, kColumns, 5 * kColumns), 12);
  parallel_for(0, (n + columns - 1) / columns, row_grain(columns * m * k / 4), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t first = i * columns;
      gemm(dtype_of<E>(), std::min(columns, n - first), m, k, -1, {b.data + first * b.column, b.column, b.row}, {a.data, a.column, a.row}, 1,
           c + first * ldc, ldc, true);
    }
  });
}

int64_t half_of(int64_t n) { return (n / 2 + kColumns - 1) / kColumns * kColumns; }

// By substitution, for triangles that are singular, of which some of the library's kernels make NaN where others have infinities.
template <class E>
void substitute(Triangle kind, int64_t n, int64_t other, const E* t, int64_t ldt, E* b, int64_t ldb) {
  const bool forward = (kind.upper == kind.transposed) == kind.left;
  const int64_t along = kind.left ? 1 : ldb, across = kind.left ? ldb : 1;
  const auto place = [&](int64_t i) { return forward ? i : n - 1 - i; };
  for (int64_t i = 0; i < n; i++) {
    E* const to = b + place(i) * along;
    for (int64_t p = 0; p < i; p++) {
      const int64_t row = kind.left != kind.transposed ? i : p, column = row == i ? p : i;
      const E factor = t[place(row) + place(column) * ldt];
      for (int64_t r = 0; r < other; r++) to[r * across] -= factor * b[place(p) * along + r * across];
    }
    for (int64_t r = 0; r < other; r++) to[r * across] /= t[place(i) * (ldt + 1)];
  }
}

// One triangle by the library, so many columns or rows of b at a time, whatever the number of threads.
template <class E>
void solve_whole(const Lapack<E>& l, Triangle kind, int64_t n, int64_t other, const E* t, int64_t ldt, E* b, int64_t ldb) {
  constexpr int kLeft = 141, kRight = 142, kUpper = 121, kLower = 122, kNoTrans = 111, kTrans = 112, kNonUnit = 131, kUnit = 132;
  const int side = kind.left ? kLeft : kRight, uplo = kind.upper ? kUpper : kLower, trans = kind.transposed ? kTrans : kNoTrans,
            diag = kind.unit ? kUnit : kNonUnit;
  const E one(1);
  bool singular = false;
  for (int64_t i = 0; i < n && !kind.unit; i++) singular |= t[i + i * ldt] == E(0);
  if (singular) return substitute(kind, n, other, t, ldt, b, ldb);
  parallel_for(0, (other + kColumns - 1) / kColumns, row_grain(kColumns * n * n / 4), [&](int64_t begin, int64_t end) {
    const BlasCall call("linalg");
    for (int64_t i = begin; i < end; i++) {
      const int64_t first = i * kColumns, count = std::min(kColumns, other - first), m = kind.left ? n : count, columns = kind.left ? count : n;
      E* const part = b + first * (kind.left ? ldb : 1);
      if constexpr (kIsComplex<E>)
        l.trsm(kColumnMajor, side, uplo, trans, diag, m, columns, &one, t, ldt, part, ldb);
      else
        l.trsm(kColumnMajor, side, uplo, trans, diag, m, columns, one, t, ldt, part, ldb);
    }
  });
}

// Exchanges rows of `columns` columns in the order of the pivots, numbered from 1; or undoes that.
template <class E>
void exchange_rows(int64_t columns, E* a, int64_t ld, const int64_t* pivots, int64_t count, bool undo) {
  parallel_for(0, columns, row_grain(4 * count), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) {
      E* const column = a + c * ld;
      for (int64_t i = 0; i < count; i++) {
        const int64_t r = undo ? count - 1 - i : i;
        std::swap(column[r], column[pivots[r] - 1]);
      }
    }
  });
}

}  // namespace

template <class E>
void solve_triangle(const Lapack<E>& l, Triangle kind, int64_t n, int64_t other, const E* t, int64_t ldt, E* b, int64_t ldb) {
  if (n <= kTriangle || other < kFewColumns) return solve_whole(l, kind, n, other, t, ldt, b, ldb);
  const int64_t half = half_of(n), rest = n - half;
  const E *const second = t + half * (ldt + 1), *const corner = kind.upper ? t + half * ldt : t + half;
  E* const b2 = b + half * (kind.left ? 1 : ldb);
  const Block<E> across{corner, kind.transposed ? ldt : 1, kind.transposed ? 1 : ldt};
  const auto solve_first = [&] { solve_triangle(l, kind, half, other, t, ldt, b, ldb); };
  const auto solve_second = [&] { solve_triangle(l, kind, rest, other, second, ldt, b2, ldb); };
  const bool forward = (kind.upper == kind.transposed) == kind.left;  // of what op makes of the triangle, and the side
  if (forward) {
    solve_first();
    kind.left ? subtract_product<E>(rest, other, half, across, {b, 1, ldb}, b2, ldb)
              : subtract_product<E>(other, rest, half, {b, 1, ldb}, across, b2, ldb);
    solve_second();
  } else {
    solve_second();
    kind.left ? subtract_product<E>(half, other, rest, across, {b2, 1, ldb}, b, ldb)
              : subtract_product<E>(other, half, rest, {b2, 1, ldb}, across, b, ldb);
    solve_first();
  }
}

template <class E>
void solve_lu(const Lapack<E>& l, char trans, int64_t n, int64_t columns, const E* a, const int64_t* pivots, E* b) {
  if (n < kLarge || columns < kFewColumns || (kIsComplex<E> && trans == 'C')) {
    const BlasCall call("linalg");
    l.getrs(kColumnMajor, trans, n, columns, a, n, pivots, b, n);
    return;
  }
  const bool transposed = trans != 'N';
  if (!transposed) exchange_rows(columns, b, n, pivots, n, false);
  for (const bool upper : {transposed, !transposed}) solve_triangle(l, {true, upper, transposed, !upper}, n, columns, a, n, b, n);
  if (transposed) exchange_rows(columns, b, n, pivots, n, true);
}

#define ARGAND_TRIANGLES(E)                                                                                   \
  template void solve_triangle(const Lapack<E>&, Triangle, int64_t, int64_t, const E*, int64_t, E*, int64_t); \
  template void solve_lu(const Lapack<E>&, char, int64_t, int64_t, const E*, const int64_t*, E*);
ARGAND_TRIANGLES(float)
ARGAND_TRIANGLES(double)
ARGAND_TRIANGLES(std::complex<float>)
ARGAND_TRIANGLES(std::complex<double>)
#undef ARGAND_TRIANGLES

}  // namespace argand::kernels::cpu
