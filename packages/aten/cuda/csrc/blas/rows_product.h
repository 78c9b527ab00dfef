// Products of few rows in float32, for which cuBLASLt's first choice of an algorithm is slow.
#pragma once

#include "packages/aten/cuda/csrc/blas/product.h"

namespace argand::kernels::cuda {

// Does `rows_product` take it? Of one matrix, a few rows of which are multiplied by columns, or rows, of a matrix that is not large.
bool is_rows_product(const argand::cuda::Product& p);

void rows_product(const argand::cuda::Product& p);

}  // namespace argand::kernels::cuda
