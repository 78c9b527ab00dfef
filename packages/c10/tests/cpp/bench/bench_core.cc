// Prints the costs of the core's tiny operations in nanoseconds. Not a test: run by hand.
#include <time.h>

#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

template <class Body>
void measure(const char* what, int n, Body&& body) {
  double best = 1e30;
  for (int repeat = 0; repeat < 7; repeat++) {
    const double start = now();
    for (int i = 0; i < n; i++) body();
    const double each = (now() - start) / n;
    if (each < best) best = each;
  }
  printf("%-48s %10.1f ns\n", what, best);
}

int nothing(const ArgandOperator*, uint64_t, const ArgandValue*, ArgandValue*) { return 0; }
int make_empty(const ArgandOperator*, uint64_t, const ArgandValue* args, ArgandValue* rets) {
  ArgandTensor* out;
  if (int status = api->tensor_empty(args[0].t->ndim, args[0].t->sizes, args[0].t->dtype, 0, &out)) return status;
  rets[0].tag = ARGAND_TAG_TENSOR;
  rets[0].t = out;
  return 0;
}

}  // namespace

int main() {
  api = argand_api();
  const int64_t sizes[] = {4, 8};
  const ArgandDevice cpu = ARGAND_DEVICE(ARGAND_CPU, 0);
  measure("storage_new + release, 128 bytes", 1000000, [&] {
    ArgandStorage* s;
    api->storage_new(cpu, 128, &s);
    s->refcount = 0;
    api->storage_release(s);
  });
  measure("tensor_empty + release, 4x8 float32", 1000000, [&] { empty(IntList(sizes, 2), ARGAND_FLOAT32); });
  Tensor x = empty(IntList(sizes, 2), ARGAND_FLOAT32);
  measure("tensor_view + release", 1000000, [&] { view_of(x, x.sizes(), x.strides(), 0); });
  ArgandOperator *op, *op_empty;
  check(api->op_register("bench", "bench(Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor", 1, 3, 1, 0, &op));
  check(api->op_register("bench_empty", "bench_empty(Tensor a, Tensor b, *, Scalar alpha=1) -> Tensor", 2, 3, 1, 0, &op_empty));
  check(api->op_set_kernel(op, ARGAND_KEY_CPU, nothing, nullptr));
  check(api->op_set_kernel(op_empty, ARGAND_KEY_CPU, make_empty, nullptr));
  ArgandValue rets[1];
  measure("call, empty kernel, 2 tensors + 1 scalar", 1000000, [&] {
    const ArgandValue args[] = {value(x), value(x), value(1)};
    api->call(op, args, rets);
  });
  measure("call + result of 4x8 + release", 1000000, [&] {
    const ArgandValue args[] = {value(x), value(x), value(1)};
    api->call(op_empty, args, rets);
    take_tensor(rets[0]);
  });
  measure("op_find", 1000000, [&] { CHECK(api->op_find("bench")); });
  for (int64_t n : {int64_t{1} << 17, int64_t{1} << 20, int64_t{1} << 24})
    measure(("tensor_empty + release, floats: " + std::to_string(n)).c_str(), 2000, [&] { empty({n}, ARGAND_FLOAT32); });
  measure("16M floats fresh from the system, first touch", 1, [&] {
    api->empty_cache(cpu);
    Tensor t = empty({int64_t{1} << 24}, ARGAND_FLOAT32);
    for (int64_t i = 0; i < t.numel(); i += 1024) t.data<float>()[i] = 1;
  });
  measure("16M floats reused, touch", 1, [&] {
    Tensor t = empty({int64_t{1} << 24}, ARGAND_FLOAT32);
    for (int64_t i = 0; i < t.numel(); i += 1024) t.data<float>()[i] = 1;
  });
  for (int threads : {1, 2}) {
    api->set_num_threads(threads);
    measure(("parallel_for of nothing, threads: " + std::to_string(threads)).c_str(), 20000, [&] { parallel_for(0, 2, 1, [](int64_t, int64_t) {}); });
  }
  return 0;
}
