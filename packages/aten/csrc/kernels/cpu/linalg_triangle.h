// Triangular systems by halves, so that nearly all of the work is matrix products, which threads share. What is done depends on the sizes alone.
// All matrices are column-major; E is a real or complex floating type.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/lapack.h"

namespace argand::kernels::cpu {

// b := op(t)^-1 b for a triangle t of order n and b of n rows, or b := b op(t)^-1 for b of n columns; `other` is b's other size, op the transpose
// where `transposed`.
struct Triangle {
  bool left, upper, transposed, unit;
};
template <class E>
void solve_triangle(const Lapack<E>& l, Triangle kind, int64_t n, int64_t other, const E* t, int64_t ldt, E* b, int64_t ldb);

// LAPACK's getrs: b := op(a)^-1 b from a's factors; `trans` is 'N', 'T' or 'C'.
template <class E>
void solve_lu(const Lapack<E>& l, char trans, int64_t n, int64_t columns, const E* a, const int64_t* pivots, E* b);

}  // namespace argand::kernels::cpu
