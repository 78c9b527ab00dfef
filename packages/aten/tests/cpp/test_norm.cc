// Layer, RMS, group and batch normalisation: results against sums in double, gradients against differences of the results.
#include "packages/aten/generated/kernels.h"
#include "packages/aten/tests/cpp/every_tier.h"

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

constexpr double kEps = 1e-5;

// Mean and reciprocal deviation of the elements that `in(i)` picks.
template <class In>
void moments(const Tensor& x, In in, double* mean, double* rstd) {
  double sum = 0, squares = 0, n = 0;
  for (int64_t i = 0; i < x.numel(); i++)
    if (in(i)) sum += at(x, i), n++;
  *mean = sum / n;
  for (int64_t i = 0; i < x.numel(); i++)
    if (in(i)) squares += (at(x, i) - *mean) * (at(x, i) - *mean);
  *rstd = 1 / std::sqrt(squares / n + kEps);
}

void rows() {
  for (int dtype : kFloating)
    for (int64_t n : {1, 3, 16, 33, 130, 300})
      for (bool affine : {false, true}) {
        const int64_t r = 4;
        const Tensor x = real_tensor({2, 2, n}, dtype), w = affine ? real_tensor({n}, dtype) : Tensor(),
                     b = affine ? real_tensor({n}, dtype) : Tensor();
        const auto [y, mean, rstd] = cpu::native_layer_norm(x, {n}, w, b, kEps);
        const auto [z, rrms] = cpu::fused_rms_norm(x, {n}, w, kEps);
        CHECK(mean.sizes() == IntList({2, 2, 1}) && rrms.sizes() == IntList({2, 2, 1}));
        CHECK(mean.dtype() == (dtype == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32));
        for (int64_t i = 0; i < r; i++) {
          double m, s, squares = 0;
          moments(x, [&](int64_t k) { return k / n == i; }, &m, &s);
          for (int64_t k = 0; k < n; k++) squares += at(x, i * n + k) * at(x, i * n + k);
          const double q = 1 / std::sqrt(squares / static_cast<double>(n) + kEps);
          for (int64_t k = 0; k < n; k++) {
            const double xi = at(x, i * n + k), wk = affine ? at(w, k) : 1, bk = affine ? at(b, k) : 0;
            check_close("layer_norm", at(y, i * n + k), (xi - m) * s * wk + bk, dtype, n == 1 ? 100 : 4);
            check_close("rms_norm", at(z, i * n + k), xi * q * wk, dtype, 2);
          }
        }
      }
}

// d sum(g * f(x)) / dx[i] by central differences must be grad[i]; float64.
template <class F>
void check_gradient(const char* what, const Tensor& x, const Tensor& g, const Tensor& grad, F f) {
  auto value = [&] {
    const Tensor y = f();
    double sum = 0;
    for (int64_t i = 0; i < y.numel(); i++) sum += at(y, i) * at(g, i);
    return sum;
  };
  const double h = 1e-6;
  for (int64_t i = 0; i < x.numel(); i++) {
    const double old = at(x, i);
    put(x, i, old + h);
    const double up = value();
    put(x, i, old - h);
    const double down = value();
    put(x, i, old);
    const double want = (up - down) / (2 * h);
    CHECK(std::fabs(at(grad, i) - want) < 1e-6 * (1 + std::fabs(want)) * 20, "%s: gradient %ld: got %g, expected %g", what, i, at(grad, i), want);
  }
}

void gradients() {
  const int f64 = ARGAND_FLOAT64;
  {
    const Tensor x = real_tensor({3, 19}, f64), w = real_tensor({19}, f64), b = real_tensor({19}, f64), g = real_tensor({3, 19}, f64);
    auto layer = [&] { return std::get<0>(cpu::native_layer_norm(x, {19}, w, b, kEps)); };
    const auto [y, mean, rstd] = cpu::native_layer_norm(x, {19}, w, b, kEps);
    const auto [dx, dw, db] = cpu::native_layer_norm_backward(g, x, {19}, mean, rstd, w, b, {1, 1, 1});
    check_gradient("layer_norm x", x, g, dx, layer);
    check_gradient("layer_norm w", w, g, dw, layer);
    check_gradient("layer_norm b", b, g, db, layer);
    const auto [nx, nw, nb] = cpu::native_layer_norm_backward(g, x, {19}, mean, rstd, w, b, {0, 1, 0});
    CHECK(!nx && nw && !nb);
    auto rms = [&] { return std::get<0>(cpu::fused_rms_norm(x, {19}, w, kEps)); };
    const auto [z, rrms] = cpu::fused_rms_norm(x, {19}, w, kEps);
    const auto [rx, rw] = cpu::fused_rms_norm_backward(g, x, {19}, rrms, w, {1, 1});
    check_gradient("rms_norm x", x, g, rx, rms);
    check_gradient("rms_norm w", w, g, rw, rms);
  }
  {
    const Tensor x = real_tensor({2, 6, 5}, f64), w = real_tensor({6}, f64), b = real_tensor({6}, f64), g = real_tensor({2, 6, 5}, f64);
    auto group = [&] { return std::get<0>(cpu::native_group_norm(x, w, b, 2, 6, 5, 3, kEps)); };
    const auto [y, mean, rstd] = cpu::native_group_norm(x, w, b, 2, 6, 5, 3, kEps);
    const auto [dx, dw, db] = cpu::native_group_norm_backward(g, x, mean, rstd, w, 2, 6, 5, 3, {1, 1, 1});
    check_gradient("group_norm x", x, g, dx, group);
    check_gradient("group_norm w", w, g, dw, group);
    check_gradient("group_norm b", b, g, db, group);
  }
  const std::vector<std::vector<int64_t>> shapes = {{5, 3}, {3, 4, 5}, {2, 3, 4, 5}, {1, 2, 20}};
  for (const auto& shape : shapes)
    for (bool training : {true, false}) {
      const Tensor x = real_tensor(shape, f64), w = real_tensor({shape[1]}, f64), b = real_tensor({shape[1]}, f64), g = real_tensor(shape, f64);
      const Tensor rm = training ? Tensor() : real_tensor({shape[1]}, f64), rv = training ? Tensor() : real_tensor({shape[1]}, f64);
      for (int64_t i = 0; rv && i < rv.numel(); i++) put(rv, i, at(rv, i) * at(rv, i) + 0.5);
      auto batch = [&] { return std::get<0>(cpu::native_batch_norm(x, w, b, rm, rv, training, 0.1, kEps)); };
      const auto [y, mean, rstd] = cpu::native_batch_norm(x, w, b, rm, rv, training, 0.1, kEps);
      const auto [dx, dw, db] = cpu::native_batch_norm_backward(g, x, w, rm, rv, mean, rstd, training, kEps, {1, 1, 1});
      check_gradient("batch_norm x", x, g, dx, batch);
      check_gradient("batch_norm w", w, g, dw, batch);
      check_gradient("batch_norm b", b, g, db, batch);
    }
}

void batches() {
  const std::vector<std::vector<int64_t>> shapes = {{6, 3}, {4, 3, 5}, {2, 5, 6, 7}, {1, 3, 40}};
  for (int dtype : kFloating)
    for (const auto& shape : shapes)
      for (bool strided : {false, true}) {
        const int64_t channels = shape[1];
        const Tensor base = real_tensor(shape, dtype);
        std::vector<int64_t> flipped = shape;
        std::swap(flipped[0], flipped[1]);
        const Tensor x = strided ? transposed(real_tensor(flipped, dtype), 0, 1) : base;
        const int64_t inner = x.numel() / shape[0] / channels;
        const Tensor w = real_tensor({channels}, dtype), b = real_tensor({channels}, dtype), rm = real_tensor({channels}, ARGAND_FLOAT32),
                     rv = real_tensor({channels}, ARGAND_FLOAT32);
        std::vector<double> old_mean, old_var;
        for (int64_t c = 0; c < channels; c++) old_mean.push_back(at(rm, c)), old_var.push_back(at(rv, c));
        const uint32_t version = rm.version();
        const auto [y, mean, rstd] = cpu::native_batch_norm(x, w, b, rm, rv, true, 0.25, kEps);
        CHECK(rm.version() == version + 1);
        const double count = static_cast<double>(x.numel() / channels);
        for (int64_t c = 0; c < channels; c++) {
          double m, s;
          moments(x, [&](int64_t i) { return i / inner % channels == c; }, &m, &s);
          check_close("mean", at(mean, c), m, ARGAND_FLOAT32);
          check_close("rstd", at(rstd, c), s, ARGAND_FLOAT32);
          check_close("running_mean", at(rm, c), 0.75 * old_mean[static_cast<size_t>(c)] + 0.25 * m, ARGAND_FLOAT32);
          check_close("running_var", at(rv, c), 0.75 * old_var[static_cast<size_t>(c)] + 0.25 * (1 / (s * s) - kEps) * count / (count - 1),
                      ARGAND_FLOAT32, 2);
          for (int64_t i = 0; i < x.numel(); i++)
            if (i / inner % channels == c) check_close("batch_norm", at(y, i), (at(x, i) - m) * s * at(w, c) + at(b, c), dtype, 4);
        }
      }
}

void errors() {
  const Tensor x = real_tensor({3, 4}, ARGAND_FLOAT32);
  CHECK_THROWS("expected input with shape [*, 5], but got input of size [3, 4]", cpu::native_layer_norm(x, {5}, Tensor(), Tensor(), kEps));
  CHECK_THROWS("expected 4 elements", cpu::native_layer_norm(x, {4}, real_tensor({3}, ARGAND_FLOAT32), Tensor(), kEps));
  CHECK_THROWS("divisible by num_groups", cpu::native_group_norm(x, Tensor(), Tensor(), 3, 4, 1, 3, kEps));
  CHECK_THROWS("running_mean and running_var", cpu::native_batch_norm(x, Tensor(), Tensor(), Tensor(), Tensor(), false, 0.1, kEps));
  CHECK_THROWS("weight should contain 4 elements",
               cpu::native_batch_norm(x, real_tensor({3}, ARGAND_FLOAT32), Tensor(), Tensor(), Tensor(), true, 0.1, kEps));
  CHECK_THROWS("floating dtype", cpu::native_layer_norm(random_tensor({3, 4}, ARGAND_INT64), {4}, Tensor(), Tensor(), kEps));
}

void tests() {
  RUN(rows);
  RUN(batches);
  RUN(gradients);
  RUN(errors);
}
}  // namespace

int main() { return run_in_every_tier(tests); }
