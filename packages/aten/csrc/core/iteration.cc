#include "packages/aten/csrc/core/iteration.h"

#include <utility>

#include "packages/c10/csrc/core/strided.h"

namespace argand {

void Iteration::set_shape(IntList sizes) {
  if (sizes.n == 0) {
    ndim = 1;
    shape[0] = 1;
    numel = 1;
    return;
  }
  ndim = static_cast<int>(sizes.n);
  numel = 1;
  for (int d = 0; d < ndim; d++) numel *= shape[d] = sizes[ndim - 1 - d];
}

int Iteration::add(void* pointer, IntList sizes, IntList element_strides, int itemsize) {
  const int k = n_operands++;
  data[k] = static_cast<char*>(pointer);
  for (int d = 0; d < ndim; d++) {
    const int64_t from = sizes.n - 1 - d;
    strides[k][d] = from < 0 || (sizes[from] == 1 && shape[d] != 1) ? 0 : element_strides[from] * itemsize;
  }
  return k;
}

int Iteration::add_value(void* pointer) {
  const int k = n_operands++;
  data[k] = static_cast<char*>(pointer);
  for (int d = 0; d < ndim; d++) strides[k][d] = 0;
  return k;
}

void Iteration::sort(int* perm) {
  int order[ARGAND_MAX_DIMS];
  const bool moved = sort_dims(ndim, order, [this](int a, int b) {
    for (int k = 0; k < n_operands; k++)
      if (const int c = compare_dims(strides[k][a], shape[a], strides[k][b], shape[b])) return c;
    return 0;
  });
  if (perm) std::memcpy(perm, order, sizeof(int) * ndim);
  if (!moved) return;
  int64_t old[ARGAND_MAX_DIMS];
  std::memcpy(old, shape, sizeof(int64_t) * ndim);
  for (int d = 0; d < ndim; d++) shape[d] = old[order[d]];
  for (int k = 0; k < n_operands; k++) {
    std::memcpy(old, strides[k], sizeof(int64_t) * ndim);
    for (int d = 0; d < ndim; d++) strides[k][d] = old[order[d]];
  }
}

void Iteration::swap_dims(int a, int b) {
  std::swap(shape[a], shape[b]);
  for (int k = 0; k < n_operands; k++) std::swap(strides[k][a], strides[k][b]);
}

Iteration Iteration::of_rows() const {
  Iteration outer;
  outer.n_operands = n_operands;
  outer.ndim = ndim - 1;
  outer.numel = numel / shape[0];
  for (int d = 1; d < ndim; d++) outer.shape[d - 1] = shape[d];
  for (int k = 0; k < n_operands; k++) {
    outer.data[k] = data[k];
    for (int d = 1; d < ndim; d++) outer.strides[k][d - 1] = strides[k][d];
  }
  return outer;
}

void Iteration::coalesce() {
  int to = 0;
  for (int d = 1; d < ndim; d++) {
    bool merge = shape[to] == 1 || shape[d] == 1;
    if (!merge) {
      merge = true;
      for (int k = 0; k < n_operands && merge; k++) merge = shape[to] * strides[k][to] == strides[k][d];
    }
    if (merge) {
      if (shape[to] == 1)
        for (int k = 0; k < n_operands; k++) strides[k][to] = strides[k][d];
      shape[to] *= shape[d];
    } else {
      to++;
      shape[to] = shape[d];
      for (int k = 0; k < n_operands; k++) strides[k][to] = strides[k][d];
    }
  }
  ndim = to + 1;
}

void check_writable(const char* op, const Tensor& out) {
  if (out->storage->flags & ARGAND_STORAGE_READONLY)
    fail(ARGAND_RUNTIME_ERROR, "%s: got a result tensor in read-only memory, expected a writable one; clone() it first", op);
  check_no_internal_overlap(op, out);
}

}  // namespace argand
