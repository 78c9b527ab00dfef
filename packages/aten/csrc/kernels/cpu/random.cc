// Random numbers on Philox (docs/notes/random.md): the element at row-major position i draws from counter first + i / 4, word i % 4
// (64-bit numbers: first + i / 2, words 2 * (i % 2) and the next), whatever the number of threads.
#include <cmath>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/c10/csrc/random/philox.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kGrain = 8192;  // elements; a multiple of 4

struct Stream {
  uint64_t seed, first;
  Stream(ArgandGenerator* g, int64_t n, int64_t per_counter) {
    if (!g) g = api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0));
    seed = g->seed;
    first = api->generator_reserve(g, static_cast<uint64_t>((n + per_counter - 1) / per_counter));
  }
};

// f(block, i, n): fills elements i to i + n (n <= 4) from one block.
template <class F>
void each_block(const Stream& s, int64_t n, int64_t per_counter, F f) {
  argand::parallel_for(0, (n + per_counter - 1) / per_counter, kGrain / per_counter, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) f(philox(s.seed, s.first + static_cast<uint64_t>(b)), b * per_counter, std::min(per_counter, n - b * per_counter));
  });
}

// Writes a dense result into self.
void write_back(const Tensor& self, const Tensor& dense) {
  if (dense.get() != self.get()) copy_(self, dense, false);
}
Tensor dense_target(const Tensor& self) { return self.is_contiguous() ? self : argand::empty(self.sizes(), self.dtype()); }

// self[i] = draw32(word) for floats of at most 32 bits, draw64(high, low) for float64.
template <class F32, class F64>
void fill(const char* name, const Tensor& self, ArgandGenerator* g, F32 draw32, F64 draw64) {
  const Tensor out = dense_target(self);
  const int64_t n = self.numel();
  dispatch_floating(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* o = out.data<T>();
    if constexpr (std::is_same_v<T, double>) {
      each_block(Stream(g, n, 2), n, 2, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
        for (int64_t k = 0; k < count; k++) o[i + k] = draw64(b.word[2 * k], b.word[2 * k + 1]);
      });
    } else {
      each_block(Stream(g, n, 4), n, 4, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
        for (int64_t k = 0; k < count; k++) o[i + k] = narrow<T>(draw32(b.word[k]));
      });
    }
  });
  write_back(self, out);
}

constexpr double kTwoPi = 6.283185307179586;

// Two normal numbers from two uniform ones in (0, 1] and [0, 1): G. Box, M. Muller, 1958.
template <class C>
void box_muller(C u, C v, C* out) {
  const C r = std::sqrt(C(-2) * std::log(u)), a = static_cast<C>(kTwoPi) * v;
  out[0] = r * std::cos(a);
  out[1] = r * std::sin(a);
}
inline float open_uniform(uint32_t w) { return (static_cast<float>(w >> 8) + 1.0f) * 0x1p-24f; }  // (0, 1]
inline double open_uniform64(uint32_t h, uint32_t l) { return (static_cast<double>((static_cast<uint64_t>(h) << 32 | l) >> 11) + 1.0) * 0x1p-53; }

uint64_t wide(const PhiloxBlock& b, int64_t k) { return static_cast<uint64_t>(b.word[2 * k]) << 32 | b.word[2 * k + 1]; }

void check_probability(const char* name, double p) {
  if (!(p >= 0 && p <= 1)) fail(ARGAND_RUNTIME_ERROR, "%s: got p=%g, expected 0 <= p <= 1", name, p);
}

}  // namespace

void uniform_(const Tensor& self, double from, double to, ArgandGenerator* g) {
  if (!(from <= to)) fail(ARGAND_RUNTIME_ERROR, "uniform_: expects to return a [from, to) range, but found from=%g > to=%g", from, to);
  const float base = static_cast<float>(from), span = static_cast<float>(to - from);
  fill("uniform_", self, g, [=](uint32_t w) { return base + span * philox_uniform(w); }, [=](uint32_t h, uint32_t l) { return from + (to - from) * philox_uniform64(h, l); });
}

void exponential_(const Tensor& self, double lambd, ArgandGenerator* g) {
  if (!(lambd > 0)) fail(ARGAND_RUNTIME_ERROR, "exponential_: expects lambda > 0.0, but found lambda=%g", lambd);
  const float scale = static_cast<float>(-1.0 / lambd);
  fill("exponential_", self, g, [=](uint32_t w) { return scale * std::log(open_uniform(w)); }, [=](uint32_t h, uint32_t l) { return -std::log(open_uniform64(h, l)) / lambd; });
}

void normal_(const Tensor& self, double mean, double std, ArgandGenerator* g) {
  if (!(std >= 0)) fail(ARGAND_RUNTIME_ERROR, "normal_: expects std >= 0.0, but found std %g", std);
  const Tensor out = dense_target(self);
  const int64_t n = self.numel();
  dispatch_floating("normal_", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    T* o = out.data<T>();
    const C m = static_cast<C>(mean), s = static_cast<C>(std);
    if constexpr (std::is_same_v<T, double>) {
      each_block(Stream(g, n, 2), n, 2, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
        double z[2];
        box_muller(open_uniform64(b.word[0], b.word[1]), philox_uniform64(b.word[2], b.word[3]), z);
        for (int64_t k = 0; k < count; k++) o[i + k] = m + s * z[k];
      });
    } else {
      each_block(Stream(g, n, 4), n, 4, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
        float z[4];
        box_muller(open_uniform(b.word[0]), philox_uniform(b.word[1]), z);
        box_muller(open_uniform(b.word[2]), philox_uniform(b.word[3]), z + 2);
        for (int64_t k = 0; k < count; k++) o[i + k] = narrow<T>(m + s * z[k]);
      });
    }
  });
  write_back(self, out);
}

void bernoulli_(const Tensor& self, double p, ArgandGenerator* g) {
  check_probability("bernoulli_", p);
  const Tensor out = dense_target(self);
  const int64_t n = self.numel();
  dispatch_real("bernoulli_", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* o = out.data<T>();
    each_block(Stream(g, n, 4), n, 4, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
      for (int64_t k = 0; k < count; k++) o[i + k] = narrow<T>(static_cast<compute_t<T>>(philox_uniform(b.word[k]) < static_cast<float>(p) ? 1 : 0));
    });
  });
  write_back(self, out);
}

Tensor bernoulli(const Tensor& self, ArgandGenerator* g) {
  const Tensor p = contiguous(self);
  const Tensor out = argand::empty(self.sizes(), self.dtype());
  dispatch_floating("bernoulli", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = p.data<T>();
    T* o = out.data<T>();
    for (int64_t i = 0; i < p.numel(); i++) check_probability("bernoulli", static_cast<double>(widen(in[i])));
    each_block(Stream(g, p.numel(), 4), p.numel(), 4, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
      for (int64_t k = 0; k < count; k++) o[i + k] = narrow<T>(static_cast<compute_t<T>>(philox_uniform(b.word[k]) < static_cast<float>(widen(in[i + k])) ? 1 : 0));
    });
  });
  return out;
}

void random_(const Tensor& self, int64_t from, int64_t to, ArgandGenerator* g) {
  if (from >= to) fail(ARGAND_RUNTIME_ERROR, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", static_cast<long long>(from), static_cast<long long>(to));
  const Tensor out = argand::empty(self.sizes(), ARGAND_INT64);
  const uint64_t span = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  int64_t* o = out.data<int64_t>();
  const int64_t n = self.numel();
  each_block(Stream(g, n, 2), n, 2, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
    // The high half of a 128-bit product is even to 2^-64 * span.
    for (int64_t k = 0; k < count; k++) o[i + k] = from + static_cast<int64_t>(static_cast<unsigned __int128>(wide(b, k)) * span >> 64);
  });
  copy_(self, out, false);
}

Tensor randperm(int64_t n, ArgandGenerator* g, int dtype, std::optional<ArgandDevice>, bool) {
  if (n < 0) fail(ARGAND_RUNTIME_ERROR, "randperm: n must be non-negative, got %lld", static_cast<long long>(n));
  const Tensor order = argand::empty({n}, ARGAND_INT64);
  int64_t* o = order.data<int64_t>();
  for (int64_t i = 0; i < n; i++) o[i] = i;
  const Stream s(g, n, 2);
  for (int64_t i = n - 1; i > 0; i--) {  // Fisher and Yates
    const uint64_t draw = wide(philox(s.seed, s.first + static_cast<uint64_t>(i / 2)), i % 2);
    std::swap(o[i], o[static_cast<int64_t>(static_cast<unsigned __int128>(draw) * static_cast<uint64_t>(i + 1) >> 64)]);
  }
  return dtype == ARGAND_DTYPE_NONE ? order : to_dtype(order, dtype);
}

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, ArgandGenerator* g) {
  if (self.dim() != 1 && self.dim() != 2) fail(ARGAND_RUNTIME_ERROR, "multinomial: prob_dist must be 1 or 2 dim, got %lld", static_cast<long long>(self.dim()));
  const int64_t n = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  if (samples <= 0) fail(ARGAND_RUNTIME_ERROR, "multinomial: cannot sample n_sample <= 0 samples");
  if (!replacement && samples > n) fail(ARGAND_RUNTIME_ERROR, "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  if (!is_floating(self.dtype())) fail(ARGAND_DTYPE_ERROR, "multinomial: got probabilities of dtype %s, expected a floating dtype", kDTypeName[self.dtype()]);
  builtins::Ints sizes = self.sizes().vec();
  sizes.back() = samples;
  const Tensor out = argand::empty(sizes, ARGAND_INT64), weights = to_dtype(contiguous(self), ARGAND_FLOAT64);
  const Stream s(g, rows * samples, 2);
  std::vector<double> w(static_cast<size_t>(n));
  for (int64_t r = 0; r < rows; r++) {
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
      w[i] = weights.data<double>()[r * n + i];
      if (!(w[i] >= 0) || std::isinf(w[i])) fail(ARGAND_RUNTIME_ERROR, "multinomial: probability tensor contains either `inf`, `nan` or element < 0");
      total += w[i];
    }
    for (int64_t k = 0; k < samples; k++) {
      if (!(total > 0)) fail(ARGAND_RUNTIME_ERROR, "multinomial: invalid multinomial distribution (sum of probabilities <= 0, or too few nonzero ones)");
      const int64_t at = r * samples + k;
      const PhiloxBlock b = philox(s.seed, s.first + static_cast<uint64_t>(at / 2));
      double left = philox_uniform64(b.word[2 * (at % 2)], b.word[2 * (at % 2) + 1]) * total;
      int64_t chosen = -1;
      for (int64_t i = 0; i < n; i++) {
        if (w[i] <= 0) continue;
        chosen = i;
        if (left < w[i]) break;
        left -= w[i];
      }
      out.data<int64_t>()[at] = chosen;
      if (!replacement) {
        w[chosen] = 0;
        total = 0;
        for (double x : w) total += x;
      }
    }
  }
  return out;
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, bool train) {
  check_probability("native_dropout", p);
  const Tensor in = contiguous(input);
  const Tensor out = argand::empty(input.sizes(), input.dtype()), mask = argand::empty(input.sizes(), ARGAND_BOOL);
  const int64_t n = in.numel();
  uint8_t* m = mask.data<uint8_t>();
  dispatch_floating("native_dropout", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* x = in.data<T>();
    T* o = out.data<T>();
    if (!train) {
      if (n) std::memcpy(o, x, static_cast<size_t>(n) * sizeof(T)), std::memset(m, 1, static_cast<size_t>(n));
      return;
    }
    const C scale = p == 1.0 ? C(0) : static_cast<C>(1.0 / (1.0 - p));
    const uint64_t threshold = static_cast<uint64_t>(p * 0x1p32);  // dropped below
    each_block(Stream(nullptr, n, 4), n, 4, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
      for (int64_t k = 0; k < count; k++) {
        const bool keep = b.word[k] >= threshold;
        m[i + k] = keep;
        o[i + k] = narrow<T>(static_cast<C>(widen(x[i + k])) * (keep ? scale : C(0)));
      }
    });
  });
  return {out, mask};
}

}  // namespace argand::kernels::cpu
