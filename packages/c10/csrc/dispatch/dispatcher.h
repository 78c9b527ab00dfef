// Choice of a kernel by dispatch keys; see docs/notes/abi.md.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

int call(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets);
int call_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);
int redispatch(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);
int set_fallback(ArgandDispatchKey key, ArgandKernel kernel);

}  // namespace argand::core
