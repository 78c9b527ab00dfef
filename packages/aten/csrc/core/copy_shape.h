// The shapes that copy_ takes.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand {

// src must broadcast to self's shape; leading dimensions of size 1 may be too many.
inline void check_copy_shape(const Tensor& self, const Tensor& src) {
  bool fits = src.dim() <= self.dim();
  for (int64_t i = 0; fits && i < src.dim(); i++) {
    const int64_t s = src.size(src.dim() - 1 - i), t = self.size(self.dim() - 1 - i);
    fits = s == t || s == 1;
  }
  for (int64_t i = self.dim(); !fits && i < src.dim() && src.dim() > self.dim(); i++) {  // leading ones may go
    fits = true;
    for (int64_t d = 0; d < src.dim(); d++) {
      const int64_t at = d - (src.dim() - self.dim());
      fits = fits && (at < 0 ? src.size(d) == 1 : src.size(d) == self.size(at) || src.size(d) == 1);
    }
  }
  if (!fits)
    fail(ARGAND_SHAPE_ERROR, "copy_: got a source of shape %s, expected one that broadcasts to %s", to_string(src.sizes()).c_str(),
         to_string(self.sizes()).c_str());
}

}  // namespace argand
