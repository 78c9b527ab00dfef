// Helpers of the hand-written CPU kernels: argument checks, contiguous copies, dispatch over dtypes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "packages/aten/csrc/kernels/cpu/tiers.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cpu {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

struct complex64 {
  float re, im;
};
struct complex128 {
  double re, im;
};

// ---- 16-bit floats: round to nearest even, NaN stays NaN ---------------------------------------------------------------
inline float to_float(bf16 x) {
  uint32_t u = static_cast<uint32_t>(x.bits) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
float to_float(f16 x);
inline bf16 to_bf16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((u >> 16) | 0x40)};
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16)};
}
f16 to_f16(float f);

// The type that kernels compute in: float for 16-bit floats, else the type itself.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<bf16> {
  using type = float;
};
template <>
struct ComputeType<f16> {
  using type = float;
};
template <class T>
using compute_t = typename ComputeType<T>::type;

template <class T>
inline compute_t<T> widen(T x) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return to_float(x);
  else
    return x;
}
template <class T, class C>
inline T narrow(C x) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(static_cast<float>(x));
  else if constexpr (std::is_same_v<T, f16>)
    return to_f16(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

// Sums and products of computed values; integers wrap around.
template <class C>
inline C wrapped_sum(C a, C b) {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class C>
inline C wrapped_product(C a, C b) {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

// ---- dispatch ------------------------------------------------------------------------------------------------------------
template <class T>
struct Tag {
  using type = T;
};

template <class F>
inline void dispatch_floating(const char* op, int dtype, F&& f) {
  switch (dtype) {
    case ARGAND_FLOAT32:
      return f(Tag<float>{});
    case ARGAND_FLOAT64:
      return f(Tag<double>{});
    case ARGAND_BFLOAT16:
      return f(Tag<bf16>{});
    case ARGAND_FLOAT16:
      return f(Tag<f16>{});
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a floating dtype; convert with .to(torch.float32)", op, kDTypeName[dtype]);
  }
}
template <class F>
inline void dispatch_integral(const char* op, int dtype, F&& f) {  // without bool; unsigned ones but uint8 as the signed of their width
  switch (same_width_signed(dtype)) {
    case ARGAND_UINT8:
      return f(Tag<uint8_t>{});
    case ARGAND_INT8:
      return f(Tag<int8_t>{});
    case ARGAND_INT16:
      return f(Tag<int16_t>{});
    case ARGAND_INT32:
      return f(Tag<int32_t>{});
    case ARGAND_INT64:
      return f(Tag<int64_t>{});
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected an integer dtype", op, kDTypeName[dtype]);
  }
}
template <class F>
inline void dispatch_real(const char* op, int dtype, F&& f) {  // integral, bool (as uint8_t 0/1) and floating
  if (dtype == ARGAND_BOOL) return f(Tag<uint8_t>{});
  if (is_complex(dtype)) fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a real dtype", op, kDTypeName[dtype]);
  if (is_floating(dtype)) return dispatch_floating(op, dtype, f);
  dispatch_integral(op, dtype, f);
}
template <class F>
inline void dispatch_ordered(const char* op, int dtype, F&& f) {  // real dtypes, for kernels that see signs: unsigned ones as they are
  switch (dtype) {
    case ARGAND_UINT16:
      return f(Tag<uint16_t>{});
    case ARGAND_UINT32:
      return f(Tag<uint32_t>{});
    case ARGAND_UINT64:
      return f(Tag<uint64_t>{});
    default:
      dispatch_real(op, dtype, f);
  }
}
// By element size, for kernels that only move data.
template <class F>
inline void dispatch_size(int itemsize, F&& f) {
  struct Bytes16 {
    uint64_t a, b;
  };
  switch (itemsize) {
    case 1:
      return f(Tag<uint8_t>{});
    case 2:
      return f(Tag<uint16_t>{});
    case 4:
      return f(Tag<uint32_t>{});
    case 8:
      return f(Tag<uint64_t>{});
    default:
      return f(Tag<Bytes16>{});
  }
}

// to[j] = from[index[j]].
template <class T>
void select_elements(int64_t n, const T* from, const int64_t* index, T* to) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {  // loads first: they do not wait for stores
    const T a = from[index[j]], b = from[index[j + 1]], c = from[index[j + 2]], d = from[index[j + 3]];
    to[j] = a, to[j + 1] = b, to[j + 2] = c, to[j + 3] = d;
  }
  for (; j < n; j++) to[j] = from[index[j]];
}

// ---- checks --------------------------------------------------------------------------------------------------------------
void check_defined(const char* op, const char* argument, const Tensor& t);
void check_same_dtype(const char* op, const Tensor& a, const Tensor& b);
void check_index_dtype(const char* op, const Tensor& index);  // int64 or int32

// ---- copies --------------------------------------------------------------------------------------------------------------
// dst[i...] = src[i...] for strides in elements, the source's of any sign; both have `ndim` sizes. Parallel for large copies.
void strided_copy(int itemsize, int64_t ndim, const int64_t* sizes, void* dst, const int64_t* dst_strides, const void* src,
                  const int64_t* src_strides);
// t itself if row-major dense, else a dense copy.
Tensor contiguous(const Tensor& t);
// Dense copy of dtype `dtype` (t itself if it is one already).
Tensor to_dtype(const Tensor& t, int dtype);
// t broadcast to `sizes`, as strides (0 in broadcast dims); checked.
Dims broadcast_strides(const char* op, const Tensor& t, IntList sizes);
// Stores a dense result into an existing tensor of the same shape and dtype, whatever its strides.
void store_into(const Tensor& dst, const Tensor& dense);
Tensor zeros(IntList sizes, int dtype);

inline int64_t product(IntList l, int64_t begin = 0, int64_t end = -1) {
  int64_t p = 1;
  for (int64_t i = begin, e = end < 0 ? l.n : end; i < e; i++) p *= l[i];
  return p;
}

// A dim of a dense tensor as three nested loops: outer x n x inner.
struct DimSplit {
  int64_t outer, n, inner;
  DimSplit(const Tensor& t, int64_t dim)
      : outer(product(t.sizes(), 0, dim)), n(t.dim() ? t.size(dim) : 1), inner(product(t.sizes(), dim + 1 < t.dim() ? dim + 1 : t.dim(), t.dim())) {}
};

// Uninitialised scratch memory of a kernel, from the allocator of tensors: what one kernel gives back serves the next.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n) : bytes_(static_cast<size_t>(n > 0 ? n : 1) * sizeof(T)), p_(static_cast<T*>(cpu()->allocate(0, bytes_))) {
    if (!p_) throw std::bad_alloc();
  }
  ~Scratch() { cpu()->deallocate(p_, 0, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  operator T*() const { return p_; }
  T* get() const { return p_; }

 private:
  static const ArgandDeviceInterface* cpu() { return api->device_interface(ARGAND_CPU); }
  const size_t bytes_;
  T* const p_;
};

// The smallest number of rows of `row` elements that is worth a thread.
inline int64_t row_grain(int64_t row, int64_t elements = 16384) { return row > 0 ? (elements + row - 1) / row : elements; }

}  // namespace argand::kernels::cpu
