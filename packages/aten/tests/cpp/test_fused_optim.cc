// Fused optimizer steps against naive loops in float64.
#include "packages/aten/generated/kernels.h"
#include "packages/aten/tests/cpp/check.h"

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

Tensor random_values(IntList sizes, int dtype, double low, double high) {
  const Tensor t = empty(sizes, dtype);
  for (int64_t i = 0; i < t.numel(); i++) put(t, i, random_real(low, high));
  return t;
}
TensorList lists(int dtype, double low, double high) {  // small, empty, large and transposed tensors
  return {random_values({3}, dtype, low, high), random_values({0, 2}, dtype, low, high), random_values({200, 211}, dtype, low, high),
          transposed(random_values({17, 5}, dtype, low, high), 0, 1)};
}
std::vector<std::vector<double>> values(const TensorList& list) {
  std::vector<std::vector<double>> out;
  for (const Tensor& t : list) {
    out.emplace_back();
    for (int64_t i = 0; i < t.numel(); i++) out.back().push_back(at(t, i));
  }
  return out;
}
double tolerance(int dtype) { return dtype == ARGAND_FLOAT64 ? 1e-13 : dtype == ARGAND_FLOAT32 ? 1e-5 : dtype == ARGAND_FLOAT16 ? 4e-3 : 4e-2; }
void check_near(const TensorList& list, const std::vector<std::vector<double>>& want, const char* what) {
  for (size_t t = 0; t < list.size(); t++)
    for (int64_t i = 0; i < list[t].numel(); i++)
      CHECK(std::fabs(at(list[t], i) - want[t][i]) <= tolerance(list[t].dtype()) * (1 + std::fabs(want[t][i])),
            "%s: tensor %zu, element %ld: got %.9g, expected %.9g (%s)", what, t, i, at(list[t], i), want[t][i], kDTypeName[list[t].dtype()]);
}

void adam(int dtype, bool decoupled, bool amsgrad, bool maximize) {
  const TensorList p = lists(dtype, -2, 2), m = lists(dtype, -0.1, 0.1), v = lists(dtype, 0.1, 0.2), top = lists(dtype, 0.1, 0.25);
  TensorList steps;
  for (size_t t = 0; t < p.size(); t++) steps.push_back(random_tensor({}, ARGAND_FLOAT32, static_cast<int>(t), static_cast<int>(t)));
  const double lr = 0.01, beta1 = 0.9, beta2 = 0.99, decay = 0.1, eps = 1e-6;
  auto x = values(p), mean = values(m), square = values(v), most = values(top);
  for (int turn = 0; turn < 3; turn++) {
    const TensorList g = lists(dtype, -1, 1);
    (decoupled ? cpu::fused_adamw_ : cpu::fused_adam_)(p, g, m, v, amsgrad ? top : TensorList(), steps, lr, beta1, beta2, decay, eps, amsgrad,
                                                       maximize, Tensor(), Tensor());
    for (size_t t = 0; t < p.size(); t++) {
      const double step = static_cast<double>(t) + turn + 1;
      CHECK(at(steps[t], 0) == step);
      for (int64_t i = 0; i < p[t].numel(); i++) {
        double grad = maximize ? -at(g[t], i) : at(g[t], i);
        if (decoupled)
          x[t][i] *= 1 - lr * decay;
        else
          grad += decay * x[t][i];
        mean[t][i] = beta1 * mean[t][i] + (1 - beta1) * grad;
        square[t][i] = beta2 * square[t][i] + (1 - beta2) * grad * grad;
        most[t][i] = std::max(most[t][i], square[t][i]);
        const double second = amsgrad ? most[t][i] : square[t][i];
        x[t][i] -= lr * (mean[t][i] / (1 - std::pow(beta1, step))) / (std::sqrt(second / (1 - std::pow(beta2, step))) + eps);
      }
    }
  }
  check_near(p, x, "parameter");
  check_near(m, mean, "exp_avg");
  check_near(v, square, "exp_avg_sq");
  if (amsgrad) check_near(top, most, "max_exp_avg_sq");
}

void sgd(int dtype, double momentum, double dampening, bool nesterov, bool maximize) {
  const TensorList p = lists(dtype, -2, 2), buffers = momentum != 0 ? lists(dtype, -1, 1) : TensorList();
  const double lr = 0.05, decay = 0.1;
  auto x = values(p), velocity = values(buffers);
  for (int turn = 0; turn < 3; turn++) {
    const TensorList g = lists(dtype, -1, 1);
    cpu::fused_sgd_(p, g, buffers, lr, momentum, dampening, nesterov, decay, maximize, turn == 0, Tensor(), Tensor());
    for (size_t t = 0; t < p.size(); t++)
      for (int64_t i = 0; i < p[t].numel(); i++) {
        double grad = (maximize ? -1 : 1) * at(g[t], i) + decay * x[t][i];
        if (momentum != 0) {
          velocity[t][i] = turn == 0 ? grad : momentum * velocity[t][i] + (1 - dampening) * grad;
          grad = nesterov ? grad + momentum * velocity[t][i] : velocity[t][i];
        }
        x[t][i] -= lr * grad;
      }
  }
  check_near(p, x, "parameter");
  check_near(buffers, velocity, "momentum buffer");
}

void adams() {
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_BFLOAT16, ARGAND_FLOAT16})
    for (int options = 0; options < 8; options++) adam(dtype, options & 1, options & 2, options & 4);
}
void sgds() {
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_BFLOAT16, ARGAND_FLOAT16}) {
    sgd(dtype, 0, 0, false, false);
    sgd(dtype, 0.9, 0, false, true);
    sgd(dtype, 0.9, 0.1, false, false);
    sgd(dtype, 0.9, 0, true, false);
  }
}
void errors() {
  const TensorList p = lists(ARGAND_FLOAT32, -1, 1), v = lists(ARGAND_FLOAT32, 0, 1), other = {p[0]};
  const auto before = values(p);
  TensorList steps(p.size(), random_tensor({}, ARGAND_FLOAT32, 1, 1)), bad = steps;
  bad[3] = random_tensor({2}, ARGAND_FLOAT32);
  CHECK_THROWS("expected the same number", cpu::fused_adamw_(p, other, v, v, {}, steps, 0.1, 0.9, 0.9, 0, 1e-8, false, false, Tensor(), Tensor()));
  CHECK_THROWS("one element", cpu::fused_adamw_(p, v, v, v, {}, bad, 0.1, 0.9, 0.9, 0, 1e-8, false, false, Tensor(), Tensor()));
  CHECK_THROWS("expected the same", cpu::fused_sgd_(p, lists(ARGAND_FLOAT64, 0, 1), {}, 0.1, 0, 0, false, 0, false, true, Tensor(), Tensor()));
  CHECK(values(p) == before && at(steps[0], 0) == 1);  // nothing half-done
}
}  // namespace

int main() {
  argand::api = argand_api();
  RUN(adams);
  RUN(sgds);
  RUN(errors);
  return 0;
}
