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
      : g(geo), flat(is_flat(geo)), planes(geo, sizeof(E), flat ? Use::kWeight : Use::kRows), in(input.data<T>()), dy(grad.data<T>()) {
    for (int64_t n = 0; n < g.kd * g.in; n++) {  // of flat volumes as the weight lies, else layer by layer
      const int64_t t = flat ? n % g.kd : n / g.in, c = flat ? n / g.kd : n % g.in;
      for (int64_t i = 0; i < g.kh; i++)
        for (int64_t j = 0; j < g.kw; j++) {
          offsets.push_back(c * planes.per_channel + planes.layer_offset(g, t) + planes.row_offset(g, i) + planes.column_offset(g, j));
          places.push_back(((c * g.kd + t) * g.kh + i) * g.kw + j);
        }
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
    if (flat || bytes > kSmallWeight || g.batch == 1) return run_by_taps(out);
    // Small weights: images in fixed chunks, each with a sum of its own.
    const int64_t chunks = std::min<int64_t>(g.batch, 8), per = (g.batch + chunks - 1) / chunks;
    Scratch<E> partial(chunks * g.groups * size);
    std::memset(partial.get(), 0, static_cast<size_t>(chunks * bytes));
    parallel_for(0, chunks * g.groups, row_grain(per * size * g.pixels(), 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> source(source_size), grad(strip_size());
      for (int64_t t = begin; t < end; t++)
        for (int64_t i = t / g.groups * per; i < g.batch && i < (t / g.groups + 1) * per; i++) {
          fill(i, t % g.groups, source, 0, layers());
          for_strips([&](const Strip& strip) {
            transpose(i, t % g.groups, grad, strip.pixel, strip.height * strip.length);
            accumulate(strip, source, grad, partial + t * size, 0, k);
          });
        }
    });
    for (int64_t group = 0; group < g.groups; group++) store(out, group, partial + group * size, chunks, g.groups * size);
  }

 private:
  // Pixels that are gone through together: rows of a layer, or a part of one.
  struct Strip {
    int64_t layer, y, x, height, length, pixel;
  };
  // Few pixels in short rows: each tap's planes, where they stay in the second-level cache, have those of an image in one run.
  static bool is_flat(const Geometry& g) {
    constexpr int64_t kShortRow = 8, kChannels = 64, kPlanes = 3 << 19;  // channels of the result that are worth a plane for each tap; bytes of all
    const int64_t size = sizeof(E);
    return g.out >= kChannels && g.ow <= kShortRow && (g.sd == 1 || g.od == 1) && (g.d == 1 || g.od > 1) &&
           g.batch * g.in * g.kh * g.kw * (g.d + 2 * g.pd) * g.oh * g.ow * size <= kPlanes &&
           g.pixels() * round_up(g.out, conv_loops<E>().lanes) * size <= kBandBytes;
  }
  int64_t layers() const { return g.in * planes.layers; }
  template <class F>
  void for_strips(F&& f) const {
    const int64_t pixels = std::max<int64_t>(1, kBandBytes / (static_cast<int64_t>(sizeof(E)) * lanes)), rows = std::max<int64_t>(1, pixels / g.ow),
                  columns = rows > 1 || g.ow < 2 * pixels ? g.ow : pixels;
    for (int64_t z = 0; z < g.od; z++)
      for (int64_t y = 0; y < g.oh; y += rows)
        for (int64_t x = 0; x < g.ow; x += columns)
          f(Strip{z, y, x, std::min(rows, g.oh - y), std::min(columns, g.ow - x), (z * g.oh + y) * g.ow + x});
  }
  int64_t strip_size() const {
    int64_t most = 0;
    for_strips([&](const Strip& s) { most = std::max(most, s.height * s.length); });
    return most * lanes;
  }
  // Large weights, or many small images: the taps are split among the threads, each going through all images.
  void run_by_taps(const Tensor& out) {
    const int64_t images = std::max<int64_t>(1, std::min(g.batch, kSharedImages / ((source_size + grad_size) * static_cast<int64_t>(sizeof(E)))));
    const bool at_once = images >= g.batch;
    Scratch<E> source(images * source_size), grad(images * grad_size), kept(at_once ? 0 : size);
    const int64_t span =
        std::max<int64_t>(1, kTapBytes / (8 * lanes * static_cast<int64_t>(sizeof(E))));  // blocks of 8 taps whose sums stay in cache
    for (int64_t group = 0; group < g.groups; group++)
      for (int64_t first = 0; first < g.batch; first += images) {
        const int64_t count = std::min(images, g.batch - first), pixels = g.pixels();
        parallel_for(0, count * layers(), row_grain(planes.per_layer), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++)
            fill(first + i / layers(), group, source + i / layers() * source_size, i % layers(), i % layers() + 1);
        });
        parallel_for(0, count, row_grain(grad_size), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++) transpose(first + i, group, grad + i * grad_size, 0, pixels);
        });
        parallel_for(0, (k + 7) / 8, row_grain(8 * lanes * pixels * count, 200000), [&](int64_t begin, int64_t end) {
          Scratch<E> own(at_once ? std::min(span, end - begin) * 8 * lanes : 0);
          for (int64_t b = begin; b < end; b += span) {
            const int64_t tap = b * 8, stop = std::min(std::min(b + span, end) * 8, k);
            E* const sums = at_once ? own.get() : kept + tap * lanes;
            if (first == 0) std::fill_n(sums, (stop - tap) * lanes, E(0));
            if (flat)
              accumulate_images(source, grad, count, sums, tap, stop);
            else
              for (int64_t i = 0; i < count; i++)
                for_strips([&](const Strip& strip) {
                  accumulate(strip, source + i * source_size, grad + i * grad_size + strip.pixel * lanes, sums, tap, stop);
                });
            if (first + count == g.batch) store_taps(out, group, sums, tap, stop);
          }
        });
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
            fill(i, group, source, 0, layers());
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
  // grad[pixel][channel] from a pixel on, channels padded with zeros to whole vectors.
  void transpose(int64_t image, int64_t group, E* grad, int64_t first, int64_t count) const {
    const int64_t pixels = g.pixels();
    const T* from = dy + (image * g.groups + group) * g.out * pixels;
    if (lanes > g.out)
      for (int64_t p = 0; p < count; p++) std::fill(grad + p * lanes + g.out, grad + (p + 1) * lanes, E(0));
    transposed(grad, lanes, from + first, pixels, count, g.out);
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
  // sums[tap - begin][channel] += ... for taps [begin, end) of a strip, whose gradients begin at `grad`.
  void accumulate(const Strip& s, const E* source, const E* grad, E* sums, int64_t begin, int64_t end) const {
    const E* from = source + layer_of(s.layer) * planes.per_layer + s.y * planes.width + s.x;
    for_blocks(std::max(begin, first_tap(s.layer)), std::min(end, last_tap(s.layer)), [&](int64_t q, int rows) {
      loops.weight_block(rows, from, offsets.data() + q, s.height, s.length, planes.width, grad, lanes, lanes, sums + (q - begin) * lanes, lanes);
    });
  }
  // The same for all pixels of flat images.
  void accumulate_images(const E* source, const E* grad, int64_t images, E* sums, int64_t begin, int64_t end) const {
    const int64_t band = std::max<int64_t>(1, kBandBytes / (static_cast<int64_t>(sizeof(E)) * grad_size));
    for (int64_t i = 0; i < images; i += band)
      for_blocks(begin, end, [&](int64_t q, int rows) {
        loops.weight_block(rows, source + i * source_size, offsets.data() + q, std::min(band, images - i), g.pixels(), source_size,
                           grad + i * grad_size, lanes, lanes, sums + (q - begin) * lanes, lanes);
      });
  }
  template <class F>
  void for_blocks(int64_t begin, int64_t end, F&& f) const {
    for (int64_t q = begin; q < end;) {
      int rows = loops.rows;
      while (rows > end - q) rows /= 2;
      f(q, rows);
      q += rows;
    }
  }
  // out[channel][tap] = sum over chunks of sums[chunk][tap][channel], which are added up in the first.
  void store(const Tensor& out, int64_t group, E* sums, int64_t chunks, int64_t chunk_stride) const {
    constexpr int64_t kTaps = 64;
    parallel_for(0, (k + kTaps - 1) / kTaps, row_grain(kTaps * lanes * chunks), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b++) {
        const int64_t tap = b * kTaps, stop = std::min(tap + kTaps, k);
        for (int64_t c = 1; c < chunks; c++)
          for (int64_t i = tap * lanes; i < stop * lanes; i++) sums[i] += sums[c * chunk_stride + i];
        store_taps(out, group, sums + tap * lanes, tap, stop);
      }
    });
  }
  // out[channel][tap] = sums[tap - begin][channel].
  void store_taps(const Tensor& out, int64_t group, const E* sums, int64_t begin, int64_t end) const {
    T* const to = out.data<T>() + group * g.out * k;
    for (int64_t q = begin, n; q < end; q += n) {  // taps that lie side by side
      const int64_t place = places[static_cast<size_t>(q)];
      for (n = 1; q + n < end && places[static_cast<size_t>(q + n)] == place + n;) n++;
      transposed(to + place, k, sums + (q - begin) * lanes, lanes, g.out, n);
    }
  }

  const Geometry& g;
  bool flat;
  InputPlanes planes;
  const T *in, *dy;
  const ConvLoops<E>& loops = conv_loops<E>();
  std::vector<int64_t> offsets, places;  // of the planes, and in the weight of a result channel, per tap
  int64_t k, lanes, size, source_size, grad_size;
};

}  // namespace argand::kernels::cpu
