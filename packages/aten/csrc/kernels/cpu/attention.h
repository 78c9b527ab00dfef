// Row loops of attention, one table a tier. Scores lie in rows of `ld` elements, of which a row's first `n` count.
#pragma once

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

template <class E>
struct AttentionLoops {
  // s becomes exp(s + mask - max) and *sum their sum; columns [n, width) become 0. mask: n values or NULL. Returns the log of the sum of
  // exp(s + mask); a row of -inf becomes zeros.
  E (*exponentials)(int64_t n, int64_t width, E* s, const E* mask, E* sum);
  void (*divide)(int64_t n, E* row, E by);
  // s becomes the probabilities exp(s + mask - lse), dp becomes the scores' gradients p * (dp - delta) * scale; columns [n, width) become 0.
  void (*backward)(int64_t n, int64_t width, E* s, const E* mask, E lse, E* dp, E delta, E scale);
  E (*dot)(int64_t n, const E* a, const E* b);
};
struct AttentionKernels {
  AttentionLoops<float> f32;
  AttentionLoops<double> f64;
};
ARGAND_DECLARE_TIERS(AttentionKernels, attention_kernels)

}  // namespace argand::kernels::cpu
