// What a compiled program assumes of a tensor, checked on the ABI's struct. Knows nothing of Python.
#pragma once

#include <cstdint>
#include <vector>

#include "packages/c10/csrc/abi/argand.h"

namespace argand::dynamo {

constexpr uint32_t kGuardedTensorFlags = ARGAND_TENSOR_CONTIGUOUS | ARGAND_TENSOR_INFERENCE | ARGAND_TENSOR_CONJ;

inline bool requires_grad(const ArgandTensor* t) {
  constexpr uint64_t bit = ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  if (t->keys & bit) return true;
  return t->base && (t->base->keys & bit) && !(t->flags & ARGAND_TENSOR_VIEW_NO_GRAD);
}

struct TensorFacts {
  static constexpr int64_t kAny = INT64_MIN;  // a size or stride that may have any value

  uint8_t dtype = 0;
  bool requires_grad = false;
  uint32_t flags = 0;  // of kGuardedTensorFlags
  ArgandDevice device = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // as many as sizes

  bool same_device(ArgandDevice other) const {  // an index that was not given means any
    return other == device || (ARGAND_DEVICE_INDEX(device) == 0xff && ARGAND_DEVICE_TYPE(other) == ARGAND_DEVICE_TYPE(device));
  }
  bool hold(const ArgandTensor* t) const {
    const auto ndim = static_cast<int32_t>(sizes.size());
    if (t->dtype != dtype || t->ndim != ndim || !same_device(t->storage->device)) return false;
    for (int32_t d = 0; d < ndim; d++)
      if (sizes[d] != t->sizes[d] && sizes[d] != kAny) return false;
    for (int32_t d = 0; d < ndim; d++)
      if (strides[d] != t->strides[d] && strides[d] != kAny) return false;
    return (t->flags & kGuardedTensorFlags) == flags && argand::dynamo::requires_grad(t) == requires_grad;
  }
};

}  // namespace argand::dynamo
