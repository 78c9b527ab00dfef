// Resampling along one dimension by a band: result o is the sum over t of weights[o][t] * self[starts[o] + t]. Its gradient is resampling by
// the transposed band.
#include "packages/aten/csrc/kernels/cpu/resample.h"

#include <algorithm>
#include <vector>

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cpu {
namespace {

template <class E>
struct Band {
  int64_t in, out, taps;
  std::vector<int32_t> starts;
  std::vector<E> by_place, by_tap;  // [place][tap] and [tap][place]

  Band(int64_t in_, int64_t out_, int64_t taps_)
      : in(in_), out(out_), taps(taps_), starts(static_cast<size_t>(out_)), by_place(static_cast<size_t>(out_ * taps_)), by_tap(by_place.size()) {}
  E& weight(int64_t place, int64_t tap) { return by_place[static_cast<size_t>(place * taps + tap)]; }
  void transpose_weights() {
    for (int64_t o = 0; o < out; o++)
      for (int64_t t = 0; t < taps; t++) by_tap[static_cast<size_t>(t * out + o)] = weight(o, t);
  }
};

template <class E>
Band<E> band_of(const char* op, const Tensor& starts, const Tensor& weights, int64_t in) {
  if (in > std::numeric_limits<int32_t>::max())
    fail(ARGAND_RUNTIME_ERROR, "%s: got a dimension of %ld elements, expected fewer than 2^31", op, static_cast<long>(in));
  if (weights.dim() != 2 || starts.dim() != 1 || starts.size(0) != weights.size(0))
    fail(ARGAND_SHAPE_ERROR, "%s: got starts %s and weights %s, expected (out) and (out, taps)", op, to_string(starts.sizes()).c_str(),
         to_string(weights.sizes()).c_str());
  Band<E> band(in, weights.size(0), weights.size(1));
  const Tensor at = to_dtype(starts, ARGAND_INT64), w = to_dtype(weights, sizeof(E) == 8 ? ARGAND_FLOAT64 : ARGAND_FLOAT32);
  std::copy_n(w.data<E>(), w.numel(), band.by_place.begin());
  for (int64_t o = 0; o < band.out; o++) {
    const int64_t start = at.data<int64_t>()[o];
    if (start < 0 || start > in - band.taps || (o > 0 && start < at.data<int64_t>()[o - 1]))
      fail(ARGAND_INDEX_ERROR, "%s: got start %ld at place %ld, expected starts that do not decrease, from 0 to %ld", op, static_cast<long>(start),
           static_cast<long>(o), static_cast<long>(in - band.taps));
    band.starts[static_cast<size_t>(o)] = static_cast<int32_t>(start);
  }
  return band;
}

// What every element gives to the results, as a band over the results.
template <class E>
Band<E> transposed(Band<E>& band) {
  std::vector<int64_t> first(static_cast<size_t>(band.in)), count(static_cast<size_t>(band.in));
  int64_t taps = 1;
  for (int64_t i = 0, begin = 0, end = 0; i < band.in; i++) {
    while (begin < band.out && band.starts[static_cast<size_t>(begin)] + band.taps <= i) begin++;
    while (end < band.out && band.starts[static_cast<size_t>(end)] <= i) end++;
    first[static_cast<size_t>(i)] = begin;
    taps = std::max(taps, end - begin);
  }
  Band<E> back(band.out, band.in, taps);
  for (int64_t i = 0; i < band.in; i++) {
    const int64_t start = std::min(first[static_cast<size_t>(i)], band.out - taps);
    back.starts[static_cast<size_t>(i)] = static_cast<int32_t>(start);
    for (int64_t t = 0; t < taps; t++) {
      const int64_t tap = i - band.starts[static_cast<size_t>(start + t)];
      back.weight(i, t) = tap >= 0 && tap < band.taps ? band.weight(start + t, tap) : E(0);
    }
  }
  return back;
}

template <class E>
Tensor apply(Band<E>& band, const Tensor& self, int64_t dim) {
  const int dtype = sizeof(E) == 8 ? ARGAND_FLOAT64 : ARGAND_FLOAT32;
  const Tensor x = to_dtype(self, dtype);
  const DimSplit s(x, dim);
  Dims sizes(x.sizes());
  sizes[dim] = band.out;
  const Tensor out = empty(sizes, dtype);
  const ResampleLoops<E>& loops = resample_loops<E>();
  const E* in = x.data<E>();
  E* to = out.data<E>();
  if (s.inner == 1) {
    band.transpose_weights();
    parallel_for(0, s.outer, row_grain(band.out * band.taps), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++)
        loops.places(band.out, band.taps, in + r * band.in, band.starts.data(), band.by_tap.data(), to + r * band.out);
    });
  } else {
    parallel_for(0, s.outer * band.out, row_grain(s.inner * band.taps), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const int64_t o = r % band.out;
        loops.rows(s.inner, band.taps, in + (r / band.out * band.in + band.starts[static_cast<size_t>(o)]) * s.inner, s.inner,
                   band.by_place.data() + o * band.taps, to + r * s.inner);
      }
    });
  }
  return to_dtype(out, self.dtype());
}

template <class F>
Tensor with_accumulator(const char* op, int dtype, F&& f) {
  if (!is_floating(dtype))
    fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a floating dtype; convert with .to(torch.float32)", op, kDTypeName[dtype]);
  return dtype == ARGAND_FLOAT64 ? f(double{}) : f(float{});
}

}  // namespace

Tensor resample(const Tensor& self, const Tensor& starts, const Tensor& weights, int64_t dim) {
  return with_accumulator("_resample", self.dtype(), [&](auto zero) {
    const int64_t d = wrap_dim("_resample", dim, self.dim());
    auto band = band_of<decltype(zero)>("_resample", starts, weights, self.size(d));
    return apply(band, self, d);
  });
}

Tensor resample_backward(const Tensor& grad_output, const Tensor& starts, const Tensor& weights, int64_t dim, int64_t size) {
  return with_accumulator("_resample_backward", grad_output.dtype(), [&](auto zero) {
    const int64_t d = wrap_dim("_resample_backward", dim, grad_output.dim());
    auto band = band_of<decltype(zero)>("_resample_backward", starts, weights, size);
    if (grad_output.size(d) != band.out)
      fail(ARGAND_SHAPE_ERROR, "_resample_backward: got grad_output of shape %s for %ld places, expected as many elements along dimension %ld",
           to_string(grad_output.sizes()).c_str(), static_cast<long>(band.out), static_cast<long>(d));
    if (band.out == 0) {
      Dims sizes(grad_output.sizes());
      sizes[d] = size;
      return zeros(sizes, grad_output.dtype());
    }
    auto back = transposed(band);
    return apply(back, grad_output, d);
  });
}

}  // namespace argand::kernels::cpu
