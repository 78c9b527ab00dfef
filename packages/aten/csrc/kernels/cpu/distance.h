// Tiered loops of the distances of rows.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

// Columns may be read so far beyond the last.
constexpr int64_t kDistanceSlack = 64;

struct DistanceKernels {
  // out[j], j < m: the p-norm of x[k] - columns[k * step + j] over k < d.
  void (*f32)(int64_t d, int64_t m, const float* x, const float* columns, int64_t step, float* out, double p);
  void (*f64)(int64_t d, int64_t m, const double* x, const double* columns, int64_t step, double* out, double p);
};
ARGAND_DECLARE_TIERS(DistanceKernels, distance_kernels)

inline auto distance_loop(float) { return pick_distance_kernels().f32; }
inline auto distance_loop(double) { return pick_distance_kernels().f64; }

}  // namespace argand::kernels::cpu
