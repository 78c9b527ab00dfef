// Philox words in bulk and the float32 distributions on them. Only additions, multiplications and square roots, each rounded, so
// that every tier and device gives the same bits (docs/notes/random.md).
#pragma once

#include "packages/aten/csrc/kernels/cpu/loops.h"

namespace argand::kernels::cpu {

inline constexpr long kDrawWords = 1024;  // words drawn at once
inline constexpr long kDrawRound = 64;    // counts are rounded up to this: a multiple of every tier's block

struct RandomDraw {
  // words[4 * i + k] = word k of counter `counter` + i, for n words. In all of these n is a multiple of kDrawRound.
  void (*words)(long n, unsigned long seed, unsigned long counter, unsigned* words);
  // n elements from as many words.
  void (*uniform)(long n, float* out, const unsigned* words, float from, float span, float to);
  void (*normal)(long n, float* out, const unsigned* words, float mean, float std);
  void (*exponential)(long n, float* out, const unsigned* words, float scale);  // scale: -1 / rate
  // out[i] = in[i] * (scale or 0), mask[i] = words[i] >= threshold.
  void (*dropout)(long n, float* out, unsigned char* mask, const float* in, const unsigned* words, unsigned threshold, float scale);
};
const RandomDraw& random_draw();  // of the processor's tier

}  // namespace argand::kernels::cpu
