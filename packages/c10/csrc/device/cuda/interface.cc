#include "packages/c10/csrc/device/cuda/context.h"
#include "packages/c10/csrc/device/device.h"

namespace argand::core {

const ArgandDeviceInterface kCudaInterface = [] {
  ArgandDeviceInterface i{};
  i.name = "cuda";
  i.device_count = cuda::device_count;
  i.get_device = cuda::get_device;
  i.set_device = cuda::set_device;
  i.synchronize = cuda::synchronize;
  i.properties = cuda::properties;
  i.can_access_peer = cuda::can_access_peer;
  i.error_record = cuda::error_record;
  cuda::add_stream_entries(i);
  cuda::add_memory_entries(i);
  cuda::add_module_entries(i);
  cuda::add_graph_entries(i);
  return i;
}();

}  // namespace argand::core
