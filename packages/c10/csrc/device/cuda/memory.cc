// Allocation, copies and fills.
#include <algorithm>
#include <cstdlib>

#include "packages/c10/csrc/device/cuda/allocator.h"
#include "packages/c10/csrc/device/device.h"

namespace argand::core::cuda {
namespace {

void* allocate(int32_t index, size_t nbytes) {
  DeviceAllocator* a = allocator(index);
  return a ? a->allocate(nbytes, current_stream(index)) : nullptr;
}

void deallocate(void* data, int32_t index, size_t) {
  DeviceAllocator* a = allocator(index);
  if (a) a->deallocate(data);
}

int record_stream(void* data, int32_t index, void* stream) {
  DeviceAllocator* a = allocator(index);
  if (!a) return ARGAND_DEVICE_ERROR;
  a->record_stream(data, as_stream(stream));
  return 0;
}

int memory_stats(int32_t index, ArgandAllocatorStats* out) {
  DeviceAllocator* a = allocator(index);
  if (!a) return ARGAND_DEVICE_ERROR;
  a->stats(out);
  return 0;
}

int memory_reset(int32_t index, int what) {
  DeviceAllocator* a = allocator(index);
  if (!a) return ARGAND_DEVICE_ERROR;
  a->reset(what);
  return 0;
}

int memory_info(int32_t index, uint64_t* free_bytes, uint64_t* total_bytes) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  size_t available = 0, total = 0;
  const int status = check_result(driver().cuMemGetInfo(&available, &total), "mem_get_info", b.get());
  *free_bytes = available;
  *total_bytes = total;
  return status;
}

int memory_limit(int32_t index, double fraction) {
  DeviceAllocator* a = allocator(index);
  return a ? a->set_limit(fraction) : ARGAND_DEVICE_ERROR;
}

int memory_snapshot(int32_t index, ArgandMemoryBlock** blocks, size_t* n_blocks) {
  DeviceAllocator* a = allocator(index);
  if (!a) return ARGAND_DEVICE_ERROR;
  std::vector<ArgandMemoryBlock> list;
  a->snapshot(&list);
  *n_blocks = list.size();
  *blocks = static_cast<ArgandMemoryBlock*>(malloc(sizeof(ArgandMemoryBlock) * (list.size() + 1)));  // as alloc_array
  if (!*blocks) return error(ARGAND_OUT_OF_MEMORY_ERROR, "memory_snapshot: out of host memory for %zu blocks", list.size());
  std::copy(list.begin(), list.end(), *blocks);
  return 0;
}

int empty_cache(int32_t index) {
  DeviceAllocator* a = opened_device(index) ? allocator(index) : nullptr;  // of a device that was never used there is none
  if (!a) return 0;
  host_empty_cache();
  return a->empty_cache();
}

// Lets `from` read and write the memory of `to` directly, where the machine can; tried once. Copies work without it, through the host.
void enable_peer(Device* from, Device* to) {
  std::lock_guard<std::mutex> lock(from->mutex);
  if (from->peers_tried & (1u << to->index)) return;
  from->peers_tried |= 1u << to->index;
  int can = 0;
  if (driver().cuDeviceCanAccessPeer(&can, from->handle, to->handle) != kSuccess || !can) return;
  Bound b(from->index);
  if (b) driver().cuCtxEnablePeerAccess(to->context, 0);  // fails where another library has done so
}

// From one device to another: on the source's stream, with the destination's stream waiting before and after.
int copy_peer(void* dst, int32_t to, const void* src, int32_t from, size_t nbytes) {
  const Driver& d = driver();
  Device *target = device(to), *source = target ? device(from) : nullptr;
  if (!source) return ARGAND_DEVICE_ERROR;
  enable_peer(source, target);
  enable_peer(target, source);
  const ArgandDeviceInterface& i = kCudaInterface;
  void *ready = nullptr, *done = nullptr;
  int status = i.event_new(to, 0, &ready);
  if (!status) status = i.event_record(ready, to, current_stream(to));
  if (!status) status = i.stream_wait_event(from, current_stream(from), ready);
  if (!status) {
    Bound b(from);
    status = b ? check_result(d.cuMemcpyPeerAsync(address(dst), target->context, address(src), source->context, nbytes, current_stream(from)), "copy",
                              source)
               : ARGAND_DEVICE_ERROR;
  }
  if (!status) status = i.event_new(from, 0, &done);
  if (!status) status = i.event_record(done, from, current_stream(from));
  if (!status) status = i.stream_wait_event(to, current_stream(to), done);
  if (ready) i.event_destroy(ready, to);
  if (done) i.event_destroy(done, from);
  return status;
}

bool is_cuda(ArgandDevice device) { return ARGAND_DEVICE_TYPE(device) == ARGAND_CUDA; }

// A replay reads or writes the host's memory when nobody looks after it: only what is asked for as such is captured.
int check_capturable(const Device* device, const void* host, bool waits) {
  int pinned = 0;
  if (int status = host_is_pinned(host, &pinned)) return status;
  if (pinned && !waits) return 0;
  return error(ARGAND_DEVICE_ERROR,
               "copy: got a copy between the CPU and device 'cuda:%d' while a graph is captured, which cannot wait; expected page-locked memory and "
               "non_blocking=True (x.pin_memory(), y.copy_(x, non_blocking=True)), or do it outside of the capture",
               device->index);
}

int start_copy(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes, bool waits) {
  const int32_t to = ARGAND_DEVICE_INDEX(dst_device), from = ARGAND_DEVICE_INDEX(src_device);
  if (is_cuda(dst_device) && is_cuda(src_device) && to != from) return copy_peer(dst, to, src, from, nbytes);
  const int32_t index = is_cuda(dst_device) ? to : from;
  const bool known =
      (is_cuda(dst_device) || ARGAND_DEVICE_TYPE(dst_device) == ARGAND_CPU) && (is_cuda(src_device) || ARGAND_DEVICE_TYPE(src_device) == ARGAND_CPU);
  if (!known)
    return error(ARGAND_DEVICE_ERROR, "copy: got devices '%s' and '%s', expected cuda and cpu", device_text(src_device).c_str(),
                 device_text(dst_device).c_str());
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  const Driver& d = driver();
  const CUstream stream = current_stream(index);
  if (is_cuda(src_device) != is_cuda(dst_device) && is_capturing(stream)) {
    if (int status = check_capturable(b.get(), is_cuda(src_device) ? dst : src, waits)) return status;
  }
  const CUresult result = !is_cuda(src_device)   ? d.cuMemcpyHtoDAsync(address(dst), src, nbytes, stream)
                          : !is_cuda(dst_device) ? d.cuMemcpyDtoHAsync(dst, address(src), nbytes, stream)
                                                 : d.cuMemcpyDtoDAsync(address(dst), address(src), nbytes, stream);
  if (!is_cuda(src_device) || !is_cuda(dst_device)) host_record(is_cuda(src_device) ? dst : src, index, stream);
  return check_result(result, "copy", b.get());
}

int copy_async(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes) {
  return nbytes ? start_copy(dst, dst_device, src, src_device, nbytes, false) : 0;
}

// A copy from pageable memory returns when the bytes are in the driver's hands; all others are waited for.
int copy(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes) {
  if (!nbytes) return 0;
  if (int status = start_copy(dst, dst_device, src, src_device, nbytes, true)) return status;
  if (is_cuda(dst_device) && is_cuda(src_device)) return 0;
  const int32_t index = ARGAND_DEVICE_INDEX(is_cuda(dst_device) ? dst_device : src_device);
  int pinned = 1;
  if (is_cuda(dst_device)) host_is_pinned(src, &pinned);
  if (!pinned) return 0;
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  if (int status = check_result(driver().cuStreamSynchronize(current_stream(index)), "copy", b.get())) return status;
  return check_error_record(b.get());
}

int fill_bytes(void* dst, int32_t index, int value, size_t nbytes) {
  if (!nbytes) return 0;
  Bound b(index);
  return b ? check_result(driver().cuMemsetD8Async(address(dst), static_cast<uint8_t>(value), nbytes, current_stream(index)), "fill_bytes", b.get())
           : ARGAND_DEVICE_ERROR;
}

}  // namespace

void add_memory_entries(ArgandDeviceInterface& i) {
  i.allocate = allocate;
  i.deallocate = deallocate;
  i.copy = copy;
  i.copy_async = copy_async;
  i.fill_bytes = fill_bytes;
  i.record_stream = record_stream;
  i.memory_stats = memory_stats;
  i.memory_reset = memory_reset;
  i.memory_info = memory_info;
  i.memory_limit = memory_limit;
  i.memory_snapshot = memory_snapshot;
  i.empty_cache = empty_cache;
  i.host_allocate = host_allocate;
  i.host_deallocate = host_deallocate;
  i.host_is_pinned = host_is_pinned;
}

}  // namespace argand::core::cuda
