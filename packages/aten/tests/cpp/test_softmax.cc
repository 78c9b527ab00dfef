// softmax, log_softmax and their gradients over every dim, against sums in double.
#include "packages/aten/generated/kernels.h"
#include "packages/aten/tests/cpp/every_tier.h"

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

struct Split {
  int64_t outer = 1, n = 1, inner = 1;
  Split(IntList sizes, int64_t dim) {
    for (int64_t i = 0; i < sizes.n; i++) (i < dim ? outer : i == dim ? n : inner) *= sizes[i];
  }
  template <class F>
  void rows(F f) const {  // f(first index, step)
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++) f(o * n * inner + i, inner);
  }
};

void check_rows(const Tensor& x, int64_t dim) {
  const int dtype = x.dtype();
  const Tensor y = cpu::softmax(x, dim, ARGAND_DTYPE_NONE), l = cpu::log_softmax(x, dim, ARGAND_DTYPE_NONE), g = real_tensor(x.sizes(), dtype);
  const Tensor dy = cpu::softmax_backward(g, y, dim, dtype), dl = cpu::log_softmax_backward(g, l, dim, dtype);
  const Split s(x.sizes(), dim);
  s.rows([&](int64_t first, int64_t step) {
    double top = -INFINITY, sum = 0, dot = 0, total = 0;
    for (int64_t k = 0; k < s.n; k++) top = std::max(top, at(x, first + k * step));
    for (int64_t k = 0; k < s.n; k++) sum += std::exp(at(x, first + k * step) - top);
    for (int64_t k = 0; k < s.n; k++) dot += at(g, first + k * step) * at(y, first + k * step), total += at(g, first + k * step);
    for (int64_t k = 0; k < s.n; k++) {
      const int64_t i = first + k * step;
      check_close("softmax", at(y, i), std::exp(at(x, i) - top) / sum, dtype, 0.01);
      check_close("log_softmax", at(l, i), at(x, i) - top - std::log(sum), dtype);
      check_close("softmax_backward", at(dy, i), at(y, i) * (at(g, i) - dot), dtype);
      check_close("log_softmax_backward", at(dl, i), at(g, i) - std::exp(at(l, i)) * total, dtype, 1 + std::fabs(total));
    }
  });
}

void every_dim() {
  const std::vector<std::vector<int64_t>> shapes = {{}, {1}, {5}, {3, 7}, {2, 130}, {4, 33, 5}, {3, 2, 70}, {2, 3, 17, 3}, {0, 3}, {2, 65, 90}};
  for (int dtype : kFloating)
    for (const auto& shape : shapes)
      for (int64_t d = 0; d < std::max<int64_t>(1, static_cast<int64_t>(shape.size())); d++) {
        const Tensor x = real_tensor(shape, dtype);
        check_rows(x, d);
        if (shape.size() == 3) check_rows(transposed(x, 0, 2), d);
      }
}

void special_values() {
  const double cases[][4] = {
      {1, 2, NAN, 0}, {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, {INFINITY, 1, 2, 3}, {-INFINITY, 0, 5, 1}, {1000, -1000, 3, 1000}};
  for (const auto& values : cases)
    for (bool columns : {false, true}) {
      const Tensor x = columns ? empty({4, 3}, ARGAND_FLOAT32) : empty({3, 4}, ARGAND_FLOAT32);
      for (int64_t i = 0; i < 12; i++) put(x, i, values[columns ? i / 3 : i % 4]);
      const Tensor y = cpu::softmax(x, columns ? 0 : 1, ARGAND_DTYPE_NONE);
      double top = -INFINITY, sum = 0;
      for (double v : values) top = std::max(top, v);
      for (double v : values) sum += std::exp(v - top);
      for (int64_t i = 0; i < 12; i++) check_close("special", at(y, i), std::exp(values[columns ? i / 3 : i % 4] - top) / sum, ARGAND_FLOAT32);
    }
}

void dtypes_and_errors() {
  const Tensor x = random_tensor({3, 4}, ARGAND_INT64);
  CHECK(cpu::softmax(x, 1, ARGAND_FLOAT64).dtype() == ARGAND_FLOAT64);
  CHECK(cpu::softmax_backward(real_tensor({3}, ARGAND_FLOAT32), real_tensor({3}, ARGAND_FLOAT32), 0, ARGAND_BFLOAT16).dtype() == ARGAND_BFLOAT16);
  CHECK_THROWS("floating dtype", cpu::softmax(x, 1, ARGAND_DTYPE_NONE));
  CHECK_THROWS("Dimension out of range (expected to be in range of [-2, 1], but got 2)", cpu::log_softmax(x, 2, ARGAND_FLOAT32));
}

void tests() {
  RUN(every_dim);
  RUN(special_values);
  RUN(dtypes_and_errors);
}
}  // namespace

int main() { return run_in_every_tier(tests); }
