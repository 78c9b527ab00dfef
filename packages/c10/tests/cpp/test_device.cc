// The device registry, copies, an out-of-tree backend, and the processor tier.
#include <cstdint>

#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

int64_t g_held = 0;
constexpr size_t kCapacity = 1 << 20;

const ArgandDeviceInterface kToy = [] {
  ArgandDeviceInterface i{};
  i.name = "toy";
  i.device_count = [] { return 2; };
  i.allocate = [](int32_t, size_t n) -> void* {
    if (n > kCapacity) return nullptr;
    g_held += static_cast<int64_t>(n);
    return malloc(n);
  };
  i.deallocate = [](void* p, int32_t, size_t n) {
    g_held -= static_cast<int64_t>(n);
    free(p);
  };
  i.copy = [](void* dst, ArgandDevice, const void* src, ArgandDevice, size_t n) {
    memcpy(dst, src, n);
    return 0;
  };
  i.synchronize = [](int32_t) { return 0; };
  return i;
}();
constexpr ArgandDevice kToyDevice = ARGAND_DEVICE(ARGAND_PRIVATEUSE1, 1);

void test_builtin() {
  const ArgandDeviceInterface* cpu = api->device_interface(ARGAND_CPU);
  const ArgandDeviceInterface* meta = api->device_interface(ARGAND_META);
  CHECK(cpu && std::string(cpu->name) == "cpu" && cpu->device_count() == 1 && cpu->synchronize(0) == 0);
  CHECK(meta && std::string(meta->name) == "meta" && !meta->allocate(0, 100));
  CHECK(!api->device_interface(ARGAND_HIP) && !api->device_interface(static_cast<ArgandDeviceType>(50)));
  char a[4] = "abc", b[4] = "";
  const ArgandDevice c = ARGAND_DEVICE(ARGAND_CPU, 0), m = ARGAND_DEVICE(ARGAND_META, 0);
  check(cpu->copy(b, c, a, c, 4));
  CHECK(std::string(b) == "abc");
  CHECK_FAILS(cpu->copy(b, c, a, m, 4), ARGAND_DEVICE_ERROR, "copy: got devices 'meta' and 'cpu'");
  check(meta->copy(nullptr, m, a, c, 4));
  CHECK_FAILS(meta->copy(b, c, nullptr, m, 4), ARGAND_NOT_IMPLEMENTED_ERROR, "has no data");
}

void test_out_of_tree_backend() {
  ArgandTensor* out = nullptr;
  const int64_t sizes[] = {10};
  CHECK_FAILS(api->tensor_empty(1, sizes, ARGAND_FLOAT32, kToyDevice, &out), ARGAND_DEVICE_ERROR,
              "empty: got device 'privateuse1:1', which no installed package provides; expected one of: cpu, meta");
  ArgandDeviceInterface incomplete = kToy;
  incomplete.copy = nullptr;
  CHECK_FAILS(api->register_device(ARGAND_PRIVATEUSE1, &incomplete), ARGAND_VALUE_ERROR, "incomplete interface");
  check(api->register_device(ARGAND_PRIVATEUSE1, &kToy));
  check(api->register_device(ARGAND_PRIVATEUSE1, &kToy));
  CHECK_FAILS(api->register_device(ARGAND_CPU, &kToy), ARGAND_RUNTIME_ERROR, "already has the backend 'cpu', got 'toy'");
  {
    Tensor t = empty({10}, ARGAND_FLOAT32, kToyDevice);
    CHECK(g_held == 40 && t->keys == ARGAND_KEYBIT(ARGAND_KEY_PRIVATEUSE1) && t.device() == kToyDevice);
    t.data<float>()[9] = 5;
    const int64_t larger[] = {20};
    check(api->tensor_resize(t.get(), 1, larger));
    CHECK(g_held == 80 && t.data<float>()[9] == 5);
    ArgandMemoryStats stats;
    api->memory_stats(kToyDevice, &stats);
    CHECK(stats.allocated_bytes == 80 && stats.peak_allocated_bytes == 120 && stats.allocations == 2);
    const int64_t huge[] = {int64_t{1} << 30};
    CHECK_FAILS(api->tensor_empty(1, huge, ARGAND_FLOAT32, kToyDevice, &out), ARGAND_OUT_OF_MEMORY_ERROR,
                "on device 'privateuse1:1'; in use 80 bytes");
    CHECK_FAILS(api->tensor_empty(1, huge, ARGAND_FLOAT32, ARGAND_DEVICE(ARGAND_PRIVATEUSE1, 2), &out), ARGAND_DEVICE_ERROR, "there are 2 devices");
  }
  CHECK_EQ(g_held, 0);
}

// A driver that is not there: no device, and an error that says why.
void test_no_driver() {
  const ArgandDeviceInterface* cuda = api->device_interface(ARGAND_CUDA);
  CHECK(cuda && std::string(cuda->name) == "cuda" && cuda->device_count() == 0);
  ArgandTensor* out = nullptr;
  const int64_t sizes[] = {10};
  CHECK_FAILS(api->tensor_empty(1, sizes, ARGAND_FLOAT32, ARGAND_DEVICE(ARGAND_CUDA, 0), &out), ARGAND_DEVICE_ERROR,
              "empty: got device 'cuda:0', but there is none: cuda: the CUDA driver library could not be loaded (/nowhere/libcuda.so.1");
  CHECK(!cuda->allocate(0, 100));
  CHECK_FAILS(cuda->set_device(0), ARGAND_DEVICE_ERROR, "ARGAND_CUDA_DRIVER");
  CHECK_FAILS(cuda->synchronize(0), ARGAND_DEVICE_ERROR, "could not be loaded");
}

int g_loads = 0;

// The loader runs when a device of the type is first asked for, and again after a failure only.
void test_names_and_loaders() {
  CHECK_FAILS(api->rename_device(ARGAND_CUDA, "mine"), ARGAND_VALUE_ERROR, "expected one of privateuse1");
  CHECK_FAILS(api->rename_device(ARGAND_PRIVATEUSE2, "cuda"), ARGAND_VALUE_ERROR, "that of another device");
  CHECK_FAILS(api->rename_device(ARGAND_PRIVATEUSE2, "My:device"), ARGAND_VALUE_ERROR, "lower-case letters");
  check(api->rename_device(ARGAND_PRIVATEUSE2, "npu"));
  check(api->rename_device(ARGAND_PRIVATEUSE2, "npu"));
  CHECK_FAILS(api->rename_device(ARGAND_PRIVATEUSE2, "tpu"), ARGAND_RUNTIME_ERROR, "already called 'npu'");
  CHECK(std::string(api->device_type_name(ARGAND_PRIVATEUSE2)) == "npu");
  check(api->register_device(ARGAND_PRIVATEUSE2, &kToy));
  api->set_device_loader(ARGAND_PRIVATEUSE2, [] { return g_loads++ ? 0 : api->set_error(ARGAND_RUNTIME_ERROR, "no kernels"); });
  ArgandDevice device = 0;
  CHECK_FAILS(api->resolve_device("test", ARGAND_DEVICE(ARGAND_PRIVATEUSE2, 0xff), &device), ARGAND_RUNTIME_ERROR, "no kernels");
  for (int i = 0; i < 3; i++) check(api->resolve_device("test", ARGAND_DEVICE(ARGAND_PRIVATEUSE2, 0xff), &device));
  CHECK(g_loads == 2 && device == ARGAND_DEVICE(ARGAND_PRIVATEUSE2, 0));
}

void test_tier() {
  const int tier = api->cpu_tier();
  CHECK(tier >= 0 && tier <= 2);
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) CHECK_EQ(tier, 0);
  if (const char* wanted = getenv("ARGAND_CPU_TIER")) CHECK(tier <= atoi(wanted));
}

}  // namespace

int main() {
  setenv("ARGAND_CPU_TIER", "1", 0);
  setenv("ARGAND_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  api = argand_api();
  RUN(test_builtin);
  RUN(test_out_of_tree_backend);
  RUN(test_no_driver);
  RUN(test_names_and_loaders);
  RUN(test_tier);
  return 0;
}
