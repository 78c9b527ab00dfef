// Convolutions of small images of a large batch (conv.h): lanes are images.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/conv.h"
#include "packages/aten/csrc/kernels/cpu/conv_geometry.h"
#include "packages/aten/csrc/kernels/cpu/conv_passes.h"
#include "packages/aten/csrc/kernels/cpu/util.h"

namespace argand::kernels::cpu {

// Small images of a large batch, whose lanes are images: every tap of a pixel reads whole vectors, and those that read padding are left out. Of each
// dimension, the pixels of what is made, with the taps that reach them.
class TapAxis {
 public:
  struct Pixel {
    int64_t first;  // what the first tap reads
    size_t kind;    // pixels of a kind have the same taps, which read equally far from the first
  };
  using Kind = std::vector<std::pair<int64_t, int64_t>>;  // taps, and how far behind the first they read
  std::vector<Pixel> pixels;
  std::vector<Kind> kinds;
  int64_t live = 0;  // taps of all pixels

  // source(o, tap) is what pixel o reads, or -1.
  template <class F>
  TapAxis(int64_t n, int64_t taps, F&& source) {
    for (int64_t o = 0; o < n; o++) {
      Kind kind;
      int64_t first = 0;
      for (int64_t t = 0; t < taps; t++)
        if (const int64_t from = source(o, t); from >= 0) {
          if (kind.empty()) first = from;
          kind.emplace_back(t, from - first);
        }
      live += static_cast<int64_t>(kind.size());
      const auto found = std::find(kinds.begin(), kinds.end(), kind);
      pixels.push_back({first, static_cast<size_t>(found - kinds.begin())});
      if (found == kinds.end()) kinds.push_back(std::move(kind));
    }
  }
  static TapAxis of_result(int64_t n, int64_t made, int64_t taps, int64_t stride, int64_t padding, int64_t dilation) {
    return {made, taps, [=](int64_t o, int64_t t) {
              const int64_t at = o * stride - padding + t * dilation;
              return at < n ? at : -1;
            }};
  }
  static TapAxis of_gradient(int64_t n, int64_t made, int64_t taps, int64_t stride, int64_t padding, int64_t dilation) {
    return {n, taps, [=](int64_t i, int64_t t) {
              const int64_t at = i + padding - t * dilation;
              return at >= 0 && at % stride == 0 && at / stride < made ? at / stride : -1;
            }};
  }
  int64_t size() const { return static_cast<int64_t>(pixels.size()); }
};

// Row r of the weights for channel c and tap i is w[r * row + c * channel + i].
template <class E>
struct AcrossImages {
  const ConvLoops<E>& loops = conv_loops<E>();
  int64_t batch, channels, rows, volume;  // of the source: channels, elements of one; rows: channels that are made
  TapAxis z, y, x;
  int64_t h, w;  // the source's
  int64_t kh, kw;
  int64_t row, channel;

  static constexpr int64_t kMostPixels = 256, kSourceBytes = 4 << 20, kMoved = 24;  // products that cost what moving an element does

  AcrossImages(const Geometry& g, bool gradient)
      : batch(g.batch),
        channels(gradient ? g.out : g.in),
        rows(gradient ? g.in : g.out),
        volume(gradient ? g.pixels() : g.volume()),
        z((gradient ? TapAxis::of_gradient : TapAxis::of_result)(g.d, g.od, g.kd, g.sd, g.pd, g.dd)),
        y((gradient ? TapAxis::of_gradient : TapAxis::of_result)(g.h, g.oh, g.kh, g.sh, g.ph, g.dh)),
        x((gradient ? TapAxis::of_gradient : TapAxis::of_result)(g.w, g.ow, g.kw, g.sw, g.pw, g.dw)),
        h(gradient ? g.oh : g.h),
        w(gradient ? g.ow : g.w),
        kh(g.kh),
        kw(g.kw),
        row(gradient ? g.taps() : g.in * g.taps()),
        channel(gradient ? g.in * g.taps() : g.taps()) {}
  int64_t made() const { return z.size() * y.size() * x.size(); }
  // Whether images are many, small enough and not empty.
  static bool fits(const Geometry& g, int64_t pixels) {
    return g.groups == 1 && g.volume() > 0 && g.pixels() > 0 && pixels <= kMostPixels && g.batch >= conv_loops<E>().lanes;
  }
  // Whether that is less work than products of planes, of which each of so many layers has `height` rows for an image.
  bool pays(const Geometry& g, const Planes& planes, int64_t height, int64_t depth) const {
    const int64_t images = planes.images();
    const double planar = static_cast<double>(depth * round_up(images * height * planes.width, loops.lanes) * g.taps()) / static_cast<double>(images);
    const double copied = static_cast<double>(planes.per_channel) / static_cast<double>(images);
    const auto n = static_cast<double>(channels), m = static_cast<double>(rows), count = static_cast<double>(batch);
    const double across = static_cast<double>(round_up(batch, loops.lanes) * z.live * y.live * x.live) * n * m;
    return across + kMoved * count * (static_cast<double>(volume) * n + static_cast<double>(made()) * m) <
           0.9 * count * n * (planar * m + kMoved * copied);
  }

  void run(const E* source, const E* weight, const E* bias, const Results& results) const {
    const int64_t vectors = (batch + loops.lanes - 1) / loops.lanes, groups = (vectors + 2) / 3,
                  lanes = (vectors + groups - 1) / groups * loops.lanes;
    const int64_t size = channels * volume * lanes;  // of a group of images
    const int64_t together = std::clamp<int64_t>(kSourceBytes / (size * static_cast<int64_t>(sizeof(E))), 1, groups);
    const std::vector<Run> runs = all_runs(lanes);
    const Blocks blocks(rows, loops.rows);
    const Scratch<E> across(together * size);
    for (int64_t first = 0; first * lanes < batch; first += together) {
      const int64_t origin = first * lanes, images = std::min(together * lanes, batch - origin), count = (images + lanes - 1) / lanes;
      gather(source + origin * channels * volume, images, lanes, across);
      Tensor own;
      char* const out = results.place(origin, images, &own);
      const int64_t ldc = made() * lanes, work = count * blocks.size();
      parallel_for(0, work, row_grain(8 * ldc * channels), [&](int64_t begin, int64_t end) {
        const Scratch<E> sums(8 * ldc);
        for (int64_t j = begin; j < end; j++) {
          const int64_t group = j / blocks.size(), some = std::min(lanes, images - group * lanes);
          const auto b = static_cast<size_t>(j % blocks.size());
          compute(runs, blocks.rows[b], across + group * size, weight + blocks.first[b] * row, bias ? bias + blocks.first[b] : nullptr, sums, lanes);
          E* const to = reinterpret_cast<E*>(out) + (group * lanes * rows + blocks.first[b]) * made();
          constexpr int kSize = sizeof(E);
          gather_tile(reinterpret_cast<char*>(to), rows * made() * kSize, reinterpret_cast<const char*>(sums.get()), kSize, lanes * kSize, some,
                      blocks.rows[b] * made(), kSize);
        }
      });
      results.finish(origin, images, out, false);
    }
  }

 private:
  // Pixels of one kind, whose sources lie side by side: from which on, how many lanes, and the weights and elements of every product.
  struct Run {
    int64_t pixel, n, source, taps;
    std::shared_ptr<const std::pair<std::vector<int64_t>, std::vector<int64_t>>> products;  // places of weights, offsets; channel by channel
  };
  std::vector<Run> all_runs(int64_t lanes) const {
    std::vector<Run> runs;
    std::map<std::tuple<size_t, size_t, size_t>, decltype(Run::products)> known;
    for (int64_t p = 0; p < made();) {
      const auto &pz = z.pixels[static_cast<size_t>(p / (y.size() * x.size()))], &py = y.pixels[static_cast<size_t>(p / x.size() % y.size())];
      const int64_t at = p % x.size();
      const auto px = x.pixels[static_cast<size_t>(at)];
      int64_t n = 1;
      while (at + n < x.size() && x.pixels[static_cast<size_t>(at + n)].kind == px.kind &&
             x.pixels[static_cast<size_t>(at + n)].first == px.first + n)
        n++;
      auto& products = known[{pz.kind, py.kind, px.kind}];
      const TapAxis::Kind &tz = z.kinds[pz.kind], &ty = y.kinds[py.kind], &tx = x.kinds[px.kind];
      if (!products) products = products_of(tz, ty, tx, lanes);
      runs.push_back(
          {p, n * lanes, ((pz.first * h + py.first) * w + px.first) * lanes, static_cast<int64_t>(tz.size() * ty.size() * tx.size()), products});
      p += n;
    }
    return runs;
  }
  decltype(Run::products) products_of(const TapAxis::Kind& tz, const TapAxis::Kind& ty, const TapAxis::Kind& tx, int64_t lanes) const {
    auto made = std::make_shared<std::pair<std::vector<int64_t>, std::vector<int64_t>>>();
    for (int64_t c = 0; c < channels; c++)
      for (const auto& [t, dz] : tz)
        for (const auto& [i, dy] : ty)
          for (const auto& [j, dx] : tx) {
            made->first.push_back(c * channel + (t * kh + i) * kw + j);
            made->second.push_back((c * volume + (dz * h + dy) * w + dx) * lanes);
          }
    return made;
  }
  // Lanes behind the last image are zero.
  void gather(const E* source, int64_t images, int64_t lanes, E* to) const {
    const int64_t n = channels * volume;
    constexpr int kSize = sizeof(E);
    parallel_for(0, n, row_grain(4 * images), [&](int64_t begin, int64_t end) {
      for (int64_t first = 0; first < images; first += lanes) {
        const int64_t some = std::min(lanes, images - first);
        E* const rows_of = to + first * n + begin * lanes;
        for (int64_t i = 0; some < lanes && i < end - begin; i++) std::fill(rows_of + i * lanes + some, rows_of + (i + 1) * lanes, E(0));
        gather_tile(reinterpret_cast<char*>(rows_of), lanes * kSize, reinterpret_cast<const char*>(source + first * n + begin), kSize, n * kSize,
                    end - begin, some, kSize);
      }
    });
  }
  // A block of rows of all pixels, by slices of channels that stay in the second-level cache.
  void compute(const std::vector<Run>& runs, int count, const E* source, const E* weight, const E* bias, E* sums, int64_t lanes) const {
    const int64_t slice = std::max<int64_t>(8, (kSliceBytes / 4) / (volume * lanes * static_cast<int64_t>(sizeof(E))));
    for (int64_t c = 0; c == 0 || c < channels; c += slice) {
      const int64_t stop = std::min(c + slice, channels);
      for (const Run& r : runs)
        loops.block(count, (stop - c) * r.taps, weight, row, r.products->first.data() + c * r.taps, source + r.source,
                    r.products->second.data() + c * r.taps, r.n, bias, c > 0, sums + r.pixel * lanes, made() * lanes);
    }
  }
};

}  // namespace argand::kernels::cpu
