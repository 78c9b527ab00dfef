#include "packages/c10/csrc/device/device.h"

#include "packages/c10/csrc/core/errors.h"

namespace argand::core {
namespace {

// Only ever set from NULL to an interface that lives forever.
const ArgandDeviceInterface* g_interfaces[ARGAND_NUM_BACKENDS] = {&kCpuInterface, nullptr, nullptr, &kMetaInterface};

}  // namespace

const char* device_type_name(ArgandDeviceType type) {
  static constexpr const char* kNames[ARGAND_NUM_BACKENDS] = {"cpu", "cuda", "hip", "meta", "privateuse1", "privateuse2", "privateuse3"};
  return static_cast<unsigned>(type) < ARGAND_NUM_BACKENDS ? kNames[type] : "unknown";
}

std::string device_text(ArgandDevice device) {
  std::string s = device_type_name(ARGAND_DEVICE_TYPE(device));
  const int index = ARGAND_DEVICE_INDEX(device);
  if (index != 0xff && (index || ARGAND_DEVICE_TYPE(device) == ARGAND_CUDA)) s += ":" + std::to_string(index);
  return s;
}

const ArgandDeviceInterface* device_interface(ArgandDeviceType type) {
  return static_cast<unsigned>(type) < ARGAND_NUM_BACKENDS ? __atomic_load_n(&g_interfaces[type], __ATOMIC_ACQUIRE) : nullptr;
}

int register_device(ArgandDeviceType type, const ArgandDeviceInterface* interface) {
  if (static_cast<unsigned>(type) >= ARGAND_NUM_BACKENDS)
    return error(ARGAND_VALUE_ERROR, "register_device: got device type %d, expected one below %d", static_cast<int>(type),
                 static_cast<int>(ARGAND_NUM_BACKENDS));
  const ArgandDeviceInterface* i = interface;
  if (!i || !i->name || !i->device_count || !i->allocate || !i->deallocate || !i->copy || !i->synchronize)
    return error(ARGAND_VALUE_ERROR, "register_device: got an incomplete interface for '%s'; expected every member to be set",
                 device_type_name(type));
  const ArgandDeviceInterface* old = nullptr;
  if (!__atomic_compare_exchange_n(&g_interfaces[type], &old, i, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) && old != i)
    return error(ARGAND_RUNTIME_ERROR, "register_device: device '%s' already has the backend '%s', got '%s'; a device has one backend",
                 device_type_name(type), old->name, i->name);
  return 0;
}

int resolve_device(const char* op, ArgandDevice device, ArgandDevice* out) {
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(device);
  const ArgandDeviceInterface* interface = device < 0 ? nullptr : device_interface(type);
  if (!interface) {
    std::string known;
    for (int t = 0; t < ARGAND_NUM_BACKENDS; t++) {
      if (device_interface(static_cast<ArgandDeviceType>(t)))
        known += (known.empty() ? "" : ", ") + std::string(device_type_name(static_cast<ArgandDeviceType>(t)));
    }
    return error(ARGAND_DEVICE_ERROR, "%s: got device '%s', which no installed package provides; expected one of: %s", op,
                 device_text(device).c_str(), known.c_str());
  }
  int index = ARGAND_DEVICE_INDEX(device);
  if (index == 0xff) index = 0;
  if (index != 0 && index >= interface->device_count())
    return error(ARGAND_DEVICE_ERROR, "%s: got device '%s', but there are %d devices of this type; expected an index below that", op,
                 device_text(device).c_str(), interface->device_count());
  *out = ARGAND_DEVICE(type, index);
  return 0;
}

}  // namespace argand::core
