// Variance over any dimensions.
#pragma once

#include <tuple>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cpu {

// Sum of squared deviations over (count - correction; default 1); NaN or infinite where that is not positive.
Tensor var(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim);
// Its root, rounded once.
Tensor standard_deviation(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim);
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim);

}  // namespace argand::kernels::cpu
