#include "packages/aten/csrc/kernels/cpu/resample.h"

namespace argand::kernels::cpu::ARGAND_TIER_NS {
namespace {

// Sums go tap by tap without contraction, so that the compiler's own vectors give the scalar loop's bits.
template <int kTaps, class E>
__attribute__((optimize("O3"))) void rows_of(int64_t n, const E* __restrict in, int64_t stride, const E* __restrict w, E* __restrict out) {
  for (int64_t i = 0; i < n; i++) {
    E sum = w[0] * in[i];
#pragma GCC unroll 4
    for (int t = 1; t < kTaps; t++) sum += w[t] * in[t * stride + i];
    out[i] = sum;
  }
}

template <class E>
__attribute__((optimize("O3"))) void add_row(int64_t n, const E* __restrict in, E w, E* __restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] += w * in[i];
}

template <class E>
void rows(int64_t n, int64_t taps, const E* in, int64_t stride, const E* w, E* out) {
  switch (taps) {
    case 1:
      return rows_of<1>(n, in, stride, w, out);
    case 2:
      return rows_of<2>(n, in, stride, w, out);
    case 3:
      return rows_of<3>(n, in, stride, w, out);
    default:
      rows_of<4>(n, in, stride, w, out);
      for (int64_t t = 4; t < taps; t++) add_row(n, in + t * stride, w[t], out);
  }
}

template <int kTaps, class E>
__attribute__((optimize("O3"))) void places_of(int64_t n, const E* __restrict in, const int32_t* __restrict starts, const E* __restrict w,
                                               E* __restrict out) {
  for (int64_t o = 0; o < n; o++) {
    const int32_t at = starts[o];
    E sum = w[o] * in[at];
#pragma GCC unroll 4
    for (int t = 1; t < kTaps; t++) sum += w[t * n + o] * in[at + t];
    out[o] = sum;
  }
}

template <class E>
__attribute__((optimize("O3"))) void add_places(int64_t n, const E* __restrict in, const int32_t* __restrict starts, const E* __restrict w,
                                                E* __restrict out) {
  for (int64_t o = 0; o < n; o++) out[o] += w[o] * in[starts[o]];
}

template <class E>
void places(int64_t n, int64_t taps, const E* in, const int32_t* starts, const E* w, E* out) {
  switch (taps) {
    case 1:
      return places_of<1>(n, in, starts, w, out);
    case 2:
      return places_of<2>(n, in, starts, w, out);
    case 3:
      return places_of<3>(n, in, starts, w, out);
    default:
      places_of<4>(n, in, starts, w, out);
      for (int64_t t = 4; t < taps; t++) add_places(n, in + t, starts, w + t * n, out);
  }
}

}  // namespace

const ResampleKernels resample_kernels = {{rows<float>, places<float>}, {rows<double>, places<double>}};

}  // namespace argand::kernels::cpu::ARGAND_TIER_NS
