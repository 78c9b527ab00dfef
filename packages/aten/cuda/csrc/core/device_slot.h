// Places for what a library keeps for each device.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::cuda {

inline constexpr int kDeviceSlots = 64;

// The device's place in an array of kDeviceSlots; throws where there is none.
inline size_t device_slot(const char* op, int device) {
  if (device < 0 || device >= kDeviceSlots) fail(ARGAND_DEVICE_ERROR, "%s: got device %d, expected one below %d", op, device, kDeviceSlots);
  return static_cast<size_t>(device);
}

}  // namespace argand::cuda
