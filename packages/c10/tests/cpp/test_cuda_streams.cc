// Streams, events, copies, page-locked memory, launches, graphs and failures on the driver's stand-in.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "packages/c10/tests/cpp/fake_cuda.h"

using namespace argand;
using fake::cuda;

namespace {

constexpr ArgandDevice kCpu = ARGAND_DEVICE(ARGAND_CPU, 0), kGpu = ARGAND_DEVICE(ARGAND_CUDA, 0), kGpu1 = ARGAND_DEVICE(ARGAND_CUDA, 1);

void* new_stream(int32_t index = 0) {
  void* s = nullptr;
  check(cuda->stream_new(index, 0, &s));
  return s;
}

void test_current() {
  int32_t index = -1;
  void *s = new_stream(1), *current = s;
  check(cuda->set_device(1));
  check(cuda->stream_set(1, s));
  std::thread([&] {
    check(cuda->get_device(&index));
    CHECK_EQ(index, 0);  // each thread has its own
    void* other = &index;
    check(cuda->stream_current(1, &other));
    CHECK(other == nullptr);
  }).join();
  ArgandDevice device = 0;
  check(api->resolve_device("test", ARGAND_DEVICE(ARGAND_CUDA, 0xff), &device));
  CHECK_EQ(device, kGpu1);
  {
    DeviceGuard guard(kGpu);
    check(cuda->get_device(&index));
    CHECK_EQ(index, 0);
    CHECK(argand::current_stream(kGpu1) == s);
  }
  check(cuda->get_device(&index));
  CHECK_EQ(index, 1);
  check(cuda->stream_set(1, nullptr));
  check(cuda->set_device(0));
  check(cuda->stream_current(1, &current));
  CHECK(current == nullptr);
  CHECK_FAILS(cuda->set_device(2), ARGAND_DEVICE_ERROR, "got device index 2, expected one below 2");
  CHECK_FAILS(cuda->set_device(-1), ARGAND_DEVICE_ERROR, "got device index -1");
  ArgandDeviceProperties p;
  check(cuda->properties(1, &p));
  CHECK(std::string(p.name) == "Fake GPU 1" && p.major == 9 && p.multi_processor_count == 4 && p.total_memory == uint64_t{4} << 30);
}

void test_order() {
  fake::lazy(true);
  void *s = new_stream(), *t = new_stream(), *event = nullptr, *late = nullptr;
  check(cuda->event_new(0, ARGAND_EVENT_TIMING, &event));
  check(cuda->event_new(0, ARGAND_EVENT_TIMING, &late));
  auto* p = static_cast<char*>(cuda->allocate(0, 64));
  check(cuda->stream_set(0, s));
  check(cuda->event_record(event, 0, s));
  check(cuda->fill_bytes(p, 0, 7, 64));
  check(cuda->event_record(late, 0, s));
  int done = -1;
  check(cuda->event_query(event, &done));
  CHECK_EQ(done, 1);
  check(cuda->event_query(late, &done));
  CHECK_EQ(done, 0);
  check(cuda->stream_query(0, s, &done));
  CHECK_EQ(done, 0);
  check(cuda->stream_wait_event(0, t, late));
  check(cuda->stream_set(0, t));
  char host[64] = {};
  check(cuda->copy(host, kCpu, p, kGpu, 64));  // on t, behind s
  CHECK(host[0] == 7 && host[63] == 7);
  float milliseconds = 0;
  check(cuda->event_elapsed(event, late, &milliseconds));
  CHECK(milliseconds == 1);
  check(cuda->stream_set(0, nullptr));
  check(cuda->event_destroy(event, 0));
  check(cuda->event_destroy(late, 0));
  cuda->deallocate(p, 0, 64);
  fake::lazy(false);
}

void test_copies() {
  char host[256], back[256] = {};
  for (int i = 0; i < 256; i++) host[i] = static_cast<char>(i);
  void *a = cuda->allocate(0, 256), *b = cuda->allocate(1, 256);
  fake::lazy(true);
  check(cuda->copy(a, kGpu, host, kCpu, 256));
  memset(host, 0, sizeof host);  // was taken over when copy returned
  check(cuda->copy(b, kGpu1, a, kGpu, 256));
  check(cuda->copy(back, kCpu, b, kGpu1, 256));
  for (int i = 0; i < 256; i++) CHECK(back[i] == static_cast<char>(i));
  CHECK_FAILS(cuda->copy(a, kGpu, host, ARGAND_DEVICE(ARGAND_META, 0), 4), ARGAND_DEVICE_ERROR, "got devices 'meta' and 'cuda:0'");
  check(cuda->copy(nullptr, kGpu, nullptr, kCpu, 0));
  fake::lazy(false);
  cuda->deallocate(a, 0, 256);
  cuda->deallocate(b, 1, 256);
}

void test_pinned() {
  int pinned = -1;
  auto* p = static_cast<char*>(cuda->host_allocate(1000));
  CHECK(p);
  check(cuda->host_is_pinned(p + 999, &pinned));
  CHECK_EQ(pinned, 1);
  check(cuda->host_is_pinned(&pinned, &pinned));
  CHECK_EQ(pinned, 0);
  fake::lazy(true);
  void* s = new_stream();
  check(cuda->stream_set(0, s));
  void* a = cuda->allocate(0, 1000);
  p[500] = 42;
  check(cuda->copy_async(static_cast<char*>(a) + 500, kGpu, p + 500, kCpu, 10));
  CHECK_EQ(fake::control("fakePending", s), 1);
  cuda->host_deallocate(p);
  void* q = cuda->host_allocate(1000);
  CHECK(q != p);  // the copy is still to read it
  check(cuda->stream_synchronize(0, s));
  CHECK(cuda->host_allocate(1000) == p);
  CHECK(static_cast<char*>(a)[500] == 42);
  check(cuda->copy(a, kGpu, p, kCpu, 10));  // the waiting form: nothing is left to do
  CHECK_EQ(fake::control("fakePending", s), 0);
  fake::lazy(false);
  cuda->host_deallocate(p);
  cuda->host_deallocate(q);
  check(cuda->stream_set(0, nullptr));
  cuda->deallocate(a, 0, 1000);
}

void* function(const char* name) {
  static const char image[] =
      "\x7f"
      "ELF";
  void *module = nullptr, *f = nullptr;
  check(cuda->module_load(0, image, sizeof image, &module));
  check(cuda->module_function(0, module, name, 100000, &f));
  return f;
}

int run_kernel(const ArgandOperator*, uint64_t, const ArgandValue* args, ArgandValue*) {
  return cuda->launch(reinterpret_cast<void*>(args[1].i), 1, 1, 1, 32, 0, nullptr);
}

// An error that shows up later names what was launched, as operator and kernel.
void test_failures() {
  ArgandOperator* op = nullptr;
  check(api->op_register("frobnicate", "frobnicate(Tensor self, int f) -> ()", 1, 2, 0, 0, &op));
  check(api->op_set_kernel(op, ARGAND_KEY_CUDA, run_kernel, nullptr));
  Tensor t = empty({4}, ARGAND_FLOAT32, kGpu);
  ArgandValue args[] = {value(t), value(reinterpret_cast<int64_t>(function("frobnicate_1d")))};
  const int before = fake::control("fakeLaunches");
  check(api->call(op, args, nullptr));
  CHECK_EQ(fake::control("fakeLaunches"), before + 1);
  CHECK(api->thread_state()->device_operator == nullptr);
  fake::fail("cuStreamSynchronize", 700);
  float host[4];
  CHECK_FAILS(cuda->copy(host, kCpu, t.data<void>(), kGpu, 16), ARGAND_DEVICE_ERROR,
              "copy: CUDA error: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS) on device 'cuda:0'; launched last, newest "
              "first: frobnicate (kernel frobnicate_1d)");
  fake::fail("cuStreamSynchronize", 0);
  fake::fail("cuLaunchKernel", 719);
  CHECK_FAILS(api->call(op, args, nullptr), ARGAND_DEVICE_ERROR, "frobnicate: CUDA error: unspecified launch failure");
  fake::fail("cuLaunchKernel", 0);
  check(cuda->synchronize(0));
  ArgandDeviceError* record = nullptr;
  check(cuda->error_record(0, &record));
  *record = {reinterpret_cast<int64_t>("index_select"), 9, int64_t{5} << 6 | 1, 0};
  CHECK_FAILS(cuda->synchronize(0), ARGAND_INDEX_ERROR, "index_select: index 9 is out of bounds for dimension 1 with size 5");
  check(cuda->synchronize(0));
  fake::fail("cuMemHostAlloc", 2);
  CHECK(!cuda->host_allocate(1 << 24));
  CHECK_FAILS(api->set_error(ARGAND_OUT_OF_MEMORY_ERROR, api->last_error(nullptr)), ARGAND_OUT_OF_MEMORY_ERROR, "pin_memory: CUDA out of memory");
  fake::fail("cuMemHostAlloc", 0);
}

void test_graph() {
  uint64_t pool = 0;
  void *graph = nullptr, *s = new_stream();
  check(cuda->pool_new(0, &pool));
  CHECK_FAILS(cuda->capture_begin(0, pool, ARGAND_CAPTURE_GLOBAL), ARGAND_RUNTIME_ERROR, "on the default stream");
  check(cuda->stream_set(0, s));
  CHECK_FAILS(cuda->capture_end(0, &graph), ARGAND_RUNTIME_ERROR, "that is not capturing");
  ArgandGenerator* generator = api->default_generator(kGpu);
  generator->seed = 11;
  generator->offset = 100;
  void* outside = cuda->allocate(0, 4096);
  cuda->deallocate(outside, 0, 4096);
  check(cuda->capture_begin(0, pool, ARGAND_CAPTURE_GLOBAL));
  int capturing = 0;
  check(cuda->capture_status(0, s, &capturing));
  CHECK_EQ(capturing, 1);
  const uint64_t* state = generator->graph_state;
  CHECK(state);
  CHECK_EQ(api->generator_reserve(generator, 5), 100);
  auto* inside = static_cast<char*>(cuda->allocate(0, 4096));
  CHECK((reinterpret_cast<uintptr_t>(inside) ^ reinterpret_cast<uintptr_t>(outside)) >> 12);  // of the graph's own memory
  memset(inside, 0, 64);
  check(cuda->fill_bytes(inside, 0, 9, 64));
  CHECK_EQ(inside[0], 0);
  check(cuda->capture_end(0, &graph));
  CHECK(!generator->graph_state && generator->offset == 100);
  check(cuda->graph_launch(0, graph));
  CHECK(inside[0] == 9 && generator->offset == 105 && state[0] == 11 && state[1] == 0);
  inside[0] = 0;
  check(cuda->graph_launch(0, graph));
  CHECK(inside[0] == 9 && generator->offset == 110 && state[1] == 5);
  cuda->deallocate(inside, 0, 4096);
  void* later = cuda->allocate(0, 4096);
  CHECK(later != inside);  // freed memory of the graph stays the graph's
  cuda->deallocate(later, 0, 4096);
  check(cuda->empty_cache(0));
  const size_t kept = fake::used(0);
  check(cuda->pool_release(0, pool));
  check(cuda->graph_destroy(0, graph));
  check(cuda->empty_cache(0));
  CHECK(kept == size_t{4} << 20 && fake::used(0) == 0);  // until then: the graph's segment, and that of its generator's state
  CHECK_FAILS(cuda->pool_release(0, pool), ARGAND_VALUE_ERROR, "released before");
  check(cuda->stream_set(0, nullptr));
}

// What cannot be captured ends the capture with an error and leaves no trace of it.
void test_failed_capture() {
  uint64_t pool = 0;
  void *graph = nullptr, *s = new_stream();
  check(cuda->pool_new(0, &pool));
  check(cuda->stream_set(0, s));
  char host[8] = {};
  check(cuda->capture_begin(0, pool, ARGAND_CAPTURE_GLOBAL));
  void* p = cuda->allocate(0, 100);
  CHECK_FAILS(cuda->copy(p, kGpu, host, kCpu, 8), ARGAND_DEVICE_ERROR, "while a graph is captured");
  CHECK_FAILS(cuda->copy_async(host, kCpu, p, kGpu, 8), ARGAND_DEVICE_ERROR, "expected page-locked memory");
  check(cuda->copy(p, kGpu, p, kGpu, 8));
  CHECK_FAILS(cuda->stream_synchronize(0, s), ARGAND_DEVICE_ERROR, "not permitted when stream is capturing");
  cuda->deallocate(p, 0, 100);
  CHECK(cuda->capture_end(0, &graph) == ARGAND_DEVICE_ERROR && !graph);
  CHECK(!api->default_generator(kGpu)->graph_state);
  check(cuda->capture_begin(0, pool, ARGAND_CAPTURE_GLOBAL));
  check(cuda->capture_end(0, &graph));
  check(cuda->graph_destroy(0, graph));
  check(cuda->pool_begin(0, pool));  // without a capture: this thread's allocations
  void* q = cuda->allocate(0, 100);
  CHECK(q == p);
  check(cuda->pool_end(0, pool));
  CHECK_FAILS(cuda->pool_end(0, pool), ARGAND_RUNTIME_ERROR, "did not begin");
  cuda->deallocate(q, 0, 100);
  check(cuda->pool_release(0, pool));
  check(cuda->stream_set(0, nullptr));
}

void test_fork() {
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = cuda->synchronize(0) == ARGAND_DEVICE_ERROR && strstr(api->last_error(nullptr), "spawn");
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  check(cuda->synchronize(0));
}

}  // namespace

int main() {
  fake::start();
  RUN(test_current);
  RUN(test_order);
  RUN(test_copies);
  RUN(test_pinned);
  RUN(test_failures);
  RUN(test_graph);
  RUN(test_failed_capture);
  RUN(test_fork);
  return 0;
}
