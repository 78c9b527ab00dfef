#include "packages/autograd/csrc/derivative.h"

namespace argand::autograd {

#define FAMILY(name) void register_##name##_derivatives();
#include "packages/aten/generated/families.inc"
#undef FAMILY

void register_all_derivatives() {
#define FAMILY(name) register_##name##_derivatives();
#include "packages/aten/generated/families.inc"
#undef FAMILY
}

}  // namespace argand::autograd
