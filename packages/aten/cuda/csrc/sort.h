// One element of each row, chosen without sorting it.
#pragma once

#include <tuple>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cuda {

enum class Choice { kKth, kMedian, kNanMedian };

// Whether `choose` takes rows along `dim`: those that a program can hold, and long ones.
bool can_choose(const Tensor& self, int64_t dim);

// In a stable ascending order, NaN last: the k-th from 0, the lower median (the first NaN, if there is one), or that of the numbers; and its index.
std::tuple<Tensor, Tensor> choose(const char* op, const Tensor& self, int64_t dim, Choice choice, int64_t k);

}  // namespace argand::kernels::cuda
