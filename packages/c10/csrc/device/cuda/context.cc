#include "packages/c10/csrc/device/cuda/context.h"

#include <pthread.h>

#include <cstring>

#include "packages/c10/csrc/random/generator.h"

namespace argand::core::cuda {

__thread ThreadDevices t_devices __attribute__((tls_model("initial-exec"))) = {};

namespace {

std::atomic<Device*> g_devices[kMaxDevices];
std::mutex g_open_mutex;
std::atomic<bool> g_forked{false};  // in the child of a process that had used a device

int no_device(const char* reason) { return error(ARGAND_DEVICE_ERROR, "cuda: %s", reason); }

void after_fork_in_child() {
  g_forked.store(true, std::memory_order_relaxed);
  t_devices = ThreadDevices{};
}

Device* open(int32_t index) {
  const Driver& d = driver();
  if (!d.problem.empty()) return no_device(d.problem.c_str()), nullptr;
  if (index < 0 || index >= device_count()) {
    error(ARGAND_DEVICE_ERROR, "cuda: got device index %d, expected one below %d, the number of devices", index, device_count());
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(g_open_mutex);
  if (Device* existing = g_devices[index].load(std::memory_order_acquire)) return existing;
  static const int fork_handler = pthread_atfork(nullptr, nullptr, after_fork_in_child);
  (void)fork_handler;
  auto* fresh = new Device;
  fresh->index = index;
  CUresult result = d.cuDeviceGet(&fresh->handle, index);
  if (result == kSuccess) result = d.cuDevicePrimaryCtxRetain(&fresh->context, fresh->handle);
  if (result == kSuccess) result = d.cuCtxSetCurrent(fresh->context);
  void* record = nullptr;
  if (result == kSuccess) result = d.cuMemHostAlloc(&record, sizeof(ArgandDeviceError), kHostPortable);
  if (result != kSuccess) {
    report(result, "cuda: opening the device", fresh);
    delete fresh;
    return nullptr;
  }
  t_devices.bound = index + 1;
  memset(record, 0, sizeof(ArgandDeviceError));
  fresh->error_record = static_cast<ArgandDeviceError*>(record);
  opened_generator(ARGAND_DEVICE(ARGAND_CUDA, index));
  g_devices[index].store(fresh, std::memory_order_release);
  return fresh;
}

int attribute(const Device* device, int which) {
  int value = 0;
  return driver().cuDeviceGetAttribute(&value, which, device->handle) == kSuccess ? value : 0;
}

bool bind(const Device* device) {
  if (t_devices.bound == device->index + 1) return true;
  if (check_result(driver().cuCtxSetCurrent(device->context), "cuda: selecting the device", device)) return false;
  t_devices.bound = device->index + 1;
  return true;
}

}  // namespace

int device_count() {
  const Driver& d = driver();
  if (!d.problem.empty()) no_device(d.problem.c_str());
  return d.device_count < kMaxDevices ? d.device_count : kMaxDevices;
}

Device* opened_device(int32_t index) {
  return static_cast<uint32_t>(index) < kMaxDevices ? g_devices[index].load(std::memory_order_acquire) : nullptr;
}

Device* device(int32_t index) {
  if (__builtin_expect(g_forked.load(std::memory_order_relaxed), 0)) {
    no_device("got a call in a process that was forked after its parent had used CUDA, where the driver does not work; start processes by 'spawn'");
    return nullptr;
  }
  Device* d = opened_device(index);
  return __builtin_expect(d != nullptr, 1) ? d : open(index);
}

Bound::Bound(int32_t index) : device_(device(index)) {
  if (device_ && !bind(device_)) device_ = nullptr;
}

// Other libraries in this thread (cuBLAS, cuDNN) work on the context that is current.
Bound::~Bound() {
  if (__builtin_expect(device_ && t_devices.current != device_->index, 0)) {
    if (const Device* current = opened_device(t_devices.current)) bind(current);
  }
}

int get_device(int32_t* index) {
  *index = t_devices.current;
  return 0;
}

int set_device(int32_t index) {
  const Device* d = device(index);
  if (!d || !bind(d)) return ARGAND_DEVICE_ERROR;
  t_devices.current = index;
  return 0;
}

int synchronize(int32_t index) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  if (int status = check_result(driver().cuCtxSynchronize(), "synchronize", b.get())) return status;
  forget_launches(b.get());
  return check_error_record(b.get());
}

int properties(int32_t index, ArgandDeviceProperties* out) {
  Device* d = device(index);
  if (!d) return ARGAND_DEVICE_ERROR;
  *out = ArgandDeviceProperties{};
  const Driver& calls = driver();
  if (int status = check_result(calls.cuDeviceGetName(out->name, sizeof out->name, d->handle), "get_device_properties", d)) return status;
  size_t total = 0;
  calls.cuDeviceTotalMem(&total, d->handle);
  calls.cuDeviceGetUuid(out->uuid, d->handle);
  out->total_memory = total;
  out->l2_cache_size = static_cast<uint64_t>(attribute(d, kL2CacheSize));
  const struct {
    int32_t* member;
    int which;
  } table[] = {{&out->major, kCapabilityMajor},
               {&out->minor, kCapabilityMinor},
               {&out->multi_processor_count, kMultiprocessorCount},
               {&out->warp_size, kWarpSize},
               {&out->max_threads_per_block, kMaxThreadsPerBlock},
               {&out->max_threads_per_multi_processor, kMaxThreadsPerMultiprocessor},
               {&out->regs_per_multiprocessor, kRegistersPerMultiprocessor},
               {&out->shared_memory_per_block, kSharedMemoryPerBlock},
               {&out->shared_memory_per_block_optin, kSharedMemoryPerBlockOptin},
               {&out->shared_memory_per_multiprocessor, kSharedMemoryPerMultiprocessor},
               {&out->clock_rate, kClockRate},
               {&out->memory_clock_rate, kMemoryClockRate},
               {&out->memory_bus_width, kMemoryBusWidth},
               {&out->pci_domain_id, kPciDomainId},
               {&out->pci_bus_id, kPciBusId},
               {&out->pci_device_id, kPciDeviceId},
               {&out->is_integrated, kIntegrated}};
  for (const auto& entry : table) *entry.member = attribute(d, entry.which);
  return 0;
}

int can_access_peer(int32_t index, int32_t peer, int* out) {
  Device *a = device(index), *b = a ? device(peer) : nullptr;
  if (!b) return ARGAND_DEVICE_ERROR;
  return check_result(driver().cuDeviceCanAccessPeer(out, a->handle, b->handle), "can_device_access_peer", a);
}

int error_record(int32_t index, ArgandDeviceError** record) {
  Device* d = device(index);
  if (!d) return ARGAND_DEVICE_ERROR;
  *record = d->error_record;
  return 0;
}

}  // namespace argand::core::cuda
