// Samplers that reject: element i of the result draws from counter first + i, and each further block of four words from the next stream of
// that counter (docs/notes/random.md). All arithmetic is float64.
#include <algorithm>
#include <cmath>

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/c10/csrc/random/philox.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kGrain = 512;  // elements
constexpr double kTwoPi = 6.283185307179586;

// The uniform numbers of one element.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t counter) : seed_(seed), counter_(counter) {}
  double uniform() {  // [0, 1)
    if (left_ == 0) block_ = philox(seed_, counter_, stream_++), left_ = 2;
    left_--;
    return philox_uniform64(block_.word[2 * (1 - left_)], block_.word[2 * (1 - left_) + 1]);
  }
  double positive() { return uniform() + 0x1p-53; }  // (0, 1]
  double normal() { return std::sqrt(-2 * std::log(positive())) * std::cos(kTwoPi * uniform()); }

 private:
  uint64_t seed_, counter_, stream_ = 0;
  PhiloxBlock block_{};
  int left_ = 0;
};

double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// A gamma-distributed number is product * exp(exponent); apart, small shapes do not leave the range of numbers.
struct GammaDraw {
  double product, exponent;
};

// G. Marsaglia, W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); shape > 0, or the result is `shape`.
GammaDraw gamma_parts(Draws& draws, double shape) {
  if (!(shape > 0 && std::isfinite(shape))) return {shape, 0};
  double exponent = 0;
  if (shape < 1) {
    exponent = std::log(draws.positive()) / shape;
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draws.normal(), y = 1 + c * x, u = draws.positive();
    if (y <= 0) continue;
    const double v = y * y * y;
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return {d * v, exponent};
  }
}

double gamma(Draws& draws, double shape) {
  if (!(shape > 0)) return shape == 0 ? 0 : std::nan("");
  const GammaDraw drawn = gamma_parts(draws, shape);
  return drawn.product * std::exp(drawn.exponent);
}

// The logarithm of a gamma-distributed number.
double log_of_gamma(Draws& draws, double shape) {
  if (!(shape > 0)) return std::nan("");
  const GammaDraw drawn = gamma_parts(draws, shape);
  return std::log(drawn.product) + drawn.exponent;
}

// Products of uniform numbers (D. Knuth) below 10, W. Hoermann's transformed rejection (1993) from there.
double poisson(Draws& draws, double rate) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double product = draws.uniform();
    int64_t n = 0;
    for (; product > limit; n++) product *= draws.uniform();
    return static_cast<double>(n);
  }
  const double root = std::sqrt(rate), log_rate = std::log(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = draws.uniform() - 0.5, v = draws.positive(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <= k * log_rate - rate - log_gamma(k + 1)) return k;
  }
}

// Sums of geometric numbers where few successes are expected, else W. Hoermann's BTRS (1993); p <= 1/2.
double binomial_half(Draws& draws, double n, double p) {
  if (p == 0 || n == 0) return 0;
  if (n * p < 10) {
    const double scale = std::log1p(-p);
    double trials = 0, successes = 0;
    for (;;) {
      trials += std::ceil(std::log(draws.positive()) / scale);
      if (trials > n) return successes;
      successes++;
    }
  }
  const double deviation = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5;
  const double squeeze = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation, m = std::floor((n + 1) * p);
  for (;;) {
    const double u = draws.uniform() - 0.5, v = draws.positive(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= squeeze) return k;
    const double bound = log_gamma(m + 1) + log_gamma(n - m + 1) - log_gamma(k + 1) - log_gamma(n - k + 1) + (k - m) * std::log(odds);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}

double binomial(Draws& draws, double n, double p) { return p <= 0.5 ? binomial_half(draws, n, p) : n - binomial_half(draws, n, 1 - p); }

double digamma(double x) {  // x > 0
  double shift = 0;
  for (; x < 10; x++) shift -= 1 / x;
  const double y = 1 / (x * x);
  return shift + std::log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132)))));
}

// The derivative of `gamma_grad` far above the mean, where P is nearly 1: from the continued fraction h of Gamma(a, x) = x^a exp(-x) h (Lentz's
// method) and its derivative in a.
double gamma_tail_grad(double a, double x) {
  double b = x + 1 - a, c = 1e300, slope_c = 0, d = 1 / b, slope_d = d * d, h = d, slope = slope_d;
  for (int i = 1; i < 100000; i++) {
    const double step = i * (a - i);
    b += 2;
    slope_d = i * d + step * slope_d - 1;
    d = 1 / (step * d + b);
    slope_d *= -d * d;
    slope_c = i / c - step * slope_c / (c * c) - 1;
    c = b + step / c;
    const double change = c * d, slope_change = slope_c * d + c * slope_d;
    slope = slope * change + h * slope_change;
    h *= change;
    if (std::abs(change - 1) < 1e-15 && std::abs(slope_change) < 1e-15) break;
  }
  return x * (h * (std::log(x) - digamma(a)) + slope);
}

// dx/da at a constant value of the distribution function P(a, x) (implicit reparameterization: Figurnov, Mohamed, Mnih 2018), -(dP/da) / (dP/dx).
// From the series of P and its derivative (R. Moore, AS 187, 1982); of large shapes from the Cornish-Fisher expansion of x in a normal number z.
double gamma_grad(double a, double x) {
  if (!(a > 0) || !(x > 0)) return x == 0 ? 0 : std::nan("");
  if (a > 2000) {
    const double root = std::sqrt(a);
    double z = (x - a) / root;
    for (int i = 0; i < 4; i++) {
      const double error = a + z * root + (z * z - 1) / 3 + (z * z * z - 7 * z) / (36 * root) - x;
      z -= error / (root + 2 * z / 3 + (3 * z * z - 7) / (36 * root));
    }
    return 1 + z / (2 * root) - (z * z * z - 7 * z) / (72 * a * root);
  }
  if (x > a + 5) return gamma_tail_grad(a, x);
  double term = 1, sum = 1, slope = 0, inverse = 0;
  for (int k = 1; k < 100000; k++) {
    inverse += 1 / (a + k);
    term *= x / (a + k);
    sum += term;
    slope -= term * inverse;
    if (term < 1e-17 * sum && x < a + k) break;
  }
  return -(x / a) * (sum * (std::log(x) - digamma(a + 1)) + slope);
}

// The series I(x; a, b) = x^a (1 - x)^b / (a B(a, b)) * sum over n of (a + b)_n / (a + 1)_n x^n, whose terms are all positive, and its slope in a
// (`by_first`) or in b.
void beta_series(double x, double a, double b, bool by_first, double& sum, double& slope) {
  double term = 1, rate = 0;
  sum = 1, slope = 0;
  for (int n = 0; n < 10000000; n++) {
    rate += 1 / (a + b + n) - (by_first ? 1 / (a + 1 + n) : 0);
    term *= x * (a + b + n) / (a + 1 + n);
    sum += term;
    slope += term * rate;
    if (term < 1e-17 * sum && x * (a + b + n) < a + 1 + n) break;
  }
}

// dx/da / (1 - x) at a constant value of the beta distribution's function I(x; a, b), b = total - a: the derivative of a part of Dirichlet's
// distribution by its concentration a, as all other parts shrink in proportion (Figurnov, Mohamed, Mnih 2018). On either side of the mean from the
// series of the smaller of I and 1 - I.
double dirichlet_grad(double x, double a, double total) {
  const double b = total - a;
  if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1)) return std::nan("");
  if (x == 0 || x == 1) return 0;
  double sum, slope;
  if (x * total <= a) {
    beta_series(x, a, b, true, sum, slope);
    return -(x / a) * (sum * (std::log(x) - digamma(a + 1) + digamma(total)) + slope);
  }
  beta_series(1 - x, b, a, false, sum, slope);
  return (x / b) * (sum * (std::log(x) - digamma(a) + digamma(total)) + slope);
}

// out[i] = draw(draws of i, x[i], y[i]); y may be undefined. The dtype is x's.
template <class F>
Tensor sample(const char* name, const Tensor& x, const Tensor& y, ArgandGenerator* g, F draw) {
  const Tensor a = to_dtype(x, ARGAND_FLOAT64), b = y ? to_dtype(y, ARGAND_FLOAT64) : a;
  const Tensor out = argand::empty(x.sizes(), x.dtype());
  const int64_t n = x.numel();
  if (!g) g = api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0));
  const uint64_t seed = g->seed, first = api->generator_reserve(g, static_cast<uint64_t>(n));
  dispatch_floating(name, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    argand::parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        Draws draws(seed, first + static_cast<uint64_t>(i));
        out.data<T>()[i] = narrow<T>(static_cast<compute_t<T>>(draw(draws, a.data<double>()[i], b.data<double>()[i])));
      }
    });
  });
  return out;
}

}  // namespace

Tensor _standard_gamma(const Tensor& self, ArgandGenerator* g) {
  // Never 0, whose logarithm and gradient are of no use.
  const double least = self.dtype() == ARGAND_FLOAT64 ? 2.2250738585072014e-308 : self.dtype() == ARGAND_FLOAT16 ? 0x1p-14 : 1.1754943508222875e-38;
  return sample("_standard_gamma", self, Tensor(), g,
                [=](Draws& d, double shape, double) { return std::fmax(gamma(d, shape), shape > 0 ? least : 0); });
}

Tensor _standard_gamma_grad(const Tensor& self, const Tensor& output) {
  check_same_dtype("_standard_gamma_grad", self, output);
  const Tensor a = to_dtype(self, ARGAND_FLOAT64), x = to_dtype(output, ARGAND_FLOAT64), out = argand::empty(self.sizes(), ARGAND_FLOAT64);
  argand::parallel_for(0, a.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) out.data<double>()[i] = gamma_grad(a.data<double>()[i], x.data<double>()[i]);
  });
  return to_dtype(out, self.dtype());
}

Tensor _sample_dirichlet(const Tensor& self, ArgandGenerator* g) {
  const Tensor out = argand::empty(self.sizes(), self.dtype());
  // Softmax of the logarithms of gamma-distributed numbers; neither 0 nor 1, whose logarithms and gradients are of no use.
  const Tensor logs =
      sample("_sample_dirichlet", to_dtype(self, ARGAND_FLOAT64), Tensor(), g, [](Draws& d, double shape, double) { return log_of_gamma(d, shape); });
  const int64_t width = self.size(self.dim() - 1), rows = width ? self.numel() / width : 0;
  dispatch_floating("_sample_dirichlet", self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const double step = std::is_same_v<T, double> ? 0x1p-53 : std::is_same_v<T, float> ? 0x1p-24 : self.dtype() == ARGAND_FLOAT16 ? 0x1p-11 : 0x1p-8;
    const double least = std::is_same_v<T, double> ? 2.2250738585072014e-308 : self.dtype() == ARGAND_FLOAT16 ? 0x1p-14 : 1.1754943508222875e-38;
    argand::parallel_for(0, rows, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        const double* from = logs.data<double>() + row * width;
        const double highest = *std::max_element(from, from + width);
        double total = 0;
        for (int64_t i = 0; i < width; i++) total += std::exp(from[i] - highest);
        for (int64_t i = 0; i < width; i++) {
          const double share = std::exp(from[i] - highest) / total;
          out.data<T>()[row * width + i] = narrow<T>(static_cast<compute_t<T>>(std::min(std::max(share, least), 1 - step)));
        }
      }
    });
  });
  return out;
}

Tensor _dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  check_same_dtype("_dirichlet_grad", x, alpha);
  check_same_dtype("_dirichlet_grad", x, total);
  const Tensor at = to_dtype(x, ARGAND_FLOAT64), a = to_dtype(alpha, ARGAND_FLOAT64), sums = to_dtype(total, ARGAND_FLOAT64);
  const Tensor out = argand::empty(x.sizes(), ARGAND_FLOAT64);
  argand::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) out.data<double>()[i] = dirichlet_grad(at.data<double>()[i], a.data<double>()[i], sums.data<double>()[i]);
  });
  return to_dtype(out, x.dtype());
}

Tensor poisson(const Tensor& self, ArgandGenerator* g) {
  const Tensor rates = to_dtype(self, ARGAND_FLOAT64);
  for (int64_t i = 0; i < rates.numel(); i++)
    if (!(rates.data<double>()[i] >= 0)) fail(ARGAND_RUNTIME_ERROR, "poisson: got the rate %g, expected rates >= 0", rates.data<double>()[i]);
  return sample("poisson", self, Tensor(), g, [](Draws& d, double rate, double) { return poisson(d, rate); });
}

Tensor _binomial(const Tensor& count, const Tensor& prob, ArgandGenerator* g) {
  check_same_dtype("binomial", count, prob);
  const Tensor n = to_dtype(count, ARGAND_FLOAT64), p = to_dtype(prob, ARGAND_FLOAT64);
  for (int64_t i = 0; i < n.numel(); i++)
    if (!(n.data<double>()[i] >= 0) || !(p.data<double>()[i] >= 0 && p.data<double>()[i] <= 1))
      fail(ARGAND_RUNTIME_ERROR, "binomial: got count=%g and prob=%g, expected count >= 0 and 0 <= prob <= 1", n.data<double>()[i],
           p.data<double>()[i]);
  return sample("binomial", count, prob, g, [](Draws& d, double n, double p) { return binomial(d, std::floor(n), p); });
}

}  // namespace argand::kernels::cpu
