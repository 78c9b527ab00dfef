// Every output plane is a two-dimensional convolution of the input planes that its window meets, taken as further channels: the weight
// (out, in, kd, kh, kw) read as (out, in * kd, kh, kw) fits as it is. Planes that repeat cost kd / stride times the input's memory.
#include "packages/aten/csrc/kernels/cpu/conv3d.h"

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

struct Depth {
  int64_t batch, channels, in, out, taps, stride, padding, dilation;
  int64_t plane = 0;  // bytes

  int64_t source(int64_t z, int64_t tap) const { return z * stride - padding + tap * dilation; }  // may lie outside [0, in)
};

Depth depth_of(const char* op, const Tensor& input, const Tensor& weight, IntList stride, IntList padding, IntList dilation, int64_t groups) {
  if (weight.dim() != 5)
    fail(ARGAND_SHAPE_ERROR, "%s: got input of shape %s and weight of shape %s, expected (out_channels, channels / groups, depth, height, width)", op,
         to_string(input.sizes()).c_str(), to_string(weight.sizes()).c_str());
  if (stride.n != 3 || padding.n != 3 || dilation.n != 3 || stride[0] < 1 || dilation[0] < 1 || padding[0] < 0 ||
      std::max(padding[0], dilation[0]) > INT32_MAX)
    fail(ARGAND_SHAPE_ERROR, "%s: got stride %s, padding %s and dilation %s, expected three numbers each, positive, paddings from 0, below 2**31", op,
         to_string(stride).c_str(), to_string(padding).c_str(), to_string(dilation).c_str());
  if (groups < 1 || input.size(1) != weight.size(1) * groups)
    fail(ARGAND_SHAPE_ERROR, "%s: Given groups=%ld, weight of size %s, expected input%s to have %ld channels, but got %ld channels instead", op,
         static_cast<long>(groups), to_string(weight.sizes()).c_str(), to_string(input.sizes()).c_str(), static_cast<long>(weight.size(1) * groups),
         static_cast<long>(input.size(1)));
  Depth d{input.size(0), input.size(1), input.size(2), 0, weight.size(2), stride[0], padding[0], dilation[0]};
  const int64_t room = d.in + 2 * d.padding - d.dilation * (d.taps - 1) - 1;
  if (room < 0)
    fail(ARGAND_SHAPE_ERROR, "%s: Calculated padded input depth: %ld. Kernel depth: %ld. Kernel size can't be greater than actual input size", op,
         static_cast<long>(d.in + 2 * d.padding), static_cast<long>(d.dilation * (d.taps - 1) + 1));
  d.out = room / d.stride + 1;
  d.plane = input.size(3) * input.size(4) * input.itemsize();
  return d;
}

// (batch * out, channels * taps, height, width): the planes that each output plane's window meets, zeros outside of the input.
Tensor gathered(const Depth& d, const Tensor& input) {
  Tensor planes = empty({d.batch * d.out, d.channels * d.taps, input.size(3), input.size(4)}, input.dtype());
  const char* from = input.data<char>();
  char* to = planes.data<char>();
  parallel_for(0, d.batch * d.out * d.channels, row_grain(d.taps * d.plane, 65536), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t channel = i % d.channels, z = i / d.channels % d.out, image = i / d.channels / d.out;
      for (int64_t tap = 0; tap < d.taps; tap++) {
        const int64_t at = d.source(z, tap);
        char* const plane = to + (i * d.taps + tap) * d.plane;
        if (at < 0 || at >= d.in)
          std::memset(plane, 0, static_cast<size_t>(d.plane));
        else
          std::memcpy(plane, from + ((image * d.channels + channel) * d.in + at) * d.plane, static_cast<size_t>(d.plane));
      }
    }
  });
  return planes;
}

// The transpose of `gathered`: what each input plane gets from the windows that meet it.
Tensor scattered(const Depth& d, const Tensor& planes, IntList sizes) {
  const Tensor out = empty(sizes, planes.dtype());
  dispatch_real("convolution_backward", planes.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const int64_t n = d.plane / static_cast<int64_t>(sizeof(T));
    parallel_for(0, d.batch * d.channels * d.in, row_grain(d.taps * n), [&](int64_t begin, int64_t end) {
      Scratch<E> sum(n);
      for (int64_t i = begin; i < end; i++) {
        const int64_t at = i % d.in, channel = i / d.in % d.channels, image = i / d.in / d.channels;
        std::fill_n(sum.get(), n, E(0));
        for (int64_t tap = 0; tap < d.taps; tap++) {
          const int64_t steps = at + d.padding - tap * d.dilation, z = steps / d.stride;
          if (steps < 0 || steps % d.stride || z >= d.out) continue;
          const T* from = planes.data<T>() + (((image * d.out + z) * d.channels + channel) * d.taps + tap) * n;
          for (int64_t x = 0; x < n; x++) sum[x] += widen(from[x]);
        }
        for (int64_t x = 0; x < n; x++) out.data<T>()[i * n + x] = narrow<T>(sum[x]);
      }
    });
  });
  return out;
}

// A dense copy of (batch, a, b, ...) as (batch, b, a, ...).
Tensor swapped(const Tensor& t, int64_t batch, int64_t a, int64_t b, IntList sizes) {
  const Tensor out = empty(sizes, t.dtype());
  const int64_t planes = batch * a * b, rest = planes > 0 ? t.numel() / planes : 0;
  const int64_t shape[4] = {batch, b, a, rest}, to[4] = {a * b * rest, a * rest, rest, 1}, from[4] = {a * b * rest, rest, b * rest, 1};
  if (out.numel()) strided_copy(t.itemsize(), 4, shape, out->data, to, t->data, from);
  return out;
}

Tensor flat_weight(const Tensor& weight) {
  const Tensor dense = contiguous(weight);
  const int64_t in = dense.size(1) * dense.size(2), h = dense.size(3), w = dense.size(4);
  return view_of(dense, {dense.size(0), in, h, w}, {in * h * w, h * w, w, 1}, dense->offset);
}

}  // namespace

Tensor convolution3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                     int64_t groups) {
  const Depth d = depth_of("convolution", input, weight, stride, padding, dilation, groups);
  const Tensor y = convolution(gathered(d, contiguous(input)), flat_weight(weight), bias, {stride.ptr + 1, 2}, {padding.ptr + 1, 2},
                               {dilation.ptr + 1, 2}, groups);
  return swapped(y, d.batch, d.out, y.size(1), {d.batch, y.size(1), d.out, y.size(2), y.size(3)});
}

std::tuple<Tensor, Tensor, Tensor> convolution3d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight, IntList stride,
                                                          IntList padding, IntList dilation, int64_t groups, IntList output_mask) {
  const Depth d = depth_of("convolution_backward", input, weight, stride, padding, dilation, groups);
  if (grad_output.dim() != 5 || grad_output.size(0) != d.batch || grad_output.size(1) != weight.size(0) || grad_output.size(2) != d.out)
    fail(ARGAND_SHAPE_ERROR, "convolution_backward: got grad of shape %s, expected (%ld, %ld, %ld, height, width)",
         to_string(grad_output.sizes()).c_str(), static_cast<long>(d.batch), static_cast<long>(weight.size(0)), static_cast<long>(d.out));
  const Tensor dy =
      swapped(contiguous(grad_output), d.batch, weight.size(0), d.out, {d.batch * d.out, weight.size(0), grad_output.size(3), grad_output.size(4)});
  // The input's elements only count for the weight's gradient.
  const Tensor planes =
      output_mask[1] ? gathered(d, contiguous(input)) : empty({d.batch * d.out, d.channels * d.taps, input.size(3), input.size(4)}, input.dtype());
  auto [dx, dw, db] =
      convolution_backward(dy, planes, flat_weight(weight), {stride.ptr + 1, 2}, {padding.ptr + 1, 2}, {dilation.ptr + 1, 2}, groups, output_mask);
  if (dx) dx = scattered(d, dx, input.sizes());
  if (dw) dw = swapped(dw, 1, 1, 1, weight.sizes());
  return {dx, dw, db};
}

}  // namespace argand::kernels::cpu
