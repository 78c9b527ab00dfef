// Tables that the generated <family>.bindings.cc give to the module.
#pragma once

#include "packages/c10/csrc/abi/python_api.h"

namespace argand::bindings {

enum Place : int { kFunction = 1, kMethod = 2 };

struct PlacedBinding {
  ArgandBinding binding;
  int places;  // where it is public: Place bits; every binding is also in argand_aten.ops
};

struct BindingTable {
  const PlacedBinding* rows;
  size_t n;
};

}  // namespace argand::bindings
