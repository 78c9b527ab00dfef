// Places for what a library keeps for each device.
#pragma once

#include "packages/c10/csrc/abi/devices.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::cuda {

// The device's place in an array of kMaxDevices; throws where there is none.
inline size_t device_slot(const char* op, int device) {
  if (device < 0 || device >= kMaxDevices) fail(ARGAND_DEVICE_ERROR, "%s: got device %d, expected one below %d", op, device, kMaxDevices);
  return static_cast<size_t>(device);
}

}  // namespace argand::cuda
