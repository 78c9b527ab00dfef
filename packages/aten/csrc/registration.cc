#include "packages/aten/csrc/registration.h"

#include "packages/aten/csrc/core/scaled_operand.h"

namespace argand::registration {
namespace {

const PointwiseOp& pick_variant(const PointwiseBinding& b, const ArgandOperator* op, const ArgandValue* args) {
  if (b.variant_arg < 0) return b.variants[0];
  const std::string_view wanted = as_view(args[b.variant_arg]);
  std::string known;
  for (int i = 0; i < b.n_variants; i++) {
    if (wanted == b.variant_names[i]) return b.variants[i];
    known += std::string(i ? ", " : "") + "'" + b.variant_names[i] + "'";
  }
  fail(ARGAND_RUNTIME_ERROR, "%s: got '%.*s', expected one of %s", op->name, static_cast<int>(wanted.size()), wanted.data(), known.c_str());
}

Tensor run_pointwise(const ArgandOperator* op, const ArgandValue* args, const Tensor& out, bool inplace) {
  const auto& b = *static_cast<const PointwiseBinding*>(op->key_data[ARGAND_KEY_CPU]);
  Operand operands[kMaxOperands];
  const Operand* pointers[kMaxOperands];
  double scalars[kMaxOperands] = {};
  int64_t ints[kMaxOperands] = {};
  for (int i = 0; i < b.n_operands; i++) {
    operands[i] = Operand(args[b.operand_args[i]]);
    pointers[i] = &operands[i];
  }
  Tensor product;
  take_scalars(op, b, args, operands, scalars, ints, true, &product);
  return pointwise(pick_variant(b, op, args), pointers, b.n_scalars ? scalars : nullptr, ints, out, inplace);
}

}  // namespace

int pointwise_functional(const ArgandOperator* op, uint64_t, const ArgandValue* args, ArgandValue* rets) {
  return guarded([&] { give(rets[0], run_pointwise(op, args, Tensor(), false)); });
}

int pointwise_inplace(const ArgandOperator* op, uint64_t, const ArgandValue* args, ArgandValue* rets) {
  return guarded([&] {
    check_writable(op->name, args[0]);
    run_pointwise(op, args, as_tensor(args[0]), true);
    give_changed(rets[0], args[0]);
  });
}

int pointwise_out(const ArgandOperator* op, uint64_t, const ArgandValue* args, ArgandValue* rets) {
  return guarded([&] {
    const auto& b = *static_cast<const PointwiseBinding*>(op->key_data[ARGAND_KEY_CPU]);
    const ArgandValue& out = args[b.n_args];
    check_writable(op->name, out);
    run_pointwise(op, args, as_tensor(out), false);
    give_changed(rets[0], out);
  });
}

Tensor make_view(const ArgandOperator* op, const Tensor& self, const builtins::Strided& g) {
  int64_t last = g.offset;
  bool is_empty = false;
  for (size_t i = 0; i < g.sizes.size(); i++) {
    is_empty |= g.sizes[i] == 0;
    last += (g.sizes[i] - 1) * g.strides[i];
  }
  if (!is_empty && (g.offset < 0 || static_cast<uint64_t>(last + 1) * self.itemsize() > self->storage->nbytes))
    fail(ARGAND_RUNTIME_ERROR, "%s: setStorage: sizes %s, strides %s, storage offset %lld and itemsize %d need more than the storage of %zu bytes",
         op->name, to_string(g.sizes).c_str(), to_string(g.strides).c_str(), static_cast<long long>(g.offset), self.itemsize(),
         self->storage->nbytes);
  return view_of(self, g.sizes, g.strides, g.offset);
}

}  // namespace argand::registration
