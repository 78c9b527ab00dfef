// Autocast: inside of a region, operators get their floating-point tensors in the dtype that the registry's `autocast:` entry asks for.
#pragma once

#include <cstdint>

#include "packages/c10/csrc/abi/argand.h"

namespace argand {

enum class AutocastPolicy : uint8_t {
  kNone,     // as they are, also for operators inside of a composite's body
  kLower,    // to the region's dtype
  kFloat32,  // float16 and bfloat16 to float32
  kPromote   // to the widest among them: float32 if one of them is, else the region's dtype
};

// key_data of ARGAND_KEY_AUTOCAST.
struct AutocastRule {
  AutocastPolicy cpu, accelerator;
};

// The kernel of every operator with a rule.
int autocast_kernel(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);

}  // namespace argand
