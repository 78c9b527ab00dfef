// The tape, histories of views and in-place changes, and the engine, over the operators of toy_ops.h.
#include <cmath>
#include <thread>

#include "packages/autograd/csrc/accumulate_grad.h"
#include "packages/autograd/csrc/engine.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/saved_tensor.h"
#include "packages/autograd/csrc/tape.h"
#include "packages/autograd/tests/cpp/toy_ops.h"

using namespace argand;
using namespace argand::autograd;
using toy::call;

namespace {

Tensor make(std::initializer_list<double> values, IntList sizes, bool needs_grad = false, int dtype = ARGAND_FLOAT64) {
  Tensor t = empty(sizes, dtype);
  int64_t i = 0;
  for (double v : values) toy::put(t, i++, v);
  if (needs_grad) set_requires_grad(t.get(), true);
  return t;
}
Tensor leaf(std::initializer_list<double> values) { return make(values, {static_cast<int64_t>(values.size())}, true); }
Tensor add(const Tensor& a, const Tensor& b) { return call("add", {value(a), value(b), value(1)}); }
Tensor mul(const Tensor& a, const Tensor& b) { return call("mul", {value(a), value(b)}); }
Tensor exp(const Tensor& a) { return call("exp", {value(a)}); }
Tensor sum(const Tensor& a) { return call("sum", {value(a)}); }
void mul_(const Tensor& a, const Tensor& b) { call("mul_", {value(a), value(b)}); }
Tensor part(const Tensor& a, int64_t begin, int64_t n) {
  return call("as_strided", {value(a), value(IntList{n}), value(IntList{1}), value(a->offset + begin)});
}

std::vector<Tensor> run(const Tensor& root, std::vector<Tensor> inputs = {}, bool retain = false, bool create = false, bool accumulate = true) {
  BackwardCall c;
  c.roots.push_back(gradient_edge(root.get()));
  c.grads.push_back(make({1}, {}));
  c.retain_graph = retain || create;
  c.create_graph = create;
  c.accumulate = accumulate;
  for (const Tensor& t : inputs) c.inputs.push_back(gradient_edge(t.get()));
  return run_backward(std::move(c));
}
std::vector<Tensor> grads_of(const Tensor& root, std::vector<Tensor> inputs, bool create = false) {
  return run(root, std::move(inputs), create, create, false);
}

void expect(int line, const Tensor& t, std::initializer_list<double> values) {
  bool good = t && t.numel() == static_cast<int64_t>(values.size());
  int64_t i = 0;
  for (double v : values) good = good && std::abs(toy::get(t, toy::element(t, t.sizes(), i++)) - v) < 1e-9;
  if (good) return;
  fprintf(stderr, "line %d: got", line);
  for (int64_t k = 0; t && k < t.numel(); k++) fprintf(stderr, " %g", toy::get(t, toy::element(t, t.sizes(), k)));
  fprintf(stderr, ", expected");
  for (double v : values) fprintf(stderr, " %g", v);
  fprintf(stderr, "\n");
  exit(1);
}
#define EXPECT(t, ...) expect(__LINE__, (t), {__VA_ARGS__})

void test_simple() {
  const Tensor a = leaf({1, 2, 3}), b = leaf({4, 5, 6});
  const Tensor y = sum(mul(add(a, b), a));  // a^2 + ab
  CHECK(requires_grad(y.get()) && !is_leaf(y.get()) && is_leaf(a.get()));
  CHECK(std::string(grad_fn(y.get())->name()) == "SumBackward0");
  run(y);
  EXPECT(grad_of(a.get()), 6, 9, 12);
  EXPECT(grad_of(b.get()), 1, 2, 3);
  run(sum(mul(a, a)));  // accumulates
  EXPECT(grad_of(a.get()), 8, 13, 18);
}

void test_broadcast_and_dtype() {
  const Tensor a = make({1, 2, 3, 4, 5, 6}, {2, 3}, true), row = make({1, 2, 3}, {3}, true), f = make({2}, {1, 1}, true, ARGAND_FLOAT32);
  run(sum(mul(mul(a, row), f)));
  EXPECT(grad_of(row.get()), 10, 14, 18);
  EXPECT(grad_of(f.get()), 46);
  CHECK(grad_of(f.get()).dtype() == ARGAND_FLOAT32 && grad_of(f.get()).dim() == 2);
}

void test_numbers_and_integers() {
  const Tensor a = leaf({1, 2});
  const Tensor y = call("mul", {value(a), value(3.0)});
  const Tensor mask = call("gt", {value(y), value(4.0)});
  CHECK(requires_grad(y.get()) && !requires_grad(mask.get()));
  run(sum(mul(y, mask)));
  EXPECT(grad_of(a.get()), 0, 3);
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "floating point and complex dtype", set_requires_grad(mask.get(), true));
}

void test_no_grad() {
  const Tensor a = leaf({1, 2});
  StateGuard state;
  state->grad_mode = 0;
  CHECK(!requires_grad(mul(a, a).get()));
  const Tensor view = part(a, 0, 1);
  CHECK(!requires_grad(view.get()) && (view->flags & ARGAND_TENSOR_VIEW_NO_GRAD));
  mul_(a, make({2}, {1}));
  EXPECT(a, 2, 4);
  CHECK(is_leaf(a.get()) && requires_grad(a.get()));
  state->grad_mode = 1;
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "A view was created in no_grad mode", mul_(view, view));
}

void test_second_order() {
  const Tensor a = leaf({0.5, 2});
  const Tensor y = sum(mul(exp(a), a));
  const Tensor g = grads_of(y, {a}, true)[0];
  EXPECT(g, 1.5 * std::exp(0.5), 3 * std::exp(2.0));
  CHECK(requires_grad(g.get()));
  const Tensor gg = grads_of(sum(g), {a}, true)[0];
  EXPECT(gg, 2.5 * std::exp(0.5), 4 * std::exp(2.0));
  EXPECT(grads_of(sum(gg), {a})[0], 3.5 * std::exp(0.5), 5 * std::exp(2.0));
  CHECK(!grad_of(a.get()));  // grad() accumulates nothing
}

void test_twice() {
  const Tensor a = leaf({1, 2}), y = sum(mul(a, a));
  run(y, {}, true);
  run(y);
  EXPECT(grad_of(a.get()), 4, 8);
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "Trying to backward through the graph a second time", run(y));
}

void test_version() {
  const Tensor a = leaf({1, 2, 3}), x = mul(a, a), y = mul(x, a);
  call("add_", {value(x), value(1.0), value(1)});
  CHECK_THROWS(ARGAND_RUNTIME_ERROR,
               "modified by an inplace operation: [Double [3]], which is output 0 of AddBackward0, is at version 1; expected version 0 instead",
               run(sum(y)));
  const Tensor e = exp(a);
  mul_(e, e);
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "which is output 0 of ExpBackward0, is at version 1; expected version 0", run(sum(e)));
}

void test_in_place() {
  const Tensor a = leaf({1, 2, 3}), b = leaf({2, 3, 4});
  Tensor x = mul(a, b);
  mul_(x, b);  // saves the old x
  mul_(x, x);  // a^2 b^4
  run(sum(x));
  EXPECT(grad_of(a.get()), 32, 324, 1536);
  EXPECT(grad_of(b.get()), 32, 4 * 4 * 27, 4 * 9 * 64);
  Tensor z = mul(a, a);
  call("exp_", {value(z)});
  const Tensor g = grads_of(sum(z), {a}, true)[0];
  EXPECT(g, 2 * std::exp(1.0), 4 * std::exp(4.0), 6 * std::exp(9.0));
  EXPECT(grads_of(sum(g), {a})[0], 6 * std::exp(1.0), 18 * std::exp(4.0), 38 * std::exp(9.0));
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "mul_: a leaf Variable that requires grad is being used in an in-place operation", mul_(a, b));
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "mul_: a view of a leaf Variable that requires grad", mul_(part(a, 0, 1), b));
  // The product of a plain tensor and a differentiable one is no leaf any more.
  const Tensor plain = make({1, 1, 1}, {3});
  mul_(plain, b);
  CHECK(!is_leaf(plain.get()));
  EXPECT(grads_of(sum(plain), {b})[0], 1, 1, 1);
  // A constant in place of a value: its old history gets zero.
  const Tensor filled = mul(a, b);
  call("fill_", {value(filled), value(3.0)});
  EXPECT(grads_of(sum(add(filled, a)), {a})[0], 1, 1, 1);
}

void test_in_place_on_view() {
  const Tensor a = leaf({1, 2, 3, 4}), w = leaf({10, 20});
  const Tensor x = mul(a, a);
  const Tensor early = part(x, 1, 3);
  const Tensor v = part(x, 2, 2);
  mul_(v, w);
  CHECK(std::string(grad_fn(x.get())->name()) == "CopySlices");
  CHECK(std::string(grad_fn(v.get())->name()) == "AsStridedBackward0");
  auto g = grads_of(sum(mul(x, x)), {a, w}, true);  // a^4, and w^2 a^4 in the second half
  EXPECT(g[0], 4, 32, 4 * 27 * 100, 4 * 64 * 400);
  EXPECT(g[1], 20 * 81, 40 * 256);
  EXPECT(grads_of(sum(g[1]), {a}, true)[0], 0, 0, 20 * 4 * 27, 40 * 4 * 64);
  // A view made before the change sees it.
  auto e = grads_of(sum(early), {a, w}, true);
  EXPECT(e[0], 0, 4, 60, 160);
  EXPECT(e[1], 9, 16);
  // The other way round: the base is changed, its views follow.
  const Tensor y = mul(a, a), u = part(y, 0, 2);
  mul_(y, a);
  EXPECT(grads_of(sum(u), {a})[0], 3, 12, 0, 0);
}

void test_view_of_plain_base() {
  const Tensor plain = make({1, 2, 3, 4}, {4}), w = leaf({5, 6});
  const Tensor v = part(plain, 0, 2), other = part(plain, 1, 2);
  mul_(v, w);
  CHECK(requires_grad(plain.get()) && requires_grad(other.get()) && !is_leaf(other.get()));
  EXPECT(grads_of(sum(plain), {w}, true)[0], 1, 2);
  EXPECT(grads_of(sum(other), {w}, true)[0], 0, 2);
  // exp_ keeps its result: second derivatives go through the new history of the view.
  const Tensor z = make({0, 0, 0}, {3}), x = leaf({0.5});
  const Tensor zv = part(z, 1, 1);
  call("copy_", {value(zv), value(x), value(false)});
  call("exp_", {value(zv)});
  const Tensor g = grads_of(sum(mul(z, z)), {x}, true)[0];  // z[1] = exp(x)
  EXPECT(g, 2 * std::exp(1.0));
  EXPECT(grads_of(sum(g), {x})[0], 4 * std::exp(1.0));
}

void test_detach() {
  const Tensor a = leaf({1, 2}), x = mul(a, a);
  const Tensor d = call("detach", {value(x)});
  CHECK(!requires_grad(d.get()) && !d->base && d->storage == x->storage);
  call("add_", {value(d), value(1.0), value(1)});  // allowed; the version is shared
  CHECK(x.version() == 1);
  const Tensor plain = make({1, 2}, {2}), pd = call("detach", {value(plain)});
  mul_(plain, a);
  CHECK(requires_grad(plain.get()) && !requires_grad(pd.get()));
  const Tensor y = mul(a, a);
  detach_in_place(y.get());
  CHECK(!requires_grad(y.get()) && is_leaf(y.get()));
}

void test_lists() {
  const Tensor a = leaf({1, 2, 3, 4});
  ArgandValue arg = value(a), ret{};
  check(api->call(find_operator("split2"), &arg, &ret));
  TensorList halves = take_tensors(ret);
  CHECK(output_nr(halves[1].get()) == 1);
  EXPECT(grads_of(sum(mul(halves[1], halves[1])), {a})[0], 0, 0, 6, 8);
  const Tensor b = leaf({5, 6});
  const Tensor joined = call("cat2", {value(TensorList{halves[0], b})});
  auto g = grads_of(sum(mul(joined, joined)), {a, b});
  EXPECT(g[0], 2, 4, 0, 0);
  EXPECT(g[1], 10, 12);
}

void test_selected_inputs() {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), x = mul(a, b), y = sum(mul(x, a));
  run(y, {b}, true);
  CHECK(!grad_of(a.get()));
  EXPECT(grad_of(b.get()), 1, 4);
  auto g = grads_of(y, {x, a});
  EXPECT(g[0], 1, 2);
  EXPECT(g[1], 6, 16);
  const Tensor unused = leaf({1});
  CHECK(!grads_of(sum(a), {unused})[0]);
  // A tensor is its own root.
  EXPECT(grads_of(sum(x), {x})[0], 1, 1);
}

struct Doubler : TensorHook {
  void call(Tensor& grad) override { grad = ::toy::call("mul", {value(grad), value(2.0)}); }
};
struct Counter : LeafHook {
  int* calls;
  explicit Counter(int* c) : calls(c) {}
  void call(const Tensor&) override { ++*calls; }
};

void test_hooks() {
  const Tensor a = leaf({1, 2}), x = mul(a, a);
  retain_grad(x.get());
  grad_fn(x.get())->ensure_hooks().on_tensor.push_back({0, std::make_shared<Doubler>()});
  int calls = 0;
  ensure_meta(a.get()).ensure_hooks().post_accumulate.push_back(std::make_shared<Counter>(&calls));
  ensure_meta(a.get()).ensure_hooks().on_grad.push_back(std::make_shared<Doubler>());
  run(sum(x));
  EXPECT(grad_of(x.get()), 2, 2);
  EXPECT(grad_of(a.get()), 8, 16);
  CHECK(calls == 1);
}

void test_errors() {
  const Tensor a = leaf({1, 2});
  CHECK_THROWS(ARGAND_NOT_IMPLEMENTED_ERROR, "opaque: the derivative of this operator is not implemented", run(sum(call("opaque", {value(a)}))));
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "add_out: functions with out=... arguments don't support automatic differentiation",
               call("add_out", {value(a), value(a), value(make({0, 0}, {2}))}));
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "only change requires_grad flags of leaf variables", set_requires_grad(mul(a, a).get(), false));
  Tensor wrong = make({1, 2, 3}, {3});
  OwnedFacts facts{a};
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "Function F returned an invalid gradient at index 0 - got [3] but expected shape compatible with [2]",
               validate_gradient(facts.facts(), wrong, "F", 0));
  StateGuard state;
  state->inference_mode = 1;
  const Tensor made = make({1, 2}, {2});
  state->inference_mode = 0;
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "Inference tensors cannot be saved for backward", mul(a, made));
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "inference tensor outside", set_requires_grad(made.get(), true));
}

// The order of additions is by sequence number, highest first, whatever the order of edges.
void test_order() {
  const double big = 1e16;
  const Tensor a = make({1}, {1}, true);
  const Tensor p = call("mul", {value(a), value(1.0)}), q = call("mul", {value(a), value(big)}), r = call("mul", {value(a), value(-big)});
  EXPECT(grads_of(sum(add(add(r, q), p)), {a})[0], 1);  // (-big + big) + 1
  EXPECT(grads_of(sum(add(p, add(q, r))), {a})[0], 1);
  const Tensor r2 = call("mul", {value(a), value(-big)}), p2 = call("mul", {value(a), value(1.0)}), q2 = call("mul", {value(a), value(big)});
  EXPECT(grads_of(sum(add(p2, add(q2, r2))), {a})[0], 0);  // (big + 1) - big
}

void test_deep() {
  const Tensor a = leaf({1, 2});
  Tensor x = a;
  for (int i = 0; i < 100000; i++) x = call("add", {value(x), value(0.0), value(1)});
  run(sum(x));
  EXPECT(grad_of(a.get()), 1, 1);
  x = a;
  for (int i = 0; i < 100000; i++) x = mul(x, a);  // dropped without a backward; tensors and nodes alternate
}

void test_threads() {
  const Tensor a = leaf({1, 2}), y = sum(mul(a, a));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; i++) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; k++) {
        run(y, {}, true);
        run(sum(mul(exp(mul(a, make({0}, {1}))), a)));
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT(grad_of(a.get()), 8 * 50 * 3, 8 * 50 * 5);
  // Releasing while another thread reads is an error in one of them, not a crash.
  for (int k = 0; k < 200; k++) {
    const Tensor z = sum(mul(a, a));
    int failed[2] = {0, 0};
    auto go = [&](int who) {
      try {
        grads_of(z, {a});
      } catch (const Error&) {
        failed[who] = 1;
      }
    };
    std::thread other(go, 1);
    go(0);
    other.join();
    CHECK(failed[0] + failed[1] <= 1);
  }
}

void test_stealing() {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  run(sum(add(a, b)));  // both get the same expanded gradient
  CHECK(grad_of(a.get())->storage != grad_of(b.get())->storage && grad_of(a.get()).is_contiguous());
  const Tensor seed = make({1, 1}, {2});
  BackwardCall c;
  c.roots.push_back(gradient_edge(a.get()));
  c.grads.push_back(seed);
  set_grad(a.get(), {});
  run_backward(std::move(c));
  CHECK(grad_of(a.get())->storage != seed->storage);
}

void test_no_cycles() {
  const Tensor a = leaf({1, 2});
  const int32_t before = a->refcount;
  {
    const Tensor e = exp(a), x = mul(e, a), v = part(x, 0, 1);
    call("exp_", {value(v)});
    retain_grad(x.get());
    CHECK(a->refcount > before);
  }
  CHECK_EQ(a->refcount, before);
}

struct Packed : PackedTensor {
  Tensor t;
  int* unpacked;
  Tensor unpack() override {
    ++*unpacked;
    return t;
  }
};
struct Packing : SavedTensorHooks {
  int packed = 0, unpacked = 0;
  PackedTensor* pack(const Tensor& t) override {
    packed++;
    auto* p = new Packed;
    p->t = call("clone", {value(t)});
    p->unpacked = &unpacked;
    return p;
  }
};

void test_saved_tensor_hooks() {
  const Tensor a = leaf({1, 2});
  Packing packing;
  SavedTensorHooks* old = set_saved_tensor_hooks(&packing);
  const Tensor y = sum(mul(exp(a), a));
  set_saved_tensor_hooks(old);
  CHECK(packing.packed == 3);
  const Tensor g = grads_of(y, {a}, true)[0];
  EXPECT(g, 2 * std::exp(1.0), 3 * std::exp(2.0));
  EXPECT(grads_of(sum(g), {a})[0], 3 * std::exp(1.0), 4 * std::exp(2.0));
  CHECK(packing.unpacked >= 3);
}

}  // namespace

int main() try {
  argand::api = argand_api();
  toy::define_operators();
  register_derivatives(toy::kDerivatives, sizeof toy::kDerivatives / sizeof *toy::kDerivatives);
  install_tape();
  RUN(test_simple);
  RUN(test_broadcast_and_dtype);
  RUN(test_numbers_and_integers);
  RUN(test_no_grad);
  RUN(test_second_order);
  RUN(test_twice);
  RUN(test_version);
  RUN(test_in_place);
  RUN(test_in_place_on_view);
  RUN(test_view_of_plain_base);
  RUN(test_detach);
  RUN(test_lists);
  RUN(test_selected_inputs);
  RUN(test_hooks);
  RUN(test_errors);
  RUN(test_order);
  RUN(test_deep);
  RUN(test_threads);
  RUN(test_stealing);
  RUN(test_no_cycles);
  RUN(test_saved_tensor_hooks);
  printf("ok\n");
  return 0;
} catch (const Error& e) {
  fprintf(stderr, "error %d: %s\n", e.kind, e.message.c_str());
  return 1;
}
