// The part of cuBLAS's C interface that cuBLASLt lacks and that is used here, declared from its public documentation (docs.nvidia.com/cuda/cublas,
// "Using the cuBLAS API"); the library is opened at run time.
#pragma once

#include <cstdint>

#include "packages/aten/cuda/csrc/core/dynamic_library.h"

namespace argand::cuda::blas {

enum Side : int32_t { kLeft = 0, kRight = 1 };
enum Fill : int32_t { kLower = 0, kUpper = 1 };
enum Operation : int32_t { kOpN = 0, kOpT = 1, kOpC = 2 };
enum Diagonal : int32_t { kGiven = 0, kOnes = 1 };

using Handle = void*;
// b (m x n) becomes alpha T^-1 b or alpha b T^-1; column by column.
using Trsm = int(Handle, int32_t side, int32_t fill, int32_t operation, int32_t diagonal, int m, int n, const void* alpha, const void* t, int ldt,
                 void* b, int ldb);
// Of `count` square matrices, which addresses on the device tell, column by column; no pivots: rows stay where they are. `info` of getrs is one
// number on the host, of getrf the matrices' on the device.
using GetrfBatched = int(Handle, int n, void* const* a, int lda, int* pivots, int* info, int count);
using GetrsBatched = int(Handle, int32_t operation, int n, int columns, const void* const* a, int lda, const int* pivots, void* const* b, int ldb,
                         int* info, int count);

// All functions return a status, 0 for success.
struct Library {
  int (*create)(Handle*);
  int (*set_stream)(Handle, void*);
  int (*property)(int32_t which, int* value);
  // float32, float64, complex64, complex128
  Trsm* trsm[4];
  GetrfBatched* getrf_batched[4];
  GetrsBatched* getrs_batched[4];
};

// Opened at the first call; throws NotImplementedError where there is none.
const Library& library();

// A thread's own for the current stream of the device, which must be current.
Handle handle(ArgandDevice device);

LibrarySearch& search();

}  // namespace argand::cuda::blas
