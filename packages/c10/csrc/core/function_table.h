// The function table that other libraries have. Its `call` and `call_epilogue` are exchanged while a thread is profiled.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

ArgandApi& function_table();

}  // namespace argand::core
