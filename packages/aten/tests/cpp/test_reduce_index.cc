// max and min with indices, argmax, argmin, var and var_mean against naive loops.
#include "packages/aten/csrc/kernels/cpu/reduce_index.h"
#include "packages/aten/csrc/kernels/cpu/variance.h"
#include "packages/aten/tests/cpp/check.h"

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

void extremes() {
  for (int dtype = 0; dtype <= ARGAND_FLOAT64; dtype++)
    for (int turn = 0; turn < 3; turn++) {
      Tensor x = random_tensor({7, 61, 90}, dtype, -100, 100);
      if (turn == 1) x = transposed(x, 0, 2);
      if (turn == 2) x = sliced(x, 1, 2);
      for (int64_t d = 0; d < 3; d++) {
        const auto [high, high_at] = cpu::max_dim(x, d - 3, true);
        const auto [low, low_at] = cpu::min_dim(x, d, false);
        CHECK(high.size(d) == 1 && high.dim() == 3 && low.dim() == 2 && high.dtype() == dtype && high_at.dtype() == ARGAND_INT64);
        int64_t inner = 1;
        for (int64_t k = d + 1; k < 3; k++) inner *= x.size(k);
        for (int64_t r = 0; r < high.numel(); r++) {
          const int64_t start = r / inner * inner * x.size(d) + r % inner;
          int64_t top = 0, bottom = 0;
          for (int64_t i = 1; i < x.size(d); i++) {
            if (at(x, start + i * inner) > at(x, start + top * inner)) top = i;
            if (at(x, start + i * inner) < at(x, start + bottom * inner)) bottom = i;
          }
          CHECK(at(high_at, r) == top && at(low_at, r) == bottom && at(high, r) == at(x, start + top * inner) &&
                    at(low, r) == at(x, start + bottom * inner),
                "dtype %s, dim %ld, row %ld", kDTypeName[dtype], d, r);
        }
      }
    }
  for (int64_t n = 1; n < 140; n++) {  // every tail; infinite and NaN values
    const Tensor x = random_tensor({n}, ARGAND_FLOAT32);
    const int64_t i = random_below(n);
    put(x, i, INFINITY);
    CHECK(at(cpu::argmax(x, std::nullopt, false), 0) == i);
    put(x, i, -INFINITY);
    CHECK(at(cpu::argmin(x, 0, true), 0) == i);
    put(x, i, NAN);
    const auto [value, index] = cpu::max_dim(x, 0, false);
    CHECK(at(value, 0) != at(value, 0) && at(index, 0) == i && at(cpu::argmin(x, std::nullopt, false), 0) == i);
    const Tensor none = empty({n}, ARGAND_FLOAT64);
    for (int64_t k = 0; k < n; k++) put(none, k, -INFINITY);
    CHECK(at(cpu::argmax(none, std::nullopt, false), 0) == 0);
  }
  const Tensor large = random_tensor({1000000}, ARGAND_INT32, -1000, 1000);
  put(large, 777777, 5000);
  CHECK(at(cpu::argmax(large, std::nullopt, false), 0) == 777777);
  CHECK(cpu::argmax(large, std::nullopt, true).dim() == 1);
  CHECK(at(cpu::argmax(random_tensor({}, ARGAND_FLOAT32), -1, false), 0) == 0);
  CHECK_THROWS("numel() == 0", cpu::argmax(empty({0}, ARGAND_FLOAT32), std::nullopt, false));
  CHECK_THROWS("non-zero size", cpu::max_dim(empty({3, 0}, ARGAND_FLOAT32), 1, false));
  CHECK_THROWS("not compared", cpu::argmax(empty({3}, ARGAND_COMPLEX64), std::nullopt, false));
  CHECK_THROWS("Dimension out of range", cpu::max_dim(empty({3}, ARGAND_FLOAT32), 2, false));
}

void variances() {
  const Tensor x = empty({6, 50, 41}, ARGAND_FLOAT64);
  for (int64_t i = 0; i < x.numel(); i++) put(x, i, 1000 + random_real(-1, 1));
  for (uint64_t mask = 0; mask < 8; mask++) {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < 3; d++)
      if (mask >> d & 1) dims.push_back(d);
    const auto [variance, mean] = cpu::var_mean(x, IntList(dims), Scalar(1), true);
    std::vector<double> sum(variance.numel()), squares(variance.numel());
    const int64_t n = x.numel() / variance.numel();
    auto output = [&](int64_t i) {
      const int64_t index[] = {i / (50 * 41), i / 41 % 50, i % 41};
      int64_t flat = 0;
      for (int64_t d = 0; d < 3; d++) flat = flat * variance.size(d) + (variance.size(d) == 1 ? 0 : index[d]);
      return flat;
    };
    for (int64_t i = 0; i < x.numel(); i++) sum[output(i)] += at(x, i);
    for (int64_t i = 0; i < x.numel(); i++) squares[output(i)] += std::pow(at(x, i) - sum[output(i)] / n, 2);
    for (int64_t i = 0; i < variance.numel(); i++) {
      CHECK(std::fabs(at(mean, i) - sum[i] / n) < 1e-11);
      CHECK(std::fabs(at(variance, i) - squares[i] / (n - 1)) < 1e-11, "mask %ld: %g, expected %g", static_cast<long>(mask), at(variance, i),
            squares[i] / (n - 1));
    }
  }
  for (int dtype : {ARGAND_FLOAT16, ARGAND_BFLOAT16, ARGAND_FLOAT32, ARGAND_FLOAT64})
    for (int64_t n : {2, 15, 16, 17, 100, 9000, 300000}) {
      const Tensor y = random_tensor({n}, dtype);
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < n; i++) sum += at(y, i);
      for (int64_t i = 0; i < n; i++) squares += std::pow(at(y, i) - sum / n, 2);
      const double got = at(cpu::var(y, std::nullopt, Scalar(0), false), 0), want = squares / n;
      CHECK(std::fabs(got - want) <= std::max(1e-5, dtype == ARGAND_BFLOAT16  ? 4e-3
                                                    : dtype == ARGAND_FLOAT16 ? 5e-4
                                                                              : 0.0) *
                                         want,
            "%s, n %ld: got %g, expected %g", kDTypeName[dtype], n, got, want);
    }
  const Tensor one = random_tensor({1}, ARGAND_FLOAT32);
  CHECK(at(cpu::var(one, std::nullopt, std::nullopt, false), 0) != at(cpu::var(one, std::nullopt, std::nullopt, false), 0));
  CHECK(at(cpu::var(one, std::nullopt, Scalar(0), false), 0) == 0);
  CHECK_THROWS("expected a floating dtype", cpu::var(empty({3}, ARGAND_INT32), std::nullopt, std::nullopt, false));
  const Tensor long_row = random_tensor({1, 2000000}, ARGAND_FLOAT32);
  api->set_num_threads(1);
  const double single = at(cpu::var(long_row, IntList({1}), std::nullopt, false), 0);
  api->set_num_threads(3);
  CHECK(single == at(cpu::var(long_row, IntList({1}), std::nullopt, false), 0));
}
}  // namespace

int main() {
  argand::api = argand_api();
  RUN(extremes);
  RUN(variances);
  return 0;
}
