// What the host sides of the hand-written Triton kernels share: kernels by name, dense operands, sizes.
#pragma once

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <limits>

#include "packages/aten/cuda/csrc/launch.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cuda {

using argand::cuda::Grid;
using argand::cuda::Kernel;
using argand::cuda::launch;

// A place in a static table of kernels: the name is made when it is first asked for.
class Slot {
 public:
  __attribute__((format(printf, 2, 3))) const Kernel* get(const char* name, ...) {
    if (const Kernel* k = kernel_.load(std::memory_order_acquire)) return k;
    char text[256];
    va_list list;
    va_start(list, name);
    vsnprintf(text, sizeof text, name, list);
    va_end(list);
    const Kernel* k = argand::cuda::kernel(text);
    kernel_.store(k, std::memory_order_release);
    return k;
  }

 private:
  std::atomic<const Kernel*> kernel_{nullptr};
};

inline constexpr int kFloats = 4;  // float16, bfloat16, float32, float64
inline int float_index(const char* op, int dtype) {
  if (!is_floating(dtype))
    fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a floating dtype; convert with .to(torch.float32)", op, kDTypeName[dtype]);
  return dtype - ARGAND_FLOAT16;
}
// Sums and statistics: float64 for float64, else float32.
inline int sum_dtype(int dtype) { return dtype == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32; }

// `t` in row-major order at an address that kernels may call a multiple of 16 bytes; undefined stays.
inline Tensor aligned_dense(const Tensor& t) {
  if (!t || (t.is_contiguous() && reinterpret_cast<uintptr_t>(t->data) % 16 == 0)) return t;
  return ops::clone(t, 0);
}
inline Tensor aligned_dense(const Tensor& t, int dtype) {
  return !t || t.dtype() == dtype ? aligned_dense(t) : ops::_to_copy(t, dtype, std::nullopt, false, 0);
}
inline const void* address(const Tensor& t) { return t ? t->data : nullptr; }
inline Tensor empty_on(const Tensor& like, IntList sizes, int dtype) { return empty(sizes, dtype, like.device()); }

inline int64_t elements_in(IntList l, int64_t begin, int64_t end) {
  int64_t p = 1;
  for (int64_t i = begin; i < end; i++) p *= l[i];
  return p;
}
inline int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
// 16 where `n` is a multiple of it: rows are aligned, and kernels load vectors.
inline int alignment(int64_t n) { return n % 16 == 0 ? 16 : 1; }
// Kernels count elements in 32 bits and in blocks of up to this many, the last of which may end behind the last element.
constexpr int64_t kLargestBlock = 1 << 15;
inline int32_t size32(const char* op, int64_t n) {
  if (n > std::numeric_limits<int32_t>::max() - kLargestBlock)
    fail(ARGAND_RUNTIME_ERROR, "%s: got a size of %lld, expected less than 2^31 - 2^15 on a CUDA device; split the tensor", op,
         static_cast<long long>(n));
  return static_cast<int32_t>(n);
}
inline Grid grid(const char* op, int64_t x, int64_t y = 1) {
  if (x > std::numeric_limits<int32_t>::max())
    fail(ARGAND_RUNTIME_ERROR, "%s: got a size that needs %lld programs, expected fewer than 2^31; split the tensor", op, static_cast<long long>(x));
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(y), 1};
}

// The smallest of ascending `blocks` that holds n, as its index; -1 where none does.
template <size_t N>
inline int block_index(const int (&blocks)[N], int64_t n) {
  for (size_t i = 0; i < N; i++)
    if (n <= blocks[i]) return static_cast<int>(i);
  return -1;
}

// The record of bad indices of a tensor's device, and an operator's name as kernels write it there (ArgandDeviceError).
inline void* error_record(const Tensor& t) {
  ArgandDeviceError* record = nullptr;
  check(api->device_interface(ARGAND_CUDA)->error_record(ARGAND_DEVICE_INDEX(t.device()), &record));
  return record;
}
inline int64_t operator_name(const char* op) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(op)); }

// first = partial[0] summed over its rows, second = partial[1]; partial[2, parts, n], undefined results are left out.
void sum_partials(const char* op, const Tensor& partial, const Tensor& first, const Tensor& second);

}  // namespace argand::kernels::cuda
