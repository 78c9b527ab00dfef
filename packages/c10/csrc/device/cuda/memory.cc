// Allocation, copies and fills.
#include "packages/c10/csrc/device/cuda/context.h"
#include "packages/c10/csrc/device/device.h"

namespace argand::core::cuda {
namespace {

void* allocate(int32_t index, size_t nbytes) {
  Bound b(index);
  CUdeviceptr p = 0;
  if (!b || check_result(driver().cuMemAlloc(&p, nbytes), "empty", b.get())) return nullptr;
  return reinterpret_cast<void*>(p);
}

void deallocate(void* data, int32_t index, size_t) {
  Bound b(index);
  if (b && data) driver().cuMemFree(address(data));
}

// From one device to another: on the source's stream, with the destination's stream waiting before and after.
int copy_peer(void* dst, int32_t to, const void* src, int32_t from, size_t nbytes) {
  const Driver& d = driver();
  Device *target = device(to), *source = target ? device(from) : nullptr;
  if (!source) return ARGAND_DEVICE_ERROR;
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

int start_copy(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes) {
  const int32_t to = ARGAND_DEVICE_INDEX(dst_device), from = ARGAND_DEVICE_INDEX(src_device);
  if (is_cuda(dst_device) && is_cuda(src_device) && to != from) return copy_peer(dst, to, src, from, nbytes);
  const int32_t index = is_cuda(dst_device) ? to : from;
  const bool known = (is_cuda(dst_device) || ARGAND_DEVICE_TYPE(dst_device) == ARGAND_CPU) &&
                     (is_cuda(src_device) || ARGAND_DEVICE_TYPE(src_device) == ARGAND_CPU);
  if (!known)
    return error(ARGAND_DEVICE_ERROR, "copy: got devices '%s' and '%s', expected cuda and cpu", device_text(src_device).c_str(),
                 device_text(dst_device).c_str());
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  const Driver& d = driver();
  const CUstream stream = current_stream(index);
  const CUresult result = !is_cuda(src_device)   ? d.cuMemcpyHtoDAsync(address(dst), src, nbytes, stream)
                          : !is_cuda(dst_device) ? d.cuMemcpyDtoHAsync(dst, address(src), nbytes, stream)
                                                 : d.cuMemcpyDtoDAsync(address(dst), address(src), nbytes, stream);
  return check_result(result, "copy", b.get());
}

int copy_async(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes) {
  return nbytes ? start_copy(dst, dst_device, src, src_device, nbytes) : 0;
}

int copy(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes) {
  if (!nbytes) return 0;
  if (int status = start_copy(dst, dst_device, src, src_device, nbytes)) return status;
  if (is_cuda(dst_device) && is_cuda(src_device)) return 0;
  const int32_t index = ARGAND_DEVICE_INDEX(is_cuda(dst_device) ? dst_device : src_device);
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
}

}  // namespace argand::core::cuda
