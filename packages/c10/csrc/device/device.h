// The registry of device backends.
#pragma once

#include <string>

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

int register_device(ArgandDeviceType type, const ArgandDeviceInterface* interface);
const ArgandDeviceInterface* device_interface(ArgandDeviceType type);

int rename_device(ArgandDeviceType type, const char* name);
void set_device_loader(ArgandDeviceType type, int (*loader)(void));
bool awaits_loader(ArgandDeviceType type);  // no device of this type has been asked for yet

const char* device_type_name(ArgandDeviceType type);  // "cpu"
std::string device_text(ArgandDevice device);         // "cuda:1"

// Gives a device without index the current index of its type; an unknown type or an index beyond the count is an error in the name of `op`.
int resolve_device(const char* op, ArgandDevice device, ArgandDevice* out);

extern const ArgandDeviceInterface kCpuInterface;
extern const ArgandDeviceInterface kMetaInterface;
extern const ArgandDeviceInterface kCudaInterface;

}  // namespace argand::core
