#include "packages/aten/cuda/csrc/launch.h"

#include <map>
#include <mutex>

namespace argand::cuda {
namespace {

// Leaked, so that kernels stay valid while the process ends.
struct Table {
  std::mutex mutex;
  std::map<std::string, Kernel, std::less<>> kernels;
};
Table& table() {
  static Table* t = new Table;
  return *t;
}

std::atomic<Provider> g_provider{nullptr};

const ArgandDeviceInterface* cuda() {
  static const ArgandDeviceInterface* const interface = api->device_interface(ARGAND_CUDA);
  return interface;
}

// Serializes what the driver does. The provider runs outside: it may wait for Python's lock, which waiting threads may hold.
std::mutex& loading() {
  static auto* m = new std::mutex;
  return *m;
}

const Code* load_new(const Kernel* kernel, int device) {
  const Provider provider = g_provider.load(std::memory_order_acquire);
  if (!provider) fail(ARGAND_INTERNAL_ERROR, "%s: no provider of code is set; import argand_aten_cuda", kernel->name.c_str());
  ArgandDeviceProperties properties;
  check(cuda()->properties(device, &properties));
  Image image{};
  check(provider(kernel->name.c_str(), properties.major * 10 + properties.minor, &image));
  std::lock_guard<std::mutex> lock(loading());
  if (const Code* code = kernel->code[device].load(std::memory_order_acquire)) {  // another thread was first
    api->free_array(image.data);
    return code;
  }
  void* module = nullptr;
  const int status = cuda()->module_load(device, image.data, image.nbytes, &module);
  api->free_array(image.data);
  check(status);
  void* function = nullptr;
  if (const int missing = cuda()->module_function(device, module, image.entry, image.shared, &function)) {
    cuda()->module_unload(device, module);
    check(missing);
  }
  const auto* code = new Code{function, image.threads, image.shared};
  kernel->code[device].store(code, std::memory_order_release);
  return code;
}

}  // namespace

void set_provider(Provider provider) { g_provider.store(provider, std::memory_order_release); }

const Kernel* kernel(std::string_view name) {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  auto found = t.kernels.find(name);
  if (found == t.kernels.end()) {
    found = t.kernels.try_emplace(std::string(name)).first;
    found->second.name = name;
  }
  return &found->second;
}

const Code& load(const Kernel* kernel, int device) {
  if (device < 0 || device >= kMaxDevices)
    fail(ARGAND_DEVICE_ERROR, "%s: got device cuda:%d, expected an index below %d", kernel->name.c_str(), device, kMaxDevices);
  const Code* code = kernel->code[device].load(std::memory_order_acquire);
  return __builtin_expect(code != nullptr, 1) ? *code : *load_new(kernel, device);
}

void launch_parameters(const Kernel* kernel, Grid grid, void** parameters) {
  int32_t device = 0;
  cuda()->get_device(&device);
  const Code& code = load(kernel, device);
  check(cuda()->launch(code.function, grid.x, grid.y, grid.z, code.threads, code.shared, parameters));
}

}  // namespace argand::cuda
