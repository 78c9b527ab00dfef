// Copies between strided places of one device: with conversion, and fills.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cuda {

// Elements at `data` of any dtype; sizes outermost first, strides in elements (0 and negative ones too).
struct Place {
  char* data;
  int dtype;
  Dims sizes, strides;

  Place(void* at, int type, IntList shape, IntList element_strides)
      : data(static_cast<char*>(at)), dtype(type), sizes(shape), strides(element_strides) {}
  explicit Place(const Tensor& t) : Place(t->data, t.dtype(), t.sizes(), t.strides()) {}
};

// dst[...] = src[...], src broadcast to dst's shape (leading ones may go); on the current device and its current stream.
void copy_place(const Place& dst, const Place& src);
// dst[...] = the first bytes of `value`, an element of dst's dtype.
void fill_place(const Place& dst, const void* value);

// The elements of a Tensor into another one of the same device: broadcast and converted.
void copy_strided(const Tensor& self, const Tensor& src);
// t, or a row-major copy of it.
Tensor dense(const Tensor& t);

}  // namespace argand::kernels::cuda
