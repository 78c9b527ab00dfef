// The shapes that copy_ takes.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand {

// src must broadcast to self's shape.
inline void check_copy_shape(const Tensor& self, const Tensor& src) {
  bool fits = src.dim() <= self.dim();
  for (int64_t i = 0; fits && i < src.dim(); i++) {
    const int64_t s = src.size(src.dim() - 1 - i), t = self.size(self.dim() - 1 - i);
    fits = s == t || s == 1;
  }
  if (!fits)
    fail(ARGAND_SHAPE_ERROR, "copy_: got a source of shape %s, expected one that broadcasts to %s", to_string(src.sizes()).c_str(),
         to_string(self.sizes()).c_str());
}

}  // namespace argand
