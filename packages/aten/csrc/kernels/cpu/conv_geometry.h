// Sizes of a convolution over one to three spatial dimensions; those that are not there have size 1.
#pragma once

#include <stdint.h>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cpu {

struct Geometry {
  int64_t batch, groups, in, out;  // channels per group
  int64_t d = 1, h = 1, w = 1, od = 1, oh = 1, ow = 1, kd = 1, kh = 1, kw = 1;
  int64_t sd = 1, sh = 1, sw = 1, pd = 0, ph = 0, pw = 0, dd = 1, dh = 1, dw = 1;

  int64_t taps() const { return kd * kh * kw; }
  int64_t volume() const { return d * h * w; }
  int64_t pixels() const { return od * oh * ow; }
  bool is_pointwise() const { return taps() == 1 && sd == 1 && sh == 1 && sw == 1 && pd == 0 && ph == 0 && pw == 0; }
  // The kernel is as large as the input, of which it reads all once.
  bool is_whole() const { return pixels() == 1 && d == kd && h == kh && w == kw && pd == 0 && ph == 0 && pw == 0; }
};

// Raises what does not fit. Strides are cut to what is enough for one output.
Geometry conv_geometry(const char* op, const Tensor& input, const Tensor& weight, IntList stride, IntList padding, IntList dilation, int64_t groups);

}  // namespace argand::kernels::cpu
