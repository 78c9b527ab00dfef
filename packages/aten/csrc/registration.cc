#include "packages/aten/csrc/registration.h"

#include "packages/aten/generated/ops.h"

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
  double scalars[kMaxOperands];
  int64_t ints[kMaxOperands];
  for (int i = 0; i < b.n_operands; i++) {
    operands[i] = Operand(args[b.operand_args[i]]);
    pointers[i] = &operands[i];
  }
  for (int i = 0; i < b.n_scalars; i++) {
    const Scalar s = as_scalar(args[b.scalar_args[i]]);
    scalars[i] = s.to_double();
    ints[i] = s.to_int();
    if (b.has_alpha && args[b.scalar_args[i]].tag != ARGAND_TAG_INT)
      check_alpha(op->name, pointwise_dtype(op->name, b.n_operands, kPromoteDefault, 0, pointers), args[b.scalar_args[i]]);
  }
  return pointwise(pick_variant(b, op, args), pointers, scalars, ints, out, inplace);
}

const ArgandOperator* functional_of(const ArgandOperator* op) { return find_operator(static_cast<const char*>(op->key_data[ARGAND_KEY_COMPOSITE])); }

// Calls the functional form; one Tensor per result. Autocast leaves forms that write into a given tensor alone.
TensorList call_functional(const ArgandOperator* functional, const ArgandValue* args) {
  StateGuard state;
  state->exclude_keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST);
  ArgandValue rets[8] = {};
  check(api->call(functional, args, rets));
  TensorList results;
  for (int i = 0; i < functional->n_rets; i++) results.push_back(take_tensor(rets[i]));
  return results;
}

// Results are stored in their own category of dtypes or a wider one: bool, integers, floating-point numbers, complex numbers.
void check_castable(const char* op, int from, int to) {
  const auto category = [](int dtype) { return is_complex(dtype) ? 3 : is_floating(dtype) ? 2 : dtype == ARGAND_BOOL ? 0 : 1; };
  if (category(from) > category(to))
    fail(ARGAND_DTYPE_ERROR, "%s: result type %s can't be cast to the desired output type %s", op, kDTypeName[from], kDTypeName[to]);
}

// Whether the call is seen by an engine that differentiates.
bool is_recorded(const ArgandOperator* op, const ArgandValue* args) {
  const ArgandThreadState* state = api->thread_state();
  if (!state->grad_mode || state->exclude_keys >> ARGAND_KEY_AUTOGRAD & 1) return false;
  for (int i = 0; i < op->n_args; i++)
    if (args[i].tag == ARGAND_TAG_TENSOR && args[i].t && Tensor::borrow(args[i].t).requires_grad()) return true;
  return false;
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

int inplace_by_copy(const ArgandOperator* op, uint64_t, const ArgandValue* args, ArgandValue* rets) {
  return guarded([&] {
    const Tensor self = as_tensor(args[0]);
    check_writable(op->name, args[0]);
    const ArgandOperator* functional = functional_of(op);
    std::vector<ArgandValue> values(args, args + functional->n_args);
    Tensor before;  // what the functional form keeps of self must outlive the copy
    if (is_recorded(functional, args)) {
      before = ops::clone(self);
      values[0].t = before.get();
    }
    const TensorList result = call_functional(functional, values.data());
    if (!(result[0].sizes() == self.sizes()))
      fail(ARGAND_SHAPE_ERROR, "%s: got a result of shape %s for self of shape %s; in-place operators keep the shape, use %s instead", op->name,
           to_string(result[0].sizes()).c_str(), to_string(self.sizes()).c_str(), functional->name);
    check_castable(op->name, result[0].dtype(), self.dtype());
    give(rets[0], ops::copy_(self, result[0]));
  });
}

int out_by_copy(const ArgandOperator* op, uint64_t, const ArgandValue* args, ArgandValue* rets) {
  return guarded([&] {
    const ArgandOperator* functional = functional_of(op);
    const TensorList results = call_functional(functional, args);
    for (size_t i = 0; i < results.size(); i++) {
      const Tensor out = as_tensor(args[functional->n_args + i]);
      check_writable(op->name, args[functional->n_args + i]);
      check_castable(op->name, results[i].dtype(), out.dtype());
      if (!(out.sizes() == results[i].sizes())) check(api->tensor_resize(out.get(), results[i]->ndim, results[i]->sizes));
      give(rets[i], ops::copy_(out, results[i]));
    }
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
    fail(ARGAND_RUNTIME_ERROR, "%s: setStorage: sizes %s, strides %s, storage offset %lld and itemsize %d need more than the storage of %zu bytes", op->name,
         to_string(g.sizes).c_str(), to_string(g.strides).c_str(), static_cast<long long>(g.offset), self.itemsize(), self->storage->nbytes);
  return view_of(self, g.sizes, g.strides, g.offset);
}

}  // namespace argand::registration
