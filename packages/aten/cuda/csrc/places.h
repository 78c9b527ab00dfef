// Walks over places with indices, and what the kernels that use them check: the host side of argand_aten_cuda/kernels/index.py.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "packages/aten/cuda/csrc/launch.h"
#include "packages/c10/csrc/abi/tensor.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cuda::places {

// ---- walks -----------------------------------------------------------------------------------------------------------
// Strides are by dimension of `sizes`, in elements, 0 where a tensor does not vary; `x` is without the indexed dimension.
struct Walk {
  const char* op;  // static text: errors name it
  Dims sizes;
  Dims x, index, other;
  int64_t step = 1;               // stride of x's indexed dimension
  int64_t lower = 0, limit = 0;   // indices lie in [lower, limit)
  int64_t dim = 0;                // the indexed dimension, for errors
  bool is_runtime_error = false;  // the kind of a bad index' error, which is the CPU's; else an IndexError
  bool skips_bad = false;         // no error: elements of bad indices count nowhere
};

// out[place] = x[place + index[place] * step]; `out` is row-major over the walk's sizes.
void gather(Walk walk, const Tensor& out, const Tensor& x, const Tensor& index);
enum class Put { kStore, kAdd, kMax };
// x[place + index[place] * step] = src[place], += it, or the greater of both (of int32 and int64). Sums are atomic: their order is not fixed, so
// those of floats may differ in their last bits.
void put(const Walk& walk, const Tensor& x, const Tensor& src, const Tensor& index, Put how);
// Whether `put` adds elements of this dtype: narrow integers are not.
inline bool adds_atomically(int dtype) { return !is_integral(dtype, true) || kItemSize[dtype] >= 4; }
// table[place] = (first), or +=, index[place] * step, invalid once an index is out of range; indices count from the end if negative.
void offsets(Walk walk, const Tensor& table, const Tensor& index, bool first);

// ---- what their kernels share --------------------------------------------------------------------------------------------
// Operators called in this scope keep no history and are not cast: they are steps of a kernel.
class Below {
 public:
  Below() { state_->exclude_keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD) | ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST); }

 private:
  StateGuard state_;
};

// Specializations by number, so that a call makes no text: `text` is asked once.
template <size_t N>
class Table {
 public:
  template <class Text>
  const argand::cuda::Kernel* get(size_t i, Text text) {
    if (const argand::cuda::Kernel* k = slots_[i].load(std::memory_order_acquire)) return k;
    const argand::cuda::Kernel* k = argand::cuda::kernel(text());
    slots_[i].store(k, std::memory_order_release);
    return k;
  }

 private:
  std::array<std::atomic<const argand::cuda::Kernel*>, N> slots_{};
};

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
// A grid of `n` programs.
argand::cuda::Grid programs(const char* op, int64_t n);
// The integer dtype of elements of 1, 2, 4 or 8 bytes, as the kernels name it.
const char* integer_name(int64_t itemsize);
// The dtype's name in kernels: bool is uint8.
inline const char* real_name(int dtype) { return dtype == ARGAND_BOOL ? "uint8" : kDTypeName[dtype]; }
inline const char* flag(bool value) { return value ? "True" : "False"; }

// Row-major, and of `dtype`.
Tensor dense(const Tensor& t);
Tensor to_dtype(const Tensor& t, int dtype);
Tensor zeros(IntList sizes, int dtype, ArgandDevice device);
int64_t product(IntList l, int64_t begin, int64_t end);
inline int64_t size_of(const Tensor& t, int64_t dim) { return t.dim() ? t.size(dim) : 1; }  // a 0-d tensor counts as 1-d
inline int64_t stride_of(const Tensor& t, int64_t dim) { return t.dim() ? t.stride(dim) : 1; }

void check_device(const char* op, const char* argument, const Tensor& t, const Tensor& self);
void check_same_dtype(const char* op, const Tensor& a, const Tensor& b);
// int64 indices on self's device.
Tensor as_index(const char* op, const Tensor& index, const Tensor& self);

}  // namespace argand::kernels::cuda::places
