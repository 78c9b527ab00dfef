// The part of cuSOLVER's C interface that is used here, declared from its public documentation (docs.nvidia.com/cuda/cusolver,
// "cuSolverDN: dense LAPACK Functions"); the library is opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packages/aten/cuda/csrc/core/dynamic_library.h"

namespace argand::cuda::solver {

enum DataType : int32_t { kR32F = 0, kR64F = 1, kC32F = 4, kC64F = 5 };
enum Operation : int32_t { kOpN = 0, kOpT = 1, kOpC = 2 };
enum Fill : int32_t { kLower = 0, kUpper = 1 };
enum Side : int32_t { kLeft = 0, kRight = 1 };
enum Vectors : int32_t { kNoVectors = 0, kVectors = 1 };

using Handle = void*;
using Params = void*;
using JacobiParams = void*;

// Functions that have a name for each dtype; all take matrices column by column.
struct Typed {
  int (*orgqr_size)(Handle, int m, int n, int k, const void* a, int lda, const void* tau, int* elements);
  int (*orgqr)(Handle, int m, int n, int k, void* a, int lda, const void* tau, void* work, int elements, int* info);
  int (*ormqr_size)(Handle, int32_t side, int32_t trans, int m, int n, int k, const void* a, int lda, const void* tau, const void* c, int ldc,
                    int* elements);
  int (*ormqr)(Handle, int32_t side, int32_t trans, int m, int n, int k, const void* a, int lda, const void* tau, void* c, int ldc, void* work,
               int elements, int* info);
  int (*gesvdj_size)(Handle, int32_t vectors, int economic, int m, int n, const void* a, int lda, const void* s, const void* u, int ldu,
                     const void* v, int ldv, int* elements, JacobiParams);
  int (*gesvdj)(Handle, int32_t vectors, int economic, int m, int n, void* a, int lda, void* s, void* u, int ldu, void* v, int ldv, void* work,
                int elements, int* info, JacobiParams);
};

// All functions return a status, 0 for success; workspaces of the generic ones are bytes on the device and on the host.
struct Library {
  int (*create)(Handle*);
  int (*set_stream)(Handle, void*);
  int (*params_create)(Params*);
  int (*jacobi_create)(JacobiParams*);
  int (*property)(int32_t which, int* value);
  int (*getrf_size)(Handle, Params, int64_t m, int64_t n, int32_t type, const void* a, int64_t lda, int32_t compute, size_t* device, size_t* host);
  int (*getrf)(Handle, Params, int64_t m, int64_t n, int32_t type, void* a, int64_t lda, int64_t* pivots, int32_t compute, void* device,
               size_t device_bytes, void* host, size_t host_bytes, int* info);
  int (*getrs)(Handle, Params, int32_t trans, int64_t n, int64_t columns, int32_t type, const void* a, int64_t lda, const int64_t* pivots,
               int32_t b_type, void* b, int64_t ldb, int* info);
  int (*potrf_size)(Handle, Params, int32_t fill, int64_t n, int32_t type, const void* a, int64_t lda, int32_t compute, size_t* device, size_t* host);
  int (*potrf)(Handle, Params, int32_t fill, int64_t n, int32_t type, void* a, int64_t lda, int32_t compute, void* device, size_t device_bytes,
               void* host, size_t host_bytes, int* info);
  int (*geqrf_size)(Handle, Params, int64_t m, int64_t n, int32_t type, const void* a, int64_t lda, int32_t tau_type, const void* tau,
                    int32_t compute, size_t* device, size_t* host);
  int (*geqrf)(Handle, Params, int64_t m, int64_t n, int32_t type, void* a, int64_t lda, int32_t tau_type, void* tau, int32_t compute, void* device,
               size_t device_bytes, void* host, size_t host_bytes, int* info);
  int (*syevd_size)(Handle, Params, int32_t vectors, int32_t fill, int64_t n, int32_t type, const void* a, int64_t lda, int32_t w_type, const void* w,
                    int32_t compute, size_t* device, size_t* host);
  int (*syevd)(Handle, Params, int32_t vectors, int32_t fill, int64_t n, int32_t type, void* a, int64_t lda, int32_t w_type, void* w, int32_t compute,
               void* device, size_t device_bytes, void* host, size_t host_bytes, int* info);
  Typed typed[4];  // float32, float64, complex64, complex128
};

// Opened at the first call; throws NotImplementedError where there is none.
const Library& library();

// What calls need, a thread's own for the current stream of the device, which must be current.
struct Session {
  Handle handle = nullptr;
  Params params = nullptr;
  JacobiParams jacobi = nullptr;
};
Session session(ArgandDevice device);

// Throws with cuSOLVER's name for a status that is not 0.
void check_status(const char* op, const char* call, int status);

LibrarySearch& search();

}  // namespace argand::cuda::solver
