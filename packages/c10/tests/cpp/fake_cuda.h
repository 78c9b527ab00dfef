// The stand-in for the CUDA driver (tests/fake_cuda) and its controls. Include in tests only; `start` before any other use.
#pragma once

#include <dlfcn.h>

#include "packages/c10/tests/cpp/check.h"

namespace fake {

inline const ArgandDeviceInterface* cuda = nullptr;
inline void* library = nullptr;

template <class... A>
int control(const char* name, A... arguments) {
  return reinterpret_cast<int (*)(A...)>(dlsym(library, name))(arguments...);
}
inline void lazy(bool on) { control("fakeLazy", static_cast<int>(on)); }
inline void fail(const char* function, int result, int after = 0) { control("fakeFail", function, result, after); }
inline int calls(const char* function) { return control("fakeCalls", function); }
inline size_t used(int device) { return reinterpret_cast<size_t (*)(int)>(dlsym(library, "fakeUsed"))(device); }

inline void start() {
  const char* path = getenv("ARGAND_CUDA_DRIVER");
  CHECK(path);
  library = dlopen(path, RTLD_NOW);
  CHECK(library);
  argand::api = argand_api();
  cuda = argand::api->device_interface(ARGAND_CUDA);
  CHECK(cuda && cuda->device_count() == 2);
}

inline ArgandAllocatorStats stats(int32_t index = 0) {
  ArgandAllocatorStats s;
  argand::check(cuda->memory_stats(index, &s));
  return s;
}
inline int64_t current(ArgandCounterKind kind, int32_t index = 0) { return stats(index).counters[kind][0].current; }

}  // namespace fake
