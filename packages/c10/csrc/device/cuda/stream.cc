// Streams and events. Streams of the pool are shared and never destroyed; the default stream is the legacy one (NULL).
#include "packages/c10/csrc/device/cuda/context.h"

namespace argand::core::cuda {
namespace {

int stream_current(int32_t index, void** stream) {
  if (!device(index)) return ARGAND_DEVICE_ERROR;
  *stream = t_devices.streams[index];
  return 0;
}

int stream_set(int32_t index, void* stream) {
  if (!device(index)) return ARGAND_DEVICE_ERROR;
  t_devices.streams[index] = as_stream(stream);
  return 0;
}

int stream_priority_range(int32_t index, int32_t* least, int32_t* greatest) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  return check_result(driver().cuCtxGetStreamPriorityRange(least, greatest), "Stream", b.get());
}

int stream_new(int32_t index, int32_t priority, void** stream) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  int least = 0, greatest = 0;
  if (int status = check_result(driver().cuCtxGetStreamPriorityRange(&least, &greatest), "Stream", b.get())) return status;
  if (priority > least) priority = least;
  if (priority < greatest) priority = greatest;
  const int level = least - priority < kPriorities ? least - priority : kPriorities - 1;
  std::lock_guard<std::mutex> lock(b->mutex);
  CUstream* slot = &b->streams[level][b->next_stream[level]++ % kStreamsPerPriority];
  if (!*slot) {
    if (int status = check_result(driver().cuStreamCreateWithPriority(slot, kStreamNonBlocking, priority), "Stream", b.get())) return status;
  }
  *stream = *slot;
  return 0;
}

int stream_synchronize(int32_t index, void* stream) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  if (int status = check_result(driver().cuStreamSynchronize(as_stream(stream)), "Stream.synchronize", b.get())) return status;
  return check_error_record(b.get());
}

int is_done(CUresult result, const char* what, const Device* device, int* done) {
  *done = result == kSuccess;
  return result == kNotReady ? 0 : check_result(result, what, device);
}

int stream_query(int32_t index, void* stream, int* done) {
  Bound b(index);
  return b ? is_done(driver().cuStreamQuery(as_stream(stream)), "Stream.query", b.get(), done) : ARGAND_DEVICE_ERROR;
}

int stream_wait_event(int32_t index, void* stream, void* event) {
  Bound b(index);
  return b ? check_result(driver().cuStreamWaitEvent(as_stream(stream), static_cast<CUevent>(event), 0), "Stream.wait_event", b.get())
           : ARGAND_DEVICE_ERROR;
}

int event_new(int32_t index, uint32_t flags, void** event) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  const unsigned native = (flags & ARGAND_EVENT_TIMING ? 0u : kEventNoTiming) | (flags & ARGAND_EVENT_BLOCKING ? kEventBlocking : 0u) |
                          (flags & ARGAND_EVENT_INTERPROCESS ? kEventInterprocess : 0u);
  return check_result(driver().cuEventCreate(reinterpret_cast<CUevent*>(event), native), "Event", b.get());
}

int event_record(void* event, int32_t index, void* stream) {
  Bound b(index);
  return b ? check_result(driver().cuEventRecord(static_cast<CUevent>(event), as_stream(stream)), "Event.record", b.get()) : ARGAND_DEVICE_ERROR;
}

int event_query(void* event, int* done) {
  return is_done(driver().cuEventQuery(static_cast<CUevent>(event)), "Event.query", opened_device(t_devices.current), done);
}

// An event does not say which device it is of: every opened one is asked for what its kernels reported.
int event_synchronize(void* event) {
  if (int status = check_result(driver().cuEventSynchronize(static_cast<CUevent>(event)), "Event.synchronize", opened_device(t_devices.current)))
    return status;
  for (int i = 0; i < kMaxDevices; i++) {
    Device* d = opened_device(i);
    if (const int status = d ? check_error_record(d) : 0) return status;
  }
  return 0;
}

int event_elapsed(void* start, void* end, float* milliseconds) {
  return check_result(driver().cuEventElapsedTime(milliseconds, static_cast<CUevent>(start), static_cast<CUevent>(end)), "Event.elapsed_time",
                      opened_device(t_devices.current));
}

int event_destroy(void* event, int32_t index) {
  Bound b(index);
  return b ? check_result(driver().cuEventDestroy(static_cast<CUevent>(event)), "Event", b.get()) : ARGAND_DEVICE_ERROR;
}

}  // namespace

void add_stream_entries(ArgandDeviceInterface& i) {
  i.stream_current = stream_current;
  i.stream_set = stream_set;
  i.stream_new = stream_new;
  i.stream_priority_range = stream_priority_range;
  i.stream_synchronize = stream_synchronize;
  i.stream_query = stream_query;
  i.stream_wait_event = stream_wait_event;
  i.event_new = event_new;
  i.event_record = event_record;
  i.event_query = event_query;
  i.event_synchronize = event_synchronize;
  i.event_elapsed = event_elapsed;
  i.event_destroy = event_destroy;
}

}  // namespace argand::core::cuda
