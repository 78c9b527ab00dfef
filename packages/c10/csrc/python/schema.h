// Schema text, as operators are registered with, into the tables that the parser works on.
#pragma once

#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

struct ParsedSchema {
  const ArgandBinding* binding;  // one signature; lives forever
  uint16_t flags;                // ARGAND_OP_VIEW, ARGAND_OP_INPLACE, from alias marks
};

// "softcap(Tensor self, float cap=1.0, *, str mode='none') -> Tensor". Throws Error (ValueError) with the place of a fault.
ParsedSchema parse_schema(const char* schema);

}  // namespace argand::py
