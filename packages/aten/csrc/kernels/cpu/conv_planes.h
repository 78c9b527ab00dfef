// Planes of convolutions (conv.h): padded copies of a tensor's planes in which every tap of a kernel reads a contiguous run.
#pragma once

#include <algorithm>
#include <cstring>

#include "packages/aten/csrc/kernels/cpu/conv.h"
#include "packages/aten/csrc/kernels/cpu/conv_geometry.h"
#include "packages/aten/csrc/kernels/cpu/util.h"

namespace argand::kernels::cpu {

constexpr int64_t kSlack = 256;  // elements that vector loads may read past what taps read

// How many of first, first + step, first + 2 * step, ... come before n (those below 0 included).
inline int64_t count_inside(int64_t n, int64_t first, int64_t step) { return first >= n ? 0 : (n - 1 - first) / step + 1; }

// Rows are often too short for a call of memcpy.
template <class E>
void copy_dense(E* to, const E* from, int64_t n) {
  constexpr int64_t kStep = 16 / sizeof(E);
  if (n > 128) return static_cast<void>(std::memcpy(to, from, sizeof(E) * static_cast<size_t>(n)));
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) std::memcpy(to + i, from + i, 16);
  for (; i < n; i++) to[i] = from[i];
}

// Every second element.
inline void copy_halved(float* to, const float* from, int64_t n) {
  using V = float __attribute__((vector_size(16)));
  int64_t i = 0;
  for (; i + 4 < n; i += 4) {  // the last element of `b` is none of ours
    V a, b;
    std::memcpy(&a, from + 2 * i, 16);
    std::memcpy(&b, from + 2 * i + 4, 16);
    const V even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    std::memcpy(to + i, &even, 16);
  }
  for (; i < n; i++) to[i] = from[2 * i];
}

template <class T, class E>
void copy_row(E* to, const T* from, int64_t n, int64_t step) {
  if constexpr (std::is_same_v<T, E>)
    if (step == 1) return copy_dense(to, from, n);
  if constexpr (std::is_same_v<T, float>)
    if (step == 2) return copy_halved(to, from, n);
  for (int64_t i = 0; i < n; i++) to[i] = widen(from[i * step]);
}

// plane[m][y][x] = in[m * image + (y * sh + top) * w + x * sw + left], zero outside [h, w].
template <class T, class E>
void fill_plane(E* plane, int64_t height, int64_t width, const T* in, int64_t images, int64_t image, int64_t h, int64_t w, int64_t sh, int64_t sw,
                int64_t top, int64_t left) {
  if constexpr (std::is_same_v<T, E>)
    if (sw <= 2 && conv_loops<E>().plane) return conv_loops<E>().plane(plane, height, width, in, images, image, h, w, sh, sw, top, left);
  const int64_t begin = std::min(width, left >= 0 ? int64_t{0} : (-left + sw - 1) / sw);
  const int64_t end = std::max(begin, std::min(width, count_inside(w, left, sw)));
  for (int64_t row = 0; row < images * height; row++, plane += width) {
    const int64_t iy = row % height * sh + top;
    if (iy < 0 || iy >= h || begin == end) {
      for (int64_t x = 0; x < width; x++) plane[x] = 0;
      continue;
    }
    for (int64_t x = 0; x < begin; x++) plane[x] = 0;
    copy_row(plane + begin, in + row / height * image + iy * w + begin * sw + left, end - begin, sw);
    for (int64_t x = end; x < width; x++) plane[x] = 0;
  }
}

// `front` and `back` layers of zeros around those of a volume, one below another.
template <class T, class E>
void fill_layers(E* to, int64_t front, int64_t layers, int64_t back, int64_t height, int64_t width, const T* in, int64_t h, int64_t w, int64_t sh,
                 int64_t sw, int64_t top, int64_t left) {
  const int64_t layer = height * width;
  std::fill_n(to, front * layer, E(0));
  fill_plane<T, E>(to + front * layer, height, width, in, layers, h * w, h, w, sh, sw, top, left);
  std::fill_n(to + (front + layers) * layer, back * layer, E(0));
}

// The planes of a channel: `layers` of them along the depth, each of rows x columns planes. A row is a stride phase; a column is a stride phase, or
// with `by_tap` the place that one tap of the kernel's rows reads: planes are then as wide as the result, without waste. Of several small images that
// are gone through as one, a plane is what one tap reads in all of them, image below image: rows are taps, too.
// So it is of a volume that is `folded`: its layers, those of padding included, lie one below another, and a tap of the depth is so many rows away.
struct Planes {
  int64_t height, width, layers, rows, columns, filled;  // `filled`: rows of a plane that are not padding, at most
  bool by_tap, folded = false;
  int64_t merged = 0;  // images that are gone through as one
  int64_t stride = 0, per_layer = 0, per_channel = 0;

  int64_t images() const { return std::max<int64_t>(1, merged); }
  void finish(int64_t itemsize) {
    stride = round_up(height * width, 16);
    if (stride * itemsize % 512 == 0) stride += 16;  // equal places of the channels must not share a cache set
    per_layer = rows * columns * stride;
    per_channel = layers * per_layer;
  }
  // Memory of some channels: in the last row, taps of later columns read past the last plane, by less than a row.
  int64_t elements(int64_t channels) const { return round_up(channels * per_channel + width + kSlack, 16); }
};

// Whether planes of `height` rows are made as wide as the result (`narrow`) rather than `wide`, where `out` channels share them.
inline bool wasteful(int64_t height, int64_t wide, int64_t narrow, int64_t out) {
  return out >= 16 && round_up(height * wide, 16) * 8 >= round_up(height * narrow, 16) * 9;
}

// The lanes of the vectors that hold an image of `height` rows, `wide` or `narrow`; a single one does not keep the processor busy.
inline int64_t lanes_alone(int64_t height, int64_t wide, int64_t narrow, int64_t out, int64_t lanes) {
  const int64_t alone = round_up(height * (wasteful(height, wide, narrow, out) ? narrow : wide), lanes);
  return alone == lanes ? alone + lanes / 2 : alone;
}

// Channels whose products cost what a plane for each tap does.
template <class E>
int64_t plane_cost() {
  return conv_loops<E>().plane ? 20 : 60;
}

// How many small images are gone through as one, as alone, of `height` rows, `wide` or `narrow`, they would leave lanes of the vectors empty; 0:
// none. `out` channels share their planes. How many does not depend on the number of threads, so neither does any bit of the result.
template <class E>
int64_t merged_images(const Geometry& g, int64_t height, int64_t wide, int64_t narrow, int64_t out) {
  constexpr int64_t kPixels = 400;
  const int64_t lanes = conv_loops<E>().lanes, pixels = height * narrow, most = std::min(g.batch, kPixels / std::max<int64_t>(1, pixels));
  if (g.groups > 1 || g.d > 1 || g.od > 1 || g.kd > 1 || most < 2) return 0;
  if (lanes_alone(height, wide, narrow, out, lanes) * most * out <= round_up(pixels * most, lanes) * (out + plane_cost<E>())) return 0;
  const int64_t half = std::max<int64_t>(1, g.batch / 2), times = (half + most - 1) / most;  // more threads share an image
  return (half + times - 1) / times;
}

// Whether the `made` layers of a volume, of which `tap_layers` read no padding for all taps of the depth together, are gone through as one image.
template <class E>
bool folds(const Geometry& g, int64_t made, int64_t tap_layers, int64_t height, int64_t wide, int64_t narrow, int64_t out) {
  const int64_t lanes = conv_loops<E>().lanes;
  return made > 1 && g.sd == 1 &&
         lanes_alone(height, wide, narrow, out, lanes) * tap_layers * out > round_up(made * height * narrow, lanes) * g.kd * (out + plane_cost<E>());
}
// Pairs of a layer of the result and a tap of the depth that reads one of the input.
inline int64_t live_layers(const Geometry& g) {
  int64_t live = 0;
  for (int64_t t = 0; t < g.kd; t++) {
    const int64_t from = t * g.dd - g.pd, before = count_inside(0, from, g.sd);
    live += std::clamp<int64_t>(count_inside(g.d, from, g.sd), 0, g.od) - std::clamp<int64_t>(before, 0, g.od);
  }
  return live;
}

enum class Use { kResult, kWeight, kRows };  // of the input's planes: products with weights; gradients of weights, by long runs of pixels, or by rows

// Of a convolution's input: phase (a, b) holds in[y * sh + a - ph][x * sw + b - pw]; the tap (t, i, j) of layer z reads layer z * sd - pd + t * dd.
struct InputPlanes : Planes {
  InputPlanes(const Geometry& g, int64_t itemsize, Use use) {
    const int64_t wide = g.ow + (g.kw - 1) * g.dw / g.sw;
    if (use == Use::kResult) {
      merged = itemsize == 8 ? merged_images<double>(g, g.oh, wide, g.ow, g.out) : merged_images<float>(g, g.oh, wide, g.ow, g.out);
      folded = !merged && (itemsize == 8 ? folds<double>(g, g.od, live_layers(g), g.oh, wide, g.ow, g.out)
                                         : folds<float>(g, g.od, live_layers(g), g.oh, wide, g.ow, g.out));
    } else if (use == Use::kWeight) {
      folded = g.od > 1, merged = !folded;
    }
    const int64_t deep = g.d + 2 * g.pd;
    height = merged ? merged * g.oh : folded ? deep * g.oh : g.oh + (g.kh - 1) * g.dh / g.sh;
    filled = merged ? height : folded ? g.d * g.oh : std::min(height, (g.h + g.sh - 1) / g.sh);
    layers = folded ? 1 : g.d;
    by_tap = merged || folded || (use == Use::kResult && wasteful(g.oh, wide, g.ow, g.out));
    width = by_tap ? g.ow : wide;
    rows = merged || folded ? g.kh : std::min(g.sh, (g.kh - 1) * g.dh + 1);
    columns = by_tap ? g.kw : std::min(g.sw, (g.kw - 1) * g.dw + 1);
    finish(itemsize);
  }
  int64_t row_offset(const Geometry& g, int64_t i) const {
    return merged || folded ? i * columns * stride : i * g.dh % g.sh * columns * stride + i * g.dh / g.sh * width;
  }
  int64_t layer_offset(const Geometry& g, int64_t t) const { return t * g.dd * (folded ? g.oh * width : per_layer); }
  int64_t column_offset(const Geometry& g, int64_t j) const { return by_tap ? j * stride : j * g.dw % g.sw * stride + j * g.dw / g.sw; }

  // Planes [begin, end), numbered channel * layers + layer, of `count` images; `volume` is the first image's first channel's.
  template <class T, class E>
  void fill(const Geometry& g, const T* volume, int64_t count, E* planes, int64_t begin, int64_t end) const {
    for (int64_t p = begin; p < end; p++)
      for (int64_t a = 0; a < rows; a++)
        for (int64_t b = 0; b < columns; b++) {
          E* const plane = planes + p * per_layer + (a * columns + b) * stride;
          const int64_t top = (merged || folded ? a * g.dh : a) - g.ph, left = (by_tap ? b * g.dw : b) - g.pw;
          if (folded)
            fill_layers<T, E>(plane, g.pd, g.d, g.pd, g.oh, width, volume + p * g.volume(), g.h, g.w, g.sh, g.sw, top, left);
          else
            fill_plane<T, E>(plane, height / images(), width, volume + p * g.h * g.w, count, g.in * g.volume(), g.h, g.w, g.sh, g.sw, top, left);
        }
  }
};

// Of the gradient of the result, for the gradient of the input: every stride phase of the latter is a convolution of these planes with the taps that
// reach it. Pixel (y, x) of phase (a, b) is the input's ((y + first_h(a)) * sh + a - ph, (x + first_w(b)) * sw + b - pw).
struct GradientPlanes : Planes {
  int64_t qh, qw;         // pixels of a phase
  int64_t low_h, low_w;   // the first row and column that any tap reads
  int64_t low_d, high_d;  // the layers that taps read, those of padding included

  GradientPlanes(const Geometry& g, int64_t itemsize) {
    qh = (g.h + g.sh - 1) / g.sh, qw = (g.w + g.sw - 1) / g.sw;
    low_h = row_start(g, 0), low_w = column_start(g, 0);
    int64_t high_h = low_h, high_w = low_w;
    for (int64_t i = 1; i < g.kh; i++) low_h = std::min(low_h, row_start(g, i)), high_h = std::max(high_h, row_start(g, i));
    for (int64_t j = 1; j < g.kw; j++) low_w = std::min(low_w, column_start(g, j)), high_w = std::max(high_w, column_start(g, j));
    const int64_t wide = qw + high_w - low_w;
    merged = itemsize == 8 ? merged_images<double>(g, qh, wide, qw, g.in) : merged_images<float>(g, qh, wide, qw, g.in);
    low_d = g.pd - (g.kd - 1) * g.dd, high_d = g.d + g.pd;
    folded = !merged && low_d <= 0 && high_d >= g.od && g.sh == 1 && g.sw == 1 &&
             (itemsize == 8 ? folds<double>(g, g.d, live_layers(g), qh, wide, qw, g.in) : folds<float>(g, g.d, live_layers(g), qh, wide, qw, g.in));
    height = merged ? merged * qh : folded ? (high_d - low_d) * qh : qh + high_h - low_h;
    filled = merged ? height : folded ? g.od * qh : std::min(height, g.oh);
    layers = folded ? 1 : g.od;
    by_tap = merged || folded || wasteful(qh, wide, qw, g.in);
    width = by_tap ? qw : wide;
    rows = merged || folded ? g.kh : 1, columns = by_tap ? g.kw : 1;
    finish(itemsize);
  }
  // The first pixel of a phase that is not padding.
  static int64_t first(int64_t padding, int64_t stride, int64_t phase) { return padding > phase ? (padding - phase + stride - 1) / stride : 0; }
  static int64_t first_h(const Geometry& g, int64_t a) { return first(g.ph, g.sh, a); }
  static int64_t first_w(const Geometry& g, int64_t b) { return first(g.pw, g.sw, b); }
  // What a tap reads for the first pixel of its phase.
  static int64_t row_start(const Geometry& g, int64_t i) { return first_h(g, i * g.dh % g.sh) - i * g.dh / g.sh; }
  static int64_t column_start(const Geometry& g, int64_t j) { return first_w(g, j * g.dw % g.sw) - j * g.dw / g.sw; }

  int64_t row_offset(const Geometry& g, int64_t i) const { return merged || folded ? i * columns * stride : (row_start(g, i) - low_h) * width; }
  int64_t layer_offset(const Geometry& g, int64_t t) const { return (g.kd - 1 - t) * g.dd * qh * width; }  // of folded planes
  int64_t column_offset(const Geometry& g, int64_t j) const { return by_tap ? j * stride : column_start(g, j) - low_w; }

  template <class T, class E>
  void fill(const Geometry& g, const T* volume, int64_t count, E* planes, int64_t begin, int64_t end) const {
    for (int64_t p = begin; p < end; p++)
      for (int64_t a = 0; a < rows; a++)
        for (int64_t b = 0; b < columns; b++) {
          E* const plane = planes + p * per_layer + (a * columns + b) * stride;
          const int64_t top = merged || folded ? row_start(g, a) : low_h, left = by_tap ? column_start(g, b) : low_w;
          if (folded)
            fill_layers<T, E>(plane, -low_d, g.od, high_d - g.od, qh, width, volume + p * g.pixels(), g.oh, g.ow, 1, 1, top, left);
          else
            fill_plane<T, E>(plane, height / images(), width, volume + p * g.oh * g.ow, count, g.out * g.pixels(), g.oh, g.ow, 1, 1, top, left);
        }
  }
};

}  // namespace argand::kernels::cpu
