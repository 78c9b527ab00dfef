// Kernels that hand over their result in parts (ArgandEpilogueKernel in argand.h), registered beside the CPU's kernels of the same names.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::kernels::cpu {

int mm_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);
int addmm_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);
int bmm_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);
int linear_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);
int convolution_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);

}  // namespace argand::kernels::cpu
