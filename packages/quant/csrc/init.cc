#include "packages/quant/csrc/init.h"

#include "packages/aten/csrc/registration.h"

namespace argand::registration {
#define FAMILY(name) Family name##_family();
#include "packages/quant/generated/families.inc"
#undef FAMILY
}  // namespace argand::registration

int argand_quant_init(const ArgandApi* table) {
  using namespace argand::registration;
  if (table->abi_version != ARGAND_ABI_VERSION) return ARGAND_INTERNAL_ERROR;
  argand::api = table;
#define FAMILY(name) \
  if (int status = register_family(name##_family())) return status;
#include "packages/quant/generated/families.inc"
#undef FAMILY
  return 0;
}
