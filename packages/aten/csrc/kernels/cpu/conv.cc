// Convolution over one to three spatial dimensions, and its gradients, on padded planes (conv.h). 1x1 convolutions are matrix products.
#include "packages/aten/csrc/kernels/cpu/conv.h"

#include <algorithm>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/conv_across.h"
#include "packages/aten/csrc/kernels/cpu/conv_depthwise.h"
#include "packages/aten/csrc/kernels/cpu/conv_passes.h"
#include "packages/aten/csrc/kernels/cpu/conv_weight.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/cpu/gemm.h"
#include "packages/aten/csrc/kernels/cpu/norm.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

// The taps of folded planes, whose rows are those of the depth and the height: numbered in the order of what they read, rising (`direction` 1) or
// falling. Layer 0 of `made` ones of so many rows reads layer start(t) of `layers` at the tap t of the depth.
template <class P, class F>
Taps folded_taps(const Geometry& g, const P& planes, int64_t made, int64_t height, F&& start, int64_t layers, int direction) {
  const auto order = [&](int64_t i, int64_t n) { return direction > 0 ? i : n - 1 - i; };
  Taps taps;
  taps.layers.emplace_back(0, 0);
  for (int64_t n = 0; n < g.kd; n++) {
    const int64_t t = order(n, g.kd), first = std::clamp<int64_t>(-start(t), 0, made), last = std::clamp<int64_t>(layers - start(t), first, made);
    for (int64_t m = 0; m < g.kh; m++) {
      const int64_t i = order(m, g.kh);
      taps.rows.push_back({t * g.kh + i, planes.layer_offset(g, t) + planes.row_offset(g, i), first * height, last * height});
    }
  }
  for (int64_t m = 0; m < g.kw; m++) taps.columns.emplace_back(order(m, g.kw), planes.column_offset(g, order(m, g.kw)));
  return taps;
}

template <class T>
void forward(const Geometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias, const Results& results) {
  using E = compute_t<T>;
  const InputPlanes planes(g, sizeof(E), Use::kResult);
  const Tensor hold_bias = bias ? to_dtype(bias, sizeof(E) == 8 ? ARGAND_FLOAT64 : ARGAND_FLOAT32) : Tensor();
  if constexpr (std::is_same_v<T, E>)
    if (AcrossImages<E>::fits(g, g.pixels())) {
      const AcrossImages<E> across(g, false);
      if (across.pays(g, planes, g.oh, g.od)) return across.run(input.data<E>(), weight.data<E>(), bias ? hold_bias.data<E>() : nullptr, results);
    }
  const int64_t height = planes.folded ? g.od * g.oh : g.oh;
  Product<T, E> p(planes, g.in, g.out, height, results);
  p.result_h = height, p.result_w = g.ow, p.step_h = p.step_w = 1;
  if (bias) p.bias = hold_bias.data<E>();
  Taps taps;
  if (planes.folded) taps = folded_taps(g, planes, g.od, g.oh, [&](int64_t t) { return t * g.dd - g.pd; }, g.d, 1);
  for (int64_t t = 0; !planes.folded && t < g.kd; t++) taps.layers.emplace_back(t, t * g.dd);
  for (int64_t i = 0; !planes.folded && i < g.kh; i++) {
    const int64_t y = i * g.dh - g.ph;  // what pixel row 0 reads
    taps.rows.push_back({i, planes.row_offset(g, i), y < 0 ? std::min(g.oh, (-y + g.sh - 1) / g.sh) : 0, std::min(g.oh, count_inside(g.h, y, g.sh))});
    if (planes.merged) taps.rows.back().first = 0, taps.rows.back().last = p.height;
  }
  for (int64_t j = 0; !planes.folded && j < g.kw; j++) taps.columns.emplace_back(j, planes.column_offset(g, j));
  p.passes.push_back(std::make_unique<Pass<E>>(std::move(taps), planes, p.slices, p.height,
                                               [&](int64_t c, int64_t t, int64_t i, int64_t j) { return ((c * g.kd + t) * g.kh + i) * g.kw + j; }));
  Pass<E>& pass = *p.passes[0];
  if (!planes.folded) pass.count = g.od, pass.source_step = g.sd, pass.source_layer = -g.pd;
  pack(pass, p.blocks, p.height * planes.width, g.groups, g.out, weight.data<T>(), g.out * pass.k(), pass.k());
  const T* in = input.data<T>();
  run_passes<T, E>(p, g.batch, g.groups, [&](int64_t unit, int64_t count, int64_t channel, E* to, int64_t begin, int64_t end) {
    planes.fill<T, E>(g, in + (unit * g.in + channel) * g.volume(), count, to, begin, end);
  });
}

// The taps that reach a stride phase (a, b) of the input's gradient, in layers of phase c; in the order of what they read.
Taps phase_taps(const Geometry& g, const GradientPlanes& planes, int64_t c, int64_t a, int64_t b) {
  if (planes.folded) return folded_taps(g, planes, g.d, g.h, [&](int64_t t) { return g.pd - t * g.dd; }, g.od, -1);
  Taps taps;
  for (int64_t t = g.kd - 1; t >= 0; t--)
    if (t * g.dd % g.sd == c) taps.layers.emplace_back(t, -(t * g.dd / g.sd));
  for (int64_t i = g.kh - 1; i >= 0; i--) {
    if (i * g.dh % g.sh != a) continue;
    const int64_t y = planes.row_start(g, i);  // what pixel row 0 reads
    taps.rows.push_back({i, planes.row_offset(g, i), std::clamp<int64_t>(-y, 0, planes.qh), std::clamp<int64_t>(g.oh - y, 0, planes.qh)});
    if (planes.merged) taps.rows.back().first = 0, taps.rows.back().last = planes.height;
  }
  for (int64_t j = g.kw - 1; j >= 0; j--)
    if (j * g.dw % g.sw == b) taps.columns.emplace_back(j, planes.column_offset(g, j));
  return taps;
}

// Every stride phase of the input's gradient is a plain convolution of the output's gradient with the taps that reach that phase.
template <class T>
void backward_input(const Geometry& g, const Tensor& grad, const Tensor& weight, const Tensor& out) {
  using E = compute_t<T>;
  const GradientPlanes planes(g, sizeof(E));
  const Results results{g.in, g.volume(), out.dtype(), out.data<char>(), nullptr};
  if constexpr (std::is_same_v<T, E>)
    if (AcrossImages<E>::fits(g, g.volume())) {
      const AcrossImages<E> across(g, true);
      if (across.pays(g, planes, planes.qh, (g.d + g.sd - 1) / g.sd)) return across.run(grad.data<E>(), weight.data<E>(), nullptr, results);
    }
  const int64_t deep = planes.folded ? g.d : 1;
  Product<T, E> p(planes, g.out, g.in, deep * planes.qh, results);
  p.result_h = deep * g.h, p.result_w = g.w, p.step_h = g.sh, p.step_w = g.sw;
  bool complete = true;  // every phase has a tap
  for (int64_t c = 0; c < g.sd; c++)
    for (int64_t a = 0; a < g.sh; a++)
      for (int64_t b = 0; b < g.sw; b++) {
        Taps taps = phase_taps(g, planes, c, a, b);
        if (taps.empty()) {
          complete = false;
          continue;
        }
        p.passes.push_back(std::make_unique<Pass<E>>(std::move(taps), planes, p.slices, p.height, [&](int64_t o, int64_t t, int64_t i, int64_t j) {
          return (o * g.in * g.kd + t) * g.kh * g.kw + i * g.kw + j;
        }));
        Pass<E>& pass = *p.passes.back();
        const int64_t front = g.pd > c ? (g.pd - c + g.sd - 1) / g.sd : 0;  // layers of the phase that are padding
        pass.step = g.sd, pass.layer = front * g.sd + c - g.pd, pass.source_layer = front, pass.source_step = 1;
        pass.count = count_inside(g.d, pass.layer, g.sd);
        if (planes.folded) pass.source_layer = 0, pass.count = 1;
        pass.y0 = planes.first_h(g, a) * g.sh + a - g.ph, pass.x0 = planes.first_w(g, b) * g.sw + b - g.pw;
        pack(pass, p.blocks, p.height * planes.width, g.groups, g.in, weight.data<T>(), g.out * g.in * g.taps(), g.taps());
      }
  if (!complete) std::memset(out->data, 0, static_cast<size_t>(out.numel()) * sizeof(T));
  const T* dy = grad.data<T>();
  run_passes<T, E>(p, g.batch, g.groups, [&](int64_t unit, int64_t count, int64_t channel, E* to, int64_t begin, int64_t end) {
    planes.fill<T, E>(g, dy + (unit * g.out + channel) * g.pixels(), count, to, begin, end);
  });
}

// 1x1 convolutions as matrix products, per image and group; f(image * groups + group, serial).
template <class F>
void for_units(const Geometry& g, F&& f) {
  const int64_t units = g.batch * g.groups;
  if (units < api->num_threads()) {
    for (int64_t u = 0; u < units; u++) f(u, false);
    return;
  }
  parallel_for(0, units, row_grain(g.in * g.out * g.volume(), 200000), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) f(u, true);
  });
}

// Kernels as large as the input: one product, images times weights.
void whole_forward(const Geometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias, const Results& results) {
  const int64_t k = g.in * g.taps();
  Tensor own;
  char* const out = results.place(0, g.batch, &own);
  if (bias) {
    const int64_t sizes[2] = {g.batch, g.out}, to[2] = {g.out, 1}, from[2] = {0, bias.stride(0)};
    strided_copy(static_cast<int>(input.itemsize()), 2, sizes, out, to, bias->data, from);
  }
  gemm(input.dtype(), g.batch, g.out, k, 1, {input->data, k, 1}, {weight->data, 1, k}, bias ? 1 : 0, out, g.out);
  results.finish(0, g.batch, out, false);
}

void pointwise_forward(const Geometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias, const Results& results) {
  const int64_t n = g.volume(), size = input.itemsize();
  for_units(g, [&](int64_t u, bool serial) {
    const int64_t group = u % g.groups;
    const char *w = weight.data<char>() + group * g.out * g.in * size, *x = input.data<char>() + u * g.in * n * size;
    Tensor own;
    char* const out = results.place(u, 1, &own);
    if (bias) {
      const int64_t sizes[2] = {g.out, n}, to[2] = {n, 1}, from[2] = {bias.stride(0), 0};
      strided_copy(static_cast<int>(size), 2, sizes, out, to, bias.data<char>() + group * g.out * bias.stride(0) * size, from);
    }
    gemm(input.dtype(), g.out, n, g.in, 1, {w, g.in, 1}, {x, n, 1}, bias ? 1 : 0, out, n, serial);
    results.finish(u, 1, out, serial);
  });
}

void pointwise_backward_input(const Geometry& g, const Tensor& grad, const Tensor& weight, const Tensor& out) {
  const int64_t n = g.volume(), size = grad.itemsize();
  for_units(g, [&](int64_t u, bool serial) {
    const char *w = weight.data<char>() + u % g.groups * g.out * g.in * size, *dy = grad.data<char>() + u * g.out * n * size;
    gemm(grad.dtype(), g.in, n, g.out, 1, {w, 1, g.in}, {dy, n, 1}, 0, out.data<char>() + u * g.in * n * size, n, serial);
  });
}

// Image by image into the zeroed result.
void pointwise_backward_weight(const Geometry& g, const Tensor& input, const Tensor& grad, const Tensor& out) {
  const int64_t n = g.volume(), size = grad.itemsize();
  for (int64_t u = 0; u < g.batch * g.groups; u++)
    gemm(grad.dtype(), g.out, g.in, n, 1, {grad.data<char>() + u * g.out * n * size, n, 1}, {input.data<char>() + u * g.in * n * size, 1, n}, 1,
         out.data<char>() + u % g.groups * g.out * g.in * size, g.in);
}

template <class T>
Tensor bias_gradient(const Geometry& g, const Tensor& grad) {
  using E = compute_t<T>;
  const int64_t channels = g.groups * g.out, pixels = g.pixels();
  Tensor out = empty({channels}, grad.dtype());
  const auto loops = norm_loops<T>();
  parallel_for(0, channels, row_grain(g.batch * pixels), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) {
      E sum = 0;
      for (int64_t n = 0; n < g.batch; n++) sum += loops.sum(pixels, grad.data<T>() + (n * channels + c) * pixels);
      out.data<T>()[c] = narrow<T>(sum);
    }
  });
  return out;
}

// Calls f(tap, place in the channel's input) for the taps of a result's pixel that read no padding.
template <class F>
void for_taps(const Geometry& g, int64_t pixel, F&& f) {
  const int64_t z0 = pixel / (g.oh * g.ow) * g.sd - g.pd, y0 = pixel / g.ow % g.oh * g.sh - g.ph, x0 = pixel % g.ow * g.sw - g.pw;
  for (int64_t i = 0; i < g.taps(); i++) {
    const int64_t z = z0 + i / (g.kh * g.kw) * g.dd, y = y0 + i / g.kw % g.kh * g.dh, x = x0 + i % g.kw * g.dw;
    if (z >= 0 && z < g.d && y >= 0 && y < g.h && x >= 0 && x < g.w) f(i, (z * g.h + y) * g.w + x);
  }
}

// Convolution of int64 is rare: plain loops, unsigned sums, which wrap.
Tensor integer_forward(const Geometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& out) {
  const Tensor b = bias ? contiguous(bias) : bias;
  parallel_for(0, g.batch * g.groups * g.out, row_grain(g.pixels() * g.in * g.taps()), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const int64_t channel = p % (g.groups * g.out), first = (p / g.out) * g.in;  // p / out is image * groups + group
      for (int64_t at = 0; at < g.pixels(); at++) {
        uint64_t sum = b ? static_cast<uint64_t>(b.data<int64_t>()[channel]) : 0;
        for (int64_t c = 0; c < g.in; c++)
          for_taps(g, at, [&](int64_t tap, int64_t place) {
            sum += static_cast<uint64_t>(x.data<int64_t>()[(first + c) * g.volume() + place]) *
                   static_cast<uint64_t>(w.data<int64_t>()[(channel * g.in + c) * g.taps() + tap]);
          });
        out.data<int64_t>()[p * g.pixels() + at] = static_cast<int64_t>(sum);
      }
    }
  });
  return out;
}

Tensor integer_backward_input(const Geometry& g, const Tensor& dy, const Tensor& w, IntList sizes) {
  const Tensor dx = zeros(sizes, ARGAND_INT64);
  parallel_for(0, g.batch * g.groups, row_grain(g.pixels() * g.out * g.in * g.taps()), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      auto* volumes = reinterpret_cast<uint64_t*>(dx.data<int64_t>()) + p * g.in * g.volume();
      for (int64_t o = 0; o < g.out; o++)
        for (int64_t at = 0; at < g.pixels(); at++) {
          const auto dv = static_cast<uint64_t>(dy.data<int64_t>()[(p * g.out + o) * g.pixels() + at]);
          const int64_t* row = w.data<int64_t>() + (p % g.groups * g.out + o) * g.in * g.taps();
          for (int64_t c = 0; c < g.in; c++)
            for_taps(g, at,
                     [&](int64_t tap, int64_t place) { volumes[c * g.volume() + place] += dv * static_cast<uint64_t>(row[c * g.taps() + tap]); });
        }
    }
  });
  return dx;
}

// Rows of a band of convolutions that go by channels (conv_depthwise.h); 0 of others.
int64_t band_of(const Geometry& g, int dtype) {
  int64_t band = 0;
  if (is_floating(dtype) && g.in == 1)
    dispatch_floating("convolution", dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      band = depthwise_band(g, depthwise_loops<T>().lanes, sizeof(compute_t<T>));
    });
  return band;
}

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding, IntList dilation, int64_t groups,
                   ArgandEpilogue* epilogue) {
  if (is_integral(input.dtype(), false) && input.dtype() != ARGAND_INT64 && weight.dtype() == input.dtype()) {  // by int64, which wraps around alike
    if (bias) check_same_dtype("convolution", bias, weight);
    const Tensor wide_bias = bias ? to_dtype(bias, ARGAND_INT64) : bias;
    const Tensor sum =
        convolution(to_dtype(input, ARGAND_INT64), to_dtype(weight, ARGAND_INT64), wide_bias, stride, padding, dilation, groups, nullptr);
    return to_dtype(sum, input.dtype());
  }
  const Geometry g = conv_geometry("convolution", input, weight, stride, padding, dilation, groups);
  if (bias) {
    check_same_dtype("convolution", bias, weight);
    if (bias.dim() != 1 || bias.size(0) != weight.size(0))
      fail(ARGAND_SHAPE_ERROR,
           "convolution: Given weight of size %s, expected bias to be 1-dimensional with %ld elements, but got bias of size %s instead",
           to_string(weight.sizes()).c_str(), static_cast<long>(weight.size(0)), to_string(bias.sizes()).c_str());
  }
  Dims sizes;
  sizes.push_back(g.batch);
  sizes.push_back(weight.size(0));
  if (input.dim() == 5) sizes.push_back(g.od);
  if (input.dim() >= 4) sizes.push_back(g.oh);
  sizes.push_back(g.ow);
  const bool last = input.dim() == 4 && g.groups > 1 && g.in == 1 && g.out == 1 &&
                    builtins::suggested_format(input.sizes(), input.strides()) == 2;  // as the shape says
  const int64_t band = band_of(g, input.dtype());
  const bool empties = product(sizes) == 0, hands_over = epilogue && !empties && input.dtype() != ARGAND_INT64 && !last;
  const Tensor out = hands_over && !epilogue->keep ? Tensor()
                     : last                        ? argand::empty_strided(sizes, builtins::format_strides(sizes, 2), input.dtype())
                                                   : empty(sizes, input.dtype());
  if (empties) return out;
  if (last && !band) {  // a pixel of an image may be contiguous and have the channels last: its strides must say otherwise
    const Tensor dense = convolution(clone(input, 0), weight, bias, stride, padding, dilation, groups, nullptr);
    strided_copy(static_cast<int>(out.itemsize()), 4, sizes.d, out->data, out->strides, dense->data, dense->strides);
    return out;
  }
  if (input.dtype() == ARGAND_INT64) return integer_forward(g, contiguous(input), contiguous(weight), bias, out);
  const Tensor x = last && input.stride(1) == 1 ? input : contiguous(input), w = contiguous(weight);
  const Results results{g.out, g.pixels(), input.dtype(), out ? out.data<char>() : nullptr, hands_over ? epilogue : nullptr};
  if (g.is_whole() && g.groups == 1 && g.in > 0)
    whole_forward(g, x, w, bias, results);
  else if (g.is_pointwise() && g.out >= 4 && g.in > 0 && (x.itemsize() < 4 || !InputPlanes(g, x.itemsize(), Use::kResult).merged))
    pointwise_forward(g, x, w, bias, results);
  else
    dispatch_floating("convolution", input.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      band ? depthwise_forward<T>(g, x, w, bias, results, last, band) : forward<T>(g, x, w, bias, results);
    });
  if (hands_over) epilogue->done = 1;
  return out;
}

}  // namespace

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding, IntList dilation, int64_t groups) {
  return convolution(input, weight, bias, stride, padding, dilation, groups, nullptr);
}

int convolution_epilogue(const ArgandOperator*, const ArgandValue* a, ArgandValue* r, ArgandEpilogue* e) {
  return guarded([&] {
    give(r[0], convolution(as_tensor(a[0]), as_tensor(a[1]), as_tensor(a[2]), as_ints(a[3]), as_ints(a[4]), as_ints(a[5]), as_int(a[6]), e));
  });
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight, IntList stride,
                                                        IntList padding, IntList dilation, int64_t groups, IntList output_mask) {
  const Geometry g = conv_geometry("convolution_backward", input, weight, stride, padding, dilation, groups);
  check_same_dtype("convolution_backward", grad_output, input);
  if (grad_output.numel() != g.batch * g.groups * g.out * g.pixels())
    fail(ARGAND_SHAPE_ERROR,
         "convolution_backward: got grad of shape %s, expected (%ld, %ld, %ld, %ld, %ld) without the dimensions that are not there",
         to_string(grad_output.sizes()).c_str(), static_cast<long>(g.batch), static_cast<long>(g.groups * g.out), static_cast<long>(g.od),
         static_cast<long>(g.oh), static_cast<long>(g.ow));
  if (input.dtype() == ARGAND_INT64 && !output_mask[1] && !output_mask[2])
    return {integer_backward_input(g, contiguous(grad_output), contiguous(weight), input.sizes()), Tensor(), Tensor()};
  const Tensor dy = contiguous(grad_output), x = contiguous(input), w = contiguous(weight);
  Tensor dx, dw, db;
  const bool whole = g.is_whole() && g.groups == 1;
  const bool products = g.is_pointwise() && g.out >= 4 && g.in >= 4 && x.itemsize() > 2;  // 16-bit sums would be rounded at every image
  const int64_t k = g.in * g.taps();                                                      // of a whole kernel
  dispatch_floating("convolution_backward", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (output_mask[0]) {
      dx = empty(x.sizes(), x.dtype());
      if (!dx.numel() || !dy.numel())
        dx = zeros(x.sizes(), x.dtype());
      else if (whole)
        gemm(x.dtype(), g.batch, k, g.out, 1, {dy->data, g.out, 1}, {w->data, k, 1}, 0, dx->data, k);
      else if (products && !GradientPlanes(g, x.itemsize()).merged)
        pointwise_backward_input(g, dy, w, dx);
      else
        backward_input<T>(g, dy, w, dx);
    }
    if (output_mask[1]) {
      const bool adds = products && !whole;
      dw = adds || !dy.numel() ? zeros(w.sizes(), x.dtype()) : empty(w.sizes(), x.dtype());
      if (dw.numel() && dy.numel() && whole)
        gemm(x.dtype(), g.out, k, g.batch, 1, {dy->data, 1, g.out}, {x->data, k, 1}, 0, dw->data, k);
      else if (dw.numel() && dy.numel())
        adds ? pointwise_backward_weight(g, x, dy, dw) : WeightGradient<T>(g, x, dy).run(dw);
    }
    if (output_mask[2]) db = bias_gradient<T>(g, dy);
  });
  return {dx, dw, db};
}

}  // namespace argand::kernels::cpu
