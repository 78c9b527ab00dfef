#include "packages/aten/csrc/core/builtins.h"

#include "packages/aten/generated/ops.h"

namespace argand::builtins {

Tensor as_tensor(const Operand& o) {
  if (o.is_tensor()) return o.tensor();
  Tensor t = ops::scalar_tensor(o.scalar(), scalar_dtype(o.scalar()));
  t->flags |= ARGAND_TENSOR_WRAPPED_NUMBER;
  return t;
}

int64_t item_int(const Tensor& t) {
  if (t.numel() != 1 || t.is_meta()) raise(ARGAND_RUNTIME_ERROR, text("expected a tensor of one element with data, got shape ", t.sizes()));
  return *ops::_to_copy(t, ARGAND_INT64, ARGAND_DEVICE(ARGAND_CPU, 0)).data<int64_t>();
}

}  // namespace argand::builtins
