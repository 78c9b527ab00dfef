#include "packages/aten/csrc/kernels/cpu/conv_depthwise.h"

#include <algorithm>
#include <vector>

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kBandBytes = 512 << 10;
constexpr int64_t kRunPixels = 64;  // narrow rows are transposed several at once

// Pixels of a row that are read, padding included.
int64_t read_width(const Geometry& g) { return (g.ow - 1) * g.sw + (g.kw - 1) * g.dw + 1; }

template <class T>
class Depthwise {
  using E = compute_t<T>;

 public:
  Depthwise(const Geometry& geo, const Tensor& input_, const Tensor& weight, const Tensor& bias_, const Results& results_, bool last_, int64_t band_)
      : g(geo), results(results_), input(input_), last(last_), band(band_), packed(tiles() * g.taps() * lanes), bias(tiles() * lanes) {
    const int64_t side = input.dim();  // one spatial dimension: rows of height 1
    row_stride = side >= 4 ? input.stride(side - 2) : 0, pixel_stride = input.stride(side - 1);
    const Tensor b = bias_ ? contiguous(bias_) : bias_;
    for (int64_t t = 0; t < tiles(); t++) {
      const int64_t c = t * lanes, n = std::min(lanes, g.groups - c);
      loops.load(weight.data<T>() + c * g.taps(), g.taps(), 1, n, g.taps(), packed + t * g.taps() * lanes);
      if (b)
        loops.load(b.data<T>() + c, 1, lanes, n, 1, bias + c);
      else
        std::fill_n(bias + c, lanes, E(0));
    }
  }

  void run() const {
    const int64_t units = g.batch * tiles(), work = g.taps() * g.pixels() * lanes;
    // Few images of few channels: their bands are work of their own. An epilogue gets whole planes.
    const int64_t few = (2 * api->num_threads() + units - 1) / units,
                  wanted = results.epilogue ? 1
                           : last           ? std::max(few, cached())
                                            : few,
                  rows = std::min(band, (g.oh + wanted - 1) / wanted), bands = (g.oh + rows - 1) / rows, pieces = results.epilogue ? 1 : bands,
                  per = bands / pieces;
    parallel_for(0, units * pieces, row_grain(work / pieces, 200000), [&](int64_t begin, int64_t end) {
      Scratch<E> source(((rows - 1) * g.sh + (g.kh - 1) * g.dh + 1) * width * lanes), sums(rows * g.ow * lanes), row((kRunPixels + g.w) * lanes);
      std::fill_n(source.get(), ((rows - 1) * g.sh + (g.kh - 1) * g.dh + 1) * width * lanes, E(0));  // the columns of padding stay
      for (int64_t i = begin; i < end; i++) {
        // Channels that are last are read tile after tile, while the band's pixels are in the caches.
        const int64_t image = i / (tiles() * pieces), piece = last ? i / tiles() % pieces : i % pieces,
                      c = (last ? i % tiles() : i / pieces % tiles()) * lanes, n = std::min(lanes, g.groups - c);
        Tensor own;
        char* const out = results.place(image * g.groups + (last ? 0 : c), n, &own);
        for (int64_t k = piece * per; k < (piece + 1) * per; k++) {
          const int64_t y = k * rows, stop = std::min(y + rows, g.oh);
          compute(image, c, n, y, stop, source, row, sums);
          T* const to = reinterpret_cast<T*>(out) + (last ? y * g.ow * g.groups + c : y * g.ow);
          loops.store(sums, last ? 1 : g.oh * g.ow, last ? g.groups : 1, n, (stop - y) * g.ow, to);
        }
        if (!last) results.finish(image * g.groups + c, n, out, true);
      }
    });
  }

 private:
  // Bands of pixels of all channels that are last, read and written, that stay in the second-level cache.
  int64_t cached() const { return (g.h * g.w + g.oh * g.ow) * g.groups * static_cast<int64_t>(sizeof(T)) / kBandBytes + 1; }
  int64_t tiles() const { return (g.groups + lanes - 1) / lanes; }

  // Rows [begin, end) of the result of channels [c, c + n).
  void compute(int64_t image, int64_t c, int64_t n, int64_t begin, int64_t end, E* source, E* row, E* sums) const {
    const int64_t top = begin * g.sh - g.ph;  // the input's row that lies first in `source`
    fill(input.data<T>() + image * input.stride(0) + c * input.stride(1), n, top, (end - 1) * g.sh - g.ph + (g.kh - 1) * g.dh + 1, source, row);
    const E *w = packed + c * g.taps(), *b = bias + c;
    for (int64_t y = begin; y < end; y++) {
      const int64_t first = y * g.sh - g.ph;  // taps that read padding alone are left out
      const int64_t i = first < 0 ? std::min(g.kh, (-first + g.dh - 1) / g.dh) : 0,
                    count = std::max(std::min(g.kh, count_inside(g.h, first, g.dh)) - i, int64_t{0});
      loops.row(count, g.kw, w + i * g.kw * lanes, source + (first - top + i * g.dh) * width * lanes, g.dh * width, g.dw, g.sw, g.ow, b,
                sums + (y - begin) * g.ow * lanes);
    }
  }
  // The input's rows [top, bottom) that are there.
  void fill(const T* from, int64_t n, int64_t top, int64_t bottom, E* source, E* row) const {
    const int64_t left = std::min(g.pw, width), length = std::min(g.w, width - left), stop = std::min(bottom, g.h);
    const bool direct = input.stride(1) == 1 || g.w >= kRunPixels / 2;
    const int64_t step = direct ? 1 : kRunPixels / g.w;
    for (int64_t y = std::max<int64_t>(top, 0); y < stop; y += step) {
      E* const to = source + ((y - top) * width + left) * lanes;
      if (direct) {
        loops.load(from + y * row_stride, input.stride(1), pixel_stride, n, length, to);
        continue;
      }
      const int64_t rows = std::min(step, stop - y);
      loops.load(from + y * row_stride, input.stride(1), 1, n, rows * g.w, row);
      for (int64_t r = 0; r < rows; r++) std::copy_n(row + r * g.w * lanes, length * lanes, to + r * width * lanes);
    }
  }

  const Geometry& g;
  const Results& results;
  const Tensor& input;
  bool last;
  int64_t band, width = read_width(g), row_stride = 0, pixel_stride = 0;
  const DepthwiseLoops<T, E>& loops = depthwise_loops<T>();
  int64_t lanes = loops.lanes;
  Scratch<E> packed, bias;  // [tile][tap][lanes], [tile][lanes]
};

}  // namespace

int64_t depthwise_band(const Geometry& g, int64_t lanes, int64_t itemsize) {
  if (g.in != 1 || g.out != 1 || 2 * g.groups < lanes || g.d != 1 || g.od != 1 || g.kd != 1 || g.pd != 0 || g.w == 0 || g.h == 0) return 0;
  const int64_t reach = (g.kh - 1) * g.dh + 1, width = read_width(g);
  const int64_t rows = std::min(g.oh, (kBandBytes / (lanes * itemsize) - (reach - g.sh) * width) / (g.sh * width + g.ow));
  return rows == g.oh || rows * g.sh >= reach ? std::max<int64_t>(rows, 0) : 0;
}

template <class T>
void depthwise_forward(const Geometry& g, const Tensor& input, const Tensor& weight, const Tensor& bias, const Results& results, bool last,
                       int64_t band) {
  Depthwise<T>(g, input, weight, bias, results, last, band).run();
}
template void depthwise_forward<float>(const Geometry&, const Tensor&, const Tensor&, const Tensor&, const Results&, bool, int64_t);
template void depthwise_forward<double>(const Geometry&, const Tensor&, const Tensor&, const Tensor&, const Results&, bool, int64_t);
template void depthwise_forward<bf16>(const Geometry&, const Tensor&, const Tensor&, const Tensor&, const Results&, bool, int64_t);
template void depthwise_forward<f16>(const Geometry&, const Tensor&, const Tensor&, const Tensor&, const Results&, bool, int64_t);

}  // namespace argand::kernels::cpu
