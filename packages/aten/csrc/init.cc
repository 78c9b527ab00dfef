#include "packages/aten/csrc/init.h"

#include "packages/aten/csrc/kernels/cpu/epilogue.h"
#include "packages/aten/csrc/registration.h"

namespace argand::registration {
#define FAMILY(name) Family name##_family();
#include "packages/aten/generated/families.inc"
#undef FAMILY
}  // namespace argand::registration

int argand_aten_init(const ArgandApi* table) {
  using namespace argand::registration;
  if (table->abi_version != ARGAND_ABI_VERSION) return ARGAND_INTERNAL_ERROR;
  argand::api = table;
#define FAMILY(name) \
  if (int status = register_family(name##_family())) return status;
#include "packages/aten/generated/families.inc"
#undef FAMILY
  namespace cpu = argand::kernels::cpu;
  constexpr struct {
    const char* op;
    ArgandEpilogueKernel kernel;
  } epilogues[] = {{"mm", cpu::mm_epilogue},
                   {"addmm", cpu::addmm_epilogue},
                   {"bmm", cpu::bmm_epilogue},
                   {"linear", cpu::linear_epilogue},
                   {"convolution", cpu::convolution_epilogue}};
  for (const auto& [op, kernel] : epilogues)
    if (int status = table->op_set_epilogue(table->op_find(op), kernel)) return status;
  return 0;
}
