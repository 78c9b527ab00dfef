// A stand-in for cuBLAS where there is no GPU: triangular systems on host memory. A call that the library would refuse is refused with INVALID_VALUE.
#include <algorithm>
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

}  // namespace

EXPORT int cublasCreate_v2(void** handle) { return *handle = new int(0), 0; }
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
