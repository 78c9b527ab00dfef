// Weighted sums of elements that are named one by one, the same for every channel: self (batch, channels, size), index and weights (batch,
// places, taps), where a negative index is no element. Its gradients are as linear as it is, so the three serve derivatives of every order.
#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

struct Shape {
  int64_t batch, channels, size, places, taps;
};

Shape shape_of(const char* op, const Tensor& index, int64_t batch, int64_t channels, int64_t size) {
  if (index.dim() != 3 || index.dtype() != ARGAND_INT64 || index.size(0) != batch)
    fail(ARGAND_SHAPE_ERROR, "%s: got index %s of %s, expected int64 (%ld, places, taps)", op, to_string(index.sizes()).c_str(),
         kDTypeName[index.dtype()], static_cast<long>(batch));
  const int64_t* p = index.data<int64_t>();
  for (int64_t i = 0; i < index.numel(); i++)
    if (p[i] >= size) fail(ARGAND_INDEX_ERROR, "%s: got index %ld, expected less than %ld", op, static_cast<long>(p[i]), static_cast<long>(size));
  return {batch, channels, size, index.size(1), index.size(2)};
}

void check_weights(const char* op, const Tensor& weights, const Tensor& index) {
  if (!(weights.sizes() == index.sizes()))
    fail(ARGAND_SHAPE_ERROR, "%s: got weights %s, expected %s", op, to_string(weights.sizes()).c_str(), to_string(index.sizes()).c_str());
}

// `t` (batch, channels, ...): what gives the two of them, with `last` elements a channel unless that is negative.
void check_channels(const char* op, const char* argument, const Tensor& t, int64_t last = -1) {
  if (t.dim() != 3 || (last >= 0 && t.size(2) != last))
    fail(ARGAND_SHAPE_ERROR, "%s: got %s of shape %s, expected (batch, channels, %s)", op, argument, to_string(t.sizes()).c_str(),
         last < 0 ? "size" : std::to_string(last).c_str());
}

// f(zero of the type of sums, its dtype).
template <class F>
Tensor with_sums(const char* op, int dtype, F&& f) {
  if (!is_floating(dtype))
    fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a floating dtype; convert with .to(torch.float32)", op, kDTypeName[dtype]);
  return to_dtype(dtype == ARGAND_FLOAT64 ? f(double{}, ARGAND_FLOAT64) : f(float{}, ARGAND_FLOAT32), dtype);
}

}  // namespace

Tensor weighted_gather(const Tensor& self, const Tensor& index, const Tensor& weights) {
  return with_sums("_weighted_gather", self.dtype(), [&](auto zero, int dtype) {
    using E = decltype(zero);
    const Tensor x = to_dtype(self, dtype), at = contiguous(index), w = to_dtype(weights, dtype);
    check_channels("_weighted_gather", "self", x);
    const Shape s = shape_of("_weighted_gather", at, x.size(0), x.size(1), x.size(2));
    check_weights("_weighted_gather", w, at);
    if (s.size == 0) return zeros({s.batch, s.channels, s.places}, dtype);
    const Tensor out = empty({s.batch, s.channels, s.places}, dtype);
    parallel_for(0, s.batch * s.channels, row_grain(s.places * s.taps), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        const int64_t first = row / s.channels * s.places * s.taps;
        const int64_t* i = at.data<int64_t>() + first;
        const E *v = w.data<E>() + first, *from = x.data<E>() + row * s.size;
        E* to = out.data<E>() + row * s.places;
        const auto sums = [&](const auto taps) {  // a constant number of them is unrolled
          for (int64_t p = 0; p < s.places; p++) {
            E sum = 0;
            for (int64_t t = 0; t < taps; t++, i++, v++) {
              const E next = sum + *v * from[std::max<int64_t>(*i, 0)];
              sum = *i >= 0 ? next : sum;
            }
            to[p] = sum;
          }
        };
        if (s.taps == 4)
          sums(std::integral_constant<int64_t, 4>{});
        else if (s.taps == 8)
          sums(std::integral_constant<int64_t, 8>{});
        else
          sums(s.taps);
      }
    });
    return out;
  });
}

Tensor weighted_scatter(const Tensor& grad, const Tensor& index, const Tensor& weights, int64_t size) {
  return with_sums("_weighted_scatter", grad.dtype(), [&](auto zero, int dtype) {
    using E = decltype(zero);
    const Tensor g = to_dtype(grad, dtype), at = contiguous(index), w = to_dtype(weights, dtype);
    check_channels("_weighted_scatter", "grad", g);
    const Shape s = shape_of("_weighted_scatter", at, g.size(0), g.size(1), size);
    check_channels("_weighted_scatter", "grad", g, s.places);
    check_weights("_weighted_scatter", w, at);
    const Tensor out = zeros({s.batch, s.channels, size}, dtype);
    parallel_for(0, s.batch * s.channels, row_grain(s.places * s.taps), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        const int64_t first = row / s.channels * s.places * s.taps;
        const int64_t* i = at.data<int64_t>() + first;
        const E *v = w.data<E>() + first, *from = g.data<E>() + row * s.places;
        E* to = out.data<E>() + row * size;
        for (int64_t p = 0; p < s.places; p++)
          for (int64_t t = 0; t < s.taps; t++, i++, v++)
            if (*i >= 0) to[*i] += *v * from[p];
      }
    });
    return out;
  });
}

Tensor weighted_gather_weights(const Tensor& grad, const Tensor& self, const Tensor& index) {
  return with_sums("_weighted_gather_weights", self.dtype(), [&](auto zero, int dtype) {
    using E = decltype(zero);
    const Tensor x = to_dtype(self, dtype), g = to_dtype(grad, dtype), at = contiguous(index);
    check_channels("_weighted_gather_weights", "self", x);
    const Shape s = shape_of("_weighted_gather_weights", at, x.size(0), x.size(1), x.size(2));
    check_channels("_weighted_gather_weights", "grad", g, s.places);
    if (g.size(0) != s.batch || g.size(1) != s.channels)
      fail(ARGAND_SHAPE_ERROR, "_weighted_gather_weights: got grad of shape %s and self of shape %s, expected the same batch and channels",
           to_string(g.sizes()).c_str(), to_string(x.sizes()).c_str());
    const Tensor out = zeros(at.sizes(), dtype);
    constexpr int64_t kChunk = 256;  // places whose sums stay in the cache
    const int64_t chunks = (s.places + kChunk - 1) / kChunk;
    parallel_for(0, s.batch * chunks, row_grain(kChunk * s.taps * s.channels), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; k++) {
        const int64_t image = k / chunks, first = k % chunks * kChunk, last = std::min(first + kChunk, s.places);
        for (int64_t c = 0; c < s.channels; c++) {
          const int64_t row = image * s.channels + c, offset = (image * s.places + first) * s.taps;
          const E *from = x.data<E>() + row * s.size, *scale = g.data<E>() + row * s.places;
          const int64_t* i = at.data<int64_t>() + offset;
          E* to = out.data<E>() + offset;
          for (int64_t p = first; p < last; p++)
            for (int64_t t = 0; t < s.taps; t++, i++, to++)
              if (*i >= 0) *to += scale[p] * from[*i];
        }
      }
    });
    return out;
  });
}

}  // namespace argand::kernels::cpu
