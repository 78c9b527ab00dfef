// Inner loops of the fused optimizers, one table a tier.
#pragma once

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

struct AdamOptions {
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled;  // decoupled: AdamW's weight decay
};
struct AdamCorrection {  // of one tensor's step number t
  double first;          // 1 - beta1^t
  double root_second;    // sqrt(1 - beta2^t)
};
struct SgdOptions {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, is_first_step;
};

struct FusedOptim {
  void (*adam_f32)(int64_t n, float* p, const float* g, float* m, float* v, float* vmax, const AdamOptions& o, const AdamCorrection& c);
  void (*adam_f64)(int64_t n, double* p, const double* g, double* m, double* v, double* vmax, const AdamOptions& o, const AdamCorrection& c);
  void (*sgd_f32)(int64_t n, float* p, const float* g, float* m, const SgdOptions& o);  // m is null without momentum
  void (*sgd_f64)(int64_t n, double* p, const double* g, double* m, const SgdOptions& o);
};
ARGAND_DECLARE_TIERS(FusedOptim, fused_optim)

}  // namespace argand::kernels::cpu
