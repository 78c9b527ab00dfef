// Loops of recurrent layers, one table a tier: a step of one sequence, for some neighbouring elements of the state. E is what T is computed in.
#pragma once

#include <stdint.h>

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

enum RecurrentMode { kLstm, kGru, kRnnTanh, kRnnRelu, kRecurrentModes };

// Pointers are to the first element; NULL where the mode has no such thing, or nobody wants it. From gate to gate it is `size` elements.
template <class E>
struct StepRow {
  int64_t count, size, product_size;
  const void* x;                 // T: what the input gives the gates
  const E* product;              // what the state gives them, from gate to gate `product_size` elements
  const E* bias;                 // GRU: of the product
  const E* hidden;               // the state before the step
  E *next, *cell;                // that after it; the cell is replaced
  void *output, *cells, *gates;  // T: results
};
template <class E>
struct StepRowBackward {
  int64_t count, size;
  const void *x, *gates, *cells, *output, *hidden, *cell;  // T: of the forward pass; hidden and cell: the state before the step
  const void *grad_output, *grad_cells, *grad_gates;       // T
  E *grad_hidden, *grad_cell;                              // of the state after the step; becomes (a part of) that of the one before
  E* grads;                                                // the product's gradient
  void *grad_x, *grad_product;                             // T: results
};
template <class E>
struct RecurrentLoops {
  void (*forward[kRecurrentModes])(const StepRow<E>&);
  void (*backward[kRecurrentModes])(const StepRowBackward<E>&);
};
struct RecurrentKernels {
  RecurrentLoops<float> f32, bf16, f16;
  RecurrentLoops<double> f64;
};
ARGAND_DECLARE_TIERS(RecurrentKernels, recurrent_kernels)

}  // namespace argand::kernels::cpu
