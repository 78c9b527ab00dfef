// Element-wise reductions of two buffers, compiled once a tier.
#pragma once

#include <cstddef>

#include "packages/distributed/csrc/group/record.h"

namespace argand::distributed {

// out[i] = a[i] op b[i]; buffers may be the same, but not overlap otherwise.
using ReduceFn = void (*)(void* out, const void* a, const void* b, size_t n);
// x[i] /= divisor
using DivideFn = void (*)(void* x, double divisor, size_t n);

// NULL: the operation has no meaning for the dtype.
ReduceFn reduce_function(int dtype, ReduceOp op);
DivideFn divide_function(int dtype);

namespace tier_baseline {
ReduceFn find_reduce(int dtype, ReduceOp op);
DivideFn find_divide(int dtype);
}  // namespace tier_baseline
namespace tier_avx2 {
ReduceFn find_reduce(int dtype, ReduceOp op);
DivideFn find_divide(int dtype);
}  // namespace tier_avx2
namespace tier_avx512 {
ReduceFn find_reduce(int dtype, ReduceOp op);
DivideFn find_divide(int dtype);
}  // namespace tier_avx512

}  // namespace argand::distributed
