// Runs generated pointwise kernels over CUDA tensors: promotion, broadcasting, result allocation, overlap. Operators' tables are generated.
#pragma once

#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/cuda/csrc/launch.h"

namespace argand::cuda {

constexpr int8_t kRealPart = -2;

// One expression. Its kernels are "<kernel>_contiguous" and "<kernel>_strided".
struct PointwiseOp {
  const char* name;
  const char* kernel;
  uint32_t dtypes;  // bit d: there are kernels that compute in dtype d
  Promotion promote;
  int8_t result_dtype;    // -1: the computation's; kRealPart: that of its parts
  uint8_t bool_operands;  // bit k: operand k is a bool tensor that takes no part in promotion
  bool exact_out;         // out= has the result's dtype
  Layout layout;
  NumberRule number_rule;
};

// How an operator's values map to its kernels; one per operator group, shared by its forms.
struct PointwiseBinding {
  const PointwiseOp* variants;       // one, or one per name in variant_names
  const char* const* variant_names;  // values of the str argument
  int8_t n_variants, variant_arg;    // variant_arg: its position, -1 without
  int8_t n_operands, n_scalars;
  int8_t operand_args[kMaxOperands], scalar_args[kMaxOperands];
  int8_t n_args;                                                             // of the functional form; out= forms have `out` behind them
  bool has_alpha;                                                            // the number is `alpha`: see check_alpha
  int8_t scaled;                                                             // the operand that takes a complex number in as a factor; -1 without
  uint8_t checked_scalars, chosen_scalars;                                   // bits: see check_scalar
  mutable std::atomic<const Kernel*> contiguous[4][ARGAND_NUM_DTYPES] = {};  // a variant and dtype, looked up once
};

// Kernels of the dispatcher; key_data of ARGAND_KEY_CUDA is the PointwiseBinding.
int pointwise_functional(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);
int pointwise_inplace(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);
int pointwise_out(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);

// The dtypes of a mask, for messages: "float32, float64".
std::string dtype_names(uint32_t dtypes);

}  // namespace argand::cuda
