// The matrix exponential by scaling and squaring: products alone, no solutions, and one wait for the norms.
#include <algorithm>
#include <cmath>
#include <vector>

#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/exponential.h"
#include "packages/aten/generated/ops/matrix.h"
#include "packages/aten/generated/ops/reduction.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kPower = 4;  // of Taylor's polynomial in blocks (M. Paterson, L. Stockmeyer, "On the number of nonscalar multiplications", 1973)

// Taylor's polynomial of `blocks` blocks of four terms and one more, of (count, n, n). A norm of 1 leaves 1/13! of three blocks, 1/21! of five.
Tensor taylor(const Tensor& a, int blocks) {
  const Tensor eye = ops::eye(a.size(-1), std::nullopt, a.dtype(), a.device());
  const Tensor squared = ops::bmm(a, a), powers[kPower] = {a, squared, ops::bmm(squared, a), ops::bmm(squared, squared)};
  std::vector<double> terms(static_cast<size_t>(kPower * blocks) + 1, 1.0);
  for (size_t i = 1; i < terms.size(); i++) terms[i] = terms[i - 1] / static_cast<double>(i);
  const auto block = [&](int b, int highest) {
    const double* t = &terms[static_cast<size_t>(kPower * b)];
    Tensor sum = ops::add(ops::mul(a, Scalar(t[1])), eye, Scalar(t[0]));
    for (int i = 2; i <= highest; i++) sum = ops::add(sum, powers[i - 1], Scalar(t[i]));
    return sum;
  };
  Tensor result = block(blocks - 1, kPower);
  for (int b = blocks - 2; b >= 0; b--) result = ops::baddbmm(block(b, kPower - 1), result, powers[kPower - 1]);
  return result;
}

}  // namespace

Tensor linalg_matrix_exp(const Tensor& self) {
  const places::Below below;
  if (self.dtype() == ARGAND_FLOAT16 || self.dtype() == ARGAND_BFLOAT16)
    return ops::_to_copy(linalg_matrix_exp(ops::_to_copy(self, ARGAND_FLOAT32)), self.dtype());
  if (self.numel() == 0) return ops::clone(self, int64_t{0});
  const int64_t n = self.size(-1), count = self.numel() / (n * n);
  Tensor a = ops::reshape(self, {count, n, n});
  const Tensor norms = ops::_to_copy(ops::amax(ops::sum(ops::abs(a), IntList({-2})), IntList({-1})), ARGAND_FLOAT64, ARGAND_DEVICE(ARGAND_CPU, 0));
  // How often each matrix is halved until its norm is at most 1.
  const Tensor halvings = empty({count, 1, 1}, ARGAND_FLOAT64);
  double most = 0;
  for (int64_t i = 0; i < count; i++) {
    const double norm = norms.data<double>()[i];
    const double h = std::isfinite(norm) && norm > 1 ? std::ceil(std::log2(norm)) : 0;
    halvings.data<double>()[i] = h;
    most = std::max(most, h);
  }
  const bool is_double = self.dtype() == ARGAND_FLOAT64 || self.dtype() == ARGAND_COMPLEX128;
  const Tensor each = count > 1 && most > 0 ? ops::_to_copy(halvings, is_double ? ARGAND_FLOAT64 : ARGAND_FLOAT32, self.device()) : Tensor();
  if (each)
    a = ops::mul(a, ops::exp2(ops::neg(each)));
  else if (most > 0)
    a = ops::mul(a, Scalar(std::exp2(-most)));
  Tensor result = taylor(a, is_double ? 5 : 3);
  for (double i = 0; i < most; i++) {
    const Tensor next = ops::bmm(result, result);
    result = each ? ops::where(ops::gt(each, Scalar(i)), next, result) : next;
  }
  return ops::reshape(result, self.sizes());
}

}  // namespace argand::kernels::cuda
