// The CPU as a device: the caching allocator and memcpy.
#include <cstring>

#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/device/device.h"
#include "packages/c10/csrc/memory/cpu_allocator.h"

namespace argand::core {
namespace {

int device_count() { return 1; }
void* allocate(int32_t, size_t nbytes) { return nbytes ? cpu_allocate(nbytes) : nullptr; }
void deallocate(void* data, int32_t, size_t nbytes) {
  if (data) cpu_free(data, nbytes);
}
int synchronize(int32_t) { return 0; }

int copy(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes) {
  if (ARGAND_DEVICE_TYPE(dst_device) != ARGAND_CPU || ARGAND_DEVICE_TYPE(src_device) != ARGAND_CPU)
    return error(ARGAND_DEVICE_ERROR, "copy: got devices '%s' and '%s', expected cpu on both sides; use the other device's copy",
                 device_text(src_device).c_str(), device_text(dst_device).c_str());
  if (nbytes) memcpy(dst, src, nbytes);
  return 0;
}

}  // namespace

const ArgandDeviceInterface kCpuInterface = [] {
  ArgandDeviceInterface i{};
  i.name = "cpu";
  i.device_count = device_count;
  i.allocate = allocate;
  i.deallocate = deallocate;
  i.copy = copy;
  i.synchronize = synchronize;
  return i;
}();

}  // namespace argand::core
