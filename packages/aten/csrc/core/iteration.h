// One index space walked by several operands at once: strides in bytes, dimensions sorted so that memory is walked in order
// (dimension 0 is innermost) and merged where all operands allow it.
#pragma once

#include "packages/aten/csrc/kernels/cpu/loops.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand {

struct Iteration {
  int n_operands = 0;
  int ndim = 0;
  int64_t numel = 1;
  int64_t shape[ARGAND_MAX_DIMS];
  int64_t strides[kMaxOperands + 1][ARGAND_MAX_DIMS];
  char* data[kMaxOperands + 1];

  // `sizes` in the tensors' order (outermost first).
  void set_shape(IntList sizes);
  // Adds an operand of the given geometry, broadcast to the shape; element strides. Returns its number.
  int add(void* data, IntList sizes, IntList strides, int itemsize);
  // Adds a single value for all indices.
  int add_value(void* data);
  // Sorts the dimensions by the operands' strides, the first operand's before the second's. perm[i]: the tensor dimension (counted
  // from the last) that became dimension i; may be null.
  void sort(int* perm);
  void coalesce();
  void swap_dims(int a, int b);
  // The same without dimension 0: rows as elements.
  Iteration of_rows() const;
};

// Calls row(n, ptrs) for the runs of dimension 0 that make up the flat indices [begin, end); `data` in place of the operands' own.
template <class Row>
inline void for_each_row(const Iteration& it, char* const* data, int64_t begin, int64_t end, Row&& row) {
  if (begin >= end) return;
  int64_t counter[ARGAND_MAX_DIMS];
  char* ptrs[kMaxOperands + 1];
  int64_t rest = begin;
  for (int k = 0; k < it.n_operands; k++) ptrs[k] = data[k];
  for (int d = 0; d < it.ndim; d++) {
    counter[d] = rest % it.shape[d];
    rest /= it.shape[d];
    for (int k = 0; k < it.n_operands; k++) ptrs[k] += counter[d] * it.strides[k][d];
  }
  while (begin < end) {
    const int64_t left = it.shape[0] - counter[0], n = left < end - begin ? left : end - begin;
    row(n, ptrs);
    begin += n;
    if (begin >= end) return;
    for (int k = 0; k < it.n_operands; k++) ptrs[k] -= counter[0] * it.strides[k][0];
    counter[0] = 0;
    for (int d = 1; d < it.ndim; d++) {
      for (int k = 0; k < it.n_operands; k++) ptrs[k] += it.strides[k][d];
      if (++counter[d] < it.shape[d]) break;
      for (int k = 0; k < it.n_operands; k++) ptrs[k] -= counter[d] * it.strides[k][d];
      counter[d] = 0;
    }
  }
}

template <class Row>
inline void for_each_row(const Iteration& it, int64_t begin, int64_t end, Row&& row) {
  for_each_row(it, it.data, begin, end, row);
}

// Refuses to write into read-only memory or into a tensor with several indices in one place.
void check_writable(const char* op, const Tensor& out);

}  // namespace argand
