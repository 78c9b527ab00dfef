// Products of integer matrices, which cuBLASLt does not have.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cuda {

// out = alpha * a @ b + beta * c for matrices, or batches of them, of one integer dtype, modulo 2 to its bits. `out` is dense; `c` has its shape, or
// is undefined. The numbers are rounded towards zero, as on the CPU.
void integer_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& out, const Tensor& c, const Scalar& alpha, const Scalar& beta);

}  // namespace argand::kernels::cuda
