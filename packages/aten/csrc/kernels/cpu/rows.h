// Tiered sums and copies of rows and checks of indices.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

struct RowKernels {
  // acc[i] += alpha * x[i]
  void (*add_f32)(int64_t n, float* acc, const float* x, float alpha);
  void (*add_f64)(int64_t n, double* acc, const double* x, double alpha);
  void (*add_bf16)(int64_t n, float* acc, const bf16* x, float alpha);
  void (*add_f16)(int64_t n, float* acc, const f16* x, float alpha);
  // Rows of `row` bytes of a table, which lie `step` bytes apart, one behind the other.
  void (*take)(int64_t n, const int64_t* index, const char* table, int64_t step, int64_t row, char* out);
  // Whether all indices are in [0, limit).
  bool (*in_range)(int64_t n, const int64_t* index, int64_t limit);
};
ARGAND_DECLARE_TIERS(RowKernels, row_kernels)

inline void add_row(const RowKernels& k, int64_t n, float* acc, const float* x, float alpha) { k.add_f32(n, acc, x, alpha); }
inline void add_row(const RowKernels& k, int64_t n, double* acc, const double* x, double alpha) { k.add_f64(n, acc, x, alpha); }
inline void add_row(const RowKernels& k, int64_t n, float* acc, const bf16* x, float alpha) { k.add_bf16(n, acc, x, alpha); }
inline void add_row(const RowKernels& k, int64_t n, float* acc, const f16* x, float alpha) { k.add_f16(n, acc, x, alpha); }

}  // namespace argand::kernels::cpu
