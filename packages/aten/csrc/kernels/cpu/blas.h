// OpenBLAS (64-bit integers, symbols of the scipy-openblas64 wheel), loaded at first use and used single-threaded: parallelism is ours.
#pragma once

#include <stdint.h>

namespace argand::kernels::cpu {

struct Blas {
  // cblas signatures; order 101 is row-major, 111 / 112 / 113 are NoTrans / Trans / ConjTrans.
  void (*sgemm)(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                float beta, float* c, int64_t ldc);
  void (*dgemm)(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda, const double* b, int64_t ldb,
                double beta, double* c, int64_t ldc);
  void (*cgemm)(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, const void* alpha, const void* a, int64_t lda, const void* b, int64_t ldb,
                const void* beta, void* c, int64_t ldc);
  void (*zgemm)(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, const void* alpha, const void* a, int64_t lda, const void* b, int64_t ldb,
                const void* beta, void* c, int64_t ldc);
};

// The library named by argand_aten_set_blas; NULL when none was named (own kernels are used then). Throws if it cannot be loaded.
const Blas* blas();

// Held while the library computes. Every call that runs at the same time as others takes a work buffer, which the library keeps; where there is
// no memory for one it ends the process, so a call that may need a new one asks for that memory first, and throws.
class BlasCall {
 public:
  explicit BlasCall(const char* op);
  ~BlasCall();
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;
};

// A function of the same library by its plain name (cblas_dtrsm, LAPACKE_dpotrf); throws, naming `op`, where there is none.
void* blas_function(const char* op, const char* name);

}  // namespace argand::kernels::cpu

extern "C" {
// Stores the path of the OpenBLAS library; 0, or an error status when another one was already loaded.
__attribute__((visibility("default"))) int argand_aten_set_blas(const char* path);
}
