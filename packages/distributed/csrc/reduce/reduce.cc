#include "packages/distributed/csrc/reduce/reduce.h"

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::distributed {

ReduceFn reduce_function(int dtype, ReduceOp op) {
  switch (api->cpu_tier()) {
    case 2:
      return tier_avx512::find_reduce(dtype, op);
    case 1:
      return tier_avx2::find_reduce(dtype, op);
    default:
      return tier_baseline::find_reduce(dtype, op);
  }
}

DivideFn divide_function(int dtype) {
  switch (api->cpu_tier()) {
    case 2:
      return tier_avx512::find_divide(dtype);
    case 1:
      return tier_avx2::find_divide(dtype);
    default:
      return tier_baseline::find_divide(dtype);
  }
}

}  // namespace argand::distributed
