// Reductions and scans against naive loops, in every instruction tier.
#include <algorithm>
#include <functional>

#include "packages/aten/csrc/kernels/cpu/reduce_driver.h"
#include "packages/aten/csrc/kernels/cpu/scan_driver.h"
#include "packages/aten/tests/cpp/every_tier.h"

GENERATED(ReduceKernel, sum)
GENERATED(ReduceKernel, mean)
GENERATED(ReduceKernel, amax)
GENERATED(ReduceKernel, any)
GENERATED(ReduceKernel, all)
GENERATED(ScanKernel, cumsum)

namespace {
using namespace argand;
using namespace testing;

const ReduceOp sum_op = {"sum", TIERS(sum), 12, false}, mean_op = {"mean", TIERS(mean), 4, false}, amax_op = {"amax", TIERS(amax), 10, true};
const ReduceOp any_op = {"any", TIERS(any), 12, false}, all_op = {"all", TIERS(all), 12, false};
const ScanOp cumsum_op = {"cumsum", TIERS(cumsum), 12};

// Every element of the result against a naive loop.
void check_reduced(const ReduceOp& op, const Tensor& x, std::vector<int64_t> dims, double start, double (*combine)(double, double)) {
  const Tensor r = reduce(op, x, IntList(dims), true);
  std::vector<double> want(r.numel(), start);
  for (int64_t i = 0; i < x.numel(); i++) {
    int64_t rest = i, flat = 0, stride = 1;
    for (int64_t d = x.dim() - 1; d >= 0; d--) {
      const int64_t index = rest % x.size(d);
      rest /= x.size(d);
      if (r.size(d) != 1) flat += index * stride;
      stride *= r.size(d);
    }
    want[flat] = combine(want[flat], at(x, i));
  }
  for (int64_t i = 0; i < r.numel(); i++)
    CHECK(at(r, i) == rounded(want[i], r.dtype()), "%s of %s, element %ld: got %g, expected %g (dtype %s)", op.name, to_string(x.sizes()).c_str(), i,
          at(r, i), want[i], kDTypeName[x.dtype()]);
  const Tensor away = reduce(op, x, IntList(dims), false);
  CHECK(away.dim() == x.dim() - static_cast<int64_t>(dims.empty() ? x.dim() : dims.size()) &&
        std::memcmp(away->data, r->data, r.numel() * r.itemsize()) == 0);
}
double plus(double a, double b) { return a + b; }
double larger(double a, double b) { return std::max(a, b); }
double either(double a, double b) { return a != 0 || b != 0; }
double both(double a, double b) { return a != 0 && b != 0; }

void all_shapes() {
  const std::vector<std::vector<int64_t>> shapes = {{1},       {7},         {130},         {5000},   {3, 5},   {70, 33},   {33, 700},
                                                    {2, 3, 4}, {9, 17, 40}, {40, 3, 5, 6}, {600, 3}, {3, 600}, {20, 1, 30}};
  for (int dtype = 0; dtype < kComputedDTypes; dtype++)
    for (const auto& shape : shapes)
      for (int turn = 0; turn < 3; turn++) {
        Tensor x = random_tensor(shape, dtype, dtype == ARGAND_FLOAT16 || dtype == ARGAND_BFLOAT16 ? 0 : -3,
                                 dtype == ARGAND_FLOAT16 || dtype == ARGAND_BFLOAT16 ? 1 : 3);
        if (turn == 1 && x.dim() >= 2) x = transposed(x, 0, x.dim() - 1);
        if (turn == 2) x = sliced(x, 0, 2);
        for (uint64_t mask = 0; mask < uint64_t{1} << x.dim(); mask++) {
          std::vector<int64_t> dims;
          for (int64_t d = 0; d < x.dim(); d++)
            if (mask >> d & 1) dims.push_back(mask & 1 ? d : d - x.dim());
          check_reduced(sum_op, x, dims, 0, plus);
          if (dtype != ARGAND_COMPLEX128) check_reduced(any_op, x, dims, 0, either);
          if (dtype != ARGAND_COMPLEX128) check_reduced(all_op, x, dims, 1, both);
          if (dtype <= ARGAND_INT64 || dtype == ARGAND_FLOAT32 || dtype == ARGAND_FLOAT64) check_reduced(amax_op, x, dims, -INFINITY, larger);
        }
      }
}

void edges() {
  const Tensor none = empty({0, 3}, ARGAND_FLOAT32);
  const Tensor zeros = reduce(sum_op, none, IntList({0}), false);
  CHECK(zeros.sizes() == IntList({3}) && at(zeros, 0) == 0 && at(reduce(sum_op, none, std::nullopt, false), 0) == 0);
  CHECK(reduce(sum_op, none, IntList({1}), false).numel() == 0);
  CHECK(at(reduce(mean_op, none, std::nullopt, false), 0) != 0);  // NaN
  CHECK_THROWS("no identity", reduce(amax_op, none, IntList({0}), false));
  CHECK_THROWS("not implemented for dtype int64", reduce(mean_op, empty({3}, ARGAND_INT64), std::nullopt, false));
  CHECK_THROWS("Dimension out of range", reduce(sum_op, none, IntList({5}), false));
  CHECK_THROWS("appears multiple times", reduce(sum_op, none, IntList({0, -2}), false));
  const Tensor x = random_tensor({4000}, ARGAND_FLOAT32);
  put(x, 1234, NAN);
  CHECK(at(reduce(amax_op, x, std::nullopt, false), 0) != at(reduce(amax_op, x, std::nullopt, false), 0));
  const Tensor meta = empty({2, 3}, ARGAND_INT32, ARGAND_DEVICE(ARGAND_META, 0)), shaped = reduce(sum_op, meta, IntList({1}), true);
  CHECK(shaped.is_meta() && shaped.dtype() == ARGAND_INT64 && shaped.sizes() == IntList({2, 1}));
  const Tensor ints = random_tensor({1000}, ARGAND_INT32), as_double = reduce(sum_op, ints, std::nullopt, false, ARGAND_FLOAT64);
  CHECK(as_double.dtype() == ARGAND_FLOAT64 && at(as_double, 0) == at(reduce(sum_op, ints, std::nullopt, false), 0));
}

// float32 sums of a long row keep their digits, and have the same bits for any number of threads.
void accuracy_and_threads() {
  for (int64_t columns : {1, 3, 24, 100}) {
    const Tensor x = empty({columns == 1 ? 3000000 : 300000, columns}, ARGAND_FLOAT32);
    for (int64_t i = 0; i < x.numel(); i++) x.data<float>()[i] = static_cast<float>(random_real(0, 1));
    const int before = api->num_threads();
    api->set_num_threads(1);
    const Tensor one = reduce(sum_op, x, IntList({0}), false);
    api->set_num_threads(3);
    const Tensor three = reduce(sum_op, x, IntList({0}), false);
    api->set_num_threads(before);
    CHECK(std::memcmp(one->data, three->data, columns * 4) == 0);
    for (int64_t c = 0; c < columns; c++) {
      double want = 0;
      for (int64_t r = 0; r < x.size(0); r++) want += x.data<float>()[r * columns + c];
      CHECK(std::fabs(at(one, c) - want) < 1e-6 * want, "column %ld of %ld: got %.9g, expected %.9g", c, columns, at(one, c), want);
    }
  }
}

void running_sums() {
  for (int dtype : {ARGAND_BOOL, ARGAND_UINT8, ARGAND_INT32, ARGAND_INT64, ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_COMPLEX64})
    for (int turn = 0; turn < 3; turn++) {
      Tensor x = random_tensor({13, 20, 70}, dtype);
      if (turn == 1) x = transposed(x, 0, 2);
      if (turn == 2) x = sliced(x, 1, 2);
      for (int64_t d = 0; d < 3; d++) {
        const Tensor r = scan(cumsum_op, x, d - 3 * (turn & 1));
        int64_t stride = 1;
        for (int64_t k = d + 1; k < 3; k++) stride *= x.size(k);
        for (int64_t i = 0; i < x.numel(); i++) {
          const bool first = i / stride % x.size(d) == 0;
          CHECK(at(r, i) == (first ? 0 : at(r, i - stride)) + at(x, i), "cumsum along %ld, element %ld (dtype %s)", d, i, kDTypeName[dtype]);
        }
      }
    }
  CHECK(at(scan(cumsum_op, random_tensor({}, ARGAND_FLOAT32, 5, 5), 0), 0) == 5);
  CHECK_THROWS("Dimension out of range", scan(cumsum_op, empty({3}, ARGAND_FLOAT32), 1));
}

void tests() {
  RUN(all_shapes);
  RUN(edges);
  RUN(accuracy_and_threads);
  RUN(running_sums);
}
}  // namespace

int main() { return run_in_every_tier(tests); }
