// The gradient of a convolution's weight (conv.h): per image and layer, sums over pixels of (shifted planes) x (transposed grad), as a matrix
// [tap][channel].
#pragma once

#include <cmath>
#include <vector>

#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/conv.h"
#include "packages/aten/csrc/kernels/cpu/conv_planes.h"
#include "packages/aten/csrc/kernels/cpu/gemm.h"

namespace argand::kernels::cpu {

// Sizes in bytes: of grad in one pass, of the sums of the taps of one pass, of a weight that is summed per chunk of images, and of the planes of
// images that are gone through together.
constexpr int64_t kBandBytes = 128 << 10, kTapBytes = 128 << 10, kSmallWeight = 512 << 10, kSharedImages = 48 << 20;

template <class T>
class WeightGradient {
  using E = compute_t<T>;

 public:
  WeightGradient(const Geometry& geo, const Tensor& input, const Tensor& grad)
      : g(geo), planes(geo, sizeof(E), false), in(input.data<T>()), dy(grad.data<T>()) {
    for (int64_t t = 0; t < g.kd; t++)
      for (int64_t c = 0; c < g.in; c++)
        for (int64_t i = 0; i < g.kh; i++)
          for (int64_t j = 0; j < g.kw; j++) {
            offsets.push_back(c * planes.per_channel + t * g.dd * planes.per_layer + planes.row_offset(g, i) + planes.column_offset(g, j));
            places.push_back(((c * g.kd + t) * g.kh + i) * g.kw + j);
          }
    k = static_cast<int64_t>(offsets.size());
    lanes = round_up(g.out, loops.lanes);
    size = k * lanes;
    source_size = planes.elements(g.in);
    grad_size = g.pixels() * lanes;
  }

  void run(const Tensor& out) {
    if (g.out < 4) return run_by_dots(out);
    const int64_t bytes = g.groups * size * static_cast<int64_t>(sizeof(E));
    if (bytes > kSmallWeight || g.batch == 1) return run_by_taps(out);
    // Small weights: images in fixed chunks, each with a sum of its own.
    const int64_t chunks = std::min<int64_t>(g.batch, 8), per = (g.batch + chunks - 1) / chunks;
    Scratch<E> partial(chunks * g.groups * size);
    std::memset(partial.get(), 0, static_cast<size_t>(chunks * bytes));
    parallel_for(0, chunks * g.groups, row_grain(per * size * g.pixels(), 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> source(source_size), grad(grad_size);
      for (int64_t t = begin; t < end; t++)
        for (int64_t i = t / g.groups * per; i < g.batch && i < (t / g.groups + 1) * per; i++) {
          fill(i, t % g.groups, source, 0, g.in * g.d);
          transpose(i, t % g.groups, grad, 0, g.pixels());
          accumulate(source, grad, 1, partial + t * size, 0, k);
        }
    });
    for (int64_t group = 0; group < g.groups; group++) store(out, group, partial + group * size, chunks, g.groups * size);
  }

 private:
  // Large weights: the taps are split among the threads, each going through all images.
  void run_by_taps(const Tensor& out) {
    const int64_t images = std::max<int64_t>(1, std::min(g.batch, kSharedImages / ((source_size + grad_size) * static_cast<int64_t>(sizeof(E)))));
    Scratch<E> source(images * source_size), grad(images * grad_size), acc(size);
    const int64_t span =
        std::max<int64_t>(1, kTapBytes / (8 * lanes * static_cast<int64_t>(sizeof(E))));  // blocks of 8 taps whose sums stay in cache
    for (int64_t group = 0; group < g.groups; group++) {
      std::memset(acc.get(), 0, sizeof(E) * static_cast<size_t>(size));
      for (int64_t first = 0; first < g.batch; first += images) {
        const int64_t count = std::min(images, g.batch - first), pixels = g.pixels();
        const int64_t layers = g.in * g.d;
        parallel_for(0, count * layers, row_grain(planes.per_layer), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++) fill(first + i / layers, group, source + i / layers * source_size, i % layers, i % layers + 1);
        });
        parallel_for(0, count, row_grain(grad_size), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++) transpose(first + i, group, grad + i * grad_size, 0, pixels);
        });
        parallel_for(0, (k + 7) / 8, row_grain(8 * lanes * pixels * count, 200000), [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; b += span) accumulate(source, grad, count, acc, b * 8, std::min(std::min(b + span, end) * 8, k));
        });
      }
      store(out, group, acc, 1, 0);
    }
  }
  // Few channels (depthwise): a dot product per tap and layer, over rows padded with zeros to the planes' width.
  void run_by_dots(const Tensor& out) {
    const int64_t length = g.oh * planes.width;
    const auto& kernels = tile_kernels<E>();
    parallel_for(0, g.groups, row_grain(g.batch * k * g.od * length, 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> source(source_size), grad(length), sum(k), part(1);
      // The dot products also run over places that no plane fills, against zeros of grad: they must not hold NaN.
      std::fill_n(source.get(), source_size, E(0));
      std::fill_n(grad.get(), length, E(0));
      for (int64_t group = begin; group < end; group++)
        for (int64_t o = 0; o < g.out; o++) {
          const int64_t channel = group * g.out + o;
          for (int64_t q = 0; q < k; q++) sum[q] = 0;
          for (int64_t i = 0; i < g.batch; i++) {
            fill(i, group, source, 0, g.in * g.d);
            for (int64_t z = 0; z < g.od; z++) {
              fill_plane<T, E>(grad, g.oh, planes.width, dy + ((i * g.groups * g.out + channel) * g.od + z) * g.oh * g.ow, 1, 0, g.oh, g.ow, 1, 1, 0,
                               0);
              const E* from = source + layer_of(z) * planes.per_layer;
              for (int64_t q = first_tap(z); q < last_tap(z); q++) {
                const E* const at = from + offsets[static_cast<size_t>(q)];
                kernels.dots(1, 1, length, grad, length, at, length, nullptr, false, part, 1);
                if (!std::isfinite(part[0]))  // perhaps by what lies between the rows alone
                  for (int64_t y = 0; y < g.oh; y++)
                    kernels.dots(1, 1, g.ow, grad + y * planes.width, length, at + y * planes.width, length, nullptr, y > 0, part, 1);
                sum[q] += part[0];
              }
            }
          }
          for (int64_t q = 0; q < k; q++) out.data<T>()[channel * k + places[static_cast<size_t>(q)]] = narrow<T>(sum[q]);
        }
    });
  }
  // The layer from which taps of the result's layer z read on, and the taps for which that is inside the input.
  int64_t layer_of(int64_t z) const { return z * g.sd - g.pd; }
  int64_t first_tap(int64_t z) const { return std::clamp<int64_t>((g.dd - 1 - layer_of(z)) / g.dd, 0, g.kd) * (k / g.kd); }
  int64_t last_tap(int64_t z) const {
    return std::clamp<int64_t>(count_inside(g.d, layer_of(z), g.dd), first_tap(z) / (k / g.kd), g.kd) * (k / g.kd);
  }
  void fill(int64_t image, int64_t group, E* source, int64_t begin, int64_t end) const {
    planes.fill<T, E>(g, in + (image * g.groups + group) * g.in * g.volume(), 1, source, begin, end);
  }
  // grad[pixel][channel], channels padded with zeros to whole vectors.
  void transpose(int64_t image, int64_t group, E* grad, int64_t begin, int64_t end) const {
    const int64_t pixels = g.pixels();
    const T* from = dy + (image * g.groups + group) * g.out * pixels;
    for (int64_t p = begin; p < end; p++) std::fill(grad + p * lanes + g.out, grad + (p + 1) * lanes, E(0));
    transposed(grad + begin * lanes, lanes, from + begin, pixels, end - begin, g.out);
  }
  // to[r * to_row + c] = from[c * from_column + r] for r < rows, c < columns.
  template <class To, class From>
  static void transposed(To* to, int64_t to_row, const From* from, int64_t from_column, int64_t rows, int64_t columns) {
    if constexpr (std::is_same_v<To, From>) {
      constexpr int64_t kSize = sizeof(To), kRows = 256;  // a tile's rows are as many lines of the cache
      for (int64_t r = 0; r < rows; r += kRows)
        gather_tile(reinterpret_cast<char*>(to + r * to_row), to_row * kSize, reinterpret_cast<const char*>(from + r), kSize, from_column * kSize,
                    std::min(kRows, rows - r), columns, kSize);
    } else {
      constexpr int64_t kTile = 16;
      for (int64_t r = 0; r < rows; r += kTile)
        for (int64_t c = 0; c < columns; c += kTile)
          for (int64_t i = r; i < std::min(r + kTile, rows); i++)
            for (int64_t j = c; j < std::min(c + kTile, columns); j++) {
              if constexpr (std::is_same_v<To, E>)
                to[i * to_row + j] = widen(from[j * from_column + i]);
              else
                to[i * to_row + j] = narrow<To>(from[j * from_column + i]);
            }
    }
  }
  // acc[tap][channel] += ... for taps [begin, end), image by image and layer by layer in bands of pixel rows.
  void accumulate(const E* source, const E* grad, int64_t images, E* acc, int64_t begin, int64_t end) const {
    const int64_t band = std::max<int64_t>(1, kBandBytes / (static_cast<int64_t>(sizeof(E)) * lanes * g.ow));
    for (int64_t i = 0; i < images; i++, source += source_size, grad += grad_size)
      for (int64_t z = 0; z < g.od; z++) {
        const E* from = source + layer_of(z) * planes.per_layer;
        const int64_t stop = std::min(end, last_tap(z));
        for (int64_t y = 0; y < g.oh; y += band) {
          const int64_t height = std::min(band, g.oh - y);
          for (int64_t q = std::max(begin, first_tap(z)); q < stop;) {
            int rows = loops.rows;
            while (rows > stop - q) rows /= 2;
            loops.weight_block(rows, from + y * planes.width, offsets.data() + q, height, g.ow, planes.width, grad + (z * g.oh + y) * g.ow * lanes,
                               lanes, lanes, acc + q * lanes, lanes);
            q += rows;
          }
        }
      }
  }
  // out[channel][tap] = sum over chunks of sums[chunk][tap][channel], which are added up in the first.
  void store(const Tensor& out, int64_t group, E* sums, int64_t chunks, int64_t chunk_stride) const {
    if (chunks > 1)
      parallel_for(0, size, row_grain(chunks), [&](int64_t begin, int64_t end) {
        for (int64_t c = 1; c < chunks; c++)
          for (int64_t i = begin; i < end; i++) sums[i] += sums[c * chunk_stride + i];
      });
    constexpr int64_t kRows = 16;
    T* to = out.data<T>() + group * g.out * k;
    const int64_t near = k / g.kd;  // taps of one layer and all its channels
    parallel_for(0, (g.out + kRows - 1) / kRows, row_grain(kRows * k), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kRows, rows = std::min(end * kRows, g.out) - first, taps = g.kh * g.kw;
      if (g.kd == 1) return transposed(to + first * k, k, sums + first, lanes, rows, k);
      for (int64_t t = 0; t < g.kd; t++)
        for (int64_t c = 0; c < g.in; c++)
          transposed(to + first * k + (c * g.kd + t) * taps, k, sums + (t * near + c * taps) * lanes + first, lanes, rows, taps);
    });
  }

  const Geometry& g;
  InputPlanes planes;
  const T *in, *dy;
  const ConvLoops<E>& loops = conv_loops<E>();
  std::vector<int64_t> offsets, places;  // of the planes, and in the weight of a result channel, per tap: (t, channel, i, j)
  int64_t k, lanes, size, source_size, grad_size;
};

}  // namespace argand::kernels::cpu
