#include "packages/c10/csrc/device/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace argand::core::cuda {
namespace {

Driver load() {
  Driver d;
  const char* path = getenv("ARGAND_CUDA_DRIVER");
  if (!path || !*path) path = "libcuda.so.1";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    d.problem = std::string("the CUDA driver library could not be loaded (") + (reason ? reason : path) +
                "); install NVIDIA's driver, or name the library in the environment variable ARGAND_CUDA_DRIVER";
    return d;
  }
#define ARGAND_CUDA_LOOKUP(name, symbol, types)                                                                                         \
  d.name = reinterpret_cast<decltype(d.name)>(dlsym(library, #symbol));                                                                 \
  if (!d.name) {                                                                                                                        \
    d.problem = std::string("the CUDA driver library ") + path + " has no function " #symbol "; install a driver for CUDA 12 or later"; \
    return d;                                                                                                                           \
  }
  ARGAND_CUDA_FUNCTIONS(ARGAND_CUDA_LOOKUP)
#undef ARGAND_CUDA_LOOKUP
  CUresult result = d.cuInit(0);
  if (result == kSuccess) result = d.cuDeviceGetCount(&d.device_count);
  if (result != kSuccess) {
    const char* text = nullptr;
    d.cuGetErrorString(result, &text);
    d.device_count = 0;
    d.problem = "the CUDA driver could not be initialised: " + (text ? std::string(text) : "error " + std::to_string(result)) +
                "; look at nvidia-smi and the environment variable CUDA_VISIBLE_DEVICES";
  } else if (d.device_count == 0) {
    d.problem = "the CUDA driver found no device; look at nvidia-smi and the environment variable CUDA_VISIBLE_DEVICES";
  }
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver* d = new Driver(load());  // threads may outlive static destructors
  return *d;
}

}  // namespace argand::core::cuda
