#include "packages/aten/cuda/csrc/init.h"

#include "packages/aten/csrc/core/kernel_rows.h"

namespace argand::registration {
#define FAMILY(name) KernelRows name##_cuda();
#include "packages/aten/generated/families.inc"
#undef FAMILY
}  // namespace argand::registration

namespace argand::cuda {

int init(const ArgandApi* table) {
  argand::api = table;
#define FAMILY(name) \
  if (int status = registration::register_kernels(registration::name##_cuda())) return status;
#include "packages/aten/generated/families.inc"
#undef FAMILY
  return 0;
}

}  // namespace argand::cuda
