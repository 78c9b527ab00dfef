// What recording costs: a tiny operator with and without gradients, and a backward call.
#include <chrono>

#include "packages/autograd/csrc/engine.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/tape.h"
#include "packages/autograd/tests/cpp/toy_ops.h"

using namespace argand;

namespace {

int allocate_result(const ArgandOperator*, uint64_t, const ArgandValue* args, ArgandValue* rets) {
  return guarded([&] { give(rets[0], empty({args[0].t->sizes, args[0].t->ndim}, args[0].t->dtype)); });
}

template <class F>
double nanoseconds(F&& f) {
  constexpr int kRuns = 200000;
  double best = 1e9;
  for (int repeat = 0; repeat < 5; repeat++) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRuns; i++) f();
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kRuns);
  }
  return best;
}

}  // namespace

int main() {
  argand::api = argand_api();
  toy::define_operators();
  for (const char* name : {"add", "mul", "exp"}) {
    check(api->op_set_kernel(api->op_find(name), ARGAND_KEY_CPU, allocate_result, nullptr));
  }
  autograd::register_derivatives(toy::kDerivatives, sizeof toy::kDerivatives / sizeof *toy::kDerivatives);
  autograd::install_tape();
  const Tensor a = empty({2, 2}, ARGAND_FLOAT32), b = empty({2, 2}, ARGAND_FLOAT32), w = empty({2, 2}, ARGAND_FLOAT32);
  autograd::set_requires_grad(w.get(), true);
  for (const char* name : {"add", "mul"}) {
    const ArgandOperator* op = find_operator(name);
    auto time = [&](const Tensor& x, const Tensor& y) {
      return nanoseconds([&] {
        ArgandValue args[3] = {value(x), value(y), value(1)}, ret{};
        check(api->call(op, args, &ret));
        take_tensor(ret);
      });
    };
    const double plain = time(a, b), recorded = time(a, w);
    printf("%s: %.0f ns, recorded %.0f ns, extra %.0f ns\n", name, plain, recorded, recorded - plain);
  }
  const Tensor seed = empty({2, 2}, ARGAND_FLOAT32);
  const double step = nanoseconds([&] {
    Tensor y = toy::call("add", {value(a), value(w), value(1)});
    autograd::BackwardCall c;
    c.roots.push_back(autograd::gradient_edge(y.get()));
    c.grads.push_back(seed);
    c.accumulate = false;
    c.inputs.push_back(autograd::gradient_edge(w.get()));
    autograd::run_backward(std::move(c));
  });
  printf("add and its gradient: %.0f ns\n", step);
  return 0;
}
