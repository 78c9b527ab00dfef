// copy_, clone, conversions, cat and fill against naive loops.
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/tests/cpp/check.h"

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

void check_equal(const Tensor& a, const Tensor& b) {
  CHECK(a.sizes() == b.sizes());
  for (int64_t i = 0; i < a.numel(); i++) {
    const double want = rounded(at(b, i), a.dtype());
    CHECK(at(a, i) == want, "element %ld of %s: got %g, expected %g (%s from %s)", i, to_string(a.sizes()).c_str(), at(a, i), want,
          kDTypeName[a.dtype()], kDTypeName[b.dtype()]);
  }
}

void conversions() {
  for (int to = 0; to < kComputedDTypes; to++)
    for (int from = 0; from < kComputedDTypes; from++)
      for (int64_t n : {0, 1, 7, 33, 130, 3000}) {
        const Tensor x = random_tensor({n}, from, from == ARGAND_BOOL || to == ARGAND_UINT8 || to == ARGAND_BOOL ? 0 : -8);
        check_equal(cpu::to_copy(x, to, std::nullopt, false, std::nullopt), x);
        const Tensor strided = sliced(random_tensor({n * 2}, from, 0, 5), 0, 2);
        check_equal(cpu::to_copy(strided, to, std::nullopt, false, std::nullopt), strided);
      }
  const Tensor x = empty({6}, ARGAND_FLOAT32);
  const double values[] = {NAN, INFINITY, -INFINITY, 1e30, 65519.0, 1e-8};
  for (int i = 0; i < 6; i++) put(x, i, values[i]);
  const Tensor h = cpu::to_copy(x, ARGAND_FLOAT16, std::nullopt, false, std::nullopt),
               b = cpu::to_copy(x, ARGAND_BOOL, std::nullopt, false, std::nullopt);
  CHECK(at(h, 0) != at(h, 0) && at(h, 1) == INFINITY && at(h, 2) == -INFINITY && at(h, 3) == INFINITY && at(h, 4) == 65504 && at(h, 5) == 0);
  for (int i = 0; i < 6; i++) CHECK(at(b, i) == 1);
  const Tensor minus = random_tensor({3}, ARGAND_FLOAT32, -1, -1);
  CHECK(at(cpu::to_copy(minus, ARGAND_UINT8, std::nullopt, false, std::nullopt), 0) == 255);
}

void layouts() {
  for (int dtype : {ARGAND_UINT8, ARGAND_BFLOAT16, ARGAND_FLOAT32, ARGAND_INT64, ARGAND_COMPLEX128}) {
    const Tensor x = random_tensor({45, 70}, dtype), t = transposed(x, 0, 1), cube = random_tensor({5, 33, 18}, dtype);
    const Tensor kept = cpu::clone(t, std::nullopt), dense = cpu::clone(t, 0);
    CHECK(kept.strides() == t.strides() && dense.is_contiguous());
    check_equal(kept, t);
    check_equal(dense, t);
    for (int a = 0; a < 3; a++)
      for (int b = a + 1; b < 3; b++) check_equal(cpu::clone(transposed(cube, a, b), 0), transposed(cube, a, b));
    const Tensor target = random_tensor({70, 45}, dtype), row = random_tensor({45}, dtype), other = random_tensor({45, 70}, ARGAND_FLOAT64);
    cpu::copy_(target, t, false);
    check_equal(target, t);
    cpu::copy_(transposed(target, 0, 1), transposed(t, 0, 1), false);
    check_equal(target, t);
    cpu::copy_(target, row, false);
    for (int64_t i = 0; i < target.numel(); i++) CHECK(at(target, i) == at(row, i % 45));
    if (dtype != ARGAND_UINT8) {
      cpu::copy_(target, transposed(other, 0, 1), false);
      check_equal(target, transposed(other, 0, 1));
    }
    cpu::copy_(sliced(target, 1, 3), random_tensor({1}, dtype, 4, 4), false);
    for (int64_t i = 0; i < target.numel(); i++)
      if (i % 45 % 3 == 1) CHECK(at(target, i) == 4);
  }
  const Tensor line = random_tensor({1000}, ARGAND_INT32), before = cpu::clone(line, 0);  // overlap: as if read first
  cpu::copy_(view_of(line, {999}, {1}, 1), view_of(line, {999}, {1}, 0), false);
  for (int64_t i = 1; i < 1000; i++) CHECK(at(line, i) == at(before, i - 1));
  const Tensor square = random_tensor({30, 30}, ARGAND_FLOAT32), was = cpu::clone(square, 0);
  cpu::copy_(square, transposed(square, 0, 1), false);
  check_equal(square, transposed(was, 0, 1));
  CHECK_THROWS("broadcasts to [3]", cpu::copy_(empty({3}, ARGAND_FLOAT32), empty({4}, ARGAND_FLOAT32), false));
  CHECK_THROWS("more than one element", cpu::copy_(view_of(line, {4, 3}, {0, 1}, 0), empty({3}, ARGAND_INT32), false));
  const Tensor meta = cpu::to_copy(line, ARGAND_DTYPE_NONE, ARGAND_DEVICE(ARGAND_META, 0), false, std::nullopt);
  CHECK(meta.is_meta() && meta.sizes() == line.sizes());
  CHECK_THROWS("no data", cpu::to_copy(meta, ARGAND_DTYPE_NONE, ARGAND_DEVICE(ARGAND_CPU, 0), false, std::nullopt));
}

void joins() {
  const Tensor a = random_tensor({4, 6, 5}, ARGAND_FLOAT32), b = random_tensor({4, 1, 5}, ARGAND_INT32),
               c = transposed(random_tensor({5, 3, 4}, ARGAND_FLOAT64), 0, 2);
  const Tensor r = cpu::cat({a, b, empty({0}, ARGAND_FLOAT32), c}, -2);
  CHECK(r.sizes() == IntList({4, 10, 5}) && r.dtype() == ARGAND_FLOAT64);
  for (int64_t i = 0; i < 4; i++)
    for (int64_t j = 0; j < 10; j++)
      for (int64_t k = 0; k < 5; k++) {
        const double want = j < 6 ? at(a, (i * 6 + j) * 5 + k) : j < 7 ? at(b, i * 5 + k) : at(c, (i * 3 + j - 7) * 5 + k);
        CHECK(at(r, (i * 10 + j) * 5 + k) == want);
      }
  CHECK_THROWS("non-empty", cpu::cat({}, 0));
  CHECK_THROWS("Sizes of tensors must match except in dimension 0", cpu::cat({a, c}, 0));
  CHECK_THROWS("same number of dimensions", cpu::cat({a, empty({2, 2}, ARGAND_FLOAT32)}, 0));
  CHECK_THROWS("zero-dimensional", cpu::cat({random_tensor({}, ARGAND_FLOAT32)}, 0));
}

void fills() {
  for (int dtype = 0; dtype < kComputedDTypes; dtype++) {
    const Tensor x = random_tensor({20, 33}, dtype), odd = sliced(x, 1, 2);
    cpu::fill_(x, Operand(1.0));
    for (int64_t i = 0; i < x.numel(); i++) CHECK(at(x, i) == 1);
    cpu::fill_(odd, Operand(random_tensor({}, ARGAND_FLOAT64, 0, 0)));
    for (int64_t i = 0; i < x.numel(); i++) CHECK(at(x, i) == (i % 33 % 2 ? 0 : 1));
    cpu::zero_(transposed(x, 0, 1));
    for (int64_t i = 0; i < x.numel(); i++) CHECK(at(x, i) == 0);
  }
  const Tensor x = empty({3}, ARGAND_UINT8);
  cpu::fill_(x, Operand(-1));
  CHECK(at(x, 0) == 255);
  CHECK_THROWS("0-dimensional", cpu::fill_(x, Operand(x)));
  CHECK_THROWS("complex number", cpu::fill_(x, Operand(Scalar(1.0, 2.0))));
}
}  // namespace

int main() {
  argand::api = argand_api();
  RUN(conversions);
  RUN(layouts);
  RUN(joins);
  RUN(fills);
  return 0;
}
