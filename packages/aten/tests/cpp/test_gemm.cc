// mm, bmm, addmm and linear against naive loops, for every dtype, tier and layout of the operands.
#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/blas.h"
#include "packages/aten/csrc/kernels/cpu/gemm_bf16.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/tests/cpp/every_tier.h"

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

// Layout 0: row-major, 1: transposed, 2: every second column.
Tensor matrix(int64_t rows, int64_t cols, int dtype, int layout) {
  if (layout == 1) return transposed(random_tensor({cols, rows}, dtype), 0, 1);
  if (layout == 2) return sliced(random_tensor({rows, 2 * cols}, dtype), 0, 2);
  return random_tensor({rows, cols}, dtype);
}

double product(const Tensor& a, const Tensor& b, int64_t i, int64_t j) {  // exact: small integers
  double sum = 0;
  for (int64_t p = 0; p < a.size(1); p++) sum += at(a, i * a.size(1) + p) * at(b, p * b.size(1) + j);
  return sum;
}

double stored(double v, int dtype) {
  return dtype == ARGAND_UINT8  ? static_cast<uint8_t>(static_cast<int64_t>(v))
         : dtype == ARGAND_INT8 ? static_cast<int8_t>(static_cast<int64_t>(v))
                                : rounded(v, dtype);
}

void matrices() {
  const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {8, 48, 16}, {17, 33, 65}, {9, 100, 300}, {1, 64, 40}, {40, 1, 9}, {5, 4, 0}, {0, 4, 3}};
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_BFLOAT16, ARGAND_FLOAT16, ARGAND_UINT8, ARGAND_INT8, ARGAND_INT32, ARGAND_INT64,
                    ARGAND_COMPLEX64, ARGAND_COMPLEX128})
    for (const auto& [m, n, k] : shapes)
      for (int la = 0; la < 3; la++)
        for (int lb = 0; lb < 3; lb++) {
          const Tensor a = matrix(m, k, dtype, la), b = matrix(k, n, dtype, lb), c = random_tensor({n}, dtype);
          const Tensor ab = cpu::mm(a, b), sum = cpu::addmm(c, a, b, 2, 3);
          const Tensor lin = cpu::linear(a, transposed(b, 0, 1), c), plain = cpu::linear(a, transposed(b, 0, 1), Tensor());
          for (int64_t i = 0; i < m * n; i++) {
            const double want = product(a, b, i / n, i % n), bias = at(c, i % n);
            CHECK(at(ab, i) == stored(want, dtype), "mm %ld %ld %ld, %s: got %g, expected %g", m, n, k, kDTypeName[dtype], at(ab, i), want);
            CHECK(at(sum, i) == stored(3 * want + 2 * bias, dtype), "addmm %s: got %g, expected %g", kDTypeName[dtype], at(sum, i),
                  3 * want + 2 * bias);
            CHECK(at(lin, i) == stored(want + bias, dtype), "linear %s: got %g, expected %g", kDTypeName[dtype], at(lin, i), want + bias);
            CHECK(at(plain, i) == stored(want, dtype));
          }
        }
}

void batches() {
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_BFLOAT16, ARGAND_INT64})
    for (int64_t batch : {0, 1, 5}) {
      const Tensor a = random_tensor({batch, 6, 20}, dtype), b = transposed(random_tensor({batch, 33, 20}, dtype), 1, 2);
      const Tensor out = cpu::bmm(a, b);
      for (int64_t i = 0; i < out.numel(); i++) {
        double want = 0;
        const int64_t n = i / (6 * 33), r = i / 33 % 6, c = i % 33;
        for (int64_t p = 0; p < 20; p++) want += at(a, (n * 6 + r) * 20 + p) * at(b, (n * 20 + p) * 33 + c);
        CHECK(at(out, i) == stored(want, dtype));
      }
    }
}

void large_and_parallel() {
  for (int threads : {1, 3})
    for (int dtype : {ARGAND_FLOAT32, ARGAND_BFLOAT16})
      for (int layout = 0; layout < 4; layout++) {
        api->set_num_threads(threads);
        const int64_t m = 131, n = 1117, k = 783;  // more than a block of each
        const Tensor a = matrix(m, k, dtype, layout & 1), b = matrix(k, n, dtype, layout >> 1), ab = cpu::mm(a, b);
        for (int64_t i = 0; i < ab.numel(); i += 397) CHECK(at(ab, i) == stored(product(a, b, i / n, i % n), dtype));
      }
}

// Each unit that this processor has, whichever the operators take; blocks, slabs and what is left of them.
void units_of_bfloat16() {
  const int64_t shapes[][3] = {{33, 1, 1}, {40, 31, 2}, {64, 64, 31}, {37, 70, 385}, {70, 45, 1000}, {300, 33, 70}, {35, 1100, 40}};
  for (const cpu::Bf16Unit unit : {cpu::Bf16Unit::dots, cpu::Bf16Unit::tiles})
    for (const auto& [m, n, k] : shapes)
      for (int layout = 0; layout < 4 && unit <= cpu::bf16_unit(); layout++) {
        const Tensor a = matrix(m, k, ARGAND_BFLOAT16, layout & 1), b = matrix(k, n, ARGAND_BFLOAT16, layout >> 1);
        const Tensor c = random_tensor({m, n}, ARGAND_BFLOAT16), old = empty({m, n}, ARGAND_BFLOAT16);
        std::copy_n(c.data<uint16_t>(), c.numel(), old.data<uint16_t>());
        auto operand = [](const Tensor& t) { return cpu::Bf16Matrix{t.data<uint16_t>(), t.stride(0), t.stride(1)}; };
        cpu::gemm_bf16(unit, m <= cpu::kFewBf16Rows, m, n, k, 2, operand(a), operand(b), 3, c.data<uint16_t>(), n);
        for (int64_t i = 0; i < c.numel(); i++) {
          const double want = 2 * product(a, b, i / n, i % n) + 3 * at(old, i);
          CHECK(at(c, i) == stored(want, ARGAND_BFLOAT16), "unit %d, %ld x %ld x %ld: got %g, expected %g", static_cast<int>(unit), m, n, k, at(c, i),
                want);
        }
      }
}

void ignored_and_empty() {
  const Tensor a = random_tensor({2, 3}, ARGAND_FLOAT32), b = random_tensor({3, 2}, ARGAND_FLOAT32), nan = empty({2, 2}, ARGAND_FLOAT32);
  for (int i = 0; i < 4; i++) put(nan, i, NAN);
  const Tensor out = cpu::addmm(nan, a, b, 0, 1);  // beta 0 does not read self
  for (int64_t i = 0; i < 4; i++) CHECK(at(out, i) == product(a, b, i / 2, i % 2));
  const Tensor none = cpu::mm(empty({2, 0}, ARGAND_FLOAT32), empty({0, 3}, ARGAND_FLOAT32));
  for (int64_t i = 0; i < 6; i++) CHECK(at(none, i) == 0);
}

void errors() {
  const Tensor a = random_tensor({2, 3}, ARGAND_FLOAT32), b = random_tensor({2, 3}, ARGAND_FLOAT32), d = random_tensor({3, 2}, ARGAND_FLOAT64);
  CHECK_THROWS("cannot be multiplied ([2, 3] and [2, 3])", cpu::mm(a, b));
  CHECK_THROWS("float32 and float64", cpu::mm(a, d));
  CHECK_THROWS("3-D", cpu::bmm(a, b));
  CHECK_THROWS("in_features", cpu::linear(a, d, Tensor()));
  CHECK_THROWS("bias of shape [3]", cpu::linear(a, b, random_tensor({3}, ARGAND_FLOAT32)));
}

// The library is looked for at the first product that is large enough; a bad path is an error on the caller's thread, even from a batch in parallel.
void missing_library() {
  const Tensor small = random_tensor({2, 2}, ARGAND_FLOAT32), a = random_tensor({8, 60, 60}, ARGAND_FLOAT32);
  CHECK(argand_aten_set_blas("/no/such/libopenblas.so") == 0);
  cpu::mm(small, small);
  api->set_num_threads(3);
  CHECK_THROWS("gemm: cannot load OpenBLAS: /no/such/libopenblas.so", cpu::bmm(a, a));
  CHECK(argand_aten_set_blas("") == 0);  // none: the built-in kernels
  CHECK(cpu::bmm(a, a).sizes() == a.sizes());
  CHECK(argand_aten_set_blas("/no/such/libopenblas.so") != 0);
}

void tests() {
  RUN(missing_library);
  RUN(matrices);
  RUN(batches);
  RUN(large_and_parallel);
  RUN(units_of_bfloat16);
  RUN(ignored_and_empty);
  RUN(errors);
}
}  // namespace

int main() { return run_in_every_tier(tests); }
