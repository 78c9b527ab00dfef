// A stand-in for cuBLAS where there is no GPU: triangular systems and LU factors on host memory. A call that the library would refuse is refused with
// INVALID_VALUE.
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalid = 7;

template <class E>
int trsm(int32_t side, int32_t fill, int32_t operation, int32_t diagonal, int m, int n, E alpha, const E* t, int ldt, E* b, int ldb) {
  const int order = side == 0 ? m : n, others = side == 0 ? n : m;
  if (ldt < std::max(order, 1) || ldb < std::max(m, 1) || operation != 0 || fill < 0 || fill > 1 || diagonal < 0 || diagonal > 1) return kInvalid;
  const bool upward = (fill == 1) == (side == 0);  // from the last unknown to the first
  for (int j = 0; j < others; j++) {
    const auto at = [&](int i) -> E& { return side == 0 ? b[j * ldb + i] : b[i * ldb + j]; };
    for (int step = 0; step < order; step++) {
      const int i = upward ? order - 1 - step : step;
      E v = alpha * at(i);
      for (int k = upward ? i + 1 : 0; k < (upward ? order : i); k++) v -= (side == 0 ? t[k * ldt + i] : t[i * ldt + k]) * at(k);
      at(i) = diagonal ? v : v / t[i * ldt + i];
    }
  }
  return 0;
}

// How pivots are compared: LAPACK's |re| + |im|.
template <class E>
double size(E x) {
  const std::complex<double> z(x);
  return std::abs(z.real()) + std::abs(z.imag());
}

template <class E>
int factor(int n, E* a, int lda, int* pivots) {
  int info = 0;
  for (int k = 0; k < n; k++) {
    int p = k;
    for (int i = k + 1; pivots && i < n; i++)
      if (size(a[k * lda + i]) > size(a[k * lda + p])) p = i;
    if (pivots) pivots[k] = p + 1;
    for (int j = 0; j < n; j++) std::swap(a[j * lda + k], a[j * lda + p]);
    if (a[k * lda + k] == E(0)) {
      info = info ? info : k + 1;
      continue;
    }
    for (int i = k + 1; i < n; i++) {
      a[k * lda + i] /= a[k * lda + k];
      for (int j = k + 1; j < n; j++) a[j * lda + i] -= a[k * lda + i] * a[j * lda + k];
    }
  }
  return info;
}

float conjugate(float x) { return x; }
double conjugate(double x) { return x; }
template <class E>
std::complex<E> conjugate(std::complex<E> x) {
  return std::conj(x);
}

// A column of right sides becomes the solutions with P L U, its transpose or its adjoint.
template <class E>
void solve(int32_t operation, int n, const E* a, int lda, const int* pivots, E* x) {
  const auto at = [&](int i, int j) { return operation == 0 ? a[j * lda + i] : operation == 1 ? a[i * lda + j] : conjugate(a[i * lda + j]); };
  for (int k = 0; operation == 0 && k < n; k++) std::swap(x[k], x[pivots[k] - 1]);
  for (int i = 0; i < n; i++) {  // the lower triangle, which is U's where it is transposed
    for (int k = 0; k < i; k++) x[i] -= at(i, k) * x[k];
    if (operation) x[i] /= at(i, i);
  }
  for (int i = n; i-- > 0;) {
    for (int k = i + 1; k < n; k++) x[i] -= at(i, k) * x[k];
    if (!operation) x[i] /= at(i, i);
  }
  for (int k = n; operation && k-- > 0;) std::swap(x[k], x[pivots[k] - 1]);
}

template <class E>
int factor_all(int n, E* const* a, int lda, int* pivots, int* info, int count) {
  if (n < 0 || lda < std::max(n, 1) || count < 0) return kInvalid;
  for (int b = 0; b < count; b++) info[b] = factor(n, a[b], lda, pivots ? pivots + b * n : nullptr);
  return 0;
}
template <class E>
int solve_all(int32_t operation, int n, int columns, const E* const* a, int lda, const int* pivots, E* const* x, int ldx, int* info, int count) {
  if (n < 0 || columns < 0 || lda < std::max(n, 1) || ldx < std::max(n, 1) || count < 0 || operation < 0 || operation > 2 || !info) return kInvalid;
  for (int b = 0; b < count; b++)
    for (int j = 0; j < columns; j++) solve(operation, n, a[b], lda, pivots + b * n, x[b] + j * ldx);
  return *info = 0;
}

std::atomic<int> handles{0};

}  // namespace

// How many were made.
EXPORT int fakeCublasHandles() { return handles; }
EXPORT int cublasCreate_v2(void** handle) { return *handle = new int(++handles), 0; }
EXPORT int cublasSetStream_v2(void* handle, void*) { return handle ? 0 : 1; }
EXPORT int cublasGetProperty(int32_t which, int* value) { return *value = which == 0 ? 13 : which, 0; }

#define TRSM(LETTER, E)                                                                                                                        \
  EXPORT int cublas##LETTER##trsm_v2(void*, int32_t side, int32_t fill, int32_t operation, int32_t diagonal, int m, int n, const void* alpha,  \
                                     const void* t, int ldt, void* b, int ldb) {                                                               \
    return trsm(side, fill, operation, diagonal, m, n, *static_cast<const E*>(alpha), static_cast<const E*>(t), ldt, static_cast<E*>(b), ldb); \
  }
TRSM(S, float)
TRSM(D, double)
TRSM(C, std::complex<float>)
TRSM(Z, std::complex<double>)

#define BATCHED(LETTER, E)                                                                                                                          \
  EXPORT int cublas##LETTER##getrfBatched(void*, int n, E* const* a, int lda, int* pivots, int* info, int count) {                                  \
    return factor_all(n, a, lda, pivots, info, count);                                                                                              \
  }                                                                                                                                                 \
  EXPORT int cublas##LETTER##getrsBatched(void*, int32_t operation, int n, int columns, const E* const* a, int lda, const int* pivots, E* const* x, \
                                          int ldx, int* info, int count) {                                                                          \
    return solve_all(operation, n, columns, a, lda, pivots, x, ldx, info, count);                                                                   \
  }
BATCHED(S, float)
BATCHED(D, double)
BATCHED(C, std::complex<float>)
BATCHED(Z, std::complex<double>)
