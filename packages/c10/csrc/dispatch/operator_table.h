// Operators by name. Entries never move and are never removed; lookups take no lock.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

int op_register(const char* name, const char* schema, uint64_t schema_hash, uint16_t n_args, uint16_t n_rets, uint16_t flags, ArgandOperator** out);
ArgandOperator* op_find(const char* name);
int op_set_kernel(ArgandOperator* op, ArgandDispatchKey key, ArgandKernel kernel, void* key_data);
int op_set_epilogue(ArgandOperator* op, ArgandEpilogueKernel kernel);
size_t op_list(const ArgandOperator** out, size_t capacity);  // in order of registration

}  // namespace argand::core
