// Two-dimensional pooling on (..., height, width); planes in parallel.
#include "packages/aten/csrc/kernels/cpu/pool.h"
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/dtype_checks.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/reduction.h"

namespace argand::kernels::cpu {
namespace {

// That `t` has the dimensions that are pooled, and those besides the batch have elements.
void check_input(const char* name, const Tensor& t, int dims) {
  if (t.dim() < dims)
    fail(ARGAND_INDEX_ERROR, "%s: got input of shape %s, expected at least %d dimensions", name, to_string(t.sizes()).c_str(), dims);
  for (int d = t.dim() - dims; d < t.dim(); d++)
    if (t.size(d) == 0)
      fail(ARGAND_SHAPE_ERROR, "%s: got input of shape %s, expected only the batch to be empty", name, to_string(t.sizes()).c_str());
}

struct Window {
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  Window(IntList k, IntList s, IntList p, IntList d)
      : kernel{k[0], k[1]}, stride{s.size() ? s[0] : k[0], s.size() ? s[1] : k[1]}, padding{p[0], p[1]}, dilation{d[0], d[1]} {
    for (int i = 0; i < 2; i++)
      if (std::max({kernel[i], stride[i], padding[i], dilation[i]}) > INT32_MAX)
        builtins::raise(ARGAND_RUNTIME_ERROR,
                        builtins::text("kernel size, stride, padding and dilation should be below 2**31, but got ", k, ", ", s, ", ", p, ", ", d));
  }
};

struct Planes {  // geometry of a contiguous (..., h, w) tensor
  int64_t n, h, w;
  explicit Planes(IntList sizes) : n(product(sizes, 0, sizes.n - 2)), h(sizes[sizes.n - 2]), w(sizes[sizes.n - 1]) {}
  int64_t size() const { return h * w; }
};

// The part of the window at output index o that lies inside [0, n): first index and end.
inline void clip(int64_t o, int64_t stride, int64_t padding, int64_t kernel, int64_t n, int64_t& begin, int64_t& end) {
  begin = o * stride - padding;
  end = std::min(begin + kernel, n);
  begin = std::max<int64_t>(begin, 0);
}

// The taps of a window, at first, first + dilation, ..., that lie inside [0, n): the first one and the end.
inline void taps_inside(int64_t first, int64_t dilation, int64_t kernel, int64_t n, int64_t& begin, int64_t& end) {
  begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
  end = first < n ? std::min(kernel, (n - 1 - first) / dilation + 1) : 0;
}

// The largest element of a window that sees padding alone.
template <class T>
compute_t<T> nothing_seen() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::min();
  else
    return -std::numeric_limits<compute_t<T>>::infinity();
}

template <class T>
void max_plane(const T* in, T* out, int64_t* at, const Planes& from, const Planes& to, const Window& win) {
  for (int64_t y = 0; y < to.h; y++) {
    const int64_t top = y * win.stride[0] - win.padding[0];
    int64_t i0, i1, j0, j1;
    taps_inside(top, win.dilation[0], win.kernel[0], from.h, i0, i1);
    for (int64_t x = 0; x < to.w; x++) {
      const int64_t left = x * win.stride[1] - win.padding[1];
      taps_inside(left, win.dilation[1], win.kernel[1], from.w, j0, j1);
      compute_t<T> best = nothing_seen<T>();
      int64_t where = -1;
      for (int64_t i = i0; i < i1; i++) {
        const int64_t r = top + i * win.dilation[0];
        for (int64_t j = j0; j < j1; j++) {
          const int64_t c = left + j * win.dilation[1];
          const auto v = widen(in[r * from.w + c]);
          if (where < 0 || v > best || v != v) {  // the last NaN wins, else the first maximum
            best = v;
            where = r * from.w + c;
          }
        }
      }
      out[y * to.w + x] = narrow<T>(best);
      at[y * to.w + x] = where;
    }
  }
}

// The same in float32, a row of outputs at a time; indices must fit into 32 bits.
void max_plane_rows(const float* in, float* out, int64_t* at, const Planes& from, const Planes& to, const Window& win) {
  const PoolKernels& kernels = pick_pool_kernels();
  Scratch<int32_t> where(to.w);
  int64_t i0, i1, j0, j1, unused;  // columns that lie inside for any output
  taps_inside((to.w - 1) * win.stride[1] - win.padding[1], win.dilation[1], win.kernel[1], from.w, j0, unused);
  taps_inside(-win.padding[1], win.dilation[1], win.kernel[1], from.w, unused, j1);
  for (int64_t y = 0; y < to.h; y++) {
    float* best = out + y * to.w;
    bool seen = false;  // otherwise best and where are not set yet
    const auto see_nothing = [&] {
      std::fill_n(best, to.w, nothing_seen<float>());
      std::fill_n(where.get(), to.w, -1);
    };
    const int64_t top = y * win.stride[0] - win.padding[0];
    taps_inside(top, win.dilation[0], win.kernel[0], from.h, i0, i1);
    for (int64_t i = i0; i < i1; i++) {
      const int64_t r = top + i * win.dilation[0];
      for (int64_t j = j0; j < j1; j++) {
        // Outputs x whose column x * stride + shift lies inside of the plane.
        const int64_t shift = j * win.dilation[1] - win.padding[1], s = win.stride[1];
        const int64_t begin = shift < 0 ? (-shift + s - 1) / s : 0;
        const int64_t end = shift < from.w ? std::min(to.w, (from.w - 1 - shift) / s + 1) : 0;
        if (begin >= end) continue;
        const int64_t first = r * from.w + begin * s + shift;
        const bool whole = begin == 0 && end == to.w;
        if (!seen && !whole) see_nothing();
        const auto take = seen || !whole ? kernels.max_step : kernels.max_first;
        take(in + first, s, end - begin, static_cast<int32_t>(first), best + begin, where.get() + begin);
        seen = true;
      }
    }
    if (!seen) see_nothing();
    kernels.widen(to.w, where, at + y * to.w);
  }
}

// The divisor of an average window: its size inside the padded plane, or inside the plane.
int64_t divisor(int64_t y, int64_t x, const Planes& from, const Window& win, bool include_pad, std::optional<int64_t> override_) {
  if (override_) return *override_;
  int64_t h0, h1, w0, w1;
  if (!include_pad) {
    clip(y, win.stride[0], win.padding[0], win.kernel[0], from.h, h0, h1);
    clip(x, win.stride[1], win.padding[1], win.kernel[1], from.w, w0, w1);
    return std::max<int64_t>((h1 - h0) * (w1 - w0), 1);
  }
  h0 = y * win.stride[0] - win.padding[0];
  w0 = x * win.stride[1] - win.padding[1];
  return (std::min(h0 + win.kernel[0], from.h + win.padding[0]) - h0) * (std::min(w0 + win.kernel[1], from.w + win.padding[1]) - w0);
}

// Calls f(y, x, rows begin, end, columns begin, end, divisor) for each average window of a plane.
template <class F>
void average_windows(const Planes& from, const Planes& to, const Window& win, bool include_pad, std::optional<int64_t> override_, F f) {
  for (int64_t y = 0; y < to.h; y++)
    for (int64_t x = 0; x < to.w; x++) {
      int64_t h0, h1, w0, w1;
      clip(y, win.stride[0], win.padding[0], win.kernel[0], from.h, h0, h1);
      clip(x, win.stride[1], win.padding[1], win.kernel[1], from.w, w0, w1);
      f(y, x, h0, h1, w0, w1, divisor(y, x, from, win, include_pad, override_));
    }
}

inline void adaptive_bounds(int64_t o, int64_t out, int64_t in, int64_t& begin, int64_t& end) {
  begin = o * in / out;
  end = ((o + 1) * in + out - 1) / out;
}
template <class F>
void adaptive_windows(const Planes& from, const Planes& to, F f) {
  Scratch<int64_t> columns(2 * to.w);
  for (int64_t x = 0; x < to.w; x++) adaptive_bounds(x, to.w, from.w, columns[2 * x], columns[2 * x + 1]);
  for (int64_t y = 0; y < to.h; y++) {
    int64_t h0, h1;
    adaptive_bounds(y, to.h, from.h, h0, h1);
    for (int64_t x = 0; x < to.w; x++) {
      const int64_t w0 = columns[2 * x], w1 = columns[2 * x + 1];
      f(y, x, h0, h1, w0, w1, (h1 - h0) * (w1 - w0));
    }
  }
}

// Of tensors (batch, channels, h, w) whose channels lie next to each other: some neighbouring channels of an element of the batch are one piece of
// work.
constexpr int64_t kChannels = 256;

bool has_channels_last(const Tensor& t) {
  const int64_t format = t.dim() == 4 && !t.is_contiguous() ? builtins::suggested_format(t.sizes(), t.strides()) : 0;
  return format != 0 && builtins::Ints(t.strides().vec()) == builtins::format_strides(t.sizes(), format);
}
Tensor empty_channels_last(IntList sizes, int dtype, const Tensor& like) {
  return argand::empty_strided(sizes, builtins::format_strides(sizes, builtins::suggested_format(like.sizes(), like.strides())), dtype);
}

// f(element of the batch, first channel, channels)
template <class F>
void for_channels(const Tensor& t, F f) {
  const int64_t channels = t.size(1), blocks = (channels + kChannels - 1) / kChannels;
  parallel_for(0, t.size(0) * blocks, row_grain(t.size(2) * t.size(3) * std::min(channels, kChannels)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t first = i % blocks * kChannels;
      f(i / blocks, first, std::min(kChannels, channels - first));
    }
  });
}

template <class T, class W>
void average_channels(const Tensor& self, const Tensor& out, const Planes& from, const Planes& to, W windows) {
  const int64_t channels = self.size(1);
  for_channels(self, [&](int64_t b, int64_t first, int64_t count) {
    const T* const in = self.data<T>() + b * from.size() * channels + first;
    T* const means = out.data<T>() + b * to.size() * channels + first;
    windows(from, to, [&](int64_t y, int64_t x, int64_t h0, int64_t h1, int64_t w0, int64_t w1, int64_t n) {
      T* const mean = means + (y * to.w + x) * channels;
      if constexpr (std::is_integral_v<T>)
        for (int64_t k = 0; k < count; k++) {
          T sum = 0;
          for (int64_t r = h0; r < h1; r++)
            for (int64_t c = w0; c < w1; c++) sum += in[(r * from.w + c) * channels + k];
          mean[k] = sum / n;
        }
      else
        pick_pool_kernels().mean(T{})(in + (h0 * from.w + w0) * channels, h1 - h0, from.w * channels, w1 - w0, channels, count, n, mean);
    });
  });
}

// The places of a window: rows and columns with the steps between them, of those inside of the plane.
struct Places {
  int64_t row, rows, row_step, column, columns, column_step;
};

// places_of(y, x) gives the window of an output.
template <class P>
std::tuple<Tensor, Tensor> max_channels(const Tensor& self, IntList sizes, P places_of) {
  const Tensor out = empty_channels_last(sizes, self.dtype(), self), indices = empty_channels_last(sizes, ARGAND_INT64, self);
  const Planes from(self.sizes()), to(sizes);
  const int64_t channels = self.size(1);
  const PoolKernels& kernels = pick_pool_kernels();
  for_channels(self, [&](int64_t b, int64_t first, int64_t count) {
    const float* const in = self.data<float>() + b * from.size() * channels + first;
    int32_t where[kChannels];  // and the distance from the first channel
    for (int64_t y = 0; y < to.h; y++)
      for (int64_t x = 0; x < to.w; x++) {
        const int64_t place = ((b * to.h + y) * to.w + x) * channels + first;
        float* const best = out.data<float>() + place;
        const Places p = places_of(y, x);
        bool seen = false;
        for (int64_t i = 0; i < p.rows; i++)
          for (int64_t j = 0; j < p.columns; j++) {
            const int64_t at = (p.row + i * p.row_step) * from.w + p.column + j * p.column_step;
            (seen ? kernels.max_step : kernels.max_first)(in + at * channels, 1, count, static_cast<int32_t>(at), best, where);
            seen = true;
          }
        if (!seen) std::fill_n(best, count, nothing_seen<float>());
        for (int64_t k = 0; k < count; k++) indices.data<int64_t>()[place + k] = seen ? where[k] - k : -1;
      }
  });
  return {contiguous(out), contiguous(indices)};
}

// Whether maxima of these sizes are taken by max_channels.
bool has_max_channels(const Tensor& self, IntList sizes) {
  return self.dtype() == ARGAND_FLOAT32 && product(sizes) && has_channels_last(self) && self.size(2) * self.size(3) + kChannels <= INT32_MAX;
}

// out = means over the windows that `windows(from, to, f)` walks; of int64 too where `integers` says so, rounded towards zero.
template <class W>
Tensor average(const char* name, const Tensor& self, IntList out_sizes, bool integers, W windows) {
  const bool last = has_channels_last(self);
  const Tensor input = last ? self : contiguous(self);
  const Tensor out = last ? empty_channels_last(out_sizes, self.dtype(), self) : argand::empty(out_sizes, self.dtype());
  if (out.numel() == 0) return out;
  const Planes from(input.sizes()), to(out_sizes);
  const auto kernel = [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (last) return average_channels<T>(self, out, from, to, windows);
    const T* in = input.data<T>();
    T* o = out.data<T>();
    argand::parallel_for(0, to.n, row_grain(from.size()), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        windows(from, to, [&](int64_t y, int64_t x, int64_t h0, int64_t h1, int64_t w0, int64_t w1, int64_t n) {
          compute_t<T> sum = 0;
          for (int64_t r = h0; r < h1; r++)
            for (int64_t c = w0; c < w1; c++) sum += widen(in[p * from.size() + r * from.w + c]);
          o[p * to.size() + y * to.w + x] = narrow<T>(sum / static_cast<compute_t<T>>(n));
        });
    });
  };
  if (integers && self.dtype() == ARGAND_INT64)
    kernel(Tag<int64_t>{});
  else
    dispatch_floating(name, self.dtype(), kernel);
  return self.is_contiguous() ? out : ops::_in_format_of(out, self);
}

template <class W>
Tensor average_backward(const char* name, const Tensor& grad_output, IntList input_size, W windows) {
  const Tensor grad = contiguous(grad_output);
  const Tensor out = zeros(input_size, grad.dtype());
  if (out.numel() == 0 || grad.numel() == 0) return out;
  const Planes from(input_size), to(grad.sizes());
  dispatch_floating(name, grad.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* g = grad.data<T>();
    T* o = out.data<T>();
    argand::parallel_for(0, to.n, row_grain(from.size()), [&](int64_t begin, int64_t end) {
      Scratch<C> plane(from.size());
      for (int64_t p = begin; p < end; p++) {
        std::fill_n(plane.get(), from.size(), C(0));
        windows(from, to, [&](int64_t y, int64_t x, int64_t h0, int64_t h1, int64_t w0, int64_t w1, int64_t n) {
          const C share = widen(g[p * to.size() + y * to.w + x]) / static_cast<C>(n);
          for (int64_t r = h0; r < h1; r++)
            for (int64_t c = w0; c < w1; c++) plane[r * from.w + c] += share;
        });
        for (int64_t i = 0; i < from.size(); i++) o[p * from.size() + i] = narrow<T>(plane[i]);
      }
    });
  });
  return out;
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                                                   bool ceil_mode) {
  check_not_bool("max_pool2d", self.dtype());
  const Window win(kernel_size, stride, padding, dilation);
  const builtins::Ints sizes = builtins::pool2d_shape(self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  check_input("max_pool2d", self, 3);
  if (has_max_channels(self, sizes))
    return max_channels(self, sizes, [&](int64_t y, int64_t x) {
      const int64_t top = y * win.stride[0] - win.padding[0], left = x * win.stride[1] - win.padding[1];
      int64_t i0, i1, j0, j1;
      taps_inside(top, win.dilation[0], win.kernel[0], self.size(2), i0, i1);
      taps_inside(left, win.dilation[1], win.kernel[1], self.size(3), j0, j1);
      return Places{top + i0 * win.dilation[0], i1 - i0, win.dilation[0], left + j0 * win.dilation[1], j1 - j0, win.dilation[1]};
    });
  const Tensor input = contiguous(self);
  const Tensor out = argand::empty(sizes, self.dtype()), indices = argand::empty(sizes, ARGAND_INT64);
  if (out.numel() == 0) return {out, indices};
  const Planes from(input.sizes()), to(sizes);
  dispatch_ordered("max_pool2d", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = input.data<T>();
    T* o = out.data<T>();
    int64_t* at = indices.data<int64_t>();
    argand::parallel_for(0, to.n, row_grain(to.size() * std::min(win.kernel[0], from.h) * std::min(win.kernel[1], from.w)),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t p = begin; p < end; p++) {
                             if constexpr (std::is_same_v<T, float>)
                               if (from.size() <= INT32_MAX) {
                                 max_plane_rows(in + p * from.size(), o + p * to.size(), at + p * to.size(), from, to, win);
                                 continue;
                               }
                             max_plane(in + p * from.size(), o + p * to.size(), at + p * to.size(), from, to, win);
                           }
                         });
  });
  return {out, indices};
}

Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, IntList input_size, const Tensor& indices) {
  const Tensor grad = contiguous(grad_output), at = contiguous(indices);
  const Tensor out = zeros(input_size, grad.dtype());
  if (out.numel() == 0 || grad.numel() == 0) return out;
  const Planes from(input_size), to(grad.sizes());
  dispatch_real("max_pool2d_backward", grad.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* g = grad.data<T>();
    const int64_t* where = at.data<int64_t>();
    T* o = out.data<T>();
    argand::parallel_for(0, to.n, row_grain(to.size()), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        for (int64_t i = p * to.size(); i < (p + 1) * to.size(); i++) {
          if (static_cast<uint64_t>(where[i]) >= static_cast<uint64_t>(from.size())) continue;  // -1: the window saw padding alone
          T& place = o[p * from.size() + where[i]];
          place = narrow<T>(wrapped_sum(widen(place), widen(g[i])));
        }
    });
  });
  return out;
}

Tensor avg_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  if (divisor_override && *divisor_override == 0) builtins::raise(ARGAND_RUNTIME_ERROR, "divisor must be not zero");
  const Window win(kernel_size, stride, padding, {1, 1});
  check_input("avg_pool2d", self, 3);
  const builtins::Ints sizes = builtins::pool2d_shape(self.sizes(), kernel_size, stride, padding, {1, 1}, ceil_mode);
  return average("avg_pool2d", self, sizes, true,
                 [&](const Planes& from, const Planes& to, auto f) { average_windows(from, to, win, count_include_pad, divisor_override, f); });
}

Tensor avg_pool2d_backward(const Tensor& grad_output, IntList input_size, IntList kernel_size, IntList stride, IntList padding, bool,
                           bool count_include_pad, std::optional<int64_t> divisor_override) {
  const Window win(kernel_size, stride, padding, {1, 1});
  return average_backward("avg_pool2d_backward", grad_output, input_size, [&](const Planes& from, const Planes& to, auto f) {
    average_windows(from, to, win, count_include_pad, divisor_override, f);
  });
}

Tensor adaptive_avg_pool2d(const Tensor& self, IntList output_size) {
  const bool is_mean = output_size[0] == 1 && output_size[1] == 1;  // which nothing has, too
  check_input("adaptive_avg_pool2d", self, is_mean && self.dim() >= 2 ? 0 : 2);
  if (is_mean && is_floating(self.dtype())) {
    const Tensor out = ops::mean(self, builtins::Ints{-2, -1}, true);
    return self.is_contiguous() ? out : ops::_in_format_of(out, self);
  }
  builtins::Ints sizes(self.sizes().begin(), self.sizes().end() - 2);
  sizes.insert(sizes.end(), output_size.begin(), output_size.end());
  return average("adaptive_avg_pool2d", self, sizes, false, [](const Planes& from, const Planes& to, auto f) { adaptive_windows(from, to, f); });
}

// adaptive_max_pool2d of a plane.
template <class T>
void adaptive_max_plane(const T* in, T* out, int64_t* at, const Planes& from, const Planes& to) {
  adaptive_windows(from, to, [&](int64_t y, int64_t x, int64_t h0, int64_t h1, int64_t w0, int64_t w1, int64_t) {
    int64_t where = h0 * from.w + w0;
    auto best = widen(in[where]);
    for (int64_t r = h0; r < h1; r++)
      for (int64_t i = r * from.w + w0; i < r * from.w + w1; i++) {
        const auto v = widen(in[i]);
        if (v > best || v != v) best = v, where = i;  // the last NaN wins, else the first maximum
      }
    out[y * to.w + x] = in[where];
    at[y * to.w + x] = where;
  });
}

// The same in float32, first down the columns of a row of windows, then along them; indices must fit into 32 bits.
void adaptive_max_plane_rows(const float* in, float* out, int64_t* at, const Planes& from, const Planes& to) {
  const PoolKernels& kernels = pick_pool_kernels();
  Scratch<float> column(from.w);
  Scratch<int32_t> places(from.w);
  adaptive_windows(from, to, [&](int64_t y, int64_t x, int64_t h0, int64_t h1, int64_t w0, int64_t w1, int64_t) {
    if (x == 0)
      for (int64_t r = h0; r < h1; r++)
        (r == h0 ? kernels.max_first : kernels.max_step)(in + r * from.w, 1, from.w, static_cast<int32_t>(r * from.w), column, places);
    float best = column[w0];
    int32_t where = places[w0];
    for (int64_t i = w0 + 1; i < w1; i++) {
      const float v = column[i];
      const int32_t here = places[i];
      const bool nan = v != v, before = best != best;
      const bool take = nan ? !before | (here > where) : (v > best) | ((v == best) & (here < where));
      best = take ? v : best;
      where = take ? here : where;
    }
    out[y * to.w + x] = best;
    at[y * to.w + x] = where;
  });
}

std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, IntList output_size) {
  builtins::Ints sizes(self.sizes().begin(), self.sizes().end() - 2);
  sizes.insert(sizes.end(), output_size.begin(), output_size.end());
  if (has_max_channels(self, sizes))
    return max_channels(self, sizes, [&](int64_t y, int64_t x) {
      int64_t h0, h1, w0, w1;
      adaptive_bounds(y, output_size[0], self.size(2), h0, h1);
      adaptive_bounds(x, output_size[1], self.size(3), w0, w1);
      return Places{h0, h1 - h0, 1, w0, w1 - w0, 1};
    });
  const Tensor input = contiguous(self);
  const Tensor out = argand::empty(sizes, self.dtype()), indices = argand::empty(sizes, ARGAND_INT64);
  const Planes from(input.sizes()), to(sizes);
  dispatch_ordered("adaptive_max_pool2d", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    argand::parallel_for(0, to.n, row_grain(from.size()), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        const T* in = input.data<T>() + p * from.size();
        T* o = out.data<T>() + p * to.size();
        int64_t* at = indices.data<int64_t>() + p * to.size();
        if constexpr (std::is_same_v<T, float>) {
          if (from.size() <= INT32_MAX) {
            adaptive_max_plane_rows(in, o, at, from, to);
            continue;
          }
        }
        adaptive_max_plane(in, o, at, from, to);
      }
    });
  });
  return {out, indices};
}

Tensor adaptive_avg_pool2d_backward(const Tensor& grad_output, IntList input_size) {
  return average_backward("adaptive_avg_pool2d_backward", grad_output, input_size,
                          [](const Planes& from, const Planes& to, auto f) { adaptive_windows(from, to, f); });
}

}  // namespace argand::kernels::cpu
