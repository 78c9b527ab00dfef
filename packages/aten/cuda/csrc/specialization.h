// The text that names a specialization of a Triton kernel: types, then constants, in the order in which the kernel declares them.
#pragma once

#include <string>

#include "packages/aten/cuda/csrc/launch.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cuda {

using argand::cuda::Grid;
using argand::cuda::Kernel;
using argand::cuda::kernel;
using argand::cuda::launch;

class Specialization {
 public:
  explicit Specialization(const char* kernel) : text_(kernel) {}
  Specialization& type(const char* name, int dtype) { return add(name, kDTypeName[dtype]); }
  Specialization& constant(const char* name, int64_t value) { return add(name, std::to_string(value).c_str()); }
  Specialization& flag(const char* name, bool value) { return add(name, value ? "True" : "False"); }
  const std::string& text() const { return text_; }

 private:
  Specialization& add(const char* name, const char* value) {
    text_ += ';';
    text_ += name;
    text_ += '=';
    text_ += value;
    return *this;
  }
  std::string text_;
};

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline Grid grid_of(int64_t x, int64_t y = 1) {
  if (x >= int64_t{1} << 31 || y > 65535)
    fail(ARGAND_RUNTIME_ERROR, "launch: got a grid of %lld x %lld programs, expected fewer than 2^31 x 2^16; split the tensor",
         static_cast<long long>(x), static_cast<long long>(y));
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(y)};
}

// The integer dtype by which elements of `itemsize` (1, 2, 4, 8) bytes are moved.
inline int integer_of_size(int itemsize) {
  return itemsize == 1 ? ARGAND_UINT8 : itemsize == 2 ? ARGAND_INT16 : itemsize == 4 ? ARGAND_INT32 : ARGAND_INT64;
}

}  // namespace argand::kernels::cuda
