// PyTorch's type promotion.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

int promote_types(int a, int b);  // ARGAND_DTYPE_NONE for numbers that are no dtypes
int default_dtype();
void set_default_dtype(int dtype);
int result_type(const ArgandValue* values, size_t n, int* out);

}  // namespace argand::core
