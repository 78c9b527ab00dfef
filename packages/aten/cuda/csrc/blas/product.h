// D = alpha * A @ B + beta * C (+ bias) through cuBLASLt, on addresses; the algorithm is chosen once for each problem.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::cuda {

// A matrix as it lies in memory: rows of `ld` elements apart. `transposed`: the stored matrix is the transpose of the operand.
struct Operand2d {
  const void* data;
  int64_t ld;
  int64_t batch_stride;  // elements from a matrix to the next one
  bool transposed;
};

struct Product {
  const char* op;   // in errors
  int dtype;        // of all matrices and of the bias: float16, bfloat16, float32, float64, complex64 or complex128
  int64_t m, n, k;  // A is m x k, B is k x n
  int64_t batch;    // at least 1
  Operand2d a, b;
  const void* c;  // null where beta is 0; read only, may be d
  int64_t ldc, c_batch_stride;
  void* d;  // row-major
  int64_t ldd, d_batch_stride;
  const void* bias;  // n elements added to every row, or null
  Scalar alpha, beta;
  bool exact = false;  // without TF32, whatever the settings say
};

// Queues the product on the device's current stream; the device must be current. m, n, k and batch are above 0.
// False, with nothing queued, where no algorithm can add the bias; anything else that fails throws.
bool run_product(const Product& product, ArgandDevice device);

}  // namespace argand::cuda
