// One convolution, or the gradient of one, through cuDNN, on addresses; how it is computed is chosen once for each problem.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::cuda {

enum class ConvolutionPart : uint8_t { kForward, kData, kFilter };  // y; the gradient of x; the gradient of w

// Dense tensors in the order (batch, channel, [depth,] height, width); the weight is (out channel, in channel of a group, ...).
// All that the choice depends on; unused numbers are 0. No padding: compared and hashed as bytes.
struct ConvolutionProblem {
  int64_t x[5], w[5], y[5];
  int64_t padding[3], stride[3], dilation[3];
  int16_t spatial;  // dimensions: 2 or 3
  int16_t device;
  uint8_t dtype;  // float16, bfloat16, float32 or float64
  ConvolutionPart part;
  uint8_t tf32, deterministic;
};
static_assert(sizeof(ConvolutionProblem) == 200);

// Queues it on the device's current stream; the device must be current, and addresses aligned to 16 bytes. Two of x, w and y are
// read, the third is written.
void run_convolution(const char* op, const ConvolutionProblem& problem, void* x, void* w, void* y);

}  // namespace argand::cuda
