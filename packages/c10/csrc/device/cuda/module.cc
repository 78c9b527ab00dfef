// Loading of code and launches.
#include <cstdlib>

#include "packages/c10/csrc/device/cuda/context.h"
#include "packages/c10/csrc/dispatch/thread_state.h"

namespace argand::core::cuda {
namespace {

constexpr uint32_t kDefaultSharedBytes = 48 * 1024;  // what a function may use without being asked

bool launch_blocking() {
  static const bool on = [] {
    const char* text = getenv("ARGAND_CUDA_LAUNCH_BLOCKING");
    return text && *text && *text != '0';
  }();
  return on;
}

int module_load(int32_t index, const void* image, size_t, void** module) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  RelaxedCapture relaxed;
  return check_result(driver().cuModuleLoadData(reinterpret_cast<CUmodule*>(module), image), "module_load", b.get());
}

int module_unload(int32_t index, void* module) {
  Bound b(index);
  return b ? check_result(driver().cuModuleUnload(static_cast<CUmodule>(module)), "module_unload", b.get()) : ARGAND_DEVICE_ERROR;
}

int module_function(int32_t index, void* module, const char* name, uint32_t shared_bytes, void** function) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  CUfunction f = nullptr;
  if (int status = check_result(driver().cuModuleGetFunction(&f, static_cast<CUmodule>(module), name), name, b.get())) return status;
  int own = 0;  // that its code declares, beside what launches give it
  if (int status = check_result(driver().cuFuncGetAttribute(&own, kFuncSharedBytes, f), name, b.get())) return status;
  if (shared_bytes + static_cast<uint32_t>(own) > kDefaultSharedBytes) {
    const CUresult result = driver().cuFuncSetAttribute(f, kFuncMaxDynamicShared, static_cast<int>(shared_bytes));
    if (int status = check_result(result, name, b.get())) return status;
  }
  remember_function(f, name);
  *function = f;
  return 0;
}

int function_attributes(int32_t index, void* function, int32_t* registers, int32_t* local_bytes, int32_t* max_threads) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  auto f = static_cast<CUfunction>(function);
  CUresult result = driver().cuFuncGetAttribute(registers, kFuncRegisters, f);
  if (result == kSuccess) result = driver().cuFuncGetAttribute(local_bytes, kFuncLocalBytes, f);
  if (result == kSuccess) result = driver().cuFuncGetAttribute(max_threads, kFuncMaxThreads, f);
  return check_result(result, "function_attributes", b.get());
}

int launch(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t threads, uint32_t shared_bytes, void** params) {
  Bound b(t_devices.current);
  if (!b) return ARGAND_DEVICE_ERROR;
  const CUstream stream = t_devices.streams[t_devices.current];
  auto f = static_cast<CUfunction>(function);
  const uint32_t at = b->n_launched.fetch_add(1, std::memory_order_relaxed) % Device::kRemembered;
  b->launched[at].op.store(t_state.device_operator, std::memory_order_relaxed);
  b->launched[at].function.store(f, std::memory_order_relaxed);
  CUresult result = driver().cuLaunchKernel(f, grid_x, grid_y, grid_z, threads, 1, 1, shared_bytes, stream, params, nullptr);
  if (__builtin_expect(launch_blocking(), 0) && result == kSuccess) {
    if (!is_capturing(stream)) result = driver().cuStreamSynchronize(stream);
  }
  const char* what = t_state.device_operator ? t_state.device_operator->name : "launch";
  return check_result(result, what, b.get());
}

}  // namespace

void add_module_entries(ArgandDeviceInterface& i) {
  i.module_load = module_load;
  i.module_unload = module_unload;
  i.module_function = module_function;
  i.function_attributes = function_attributes;
  i.launch = launch;
}

}  // namespace argand::core::cuda
