// The operator table and the choice of kernels.
#include <atomic>
#include <thread>
#include <vector>

#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

constexpr ArgandDevice kMeta = ARGAND_DEVICE(ARGAND_META, 0);

thread_local std::string g_trace;  // the keys that ran

template <char Name>
int leaf(const ArgandOperator*, uint64_t, const ArgandValue*, ArgandValue*) {
  g_trace += Name;
  return 0;
}
// A functionality kernel: notes itself, then goes on below its key.
template <char Name, ArgandDispatchKey Key>
int layer(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  g_trace += Name;
  CHECK(63 - __builtin_clzll(keys) == Key);
  return api->redispatch(op, keys & ~ARGAND_KEYBIT(Key), args, rets);
}

ArgandOperator* define(const char* name, uint16_t n_args, uint16_t flags = 0) {
  static uint64_t hash = 100;
  ArgandOperator* op = nullptr;
  check(api->op_register(name, (std::string(name) + "(...)").c_str(), ++hash, n_args, 1, flags, &op));
  return op;
}

template <size_t N>
std::string trace(const ArgandOperator* op, const ArgandValue (&args)[N]) {
  g_trace.clear();
  ArgandValue rets[1] = {};
  check(api->call(op, args, rets));
  return g_trace;
}

void test_registration() {
  ArgandOperator *a = nullptr, *b = nullptr;
  check(api->op_register("t.reg", "t.reg(Tensor self) -> Tensor", 42, 1, 1, ARGAND_OP_VIEW, &a));
  CHECK(a && std::string(a->name) == "t.reg" && std::string(a->schema) == "t.reg(Tensor self) -> Tensor" && a->flags == ARGAND_OP_VIEW);
  check(api->op_register("t.reg", "t.reg(Tensor self) -> Tensor", 42, 1, 1, ARGAND_OP_VIEW, &b));
  CHECK(a == b && api->op_find("t.reg") == a);
  CHECK_FAILS(api->op_register("t.reg", "t.reg(Tensor x) -> Tensor", 43, 1, 1, 0, &b), ARGAND_RUNTIME_ERROR,
              "operator 't.reg' is already registered with another schema: got 't.reg(Tensor x) -> Tensor', expected 't.reg(Tensor self)");
  CHECK_FAILS(api->op_register("", "x", 1, 0, 0, 0, &b), ARGAND_VALUE_ERROR, "empty name");
  CHECK(!api->op_find("t.unknown") && !api->op_find(""));
  CHECK_FAILS(api->op_set_kernel(a, ARGAND_NUM_KEYS, leaf<'x'>, nullptr), ARGAND_VALUE_ERROR, "dispatch key 14");
}

void test_order_of_keys() {
  ArgandOperator* op = define("t.order", 2);
  check(api->op_set_kernel(op, ARGAND_KEY_CPU, leaf<'c'>, nullptr));
  check(api->op_set_kernel(op, ARGAND_KEY_META, leaf<'m'>, nullptr));
  check(api->op_set_kernel(op, ARGAND_KEY_AUTOGRAD, layer<'a', ARGAND_KEY_AUTOGRAD>, nullptr));
  check(api->op_set_kernel(op, ARGAND_KEY_AUTOCAST, layer<'k', ARGAND_KEY_AUTOCAST>, nullptr));
  const Tensor x = empty({2}, ARGAND_FLOAT32), y = empty({2}, ARGAND_FLOAT32), z = empty({2}, ARGAND_FLOAT32, kMeta);
  y->keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  CHECK(trace(op, {value(x), value(2.0)}) == "c");
  CHECK(trace(op, {value(x), value(y)}) == "ac");
  CHECK(trace(op, {value(Tensor()), value(y)}) == "ac");
  CHECK(trace(op, {value(x), value(z)}) == "m");
  const Tensor view = view_of(y, {1}, {1}, 0);
  CHECK(trace(op, {value(x), value(view)}) == "ac");  // a view adds its base's keys
  const TensorList list = {x, Tensor(), y};
  CHECK(trace(op, {value(list), none()}) == "ac");
  CHECK(trace(op, {none(), none()}) == "c");
  CHECK(trace(op, {none(), device_value(kMeta)}) == "m");
  CHECK(trace(op, {value(x), device_value(kMeta)}) == "c");  // the tensors decide

  StateGuard guard;
  guard->include_keys = ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST);
  CHECK(trace(op, {value(x), value(y)}) == "kac");
  guard->exclude_keys = ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST) | ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  CHECK(trace(op, {value(x), value(y)}) == "c");
}

void test_grad_mode() {
  ArgandOperator *op = define("t.grad", 1), *view = define("t.grad_view", 1, ARGAND_OP_VIEW), *in_place = define("t.grad_", 1, ARGAND_OP_INPLACE);
  for (ArgandOperator* o : {op, view, in_place}) {
    check(api->op_set_kernel(o, ARGAND_KEY_CPU, leaf<'c'>, nullptr));
    check(api->op_set_kernel(o, ARGAND_KEY_AUTOGRAD, layer<'a', ARGAND_KEY_AUTOGRAD>, nullptr));
  }
  const Tensor x = empty({2}, ARGAND_FLOAT32);
  x->keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  CHECK(trace(op, {value(x)}) == "ac");
  StateGuard guard;
  guard->grad_mode = 0;
  CHECK(trace(op, {value(x)}) == "c");
  CHECK(trace(view, {value(x)}) == "ac");
  CHECK(trace(in_place, {value(x)}) == "ac");
}

void test_composite_and_fallback() {
  ArgandOperator* op = define("t.composite", 1);
  check(api->op_set_kernel(op, ARGAND_KEY_COMPOSITE, leaf<'o'>, nullptr));
  const Tensor x = empty({2}, ARGAND_FLOAT32), z = empty({2}, ARGAND_FLOAT32, kMeta);
  CHECK(trace(op, {value(x)}) == "o");
  CHECK(trace(op, {value(z)}) == "o");
  check(api->op_set_kernel(op, ARGAND_KEY_CPU, leaf<'c'>, nullptr));
  CHECK(trace(op, {value(x)}) == "c");
  CHECK(trace(op, {value(z)}) == "o");

  StateGuard guard;
  guard->include_keys = ARGAND_KEYBIT(ARGAND_KEY_PYTHON_MODE);
  CHECK(trace(op, {value(x)}) == "c");  // no kernel at the key: it is passed over
  check(api->set_fallback(ARGAND_KEY_PYTHON_MODE, layer<'p', ARGAND_KEY_PYTHON_MODE>));
  CHECK(trace(op, {value(x)}) == "pc");
  check(api->op_set_kernel(op, ARGAND_KEY_PYTHON_MODE, layer<'q', ARGAND_KEY_PYTHON_MODE>, nullptr));
  CHECK(trace(op, {value(x)}) == "qc");  // an own kernel goes before the fallback
  check(api->set_fallback(ARGAND_KEY_PYTHON_MODE, nullptr));
  CHECK_FAILS(api->set_fallback(static_cast<ArgandDispatchKey>(99), nullptr), ARGAND_VALUE_ERROR, "dispatch key 99");
}

void test_no_kernel() {
  ArgandOperator* op = define("t.none", 2);
  check(api->op_set_kernel(op, ARGAND_KEY_CPU, leaf<'c'>, nullptr));
  const Tensor x = empty({2}, ARGAND_FLOAT32), z = empty({2}, ARGAND_FLOAT32, kMeta);
  ArgandValue rets[1] = {};
  const ArgandValue args[] = {value(z), value(x)};  // the CPU kernel must not stand in
  CHECK_FAILS(api->call(op, args, rets), ARGAND_NOT_IMPLEMENTED_ERROR, "t.none: no kernel for device 'meta'; expected a device among: cpu");
  CHECK_EQ(rets[0].tag, ARGAND_TAG_NONE);
  CHECK_FAILS(api->redispatch(op, 0, args, rets), ARGAND_NOT_IMPLEMENTED_ERROR, "t.none: no kernel");
}

void test_kernel_error_and_key_data() {
  static int record = 5;
  ArgandOperator* op = define("t.fails", 1);
  check(api->op_set_kernel(
      op, ARGAND_KEY_CPU,
      [](const ArgandOperator* self, uint64_t, const ArgandValue*, ArgandValue*) {
        return guarded([&] { fail(ARGAND_SHAPE_ERROR, "t.fails: got %d", *static_cast<int*>(self->key_data[ARGAND_KEY_CPU])); });
      },
      &record));
  const Tensor x = empty({2}, ARGAND_FLOAT32);
  const ArgandValue args[] = {value(x)};
  ArgandValue rets[1] = {};
  CHECK_FAILS(api->call(op, args, rets), ARGAND_SHAPE_ERROR, "t.fails: got 5");
  CHECK_THROWS(ARGAND_SHAPE_ERROR, "t.fails: got 5", call(op, args, rets));
  CHECK_EQ(api->set_error(999, "x"), ARGAND_INTERNAL_ERROR);
}

// A kernel that hands over its result is called unless another key takes part, and goes with the kernel of its key.
void test_epilogue() {
  ArgandOperator* op = define("t.parts", 1);
  check(api->op_set_kernel(op, ARGAND_KEY_CPU, leaf<'c'>, nullptr));
  check(api->op_set_epilogue(op, [](const ArgandOperator*, const ArgandValue*, ArgandValue*, ArgandEpilogue* e) {
    const float part[2] = {1, 2};
    e->run(e->context, 0, 2, part);
    e->done = 1;
    return 0;
  }));
  float sum = 0;
  ArgandEpilogue epilogue = {[](void* context, int64_t begin, int64_t end, const void* data) {
                               for (int64_t i = 0; i < end - begin; i++) *static_cast<float*>(context) += static_cast<const float*>(data)[i];
                             },
                             &sum, 0, 0};
  const Tensor x = empty({2}, ARGAND_FLOAT32);
  const ArgandValue args[] = {value(x)};
  auto run = [&] {
    g_trace.clear();
    ArgandValue rets[1] = {};
    check(api->call_epilogue(op, args, rets, &epilogue));
    return g_trace;
  };
  CHECK(run() == "" && epilogue.done == 1 && sum == 3);
  {
    StateGuard guard;
    guard->include_keys = ARGAND_KEYBIT(ARGAND_KEY_PYTHON_MODE);
    check(api->op_set_kernel(op, ARGAND_KEY_PYTHON_MODE, leaf<'p'>, nullptr));
    CHECK(run() == "p" && epilogue.done == 0 && sum == 3);
  }
  check(api->op_set_kernel(op, ARGAND_KEY_CPU, leaf<'n'>, nullptr));
  CHECK(run() == "n" && epilogue.done == 0 && sum == 3);
  CHECK_FAILS(api->op_set_epilogue(nullptr, nullptr), ARGAND_VALUE_ERROR, "op_set_epilogue: got no operator");
}

// Registration while other threads look operators up and call them.
void test_threads() {
  ArgandOperator* op = define("t.threads", 1);
  check(api->op_set_kernel(op, ARGAND_KEY_CPU, leaf<'c'>, nullptr));
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; i++) {
    readers.emplace_back([&] {
      const Tensor x = empty({2}, ARGAND_FLOAT32);
      while (!stop) {
        CHECK(api->op_find("t.threads") == op);
        CHECK(trace(op, {value(x)}) == "c");
        g_trace.clear();
      }
    });
  }
  std::vector<ArgandOperator*> made;
  for (int i = 0; i < 5000; i++) made.push_back(define(("t.many." + std::to_string(i)).c_str(), 0));
  stop = true;
  for (std::thread& t : readers) t.join();
  for (int i = 0; i < 5000; i++) CHECK(api->op_find(("t.many." + std::to_string(i)).c_str()) == made[static_cast<size_t>(i)]);
  const size_t n = api->op_list(nullptr, 0);
  CHECK(n >= 5001);
  std::vector<const ArgandOperator*> all(n);
  CHECK_EQ(api->op_list(all.data(), n), n);
  CHECK(all[n - 1] == made.back());
}

void test_thread_state_is_per_thread() {
  StateGuard guard;
  guard->grad_mode = 0;
  guard->include_keys = 1 << 12;
  std::thread([] {
    const ArgandThreadState* s = api->thread_state();
    CHECK(s->grad_mode == 1 && s->include_keys == 0 && s->exclude_keys == 0 && !s->inference_mode);
    api->set_error(ARGAND_VALUE_ERROR, "theirs");
  }).join();
  api->set_error(ARGAND_TYPE_ERROR, "ours");
  int kind = 0;
  CHECK(std::string(api->last_error(&kind)) == "ours" && kind == ARGAND_TYPE_ERROR);
}

}  // namespace

int main() {
  api = argand_api();
  RUN(test_registration);
  RUN(test_order_of_keys);
  RUN(test_grad_mode);
  RUN(test_composite_and_fallback);
  RUN(test_no_kernel);
  RUN(test_kernel_error_and_key_data);
  RUN(test_epilogue);
  RUN(test_threads);
  RUN(test_thread_state_is_per_thread);
  return 0;
}
