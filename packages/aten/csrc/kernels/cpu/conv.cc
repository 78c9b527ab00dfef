// Convolution over one or two spatial dimensions, and its gradients, on padded planes (conv.h). 1x1 convolutions are matrix products. Three
// dimensions are made of two (conv3d.h).
#include "packages/aten/csrc/kernels/cpu/conv.h"

#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/conv3d.h"
#include "packages/aten/csrc/kernels/cpu/epilogue.h"
#include "packages/aten/csrc/kernels/cpu/gemm.h"
#include "packages/aten/csrc/kernels/cpu/norm.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kSlack = 256;  // elements that vector loads may read past the last plane
// Sizes in bytes for the weight's gradient: of grad in one pass, of the sums of the taps of one pass, of a weight that is summed per chunk of images,
// and of the planes of images that are gone through together.
constexpr int64_t kBandBytes = 128 << 10, kTapBytes = 128 << 10, kSmallWeight = 512 << 10, kSharedImages = 48 << 20;
constexpr int64_t kTogetherBytes = 512 << 10;  // planes of the images that one read of the weights serves

// How many of first, first + step, first + 2 * step, ... come before n (those below 0 included).
int64_t count_inside(int64_t n, int64_t first, int64_t step) { return first >= n ? 0 : (n - 1 - first) / step + 1; }

// Sizes of a convolution; one spatial dimension has height 1.
struct Geometry {
  int64_t batch, groups, in, out;  // channels per group
  int64_t h, w, oh, ow, kh, kw, sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1;

  int64_t taps() const { return kh * kw; }
  bool is_pointwise() const { return kh == 1 && kw == 1 && sh == 1 && sw == 1 && ph == 0 && pw == 0; }
};

Geometry geometry(const char* op, const Tensor& input, const Tensor& weight, IntList stride, IntList padding, IntList dilation, int64_t groups) {
  const int64_t n = input.dim() - 2;
  if (n < 1 || n > 2 || weight.dim() != input.dim())
    fail(n > 2 ? ARGAND_NOT_IMPLEMENTED_ERROR : ARGAND_SHAPE_ERROR,
         "%s: got input of shape %s and weight of shape %s, expected (batch, channels, [[depth,] height,] width) and (out_channels, channels / "
         "groups, [[depth,] height,] width)",
         op, to_string(input.sizes()).c_str(), to_string(weight.sizes()).c_str());
  if (stride.n != n || padding.n != n || dilation.n != n)
    fail(ARGAND_SHAPE_ERROR, "%s: got stride %s, padding %s and dilation %s, expected %ld numbers each", op, to_string(stride).c_str(),
         to_string(padding).c_str(), to_string(dilation).c_str(), static_cast<long>(n));
  for (int64_t i = 0; i < n; i++)
    if (stride[i] < 1 || dilation[i] < 1 || padding[i] < 0 || std::max(padding[i], dilation[i]) > INT32_MAX)
      fail(
          ARGAND_SHAPE_ERROR,
          "%s: got stride %s, padding %s and dilation %s, expected positive strides and dilations, no negative padding, and the last two below 2**31",
          op, to_string(stride).c_str(), to_string(padding).c_str(), to_string(dilation).c_str());
  if (groups < 1 || input.size(1) != weight.size(1) * groups || weight.size(0) % groups)
    fail(ARGAND_SHAPE_ERROR, "%s: Given groups=%ld, weight of size %s, expected input%s to have %ld channels, but got %ld channels instead", op,
         static_cast<long>(groups), to_string(weight.sizes()).c_str(), to_string(input.sizes()).c_str(), static_cast<long>(weight.size(1) * groups),
         static_cast<long>(input.size(1)));
  check_same_dtype(op, input, weight);
  Geometry g{
      input.size(0),  groups, weight.size(1), weight.size(0) / groups, n == 2 ? input.size(2) : 1, input.size(-1), 1, 1, n == 2 ? weight.size(2) : 1,
      weight.size(-1)};
  g.sw = stride[n - 1], g.pw = padding[n - 1], g.dw = dilation[n - 1];
  if (n == 2) g.sh = stride[0], g.ph = padding[0], g.dh = dilation[0];
  const int64_t eh = g.dh * (g.kh - 1) + 1, ew = g.dw * (g.kw - 1) + 1;
  if (g.h + 2 * g.ph < eh || g.w + 2 * g.pw < ew)
    fail(ARGAND_SHAPE_ERROR,
         "%s: Calculated padded input size per channel: (%ld x %ld). Kernel size: (%ld x %ld). Kernel size can't be greater than actual input size",
         op, static_cast<long>(g.h + 2 * g.ph), static_cast<long>(g.w + 2 * g.pw), static_cast<long>(eh), static_cast<long>(ew));
  g.oh = (g.h + 2 * g.ph - eh) / g.sh + 1;
  g.ow = (g.w + 2 * g.pw - ew) / g.sw + 1;
  g.sh = std::min(g.sh, std::max<int64_t>(g.h + 2 * g.ph, 1)), g.sw = std::min(g.sw, std::max<int64_t>(g.w + 2 * g.pw, 1));  // enough for one output
  return g;
}

// Planes of the input: phase (a, b) of a channel holds in[y * sh + a - ph][x * sw + b - pw]. Only phases that a tap reads exist.
struct InputPlanes {
  int64_t height, width, stride, phases_h, phases_w, per_channel;
  explicit InputPlanes(const Geometry& g, int itemsize) {
    height = g.oh + (g.kh - 1) * g.dh / g.sh;
    width = g.ow + (g.kw - 1) * g.dw / g.sw;
    stride = round_up(height * width, 16);
    if (stride * itemsize % 4096 == 0) stride += 16;  // equal places of the channels must not share a cache set
    phases_h = std::min(g.sh, (g.kh - 1) * g.dh + 1);
    phases_w = std::min(g.sw, (g.kw - 1) * g.dw + 1);
    per_channel = phases_h * phases_w * stride;
  }
  int64_t offset(const Geometry& g, int64_t channel, int64_t i, int64_t j) const {  // of tap (i, j)
    const int64_t a = i * g.dh % g.sh, b = j * g.dw % g.sw;
    return channel * per_channel + (a * phases_w + b) * stride + i * g.dh / g.sh * width + j * g.dw / g.sw;
  }
};

// Rows are often too short for a call of memcpy.
template <class E>
void copy_dense(E* to, const E* from, int64_t n) {
  constexpr int64_t kStep = 16 / sizeof(E);
  if (n > 128) return static_cast<void>(std::memcpy(to, from, sizeof(E) * static_cast<size_t>(n)));
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) std::memcpy(to + i, from + i, 16);
  for (; i < n; i++) to[i] = from[i];
}

template <class T, class E>
void copy_row(E* to, const T* from, int64_t n, int64_t step) {
  if constexpr (std::is_same_v<T, E>)
    if (step == 1) return copy_dense(to, from, n);
  for (int64_t i = 0; i < n; i++) to[i] = widen(from[i * step]);
}

// plane[y][x] = in[y * sh + top][x * sw + left], zero outside [h, w].
template <class T, class E>
void fill_plane(E* plane, int64_t height, int64_t width, const T* in, int64_t h, int64_t w, int64_t sh, int64_t sw, int64_t top, int64_t left) {
  const int64_t begin = std::min(width, left >= 0 ? int64_t{0} : (-left + sw - 1) / sw);
  const int64_t end = std::max(begin, std::min(width, count_inside(w, left, sw)));
  for (int64_t y = 0; y < height; y++, plane += width) {
    const int64_t iy = y * sh + top;
    if (iy < 0 || iy >= h) {
      for (int64_t x = 0; x < width; x++) plane[x] = 0;
      continue;
    }
    for (int64_t x = 0; x < begin; x++) plane[x] = 0;
    copy_row(plane + begin, in + iy * w + begin * sw + left, end - begin, sw);
    for (int64_t x = end; x < width; x++) plane[x] = 0;
  }
}

template <class T, class E>
void fill_input_planes(const Geometry& g, const InputPlanes& p, const T* image, E* planes, int64_t begin, int64_t end) {  // channels [begin, end)
  for (int64_t c = begin; c < end; c++)
    for (int64_t a = 0; a < p.phases_h; a++)
      for (int64_t b = 0; b < p.phases_w; b++)
        fill_plane<T, E>(planes + c * p.per_channel + (a * p.phases_w + b) * p.stride, p.height, p.width, image + c * g.h * g.w, g.h, g.w, g.sh, g.sw,
                         a - g.ph, b - g.pw);
}

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

// One product "weights x planes": for a stride phase of the result, the taps that reach it.
template <class E>
struct Pass {
  std::vector<int64_t> offsets;  // of the planes, per k
  Scratch<E> packed;             // [group][block][k][rows of the block]
  int64_t y0 = 0, x0 = 0;        // pixel (y, x) is the result's (y * step + y0, x * step + x0)
  Pass(std::vector<int64_t> o, int64_t groups, int64_t rows) : offsets(std::move(o)), packed(groups * rows * static_cast<int64_t>(offsets.size())) {}
  int64_t k() const { return static_cast<int64_t>(offsets.size()); }
};

// Weight (group, row, k) is w[group * group_stride + row * row_stride + source[k]].
template <class T, class E>
void pack(Pass<E>& pass, const Blocks& blocks, int64_t groups, int64_t rows, const T* w, int64_t group_stride, int64_t row_stride,
          const std::vector<int64_t>& source) {
  const int64_t k = pass.k(), count = blocks.size();
  parallel_for(0, groups * count, row_grain(8 * k, 65536), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t group = i / count, first = blocks.first[static_cast<size_t>(i % count)], n = blocks.rows[static_cast<size_t>(i % count)];
      E* to = pass.packed + (group * rows + first) * k;
      const T* from = w + group * group_stride + first * row_stride;
      for (int64_t q = 0; q < k; q++, to += n)
        for (int64_t r = 0; r < n; r++) to[r] = widen(from[r * row_stride + source[static_cast<size_t>(q)]]);
    }
  });
}

// Where the results of units (an image's channels of one group) go: a tensor, an epilogue that is handed each when it is finished, or both.
struct Results {
  int64_t channels, plane;  // of a unit; elements of a channel
  int dtype;
  char* whole;                     // null: a unit lies in memory of its own while it is made
  const ArgandEpilogue* epilogue;  // or null

  Results(const Geometry& g, int dtype_, const Tensor& out, const ArgandEpilogue* e)
      : Results(g.out, g.oh * g.ow, dtype_, out ? out.data<char>() : nullptr, e) {}
  Results(int64_t channels_, int64_t plane_, int dtype_, char* whole_, const ArgandEpilogue* e)
      : channels(channels_), plane(plane_), dtype(dtype_), whole(whole_), epilogue(e) {}

  int64_t bytes() const { return channels * plane * item_size(dtype); }
  // The memory of units [first, first + count), owned by `own` if not by the tensor.
  char* place(int64_t first, int64_t count, Tensor* own) const {
    if (whole) return whole + first * bytes();
    *own = empty({count * channels * plane}, dtype);
    return own->data<char>();
  }
  void finish(int64_t first, int64_t count, const char* data, bool serial) const {
    if (!epilogue) return;
    parallel_for(0, count * channels, serial ? count * channels : row_grain(plane), [&](int64_t begin, int64_t end) {
      epilogue->run(epilogue->context, (first * channels + begin) * plane, (first * channels + end) * plane, data + begin * plane * item_size(dtype));
    });
  }
};

// The result of passes over planes: `rows` channels per group, each of [result_h, result_w].
template <class T, class E>
struct Product {
  const ConvLoops<E>& loops = conv_loops<E>();
  Blocks blocks;
  int64_t rows, height, width;  // pixels computed per channel; width of the planes
  int64_t result_h, result_w, step_h, step_w;
  Results results;
  const E* bias = nullptr;
  std::vector<std::unique_ptr<Pass<E>>> passes;

  Product(int64_t rows_, int64_t height_, int64_t width_, const Results& results_)
      : blocks(rows_, conv_loops<E>().rows), rows(rows_), height(height_), width(width_), results(results_) {}

  // Pixel rows [begin, end) of one block of channels of a unit, whose result is at `out`; `c` holds its rows of round_up((end - begin) * width)
  // elements.
  void compute(const Pass<E>& pass, int64_t block, const E* planes, int64_t group, char* out, int64_t begin, int64_t end, E* c) const {
    const int64_t n = round_up((end - begin) * width, loops.lanes), first = blocks.first[static_cast<size_t>(block)];
    const int count = blocks.rows[static_cast<size_t>(block)];
    loops.block(count, pass.k(), pass.packed + (group * rows + first) * pass.k(), planes + begin * width, pass.offsets.data(), n,
                bias ? bias + group * rows + first : nullptr, c, n);
    // The pixels that fall inside the result: rows [top, bottom) and, in each, [left, right).
    const int64_t top = std::max(begin, pass.y0 < 0 ? (-pass.y0 + step_h - 1) / step_h : 0),
                  bottom = std::min(end, count_inside(result_h, pass.y0, step_h));
    const int64_t left = pass.x0 < 0 ? (-pass.x0 + step_w - 1) / step_w : 0, right = std::min(width, count_inside(result_w, pass.x0, step_w));
    for (int r = 0; r < count; r++) {
      T* to = reinterpret_cast<T*>(out) + (first + r) * result_h * result_w + pass.y0 * result_w + pass.x0;
      const E* from = c + r * n - begin * width;
      for (int64_t y = top; y < bottom; y++) store_row(to + y * step_h * result_w, from + y * width, left, right);
    }
  }
  void store_row(T* to, const E* from, int64_t left, int64_t right) const {
    if constexpr (std::is_same_v<T, E>)
      if (step_w == 1) return copy_dense(to + left, from + left, right - left);
    for (int64_t x = left; x < right; x++) to[x * step_w] = narrow<T>(from[x]);
  }
};

// Runs all passes on all images. fill(image, group, planes, begin, end) makes the planes of source channels [begin, end).
template <class T, class E, class Fill>
void run_passes(const Product<T, E>& p, int64_t batch, int64_t groups, int64_t channels, int64_t planes_size, Fill&& fill) {
  const int64_t units = batch * groups, threads = api->num_threads();
  int64_t k = 1;
  for (const auto& pass : p.passes) k += pass->k();
  // Rows per step, so that a block's result and the rows it reads stay in the second-level cache.
  const int64_t chunk = std::max<int64_t>(1, std::min(p.height, 4096 / p.width + 1));
  const int64_t result = 8 * (round_up(chunk * p.width, 64) + 64);
  if (units >= 4 * threads || units % threads == 0 || threads == 1) {
    const int64_t work = k * p.rows * p.height * p.width;
    // Several images at once, if their planes fit the second-level cache, so that weights are read less often.
    const int64_t size = round_up(planes_size + kSlack, 16),
                  together = std::max<int64_t>(1, std::min<int64_t>(8, kTogetherBytes / (size * static_cast<int64_t>(sizeof(E)))));
    parallel_for(0, units, row_grain(work, 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> planes(together * size), c(result);
      for (int64_t u = begin; u < end; u += together) {
        const int64_t stop = std::min(u + together, end);
        Tensor own;
        char* const out = p.results.place(u, stop - u, &own);
        for (int64_t v = u; v < stop; v++) fill(v / groups, v % groups, planes + (v - u) * size, 0, channels);
        for (const auto& pass : p.passes)
          for (int64_t y = 0; y < p.height; y += chunk)
            for (int64_t b = 0; b < p.blocks.size(); b++)
              for (int64_t v = u; v < stop; v++)
                p.compute(*pass, b, planes + (v - u) * size, v % groups, out + (v - u) * p.results.bytes(), y, std::min(y + chunk, p.height), c);
        p.results.finish(u, stop - u, out, true);
      }
    });
    return;
  }
  Scratch<E> planes(planes_size + kSlack);  // few images: the threads share one
  const int64_t rows = std::max<int64_t>(1, std::min(chunk, (p.height + 2 * threads - 1) / (2 * threads)));
  for (int64_t u = 0; u < units; u++) {
    Tensor own;
    char* const out = p.results.place(u, 1, &own);
    parallel_for(0, channels, row_grain(planes_size / std::max<int64_t>(channels, 1)),
                 [&](int64_t begin, int64_t end) { fill(u / groups, u % groups, planes.get(), begin, end); });
    parallel_for(0, (p.height + rows - 1) / rows, row_grain(k * p.rows * rows * p.width, 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> c(result);
      for (const auto& pass : p.passes)
        for (int64_t i = begin; i < end; i++)
          for (int64_t b = 0; b < p.blocks.size(); b++) p.compute(*pass, b, planes, u % groups, out, i * rows, std::min((i + 1) * rows, p.height), c);
    });
    p.results.finish(u, 1, out, false);
  }
}

template <class T>
void forward(const Geometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias, const Results& results) {
  using E = compute_t<T>;
  const InputPlanes planes(g, sizeof(E));
  Product<T, E> p(g.out, g.oh, planes.width, results);
  p.result_h = g.oh, p.result_w = g.ow, p.step_h = p.step_w = 1;
  const Tensor hold_bias = bias ? to_dtype(bias, sizeof(E) == 8 ? ARGAND_FLOAT64 : ARGAND_FLOAT32) : Tensor();
  if (bias) p.bias = hold_bias.data<E>();
  std::vector<int64_t> offsets, source;
  for (int64_t c = 0; c < g.in; c++)
    for (int64_t i = 0; i < g.kh; i++)
      for (int64_t j = 0; j < g.kw; j++) source.push_back(static_cast<int64_t>(offsets.size())), offsets.push_back(planes.offset(g, c, i, j));
  p.passes.push_back(std::make_unique<Pass<E>>(std::move(offsets), g.groups, g.out));
  const int64_t k = p.passes[0]->k();
  pack(*p.passes[0], p.blocks, g.groups, g.out, weight.data<T>(), g.out * k, k, source);
  const T* in = input.data<T>();
  run_passes<T, E>(p, g.batch, g.groups, g.in, g.in * planes.per_channel, [&](int64_t image, int64_t group, E* to, int64_t begin, int64_t end) {
    fill_input_planes<T, E>(g, planes, in + (image * g.groups + group) * g.in * g.h * g.w, to, begin, end);
  });
}

// Every stride phase (a, b) of the input's gradient is a plain convolution of the output's gradient with the taps that reach that phase.
template <class T>
void backward_input(const Geometry& g, const Tensor& grad, const Tensor& weight, const Tensor& out) {
  using E = compute_t<T>;
  const int64_t reach_h = (g.kh - 1) * g.dh / g.sh, reach_w = (g.kw - 1) * g.dw / g.sw;
  const int64_t top = g.ph / g.sh, left = g.pw / g.sw;  // the first pixel of a phase that is not padding alone
  const int64_t qh = (g.ph + g.h - 1) / g.sh - top + 1, qw = (g.pw + g.w - 1) / g.sw - left + 1;
  const int64_t height = qh + reach_h, width = qw + reach_w, stride = round_up(height * width, 16) + 16;
  Product<T, E> p(g.in, qh, width, {g.in, g.h * g.w, out.dtype(), out.data<char>(), nullptr});
  p.result_h = g.h, p.result_w = g.w, p.step_h = g.sh, p.step_w = g.sw;
  bool complete = true;  // every phase has a tap
  for (int64_t a = 0; a < g.sh; a++)
    for (int64_t b = 0; b < g.sw; b++) {
      std::vector<int64_t> offsets, taps, source;
      for (int64_t i = 0; i < g.kh; i++)
        for (int64_t j = 0; j < g.kw; j++)
          if (i * g.dh % g.sh == a && j * g.dw % g.sw == b) taps.push_back(i * g.kw + j);
      if (taps.empty()) {
        complete = false;
        continue;
      }
      for (int64_t o = 0; o < g.out; o++)
        for (int64_t t : taps) {
          offsets.push_back(o * stride + (reach_h - t / g.kw * g.dh / g.sh) * width + reach_w - t % g.kw * g.dw / g.sw);
          source.push_back(o * g.in * g.taps() + t);
        }
      p.passes.push_back(std::make_unique<Pass<E>>(std::move(offsets), g.groups, g.in));
      Pass<E>& pass = *p.passes.back();
      pass.y0 = a - g.ph + top * g.sh, pass.x0 = b - g.pw + left * g.sw;
      pack(pass, p.blocks, g.groups, g.in, weight.data<T>(), g.out * g.in * g.taps(), g.taps(), source);
    }
  if (!complete) std::memset(out->data, 0, static_cast<size_t>(out.numel()) * sizeof(T));
  const T* dy = grad.data<T>();
  run_passes<T, E>(p, g.batch, g.groups, g.out, g.out * stride, [&](int64_t image, int64_t group, E* to, int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; o++)
      fill_plane<T, E>(to + o * stride, height, width, dy + ((image * g.groups + group) * g.out + o) * g.oh * g.ow, g.oh, g.ow, 1, 1, top - reach_h,
                       left - reach_w);
  });
}

// Gradient of the weight: per image, sum over pixels of (shifted planes) x (transposed grad), as a matrix [tap][channel].
template <class T>
class WeightGradient {
  using E = compute_t<T>;

 public:
  WeightGradient(const Geometry& geo, const Tensor& input, const Tensor& grad)
      : g(geo), planes(geo, sizeof(E)), in(input.data<T>()), dy(grad.data<T>()) {
    for (int64_t c = 0; c < g.in; c++)
      for (int64_t i = 0; i < g.kh; i++)
        for (int64_t j = 0; j < g.kw; j++) offsets.push_back(planes.offset(g, c, i, j));
    k = static_cast<int64_t>(offsets.size());
    lanes = round_up(g.out, loops.lanes);
    size = k * lanes;
    source_size = round_up(g.in * planes.per_channel + kSlack, 16);
    grad_size = g.oh * g.ow * lanes;
  }

  void run(const Tensor& out) {
    if (g.out < 4) return run_by_dots(out);
    const int64_t bytes = g.groups * size * static_cast<int64_t>(sizeof(E));
    if (bytes > kSmallWeight || g.batch == 1) return run_by_taps(out);
    // Small weights: images in fixed chunks, each with a sum of its own.
    const int64_t chunks = std::min<int64_t>(g.batch, 8), per = (g.batch + chunks - 1) / chunks;
    Scratch<E> partial(chunks * g.groups * size);
    std::memset(partial.get(), 0, static_cast<size_t>(chunks * bytes));
    parallel_for(0, chunks * g.groups, row_grain(per * size * g.oh * g.ow, 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> source(source_size), grad(grad_size);
      for (int64_t t = begin; t < end; t++)
        for (int64_t i = t / g.groups * per; i < g.batch && i < (t / g.groups + 1) * per; i++) {
          fill(i, t % g.groups, source, 0, g.in);
          transpose(i, t % g.groups, grad, 0, g.oh * g.ow);
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
        const int64_t count = std::min(images, g.batch - first), pixels = g.oh * g.ow;
        parallel_for(0, count * g.in, row_grain(planes.per_channel), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++) fill(first + i / g.in, group, source + i / g.in * source_size, i % g.in, i % g.in + 1);
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
  // Few channels (depthwise): a dot product per tap, over rows padded with zeros to the planes' width.
  void run_by_dots(const Tensor& out) {
    const int64_t length = g.oh * planes.width;
    const auto& kernels = tile_kernels<E>();
    parallel_for(0, g.groups, row_grain(g.batch * k * length, 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> source(source_size), grad(length), sum(k), part(1);
      // The dot products also run over places that no plane fills, against zeros of grad: they must not hold NaN.
      std::fill_n(source.get(), source_size, E(0));
      std::fill_n(grad.get(), length, E(0));
      for (int64_t group = begin; group < end; group++)
        for (int64_t o = 0; o < g.out; o++) {
          const int64_t channel = group * g.out + o;
          for (int64_t q = 0; q < k; q++) sum[q] = 0;
          for (int64_t i = 0; i < g.batch; i++) {
            fill(i, group, source, 0, g.in);
            fill_plane<T, E>(grad, g.oh, planes.width, dy + (i * g.groups * g.out + channel) * g.oh * g.ow, g.oh, g.ow, 1, 1, 0, 0);
            for (int64_t q = 0; q < k; q++) {
              kernels.dots(1, 1, length, grad, length, source + offsets[static_cast<size_t>(q)], length, nullptr, false, part, 1);
              sum[q] += part[0];
            }
          }
          for (int64_t q = 0; q < k; q++) out.data<T>()[channel * k + q] = narrow<T>(sum[q]);
        }
    });
  }
  void fill(int64_t image, int64_t group, E* source, int64_t begin, int64_t end) const {
    fill_input_planes<T, E>(g, planes, in + (image * g.groups + group) * g.in * g.h * g.w, source, begin, end);
  }
  // grad[pixel][channel], channels padded with zeros to whole vectors.
  void transpose(int64_t image, int64_t group, E* grad, int64_t begin, int64_t end) const {
    const int64_t pixels = g.oh * g.ow;
    const T* from = dy + (image * g.groups + group) * g.out * pixels;
    constexpr int64_t kTile = 16;
    for (int64_t p = begin; p < end; p += kTile)
      for (int64_t o = 0; o < lanes; o += kTile) {
        const int64_t pe = std::min(p + kTile, end), oe = std::min(o + kTile, lanes), real = std::min(oe, g.out);
        for (int64_t a = p; a < pe; a++) {
          for (int64_t b = o; b < real; b++) grad[a * lanes + b] = widen(from[b * pixels + a]);
          for (int64_t b = std::max(o, real); b < oe; b++) grad[a * lanes + b] = 0;
        }
      }
  }
  // acc[tap][channel] += ... for taps [begin, end), image by image in bands of pixel rows.
  void accumulate(const E* source, const E* grad, int64_t images, E* acc, int64_t begin, int64_t end) const {
    const int64_t band = std::max<int64_t>(1, kBandBytes / (static_cast<int64_t>(sizeof(E)) * lanes * g.ow));
    for (int64_t i = 0; i < images; i++, source += source_size, grad += grad_size)
      for (int64_t y = 0; y < g.oh; y += band) {
        const int64_t height = std::min(band, g.oh - y);
        for (int64_t q = begin; q < end;) {
          int rows = loops.rows;
          while (rows > end - q) rows /= 2;
          loops.weight_block(rows, source + y * planes.width, offsets.data() + q, height, g.ow, planes.width, grad + y * g.ow * lanes, lanes, lanes,
                             acc + q * lanes, lanes);
          q += rows;
        }
      }
  }
  // out[channel][tap] = sum over chunks of sums[chunk][tap][channel], in square tiles.
  void store(const Tensor& out, int64_t group, const E* sums, int64_t chunks, int64_t chunk_stride) const {
    constexpr int64_t kTile = 16;
    T* to = out.data<T>() + group * g.out * k;
    parallel_for(0, (g.out + kTile - 1) / kTile, row_grain(kTile * k * chunks), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin * kTile; o < std::min(end * kTile, g.out); o += kTile)
        for (int64_t q = 0; q < k; q += kTile)
          for (int64_t b = o; b < std::min(o + kTile, g.out); b++)
            for (int64_t a = q; a < std::min(q + kTile, k); a++) {
              E sum = 0;
              for (int64_t c = 0; c < chunks; c++) sum += sums[c * chunk_stride + a * lanes + b];
              to[b * k + a] = narrow<T>(sum);
            }
    });
  }

  const Geometry& g;
  InputPlanes planes;
  const T *in, *dy;
  const ConvLoops<E>& loops = conv_loops<E>();
  std::vector<int64_t> offsets;
  int64_t k, lanes, size, source_size, grad_size;
};

// 1x1 convolutions as matrix products, per image and group; f(image * groups + group, serial).
template <class F>
void for_units(const Geometry& g, F&& f) {
  const int64_t units = g.batch * g.groups;
  if (units < api->num_threads()) {
    for (int64_t u = 0; u < units; u++) f(u, false);
    return;
  }
  parallel_for(0, units, row_grain(g.in * g.out * g.h * g.w, 200000), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) f(u, true);
  });
}

void pointwise_forward(const Geometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias, const Results& results) {
  const int64_t n = g.h * g.w, size = input.itemsize();
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
  const int64_t n = g.h * g.w, size = grad.itemsize();
  for_units(g, [&](int64_t u, bool serial) {
    const char *w = weight.data<char>() + u % g.groups * g.out * g.in * size, *dy = grad.data<char>() + u * g.out * n * size;
    gemm(grad.dtype(), g.in, n, g.out, 1, {w, 1, g.in}, {dy, n, 1}, 0, out.data<char>() + u * g.in * n * size, n, serial);
  });
}

// Image by image into the zeroed result.
void pointwise_backward_weight(const Geometry& g, const Tensor& input, const Tensor& grad, const Tensor& out) {
  const int64_t n = g.h * g.w, size = grad.itemsize();
  for (int64_t u = 0; u < g.batch * g.groups; u++)
    gemm(grad.dtype(), g.out, g.in, n, 1, {grad.data<char>() + u * g.out * n * size, n, 1}, {input.data<char>() + u * g.in * n * size, 1, n}, 1,
         out.data<char>() + u % g.groups * g.out * g.in * size, g.in);
}

template <class T>
Tensor bias_gradient(const Geometry& g, const Tensor& grad) {
  using E = compute_t<T>;
  const int64_t channels = g.groups * g.out, pixels = g.oh * g.ow;
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

// Convolution of int64 is rare: plain loops, unsigned sums, which wrap.
Tensor integer_forward(const Geometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& out) {
  const Tensor b = bias ? contiguous(bias) : bias;
  parallel_for(0, g.batch * g.groups * g.out, row_grain(g.oh * g.ow * g.in * g.taps()), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      const int64_t channel = p % (g.groups * g.out), first = (p / g.out) * g.in;  // p / out is image * groups + group
      for (int64_t at = 0; at < g.oh * g.ow; at++) {
        uint64_t sum = b ? static_cast<uint64_t>(b.data<int64_t>()[channel]) : 0;
        for (int64_t i = 0; i < g.in * g.taps(); i++) {
          const int64_t c = i / g.taps(), y = at / g.ow * g.sh - g.ph + i % g.taps() / g.kw * g.dh, x0 = at % g.ow * g.sw - g.pw + i % g.kw * g.dw;
          if (y < 0 || y >= g.h || x0 < 0 || x0 >= g.w) continue;
          sum += static_cast<uint64_t>(x.data<int64_t>()[((first + c) * g.h + y) * g.w + x0]) *
                 static_cast<uint64_t>(w.data<int64_t>()[channel * g.in * g.taps() + i]);
        }
        out.data<int64_t>()[p * g.oh * g.ow + at] = static_cast<int64_t>(sum);
      }
    }
  });
  return out;
}

Tensor integer_backward_input(const Geometry& g, const Tensor& dy, const Tensor& w, IntList sizes) {
  const Tensor dx = zeros(sizes, ARGAND_INT64);
  parallel_for(0, g.batch * g.groups, row_grain(g.oh * g.ow * g.out * g.in * g.taps()), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) {
      auto* planes = reinterpret_cast<uint64_t*>(dx.data<int64_t>()) + p * g.in * g.h * g.w;
      for (int64_t o = 0; o < g.out; o++)
        for (int64_t at = 0; at < g.oh * g.ow; at++) {
          const auto dv = static_cast<uint64_t>(dy.data<int64_t>()[(p * g.out + o) * g.oh * g.ow + at]);
          const int64_t* row = w.data<int64_t>() + (p % g.groups * g.out + o) * g.in * g.taps();
          for (int64_t i = 0; i < g.in * g.taps(); i++) {
            const int64_t c = i / g.taps(), y = at / g.ow * g.sh - g.ph + i % g.taps() / g.kw * g.dh, x = at % g.ow * g.sw - g.pw + i % g.kw * g.dw;
            if (y >= 0 && y < g.h && x >= 0 && x < g.w) planes[(c * g.h + y) * g.w + x] += dv * static_cast<uint64_t>(row[i]);
          }
        }
    }
  });
  return dx;
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
  if (input.dim() == 5) return convolution3d(input, weight, bias, stride, padding, dilation, groups);  // the caller applies the epilogue
  const Geometry g = geometry("convolution", input, weight, stride, padding, dilation, groups);
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
  if (input.dim() == 4) sizes.push_back(g.oh);
  sizes.push_back(g.ow);
  const bool empties = product(sizes) == 0, hands_over = epilogue && !empties && input.dtype() != ARGAND_INT64;
  const Tensor out = hands_over && !epilogue->keep ? Tensor() : empty(sizes, input.dtype());
  if (empties) return out;
  if (input.dtype() == ARGAND_INT64) return integer_forward(g, contiguous(input), contiguous(weight), bias, out);
  const Tensor x = contiguous(input), w = contiguous(weight);
  const Results results(g, input.dtype(), out, epilogue);
  if (g.is_pointwise() && g.out >= 4 && g.in > 0)
    pointwise_forward(g, x, w, bias, results);
  else
    dispatch_floating("convolution", input.dtype(), [&](auto tag) { forward<typename decltype(tag)::type>(g, x, w, bias, results); });
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
  if (input.dim() == 5) return convolution3d_backward(grad_output, input, weight, stride, padding, dilation, groups, output_mask);
  const Geometry g = geometry("convolution_backward", input, weight, stride, padding, dilation, groups);
  check_same_dtype("convolution_backward", grad_output, input);
  if (grad_output.numel() != g.batch * g.groups * g.out * g.oh * g.ow)
    fail(ARGAND_SHAPE_ERROR, "convolution_backward: got grad of shape %s, expected (%ld, %ld, %ld, %ld)", to_string(grad_output.sizes()).c_str(),
         static_cast<long>(g.batch), static_cast<long>(g.groups * g.out), static_cast<long>(g.oh), static_cast<long>(g.ow));
  if (input.dtype() == ARGAND_INT64 && !output_mask[1] && !output_mask[2])
    return {integer_backward_input(g, contiguous(grad_output), contiguous(weight), input.sizes()), Tensor(), Tensor()};
  const Tensor dy = contiguous(grad_output), x = contiguous(input), w = contiguous(weight);
  Tensor dx, dw, db;
  const bool products = g.is_pointwise() && g.out >= 4 && g.in >= 4 && x.itemsize() > 2;  // 16-bit sums would be rounded at every image
  dispatch_floating("convolution_backward", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (output_mask[0]) {
      dx = empty(x.sizes(), x.dtype());
      if (dx.numel() && dy.numel())
        products ? pointwise_backward_input(g, dy, w, dx) : backward_input<T>(g, dy, w, dx);
      else
        dx = zeros(x.sizes(), x.dtype());
    }
    if (output_mask[1]) {
      dw = zeros(w.sizes(), x.dtype());
      if (dw.numel() && dy.numel()) products ? pointwise_backward_weight(g, x, dy, dw) : WeightGradient<T>(g, x, dy).run(dw);
    }
    if (output_mask[2]) db = bias_gradient<T>(g, dy);
  });
  return {dx, dw, db};
}

}  // namespace argand::kernels::cpu
