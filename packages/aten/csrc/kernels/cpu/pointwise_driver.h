// Runs pointwise loops over tensors: promotion, broadcasting, result allocation, overlap, parallel split. The operators' tables are
// generated; the loops are in pointwise.h.
#pragma once

#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/csrc/kernels/cpu/loops.h"

namespace argand {

struct PointwiseOp {
  const char* name;
  int n_operands;
  const PointwiseKernel* kernels[3];  // a table a tier (baseline, AVX2, AVX-512), each of n_kernels
  int n_kernels;
  uint8_t promote;            // Promotion
  int8_t result_dtype;        // -1: the kernel's
  uint8_t cost;               // of an element, in additions
  uint8_t bool_operands = 0;  // bit k: operand k is a bool tensor that takes no part in promotion (conditions, masks)
  NumberRule number_rule = kAnyIntegers;
  bool exact_out = false;      // out= has the result's dtype
  uint8_t layout = 0;          // Layout
  bool exact_numbers = false;  // numbers beside 16-bit floats are not rounded to their dtype
};

// Computes the operator. `out` undefined: a new tensor, laid out as the operands are; else the result is written into it (resized
// unless `inplace`), converted to its dtype where that is allowed. `scalars` and `ints` are the number arguments in both types, kMaxOperands of them,
// the rest 0; `scalars` is NULL if there are none.
Tensor pointwise(const PointwiseOp& op, const Operand* const* operands, const double* scalars, const int64_t* ints, const Tensor& out, bool inplace);

}  // namespace argand
