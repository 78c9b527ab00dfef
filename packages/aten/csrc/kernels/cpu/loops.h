// What tiered loops and the code that calls them share: element types without a C++ type of their own, kernel tables, staging.
// No system headers and no vectors, so that either side may include it.
#pragma once

namespace argand {

inline constexpr int kMaxOperands = 8;  // inputs of a pointwise operator

// One dtype of one operator. ptrs[0] and strides[0] (bytes) are the result's; scalars are the operator's number arguments,
// in schema order, as float64 and as int64. `number_loop`, where 16-bit floats have one, takes the last operand as a float32 of stride 0.
using PointwiseLoop = void (*)(long n, char* const* ptrs, const long* strides, const double* scalars, const long* int_scalars);
struct PointwiseKernel {
  signed char compute_dtype, out_dtype;
  PointwiseLoop loop, number_loop = nullptr;
};

// One dtype of one reduction. Accumulators of any count lie side by side, as elements of the accumulating dtype.
struct ReduceKernel {
  signed char in_dtype, acc_dtype, out_dtype;
  void (*init)(char* acc);                                                                   // one accumulator
  void (*rows)(long rows, long row_stride, long n, const char* in, long stride, char* acc);  // acc = all of rows of n elements, pairwise
  void (*columns)(long rows, long columns, const char* in, long row_stride, char* acc);      // acc[c] takes in the rows of contiguous columns
  void (*combine)(long n, char* acc, const char* other);                                     // acc[i] takes in other[i]
  void (*finish)(long n, char* out, long out_stride, const char* acc, long count);           // count: elements reduced to one
};

// One dtype of one scan: out[i] takes in in[0..i]. in and out may be the same row.
struct ScanKernel {
  signed char in_dtype, acc_dtype, out_dtype;
  void (*init)(char* acc);
  void (*row)(long n, char* out, long out_stride, const char* in, long in_stride, char* acc);         // along a row, from acc on
  void (*step)(long columns, char* out, long out_stride, const char* in, long in_stride, char* acc);  // one index of many rows
};

namespace simd {

// Storage of 16-bit floats; they compute in float32.
struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};
template <class T>
struct cx {
  using real_type = T;
  T re, im;
};

inline constexpr int kStageBytes = 2048;  // an operand's staging buffer

// Cuts a row into segments of whole vectors. Operands that are neither contiguous nor stride 0 pass through buffers; what was
// written to a buffer is copied back by the next call. The last segment may be a tail: one vector of which `tail` lanes count.
// Stride-0 operands are read from their buffers, and contiguous operands of a tail too, which the caller fills (and empties).
struct Stage {
  int n_operands, lanes;  // operand 0 is written
  const int* sizes;       // bytes an element
  const long* strides;
  char** buffers;  // each kStageBytes, 64-byte aligned
  char* const* rows;
  long n, done, staged;  // staged: elements of the result waiting in its buffer
  long vectors, tail;    // the segment: p[k] advances by step[k] bytes a vector
  char* p[kMaxOperands + 1];
  long step[kMaxOperands + 1];
};
bool next_segment(Stage* stage);  // pointwise_stage.cc
// dst[i] = src[i * stride] for elements of `size` bytes.
void gather_elements(char* dst, const char* src, long stride, long n, int size);

}  // namespace simd
}  // namespace argand
