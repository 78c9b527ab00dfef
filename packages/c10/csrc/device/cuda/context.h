// Devices and the calling thread's view of them: which is current, and the current stream of each.
#pragma once

#include <atomic>
#include <mutex>

#include "packages/c10/csrc/abi/argand.h"
#include "packages/c10/csrc/abi/devices.h"
#include "packages/c10/csrc/device/cuda/driver.h"

namespace argand::core::cuda {

inline constexpr int kStreamsPerPriority = 32;
inline constexpr int kPriorities = 8;

inline bool is_capturing(CUstream stream) {
  int capturing = kCaptureNone;
  uint64_t id = 0;
  return driver().cuStreamGetCaptureInfo(stream, &capturing, &id) == kSuccess && capturing != kCaptureNone;
}

// What was launched, for errors that show up at a later call.
struct Launched {
  std::atomic<const ArgandOperator*> op{nullptr};
  std::atomic<CUfunction> function{nullptr};
};

struct Device {
  int32_t index = 0;
  CUdevice handle = 0;
  CUcontext context = nullptr;  // the primary one, retained for the process's life
  ArgandDeviceError* error_record = nullptr;
  static constexpr uint32_t kRemembered = 8;
  Launched launched[kRemembered];  // a ring: the newest is n_launched - 1
  std::atomic<uint32_t> n_launched{0};
  std::mutex mutex;  // of the streams and peers below
  CUstream streams[kPriorities][kStreamsPerPriority] = {};
  uint32_t next_stream[kPriorities] = {};
  uint32_t peers_tried = 0;  // bit i: access to device i was asked for
};

struct ThreadDevices {
  int32_t current;                // index of the current device
  int32_t bound;                  // 1 + index of the device whose context the driver has current in this thread; 0: none
  CUstream streams[kMaxDevices];  // current stream of each device
};
extern __thread ThreadDevices t_devices __attribute__((tls_model("initial-exec")));

// The device, its context made at first use; NULL with an error when there is none or after fork.
Device* device(int32_t index);
Device* opened_device(int32_t index);  // NULL when no one used it so far

// Makes the device's context current for driver calls, and the thread's current device's again afterwards.
class Bound {
 public:
  explicit Bound(int32_t index);
  ~Bound();
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  Device* operator->() const { return device_; }
  Device* get() const { return device_; }
  explicit operator bool() const { return device_ != nullptr; }  // false: an error is set

 private:
  Device* device_;
};

// Lets this thread allocate, load and ask for events while it captures: such calls are no part of the graph.
class RelaxedCapture {
 public:
  RelaxedCapture() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  int mode_ = ARGAND_CAPTURE_RELAXED;
};

inline CUstream current_stream(int32_t index) { return t_devices.streams[index]; }
inline CUstream as_stream(void* stream) { return static_cast<CUstream>(stream); }
inline CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// ---- errors ----------------------------------------------------------------------------------------------------------
// A driver's result as the thread's error, in the name of `what`; 0 for success.
int report(CUresult result, const char* what, const Device* device);
inline int check_result(CUresult result, const char* what, const Device* device) {
  return __builtin_expect(result == kSuccess, 1) ? 0 : report(result, what, device);
}
void remember_function(CUfunction function, const char* name);
void forget_launches(Device* device);  // everything launched so far has ended well
// After waiting for the device: what kernels reported meanwhile.
int check_error_record(Device* device);

// ---- entries of the interface, by file ---------------------------------------------------------------------------------
int device_count();
int get_device(int32_t* index);
int set_device(int32_t index);
int synchronize(int32_t index);
int properties(int32_t index, ArgandDeviceProperties* out);
int can_access_peer(int32_t index, int32_t peer, int* out);
int error_record(int32_t index, ArgandDeviceError** record);

void add_stream_entries(ArgandDeviceInterface& interface);
void add_memory_entries(ArgandDeviceInterface& interface);
void add_module_entries(ArgandDeviceInterface& interface);
void add_graph_entries(ArgandDeviceInterface& interface);

}  // namespace argand::core::cuda
