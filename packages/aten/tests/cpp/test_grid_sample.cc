// Images sampled at the places of a grid, in every tier, against sums tap by tap.
#include <cmath>

#include "packages/aten/generated/kernels.h"
#include "packages/aten/tests/cpp/every_tier.h"

namespace {
using namespace argand;
using namespace testing;

struct How {
  const char *mode, *padding;
  bool align_corners;
  bool is(const char* m) const { return !strcmp(mode, m); }
};

// In the precision that the kernel has, so that both find a place on the same side of an element.
template <class E>
E moved(E x, E size, const How& how) {
  if (!strcmp(how.padding, "zeros")) return x;
  if (!strcmp(how.padding, "reflection")) {
    const E low = how.align_corners ? E(0) : E(-0.5), span = how.align_corners ? size - 1 : size, distance = std::fabs(x - low);
    if (span == 0) return 0;
    const E rest = std::fmod(distance, span);
    x = (std::fmod(std::floor(distance / span), E(2)) == 1 ? span - rest : rest) + low;
  }
  return std::isnan(x) ? E(0) : std::fmin(std::fmax(x, E(0)), size - 1);
}

template <class E>
struct Taps {
  std::vector<E> at, weight;
  Taps(E place, int64_t length, const How& how) {
    const E size = static_cast<E>(length);
    E x = how.align_corners ? (place + 1) * ((size - 1) / 2) : ((place + 1) * size - 1) / 2;
    if (!how.is("bicubic")) x = moved(x, size, how);
    if (how.is("nearest")) {
      at = {std::nearbyint(x)}, weight = {1};
      return;
    }
    const E low = std::floor(x), t = x - low;
    if (how.is("bilinear")) {
      at = {low, low + 1}, weight = {1 - t, t};
      return;
    }
    for (int k = -1; k < 3; k++) {
      const E d = std::fabs(t - k);
      at.push_back(moved(low + k, size, how));
      weight.push_back(std::isnan(d) ? d : d < 1 ? (E(1.25) * d - E(2.25)) * d * d + 1 : ((E(-0.75) * d + E(3.75)) * d - 6) * d + 3);
    }
  }
};

template <class E>
double sample(const Tensor& x, int64_t plane, E gx, E gy, const How& how) {
  const int64_t h = x.size(2), w = x.size(3);
  const Taps<E> columns(gx, w, how), rows(gy, h, how);
  const auto counts = [](const Taps<E>& t, size_t k, int64_t size) { return t.at[k] >= 0 && t.at[k] < static_cast<E>(size); };
  double sum = 0;
  for (size_t i = 0; i < rows.at.size(); i++)
    for (size_t j = 0; j < columns.at.size(); j++) {
      const E weight = rows.weight[i] * columns.weight[j];
      if (std::isnan(weight)) return NAN;  // wherever the place is
      if (!counts(rows, i, h) || !counts(columns, j, w)) continue;
      sum += weight * at(x, (plane * h + static_cast<int64_t>(rows.at[i])) * w + static_cast<int64_t>(columns.at[j]));
    }
  return sum;
}

void compare(IntList image, IntList places, int dtype, bool special) {
  const Tensor x = real_tensor(image, dtype), grid = real_tensor(places, dtype);
  if (special && grid.numel() >= 20) {
    const double odd[] = {-1, 1, 0, -3, 5, NAN, INFINITY, -INFINITY, 0.5, 3e7};
    for (int64_t i = 0; i < 10; i++) put(grid, 2 * i, odd[i]);
  }
  if (special && x.numel()) put(x, 0, INFINITY);  // where there is no element, nothing is read
  const int64_t count = grid.size(1) * grid.size(2);
  for (const char* mode : {"nearest", "bilinear", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (bool align_corners : {false, true}) {
        const How how{mode, padding, align_corners};
        const Tensor got = kernels::cpu::grid_sample_2d(x, grid, mode, padding, align_corners);
        CHECK(got.sizes() == IntList({x.size(0), x.size(1), grid.size(1), grid.size(2)}) && got.dtype() == dtype);
        for (int64_t i = 0; i < got.numel(); i++) {
          const int64_t plane = i / count, place = 2 * (plane / x.size(1) * count + i % count);
          const double gx = at(grid, place), gy = at(grid, place + 1);
          const double want = dtype == ARGAND_FLOAT64 ? sample<double>(x, plane, gx, gy, how)
                                                      : sample<float>(x, plane, static_cast<float>(gx), static_cast<float>(gy), how);
          check_close(mode, at(got, i), want, dtype, 8);
        }
        if (!how.is("nearest")) continue;
        const Tensor grad = real_tensor(got.sizes(), dtype);
        const Tensor dgrid = std::get<1>(kernels::cpu::grid_sample_2d_backward(grad, x, grid, mode, padding, align_corners, {1, 1}));
        for (int64_t i = 0; i < dgrid.numel(); i++) CHECK(at(dgrid, i) == 0);
      }
}

void agrees() {
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_BFLOAT16})
    for (bool special : {false, true})
      for (int threads : {1, 3}) {
        api->set_num_threads(threads);
        compare({2, 3, 5, 7}, {2, 4, 9, 2}, dtype, special);
        compare({1, 2, 16, 2}, {1, 30, 11, 2}, dtype, special);  // several blocks of places
        compare({2, 2, 6, 1}, {2, 5, 3, 2}, dtype, special);     // no two elements side by side
        compare({1, 1, 1, 1}, {1, 3, 5, 2}, dtype, special);
        compare({1, 0, 4, 4}, {1, 2, 2, 2}, dtype, special);
        compare({1, 2, 4, 4}, {1, 0, 3, 2}, dtype, special);
      }
  api->set_num_threads(2);
}

void tests() { RUN(agrees); }
}  // namespace

int main() { return run_in_every_tier(tests); }
