// Convolutions as products "weights x planes" (conv.h, conv_planes.h): blocks of result channels, over rows of pixels, over slices of the source's
// channels whose planes fit the second-level cache.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "packages/aten/csrc/kernels/cpu/conv.h"
#include "packages/aten/csrc/kernels/cpu/conv_planes.h"
#include "packages/aten/csrc/kernels/cpu/epilogue.h"

namespace argand::kernels::cpu {

constexpr int64_t kTogetherBytes = 512 << 10;  // planes of the images that one read of the weights serves
constexpr int64_t kSliceBytes = 1 << 20;       // planes of the source's channels that are gone through together
constexpr int64_t kLayerRowBytes = 768 << 10;  // ... and rows of all layers that one layer of the result reads
constexpr int64_t kFewPixels = 400;            // for which weights are read where they are: laying them out anew costs more than it saves
constexpr int64_t kPiecePixels = 256;          // that are worth reading all weights
constexpr int64_t kSegmentPixels = 64;         // below, leaving out taps that read padding alone costs more than it saves

// Output channels cut into blocks of 8 (or 4), then 4, 2, 1.
struct Blocks {
  std::vector<int64_t> first;
  std::vector<int> rows;
  Blocks(int64_t n, int full) {
    for (int64_t i = 0; i < n;) {
      int r = full;
      while (r > n - i) r /= 2;
      first.push_back(i);
      rows.push_back(r);
      i += r;
    }
  }
  int64_t size() const { return static_cast<int64_t>(rows.size()); }
};

// The source's channels in slices of one size, but for the last.
struct Slices {
  int64_t channels, size;
  int64_t count() const { return std::max<int64_t>(1, (channels + size - 1) / size); }
  int64_t begin(int64_t slice) const { return slice * size; }
  int64_t length(int64_t slice) const { return std::min(channels - begin(slice), size); }
};

// A row of taps: where it reads from a pixel on, and the rows of pixels for which that is not padding.
struct TapRow {
  int64_t tap, offset, first, last;
};
// Taps by which one stride phase of the result is reached.
struct Taps {
  std::vector<std::pair<int64_t, int64_t>> layers;  // number of the tap, layer from the result's on; rising or falling
  std::vector<TapRow> rows;
  std::vector<std::pair<int64_t, int64_t>> columns;  // number of the tap, offset
  bool empty() const { return layers.empty() || rows.empty() || columns.empty(); }
  int64_t size() const { return static_cast<int64_t>(layers.size() * rows.size() * columns.size()); }
};
// Rows of pixels with the rows of taps that are not padding there.
struct Segment {
  int64_t begin, end;
  size_t first_row, last_row;
};

// Segments of `height` rows of `width` pixels; one with all taps where the padding is small.
inline std::vector<Segment> segments(const Taps& taps, int64_t height, int64_t width) {
  std::vector<int64_t> cuts{0, height};
  int64_t live = 0;
  for (const TapRow& r : taps.rows) {
    live += std::max<int64_t>(r.last - r.first, 0);
    for (int64_t cut : {r.first, r.last})
      if (cut > 0 && cut < height) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const auto count = static_cast<int64_t>(cuts.size()) - 1, all = static_cast<int64_t>(taps.rows.size()) * height;
  if (count < 1 || height * width < kSegmentPixels * count || live * 12 > all * 11) return {{0, height, 0, taps.rows.size()}};
  std::vector<Segment> found;
  for (size_t i = 0; i + 1 < cuts.size(); i++) {
    Segment s{cuts[i], cuts[i + 1], taps.rows.size(), 0};
    for (size_t r = 0; r < taps.rows.size(); r++)
      if (taps.rows[r].first <= s.begin && s.begin < taps.rows[r].last) s.first_row = std::min(s.first_row, r), s.last_row = r + 1;
    if (s.last_row < s.first_row) s.first_row = s.last_row = 0;
    found.push_back(s);
  }
  return found;
}

// One product "weights x planes": for a stride phase of the result, the taps that reach it. The inner dimension runs over slices, layers of taps,
// rows of taps (if segments differ in them: `by_row`), channels, (rows and) columns.
template <class E>
struct Pass {
  Taps taps;
  std::vector<Segment> parts;
  bool by_row;
  std::vector<int64_t> offsets;  // of the planes of a slice, per k
  std::vector<int64_t> source;   // of the weights, per k
  // Weights as [group][block][k][rows of the block]; or where they are, a row's at their places, rows and groups so far apart.
  std::optional<Scratch<E>> packed;
  const E* given = nullptr;
  int64_t row_stride = 0, group_stride = 0;
  // Layer m of the pass is the result's layer m * step + layer, and reads from the source's layer m * source_step + source_layer on.
  int64_t count = 1, step = 1, layer = 0, source_step = 1, source_layer = 0;
  int64_t y0 = 0, x0 = 0;  // pixel (y, x) is the result's (y * step_h + y0, x * step_w + x0)

  // weight(channel, t, i, j) is the place of a row's weight.
  template <class W>
  Pass(Taps taps_, const Planes& planes, const Slices& slices, int64_t height, W&& weight)
      : taps(std::move(taps_)), parts(segments(taps, height, planes.width)), by_row(parts.size() > 1 || parts[0].last_row < taps.rows.size()) {
    const size_t outer = by_row ? taps.rows.size() : 1, inner = by_row ? 1 : taps.rows.size();
    for (int64_t slice = 0; slice < slices.count(); slice++)
      for (const auto& [t, shift] : taps.layers)
        for (size_t o = 0; o < outer; o++)
          for (int64_t c = 0; c < slices.length(slice); c++)
            for (size_t i = o; i < o + inner; i++)
              for (const auto& [j, column] : taps.columns) {
                offsets.push_back(c * planes.per_channel + shift * planes.per_layer + taps.rows[i].offset + column);
                source.push_back(weight(slices.begin(slice) + c, t, taps.rows[i].tap, j));
              }
  }
  int64_t k() const { return static_cast<int64_t>(offsets.size()); }
};

// Weight (group, row, k) is w[group * group_stride + row * row_stride + source[k]]; one reading of a block's weights serves so many pixels.
template <class T, class E>
void pack(Pass<E>& pass, const Blocks& blocks, int64_t pixels, int64_t groups, int64_t rows, const T* w, int64_t group_stride, int64_t row_stride) {
  constexpr int64_t kTile = 64;
  const int64_t k = pass.k(), count = blocks.size();
  const int64_t* source = pass.source.data();
  if constexpr (std::is_same_v<T, E>)
    if (pixels <= kFewPixels && conv_loops<E>().rows == 8) {  // of fewer rows each reading brings too little
      pass.given = w, pass.row_stride = row_stride, pass.group_stride = group_stride;
      return;
    }
  pass.packed.emplace(groups * rows * k);
  parallel_for(0, groups * count, row_grain(8 * k, 65536), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t group = i / count, first = blocks.first[static_cast<size_t>(i % count)], n = blocks.rows[static_cast<size_t>(i % count)];
      E* to = pass.packed->get() + (group * rows + first) * k;
      const T* from = w + group * group_stride + first * row_stride;
      if (row_stride < 4) {  // the side that lies closer is read first
        for (int64_t q = 0; q < k; q++, to += n)
          for (int64_t r = 0; r < n; r++) to[r] = widen(from[r * row_stride + source[q]]);
        continue;
      }
      for (int64_t q = 0; q < k; q += kTile)
        for (int64_t r = 0; r < n; r++)
          for (int64_t p = q; p < std::min(q + kTile, k); p++) to[p * n + r] = widen(from[r * row_stride + source[p]]);
    }
  });
}

// Where the results of units (an image's channels of one group) go: a tensor, an epilogue that is handed each when it is finished, or both.
struct Results {
  int64_t channels, volume;  // of a unit; elements of a channel
  int dtype;
  char* whole;                     // null: a unit lies in memory of its own while it is made
  const ArgandEpilogue* epilogue;  // or null

  int64_t bytes() const { return channels * volume * item_size(dtype); }
  // The memory of units [first, first + count), owned by `own` if not by the tensor.
  char* place(int64_t first, int64_t count, Tensor* own) const {
    if (whole) return whole + first * bytes();
    *own = empty({count * channels * volume}, dtype);
    return own->data<char>();
  }
  void finish(int64_t first, int64_t count, const char* data, bool serial) const {
    if (!epilogue) return;
    parallel_for(0, count * channels, serial ? count * channels : row_grain(volume), [&](int64_t begin, int64_t end) {
      epilogue->run(epilogue->context, (first * channels + begin) * volume, (first * channels + end) * volume,
                    data + begin * volume * item_size(dtype));
    });
  }
};

// Pixel rows [begin, end) of a layer of a pass.
struct Item {
  size_t pass;
  int64_t layer, begin, end;
};

// The result of passes over planes: `rows` channels per group, each of layers of [result_h, result_w].
template <class T, class E>
struct Product {
  const ConvLoops<E>& loops = conv_loops<E>();
  const Planes& planes;
  Slices slices;
  Blocks blocks;
  int64_t rows, height;  // channels per group, pixel rows computed per channel and layer, of all images that are gone through as one
  int64_t result_h, result_w, step_h, step_w;
  Results results;
  const E* bias = nullptr;
  std::vector<std::unique_ptr<Pass<E>>> passes;

  Product(const Planes& planes_, int64_t channels, int64_t rows_, int64_t height_, const Results& results_)
      : planes(planes_),
        slices{channels, std::max<int64_t>(channels, 1)},
        blocks(rows_, conv_loops<E>().rows),
        rows(rows_),
        height(height_ * planes_.images()),
        results(results_) {
    // Many channels of large planes: in slices that stay in the cache while all blocks go through them.
    const int64_t bytes = planes.rows * planes.columns * planes.filled * planes.width * static_cast<int64_t>(sizeof(E));
    if (planes.layers == 1 && rows > loops.rows && channels * bytes > kSliceBytes * 3 / 2 && height * planes.width <= kSlicePixels)
      slices.size = std::max<int64_t>(16, kSliceBytes / std::max<int64_t>(bytes, 1));
  }

  static constexpr int64_t kSlicePixels = 4096;

  // Rows of a step, so that a block's result and the rows it reads stay in the second-level cache.
  int64_t chunk() const {
    int64_t n = 4096 / planes.width + 1;
    const int64_t depth = passes.empty() ? 1 : static_cast<int64_t>(passes[0]->taps.layers.size());
    const int64_t row = slices.size * depth * planes.rows * planes.columns * planes.width * static_cast<int64_t>(sizeof(E));
    if (depth > 1) n = std::min(n, std::max(192 / planes.width + 1, kLayerRowBytes / row));
    return std::max<int64_t>(1, std::min(height, n));
  }
  std::vector<Item> items(int64_t step) const {
    std::vector<Item> found;
    for (size_t p = 0; p < passes.size(); p++)
      for (int64_t m = 0; m < passes[p]->count; m++)
        for (int64_t y = 0; y < height; y += step) found.push_back({p, m, y, std::min(y + step, height)});
    return found;
  }
  // Elements of a channel's sums of `step` rows: segments lie a vector apart, so that none writes into the next.
  int64_t pitch(int64_t step) const {
    size_t parts = 1;
    for (const auto& pass : passes) parts = std::max(parts, pass->parts.size());
    return round_up(step * planes.width, loops.lanes) + static_cast<int64_t>(parts) * loops.lanes;
  }

  // One block of channels of `images` units, whose results begin at `out`, from the planes of one slice; `c` holds the block's sums, `ldc` apart.
  void compute(const Item& item, int64_t images, int64_t slice, int64_t block, const E* source, int64_t group, char* out, E* c, int64_t ldc) const {
    const Pass<E>& pass = *passes[item.pass];
    const int64_t first = blocks.first[static_cast<size_t>(block)], base = item.layer * pass.source_step + pass.source_layer;
    const int count = blocks.rows[static_cast<size_t>(block)];
    const E* from = source + base * planes.per_layer;
    const int64_t start = slices.begin(slice) * pass.taps.size();
    const E* w = pass.packed ? pass.packed->get() + (group * rows + first) * pass.k() + start * count
                             : pass.given + group * pass.group_stride + first * pass.row_stride;
    const int64_t* places = pass.source.data() + start;
    const int64_t* offsets = pass.offsets.data() + start;
    const int64_t per_row = slices.length(slice) * static_cast<int64_t>(pass.taps.columns.size()),
                  per_layer = per_row * static_cast<int64_t>(pass.taps.rows.size());
    size_t near = 0, far = pass.taps.layers.size();
    const auto inside = [&](size_t t) { return base + pass.taps.layers[t].second >= 0 && base + pass.taps.layers[t].second < planes.layers; };
    while (near < far && !inside(near)) near++;
    while (far > near && !inside(far - 1)) far--;
    for (size_t s = 0; s < pass.parts.size(); s++) {
      const Segment& part = pass.parts[s];
      const int64_t begin = std::max(item.begin, part.begin), end = std::min({item.end, part.end, images * (height / planes.images())});
      if (begin >= end) continue;
      const int64_t n = round_up((end - begin) * planes.width, loops.lanes);
      E* const to = c + (begin - item.begin) * planes.width + static_cast<int64_t>(s) * loops.lanes;
      bool adds = slice > 0;
      const auto run = [&](int64_t k0, int64_t k1) {
        loops.block(count, k1 - k0, pass.packed ? w + k0 * count : w, pass.row_stride, pass.packed ? nullptr : places + k0,
                    from + begin * planes.width, offsets + k0, n, bias ? bias + group * rows + first : nullptr, adds, to, ldc);
        adds = true;
      };
      if (!pass.by_row || part.last_row - part.first_row == pass.taps.rows.size()) {
        run(static_cast<int64_t>(near) * per_layer, static_cast<int64_t>(far) * per_layer);
      } else {
        for (size_t t = near; t < far; t++)
          run(static_cast<int64_t>(t) * per_layer + static_cast<int64_t>(part.first_row) * per_row,
              static_cast<int64_t>(t) * per_layer + static_cast<int64_t>(part.last_row) * per_row);
        if (!adds) run(0, 0);
      }
      if (slice + 1 == slices.count()) store(pass, item.layer, first, count, out, begin, end, to, ldc);
    }
  }
  // The pixels of rows [begin, end) that fall inside the result.
  void store(const Pass<E>& pass, int64_t m, int64_t first, int count, char* out, int64_t begin, int64_t end, const E* c, int64_t ldc) const {
    const int64_t columns = std::min(planes.width, count_inside(result_w, pass.x0, step_w)), per_image = height / planes.images();
    for (int64_t from = begin; from < end;) {  // image by image
      const int64_t image = from / per_image, origin = image * per_image, stop = std::min(end, origin + per_image);
      const int64_t bottom = std::min(stop, origin + count_inside(result_h, pass.y0, step_h));
      for (int r = 0; r < count; r++) {
        T* to = reinterpret_cast<T*>(out) + (image * results.channels + first + r) * results.volume +
                (m * pass.step + pass.layer) * result_h * result_w + pass.y0 * result_w + pass.x0;
        const E* sums = c + r * ldc - begin * planes.width;
        for (int64_t y = from; y < bottom; y++) store_row(to + (y - origin) * step_h * result_w, sums + y * planes.width, columns);
      }
      from = stop;
    }
  }
  void store_row(T* to, const E* from, int64_t n) const {
    if constexpr (std::is_same_v<T, E>) {
      if (step_w == 1) return copy_dense(to, from, n);
      if (step_w == 2 && loops.spread) return loops.spread(to, from, n);
    }
    for (int64_t x = 0; x < n; x++) to[x * step_w] = narrow<T>(from[x]);
  }
};

// Runs all passes on all images. fill(unit, count, channel, planes, begin, end) makes planes [begin, end) from a channel on, numbered
// channel * layers + layer, of a unit, or of so many units that are gone through as one.
template <class T, class E, class Fill>
class Runner {
 public:
  Runner(const Product<T, E>& p_, int64_t units_, int64_t groups_, Fill& fill_) : p(p_), units(units_), groups(groups_), fill(fill_) {
    for (const auto& pass : p.passes) work += pass->k() * pass->count * p.rows * p.height * p.planes.width;
    size = p.planes.elements(p.slices.size);
  }

  void run() const {
    const int64_t threads = api->num_threads(), images = p.planes.images(), whole = (units + images - 1) / images;
    if (whole >= 4 * threads || whole % threads == 0 || threads == 1)
      by_units();
    else
      for (int64_t u = 0; u < units; u += images) shared(u, threads);
  }

 private:
  // Several images at once, if their planes fit the second-level cache, so that weights are read less often.
  void by_units() const {
    const int64_t slices = p.slices.count(), step = p.chunk(), blocks = p.blocks.size(), ldc = p.pitch(step);
    const auto items = p.items(step);
    const int64_t images = p.planes.images();
    const int64_t together =
        slices > 1 || images > 1 ? 1 : std::max<int64_t>(1, std::min<int64_t>(8, kTogetherBytes / (size * static_cast<int64_t>(sizeof(E)))));
    parallel_for(0, (units + images - 1) / images, row_grain(work, 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> planes(together * size), c(sums(slices, items.size(), ldc));
      const int64_t last = std::min(end * images, units);
      for (int64_t u = begin * images; u < last; u += together * images) {
        const int64_t stop = std::min(u + together * images, last);
        Tensor own;
        char* const out = p.results.place(u, stop - u, &own);
        for (int64_t s = 0; s < slices; s++) {
          for (int64_t v = u; v < stop; v += images)
            fill_slice(v, std::min(images, stop - v), s, planes + (v - u) * size, 0, p.slices.length(s) * p.planes.layers);
          for (size_t i = 0; i < items.size(); i++)
            for (int64_t b = 0; b < blocks; b++)
              for (int64_t v = u; v < stop; v += images)
                p.compute(items[i], std::min(images, stop - v), s, b, planes + (v - u) * size, v % groups, out + (v - u) * p.results.bytes(),
                          place(c, slices, i, b, ldc), ldc);
        }
        p.results.finish(u, stop - u, out, true);
      }
    });
  }
  // Few images: the threads share one, or what is gone through as one. Of few pixels each takes all, for its part of the channels.
  void shared(int64_t u, int64_t threads) const {
    const int64_t images = std::min(p.planes.images(), units - u);
    int64_t layers = 0;
    for (const auto& pass : p.passes) layers = std::max(layers, pass->count);
    const int64_t pieces = std::max<int64_t>(1, (2 * threads + layers - 1) / std::max<int64_t>(layers, 1));
    const int64_t slices = p.slices.count(), blocks = p.blocks.size();
    const bool divides = blocks < 2 * threads || p.height * p.planes.width >= kPiecePixels * pieces;
    const int64_t step = divides ? std::max<int64_t>(1, std::min(p.chunk(), (p.height + pieces - 1) / pieces)) : p.chunk(), ldc = p.pitch(step);
    const auto items = p.items(step);
    Scratch<E> planes(size), kept(slices > 1 ? sums(slices, items.size(), ldc) : 1);
    Tensor own;
    char* const out = p.results.place(u, images, &own);
    for (int64_t s = 0; s < slices; s++) {
      parallel_for(0, p.slices.length(s) * p.planes.layers, row_grain(p.planes.per_layer),
                   [&](int64_t begin, int64_t end) { fill_slice(u, images, s, planes, begin, end); });
      const auto count = static_cast<int64_t>(items.size()) * blocks;
      parallel_for(0, count, row_grain(work / std::max<int64_t>(count * slices, 1), 200000), [&](int64_t begin, int64_t end) {
        Scratch<E> own_sums(slices > 1 ? 1 : sums(1, 1, ldc));
        E* const c = slices > 1 ? kept.get() : own_sums.get();
        for (int64_t j = begin; j < end; j++) {
          const auto i = static_cast<size_t>(j / blocks);
          p.compute(items[i], images, s, j % blocks, planes, u % groups, out, place(c, slices, i, j % blocks, ldc), ldc);
        }
      });
    }
    p.results.finish(u, images, out, false);
  }
  // Sums of a block, or, over several slices, of all blocks of all items.
  int64_t sums(int64_t slices, size_t items, int64_t ldc) const {
    return slices > 1 ? static_cast<int64_t>(items) * round_up(p.rows, 8) * ldc : int64_t{8} * ldc;
  }
  E* place(E* c, int64_t slices, size_t item, int64_t block, int64_t ldc) const {
    return slices > 1 ? c + (static_cast<int64_t>(item) * round_up(p.rows, 8) + p.blocks.first[static_cast<size_t>(block)]) * ldc : c;
  }
  void fill_slice(int64_t unit, int64_t images, int64_t slice, E* planes, int64_t begin, int64_t end) const {
    fill(unit, images, p.slices.begin(slice), planes, begin, end);
  }

  const Product<T, E>& p;
  int64_t units, groups;
  Fill& fill;
  int64_t work = 1, size = 0;
};

template <class T, class E, class Fill>
void run_passes(const Product<T, E>& p, int64_t batch, int64_t groups, Fill&& fill) {
  Runner<T, E, std::remove_reference_t<Fill>>(p, batch * groups, groups, fill).run();
}

}  // namespace argand::kernels::cpu
