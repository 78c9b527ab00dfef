// Results of the driver as errors: which operator was at work, and whether the process can go on.
#include <unordered_map>

#include "packages/c10/csrc/device/cuda/context.h"

namespace argand::core::cuda {
namespace {

struct FunctionNames {
  std::mutex mutex;
  std::unordered_map<CUfunction, std::string> of;
};
FunctionNames& function_names() {
  static auto* names = new FunctionNames;  // threads may outlive static destructors
  return *names;
}

// After these the driver refuses every further call on the context.
bool is_sticky(CUresult r) {
  switch (r) {
    case kEccUncorrectable:
    case kNvlinkUncorrectable:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kContextIsDestroyed:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
      return true;
    default:
      return false;
  }
}

std::string launch_text(const ArgandOperator* op, CUfunction function) {
  FunctionNames& names = function_names();
  std::lock_guard<std::mutex> lock(names.mutex);
  const auto found = names.of.find(function);
  const std::string kernel = found == names.of.end() ? "" : found->second;
  if (!op) return kernel.empty() ? "a kernel without a name" : "kernel " + kernel;
  return kernel.empty() ? op->name : std::string(op->name) + " (kernel " + kernel + ")";
}

// "relu (kernel relu_1d), add (kernel add_1d)": what was launched since the last wait, newest first.
std::string launched_text(const Device* device) {
  const uint32_t n = device->n_launched.load(std::memory_order_acquire);
  std::string text, previous;
  for (uint32_t i = 0; i < n && i < Device::kRemembered; i++) {
    const Launched& l = device->launched[(n - 1 - i) % Device::kRemembered];
    const std::string name = launch_text(l.op.load(std::memory_order_relaxed), l.function.load(std::memory_order_relaxed));
    if (name != previous) text += (text.empty() ? "" : ", ") + name;
    previous = name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

int report(CUresult result, const char* what, const Device* device) {
  const Driver& d = driver();
  const char *name = nullptr, *text = nullptr;
  d.cuGetErrorName(result, &name);
  d.cuGetErrorString(result, &text);
  if (!name) name = "unknown error";
  if (!text) text = "no description";
  const int index = device ? device->index : 0;
  if (result == kOutOfMemory)
    return error(ARGAND_OUT_OF_MEMORY_ERROR, "%s: CUDA out of memory on device 'cuda:%d' (%s); free tensors and call cuda.empty_cache()", what, index,
                 name);
  if (device && is_sticky(result))
    return error(ARGAND_DEVICE_ERROR,
                 "%s: CUDA error: %s (%s) on device 'cuda:%d'; launched last, newest first: %s. Set ARGAND_CUDA_LAUNCH_BLOCKING=1 to find the one at "
                 "fault; this process cannot use the device any more: restart it",
                 what, text, name, index, launched_text(device).c_str());
  return error(ARGAND_DEVICE_ERROR, "%s: CUDA error: %s (%s) on device 'cuda:%d'", what, text, name, index);
}

void remember_function(CUfunction function, const char* name) {
  FunctionNames& names = function_names();
  std::lock_guard<std::mutex> lock(names.mutex);
  names.of[function] = name;
}

void forget_launches(Device* device) { device->n_launched.store(0, std::memory_order_release); }

int check_error_record(Device* device) {
  ArgandDeviceError* record = device->error_record;
  const int64_t op = __atomic_load_n(&record->op, __ATOMIC_ACQUIRE);
  if (__builtin_expect(op == 0, 1)) return 0;
  const ArgandDeviceError seen = *record;
  __atomic_store_n(&record->op, int64_t{0}, __ATOMIC_RELEASE);
  const int64_t where = seen.where < 0 ? ~seen.where : seen.where;  // complemented: the operator's error is a RuntimeError, as on the CPU
  return error(seen.where < 0 ? ARGAND_RUNTIME_ERROR : ARGAND_INDEX_ERROR,
               "cuda: %s: index %lld is out of bounds for dimension %lld with size %lld (found when the device was next waited for)",
               reinterpret_cast<const char*>(op), static_cast<long long>(seen.index), static_cast<long long>(where & 63),
               static_cast<long long>(where >> 6));
}

}  // namespace argand::core::cuda
