// What every registry's operators need to be registered: linked by each library that registers a family.
#include "packages/aten/csrc/registration.h"

namespace argand::registration {

void check_target_on_meta(const ArgandOperator* op, const ArgandValue& target) {
  if (target.tag == ARGAND_TAG_TENSOR && target.t && !Tensor::borrow(target.t).is_meta())
    fail(ARGAND_DEVICE_ERROR, "%s: got a tensor on meta, which has no data, for a target on another device; expected all on one device", op->name);
}

void check_one_device(const ArgandOperator* op, const ArgandValue* args) {
  for (int i = 0; i < op->n_args; i++)
    if (args[i].tag == ARGAND_TAG_TENSOR && args[i].t && args[i].t->ndim > 0 && !Tensor::borrow(args[i].t).is_meta())
      fail(ARGAND_DEVICE_ERROR, "%s: got tensors on cpu and meta, expected all on one device; move them with .to(device)", op->name);
}

int register_family(const Family& family) {
  for (size_t i = 0; i < family.n_operators; i++) {
    const OperatorRow& row = family.operators[i];
    ArgandOperator* op = nullptr;
    if (int status = api->op_register(row.name, row.schema, row.schema_hash, row.n_args, row.n_rets, row.flags, &op)) return status;
  }
  return register_kernels({family.kernels, family.n_kernels});
}

}  // namespace argand::registration
