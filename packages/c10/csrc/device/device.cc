#include "packages/c10/csrc/device/device.h"

#include <cstdlib>
#include <cstring>

#include "packages/c10/csrc/core/errors.h"

namespace argand::core {
namespace {

// Only ever set from NULL to an interface that lives forever.
const ArgandDeviceInterface* g_interfaces[ARGAND_NUM_BACKENDS] = {&kCpuInterface, &kCudaInterface, nullptr, &kMetaInterface};
// Names that backends chose for types without one; set once, never freed.
const char* g_names[ARGAND_NUM_BACKENDS] = {};
// Of each type: what is called when a device of it is first asked for; NULL again when that is done.
int (*g_loaders[ARGAND_NUM_BACKENDS])(void) = {};

constexpr const char* kTypeNames[ARGAND_NUM_BACKENDS] = {"cpu", "cuda", "hip", "meta", "privateuse1", "privateuse2", "privateuse3"};

int run_loader(ArgandDeviceType type, int (*loader)(void)) {
  if (int status = loader()) return status;
  __atomic_store_n(&g_loaders[type], nullptr, __ATOMIC_RELEASE);
  return 0;
}

int unknown_device(const char* op, ArgandDevice device) {
  std::string known;
  for (int t = 0; t < ARGAND_NUM_BACKENDS; t++) {
    const ArgandDeviceInterface* interface = device_interface(static_cast<ArgandDeviceType>(t));
    if (interface && interface->device_count() > 0)
      known += (known.empty() ? "" : ", ") + std::string(device_type_name(static_cast<ArgandDeviceType>(t)));
  }
  return error(ARGAND_DEVICE_ERROR, "%s: got device '%s', which no installed package provides; expected one of: %s", op, device_text(device).c_str(),
               known.c_str());
}

}  // namespace

const char* device_type_name(ArgandDeviceType type) {
  if (static_cast<unsigned>(type) >= ARGAND_NUM_BACKENDS) return "unknown";
  const char* name = __atomic_load_n(&g_names[type], __ATOMIC_ACQUIRE);
  return name ? name : kTypeNames[type];
}

int rename_device(ArgandDeviceType type, const char* name) {
  if (type < ARGAND_PRIVATEUSE1 || type >= ARGAND_NUM_BACKENDS)
    return error(ARGAND_VALUE_ERROR, "rename_device: got device type '%s', expected one of privateuse1, privateuse2, privateuse3",
                 device_type_name(type));
  bool valid = name && *name;
  for (const char* c = name; valid && *c; c++) valid = (*c >= 'a' && *c <= 'z') || *c == '_' || (c != name && *c >= '0' && *c <= '9');
  if (!valid) return error(ARGAND_VALUE_ERROR, "rename_device: got the name '%s', expected lower-case letters, digits and _", name ? name : "");
  for (int t = 0; t < ARGAND_NUM_BACKENDS; t++) {
    if (t != type && std::strcmp(name, device_type_name(static_cast<ArgandDeviceType>(t))) == 0)
      return error(ARGAND_VALUE_ERROR, "rename_device: got the name '%s', which is that of another device; expected a new one", name);
  }
  const char* old = nullptr;
  char* copy = strdup(name);
  if (__atomic_compare_exchange_n(&g_names[type], &old, static_cast<const char*>(copy), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return 0;
  free(copy);
  if (std::strcmp(old, name) == 0) return 0;
  return error(ARGAND_RUNTIME_ERROR, "rename_device: got the name '%s' for the device that is already called '%s'; a device is renamed once", name,
               old);
}

void set_device_loader(ArgandDeviceType type, int (*loader)(void)) {
  if (static_cast<unsigned>(type) < ARGAND_NUM_BACKENDS) __atomic_store_n(&g_loaders[type], loader, __ATOMIC_RELEASE);
}

bool awaits_loader(ArgandDeviceType type) {
  return static_cast<unsigned>(type) < ARGAND_NUM_BACKENDS && __atomic_load_n(&g_loaders[type], __ATOMIC_ACQUIRE);
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
    return error(ARGAND_VALUE_ERROR, "register_device: got an incomplete interface for '%s'; expected every member up to synchronize to be set",
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
  if (!interface) return unknown_device(op, device);
  int32_t index = ARGAND_DEVICE_INDEX(device);
  if (index == 0xff) {
    index = 0;
    if (interface->get_device) interface->get_device(&index);
  }
  const int count = interface->device_count();
  if (__builtin_expect(count <= 0, 0)) {
    const std::string reason = last_error(nullptr);
    return error(ARGAND_DEVICE_ERROR, "%s: got device '%s', but there is none: %s", op, device_text(device).c_str(), reason.c_str());
  }
  if (__builtin_expect(index >= count, 0))
    return error(ARGAND_DEVICE_ERROR, "%s: got device '%s', but there are %d devices of this type; expected an index below that", op,
                 device_text(device).c_str(), count);
  if (int (*loader)(void) = __atomic_load_n(&g_loaders[type], __ATOMIC_ACQUIRE)) {
    if (int status = run_loader(type, loader)) return status;
  }
  *out = ARGAND_DEVICE(type, index);
  return 0;
}

}  // namespace argand::core
