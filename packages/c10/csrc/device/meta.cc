// The meta device: tensors with geometry and accounted bytes but no memory.
#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/device/device.h"

namespace argand::core {
namespace {

int device_count() { return 1; }
void* allocate(int32_t, size_t) { return nullptr; }
void deallocate(void*, int32_t, size_t) {}
int synchronize(int32_t) { return 0; }

int copy(void*, ArgandDevice dst_device, const void*, ArgandDevice src_device, size_t) {
  if (ARGAND_DEVICE_TYPE(dst_device) == ARGAND_META) return 0;
  return error(ARGAND_NOT_IMPLEMENTED_ERROR, "copy: got a tensor on device '%s' for device '%s': it has no data; expected a source with data",
               device_text(src_device).c_str(), device_text(dst_device).c_str());
}

}  // namespace

const ArgandDeviceInterface kMetaInterface = [] {
  ArgandDeviceInterface i{};
  i.name = "meta";
  i.device_count = device_count;
  i.allocate = allocate;
  i.deallocate = deallocate;
  i.copy = copy;
  i.synchronize = synchronize;
  return i;
}();

}  // namespace argand::core
