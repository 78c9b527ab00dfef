// Random numbers on Philox (docs/notes/random.md): the element at row-major position i draws from counter first + i / 4, word i % 4
// (64-bit numbers: first + i / 2, words 2 * (i % 2) and the next), whatever the number of threads.
#include <cmath>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/random_bounds.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/cpu/random_draw.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/view.h"
#include "packages/c10/csrc/random/philox.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements

struct Stream {
  uint64_t seed, first;
  Stream(ArgandGenerator* g, int64_t n, int64_t per_counter) {
    if (!g) g = api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0));
    seed = g->seed;
    first = api->generator_reserve(g, static_cast<uint64_t>((n + per_counter - 1) / per_counter));
  }
};

// f(words, i, n): n <= kDrawWords elements from i on, one word each; words are drawn for n rounded up to kDrawRound.
template <class F>
void each_chunk(const Stream& s, int64_t n, F f) {
  const RandomDraw& draw = random_draw();
  argand::parallel_for(0, (n + kDrawWords - 1) / kDrawWords, kGrain / kDrawWords, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kDrawWords];
    for (int64_t c = begin; c < end; c++) {
      const int64_t count = std::min<int64_t>(kDrawWords, n - c * kDrawWords);
      draw.words((count + kDrawRound - 1) / kDrawRound * kDrawRound, s.seed, s.first + static_cast<uint64_t>(c * kDrawWords / 4), words);
      f(words, c * kDrawWords, count);
    }
  });
}

// f(block, i, n): fills elements i to i + n (n <= per_counter) from one block.
template <class F>
void each_block(const Stream& s, int64_t n, int64_t per_counter, F f) {
  const int64_t counters = (n + per_counter - 1) / per_counter;
  each_chunk(s, counters * 4, [&](const uint32_t* words, int64_t first, int64_t count) {
    for (int64_t w = 0; w < count; w += 4) {
      PhiloxBlock b;
      std::memcpy(b.word, words + w, sizeof b.word);
      const int64_t i = (first + w) / 4 * per_counter;
      f(b, i, std::min(per_counter, n - i));
    }
  });
}

// out[i] = draw(word i) in float32, by a vector kernel: run(n, out, words) for n rounded up.
template <class Run>
void fill_float(const Stream& s, int64_t n, float* out, Run run) {
  each_chunk(s, n, [&](const uint32_t* words, int64_t i, int64_t count) {
    alignas(64) float tail[kDrawWords];
    const bool whole = count % kDrawRound == 0;
    run((count + kDrawRound - 1) / kDrawRound * kDrawRound, whole ? out + i : tail, words);
    if (!whole) std::memcpy(out + i, tail, static_cast<size_t>(count) * sizeof(float));
  });
}

// Writes a dense result into self.
void write_back(const Tensor& self, const Tensor& dense) {
  if (dense.get() != self.get()) copy_(self, dense, false);
}
Tensor dense_target(const Tensor& self) { return self.is_contiguous() ? self : argand::empty(self.sizes(), self.dtype()); }

// What rounds to the upper end becomes the lower one.
struct HalfOpen {
  double from, to;
};

// float32: run; 16-bit floats: float32 by run, rounded, within `range` if given; float64: draw64(high, low) of two words.
template <class Run, class F64>
void fill(const char* name, const Tensor& self, ArgandGenerator* g, Run run, F64 draw64, const HalfOpen* range = nullptr) {
  const Tensor out = dense_target(self);
  const int64_t n = self.numel();
  dispatch_floating(name, self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* o = out.data<T>();
    if constexpr (std::is_same_v<T, double>) {
      each_block(Stream(g, n, 2), n, 2, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
        for (int64_t k = 0; k < count; k++) o[i + k] = draw64(b.word[2 * k], b.word[2 * k + 1]);
      });
    } else if constexpr (std::is_same_v<T, float>) {
      fill_float(Stream(g, n, 4), n, o, run);
    } else {
      const Tensor wide = argand::empty({n}, ARGAND_FLOAT32);
      fill_float(Stream(g, n, 4), n, wide.data<float>(), run);
      for (int64_t i = 0; i < n; i++) o[i] = narrow<T>(wide.data<float>()[i]);
      if (!range) return;
      const T from = narrow<T>(static_cast<float>(range->from));
      const float to = widen(narrow<T>(static_cast<float>(range->to)));
      for (int64_t i = 0; i < n; i++)
        if (widen(o[i]) >= to) o[i] = from;
    }
  });
  write_back(self, out);
}

constexpr double kTwoPi = 6.283185307179586;

// Two normal numbers from two uniform ones in (0, 1] and [0, 1): G. Box, M. Muller, 1958.
void box_muller(double u, double v, double* out) {
  const double r = std::sqrt(-2.0 * std::log(u)), a = kTwoPi * v;
  out[0] = r * std::cos(a);
  out[1] = r * std::sin(a);
}
inline double open_uniform64(uint32_t h, uint32_t l) {  // (0, 1]
  return (static_cast<double>((static_cast<uint64_t>(h) << 32 | l) >> 11) + 1.0) * 0x1p-53;
}

uint64_t wide(const PhiloxBlock& b, int64_t k) { return static_cast<uint64_t>(b.word[2 * k]) << 32 | b.word[2 * k + 1]; }

void check_probability(const char* name, double p) {
  if (!(p >= 0 && p <= 1)) fail(ARGAND_RUNTIME_ERROR, "%s: got p=%g, expected 0 <= p <= 1", name, p);
}

}  // namespace

void uniform_(const Tensor& self, double from, double to, ArgandGenerator* g) {
  if (is_complex(self.dtype())) return uniform_(ops::view_as_real(self), from, to, g);
  check_uniform_bounds("uniform_", self.dtype(), from, to);
  const float base = static_cast<float>(from), span = static_cast<float>(to - from), top = static_cast<float>(to);
  const HalfOpen range{from, to};
  const auto draw64 = [=](uint32_t h, uint32_t l) {
    const double v = from + (to - from) * philox_uniform64(h, l);
    return v < to ? v : from;
  };
  fill(
      "uniform_", self, g, [=](int64_t n, float* out, const uint32_t* words) { random_draw().uniform(n, out, words, base, span, top); }, draw64,
      &range);
}

void exponential_(const Tensor& self, double lambd, ArgandGenerator* g) {
  if (!(lambd > 0)) fail(ARGAND_RUNTIME_ERROR, "exponential_: expects lambda > 0.0, but found lambda=%g", lambd);
  const float scale = static_cast<float>(-1.0 / lambd);
  fill(
      "exponential_", self, g, [=](int64_t n, float* out, const uint32_t* words) { random_draw().exponential(n, out, words, scale); },
      [=](uint32_t h, uint32_t l) { return std::max(-std::log(open_uniform64(h, l)), 0x1p-53) / lambd; });
}

void normal_(const Tensor& self, double mean, double std, ArgandGenerator* g) {
  if (!(std >= 0)) fail(ARGAND_RUNTIME_ERROR, "normal_: expects std >= 0.0, but found std %g", std);
  if (is_complex(self.dtype())) return normal_(ops::view_as_real(self), mean, std / std::sqrt(2.0), g);  // of variance std^2 in all
  const float m = static_cast<float>(mean), s = static_cast<float>(std);
  auto vectors = [=](int64_t n, float* out, const uint32_t* words) { random_draw().normal(n, out, words, m, s); };
  if (self.dtype() != ARGAND_FLOAT64) return fill("normal_", self, g, vectors, [](uint32_t, uint32_t) { return 0.0; });
  const Tensor out = dense_target(self);
  const int64_t n = self.numel();
  double* o = out.data<double>();
  each_block(Stream(g, n, 2), n, 2, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
    double z[2];
    box_muller(open_uniform64(b.word[0], b.word[1]), philox_uniform64(b.word[2], b.word[3]), z);
    for (int64_t k = 0; k < count; k++) o[i + k] = mean + std * z[k];
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
      for (int64_t k = 0; k < count; k++)
        o[i + k] = narrow<T>(static_cast<compute_t<T>>(philox_uniform(b.word[k]) < static_cast<float>(widen(in[i + k])) ? 1 : 0));
    });
  });
  return out;
}

void random_(const Tensor& self, int64_t from, int64_t to, ArgandGenerator* g) {
  check_random_bounds("random_", self.dtype(), from, to);
  const bool is_wide = self.dtype() == ARGAND_INT64;
  const Tensor out = is_wide ? dense_target(self) : argand::empty(self.sizes(), ARGAND_INT64);
  const uint64_t span = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  int64_t* o = out.data<int64_t>();
  const int64_t n = self.numel();
  each_block(Stream(g, n, 2), n, 2, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
    // The high half of a 128-bit product is even to 2^-64 * span.
    for (int64_t k = 0; k < count; k++) o[i + k] = from + static_cast<int64_t>(static_cast<unsigned __int128>(wide(b, k)) * span >> 64);
  });
  is_wide ? write_back(self, out) : copy_(self, out, false);
}

Tensor randperm(int64_t n, ArgandGenerator* g, int dtype, std::optional<ArgandDevice>, bool) {
  if (n < 0) fail(ARGAND_RUNTIME_ERROR, "randperm: n must be non-negative, got %lld", static_cast<long long>(n));
  if (dtype != ARGAND_DTYPE_NONE && n > 0) check_random_bounds("randperm", dtype, 0, n);
  const Tensor order = argand::empty({n}, ARGAND_INT64);
  int64_t* o = order.data<int64_t>();
  for (int64_t i = 0; i < n; i++) o[i] = i;
  const Stream s(g, n, 2);
  alignas(64) uint32_t words[kDrawWords];
  constexpr int64_t kDraws = kDrawWords / 2;
  for (int64_t i = n - 1, first = n; i > 0; i--) {  // Fisher and Yates
    if (i < first) {
      first = i / kDraws * kDraws;
      random_draw().words(kDrawWords, s.seed, s.first + static_cast<uint64_t>(first / 2), words);
    }
    PhiloxBlock block;
    std::memcpy(block.word, words + (i - first) / 2 * 4, sizeof block.word);
    const uint64_t draw = wide(block, i % 2);
    std::swap(o[i], o[static_cast<int64_t>(static_cast<unsigned __int128>(draw) * static_cast<uint64_t>(i + 1) >> 64)]);
  }
  return dtype == ARGAND_DTYPE_NONE ? order : to_dtype(order, dtype);
}

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, ArgandGenerator* g) {
  if (self.dim() != 1 && self.dim() != 2)
    fail(ARGAND_RUNTIME_ERROR, "multinomial: prob_dist must be 1 or 2 dim, got %lld", static_cast<long long>(self.dim()));
  const int64_t n = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  if (samples <= 0) fail(ARGAND_RUNTIME_ERROR, "multinomial: cannot sample n_sample <= 0 samples");
  if (!replacement && samples > n) fail(ARGAND_RUNTIME_ERROR, "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  if (!is_floating(self.dtype()))
    fail(ARGAND_DTYPE_ERROR, "multinomial: got probabilities of dtype %s, expected a floating dtype", kDTypeName[self.dtype()]);
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
      if (!(total > 0))
        fail(ARGAND_RUNTIME_ERROR, "multinomial: invalid multinomial distribution (sum of probabilities <= 0, or too few nonzero ones)");
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
  const Dims strides = dense_strides(input.sizes(), input.strides());
  const Tensor out = empty_strided(input.sizes(), strides, input.dtype()), mask = empty_strided(input.sizes(), strides, ARGAND_BOOL);
  const Tensor rows = dense_target(out), mask_rows = dense_target(mask);
  const int64_t n = in.numel();
  uint8_t* m = mask_rows.data<uint8_t>();
  dispatch_floating("native_dropout", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* x = in.data<T>();
    T* o = rows.data<T>();
    if (!train) {
      if (n) std::memcpy(o, x, static_cast<size_t>(n) * sizeof(T)), std::memset(m, 1, static_cast<size_t>(n));
      return;
    }
    const C scale = p == 1.0 ? C(0) : static_cast<C>(1.0 / (1.0 - p));
    const uint64_t threshold = static_cast<uint64_t>(p * 0x1p32);  // dropped below
    if constexpr (std::is_same_v<T, float>) {
      if (threshold <= 0xffffffff) {
        each_chunk(Stream(nullptr, n, 4), n, [&](const uint32_t* words, int64_t i, int64_t count) {
          const int64_t whole = count - count % kDrawRound;
          random_draw().dropout(whole, o + i, m + i, x + i, words, static_cast<uint32_t>(threshold), scale);
          for (int64_t k = whole; k < count; k++) {
            m[i + k] = words[k] >= threshold;
            o[i + k] = x[i + k] * (m[i + k] ? scale : 0.0f);
          }
        });
        return;
      }
    }
    each_block(Stream(nullptr, n, 4), n, 4, [&](const PhiloxBlock& b, int64_t i, int64_t count) {
      for (int64_t k = 0; k < count; k++) {
        const bool keep = b.word[k] >= threshold;
        m[i + k] = keep;
        o[i + k] = narrow<T>(static_cast<C>(widen(x[i + k])) * (keep ? scale : C(0)));
      }
    });
  });
  write_back(out, rows);
  write_back(mask, mask_rows);
  return {out, mask};
}

// The fills as functions.
Tensor uniform_functional(const Tensor& self, double from, double to, ArgandGenerator* g) {
  const Tensor out = argand::empty(self.sizes(), self.dtype());
  uniform_(out, from, to, g);
  return out;
}

Tensor normal_functional(const Tensor& self, double mean, double std, ArgandGenerator* g) {
  const Tensor out = argand::empty(self.sizes(), self.dtype());
  normal_(out, mean, std, g);
  return out;
}

Tensor exponential_functional(const Tensor& self, double lambd, ArgandGenerator* g) {
  const Tensor out = argand::empty(self.sizes(), self.dtype());
  exponential_(out, lambd, g);
  return out;
}

Tensor bernoulli_functional(const Tensor& self, double p, ArgandGenerator* g) {
  const Tensor out = argand::empty(self.sizes(), self.dtype());
  bernoulli_(out, p, g);
  return out;
}

Tensor random_functional(const Tensor& self, int64_t from, int64_t to, ArgandGenerator* g) {
  const Tensor out = argand::empty(self.sizes(), self.dtype());
  random_(out, from, to, g);
  return out;
}

}  // namespace argand::kernels::cpu
