// What every registry's operators need to be registered: linked by each library that registers a family.
#include "packages/aten/csrc/registration.h"

#include <algorithm>

#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::registration {
namespace {

const CopiedForm& form_of(const ArgandOperator* op) { return *static_cast<const CopiedForm*>(op->key_data[ARGAND_KEY_COMPOSITE]); }

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
  if (dtype_category(from) > dtype_category(to))
    fail(ARGAND_DTYPE_ERROR, "%s: result type %s can't be cast to the desired output type %s", op, kDTypeName[from], kDTypeName[to]);
}

// Whether what is made of `self` is computed in the dtype of an out= where none is given.
bool is_computed_in(OutDtype rule, int self, int out) {
  if (rule == OutDtype::kWidened || (rule == OutDtype::kFloating && is_floating(self))) return dtype_category(self) == dtype_category(out);
  return true;
}

void check_out_dtype(const char* op, OutDtype rule, int from, int to) {
  if (rule == OutDtype::kFloating && is_floating(from) && dtype_category(from) != dtype_category(to))
    fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for out= of dtype %s, expected a floating-point one for a result of %s", op,
         kDTypeName[to], kDTypeName[from]);
  if (rule == OutDtype::kCast || rule == OutDtype::kWidened || rule == OutDtype::kFloating) check_castable(op, from, to);
  if (rule == OutDtype::kTruth && to != ARGAND_BOOL && to != ARGAND_UINT8)
    fail(ARGAND_DTYPE_ERROR, "%s: Expected out tensor to have dtype bool or uint8, but got %s instead", op, kDTypeName[to]);
  if (rule == OutDtype::kExact && from != to)
    fail(ARGAND_DTYPE_ERROR, "%s: Expected out tensor to have dtype %s, but got %s instead", op, kDTypeName[from], kDTypeName[to]);
}

// A result of another shape takes its memory and its strides anew; gaps between the result's elements are kept only by kRowMajorIfFilled, in an `out`
// of nothing.
void fit_out(const Tensor& out, const Tensor& result, ResizedOut resized) {
  if (out.sizes() == result.sizes() || (resized == ResizedOut::kUnlessAsMany && out.numel() == result.numel())) return;
  const bool filled = out.numel() > 0, dense = is_non_overlapping_and_dense(result.sizes(), result.strides());
  const bool row_major = resized == ResizedOut::kRowMajor || (resized == ResizedOut::kRowMajorIfFilled ? filled : !dense);
  check(api->tensor_resize(out.get(), result->ndim, result->sizes));
  if (row_major || result.is_contiguous()) return;
  if (!dense) {
    int64_t room = 1;
    for (int d = 0; d < result->ndim; d++) room += (result->sizes[d] - 1) * result->strides[d];
    check(api->tensor_resize(out.get(), 1, &room));
  }
  check(api->tensor_set_geometry(out.get(), result->ndim, result->sizes, result->strides, out->offset));
}

// Whether a tensor among the arguments, or in a list there, is such.
template <class Test>
bool any_tensor(const ArgandOperator* op, const ArgandValue* args, Test&& test) {
  for (int i = 0; i < op->n_args; i++) {
    if (args[i].tag == ARGAND_TAG_TENSOR && args[i].t && test(args[i].t)) return true;
    for (uint32_t k = 0; args[i].tag == ARGAND_TAG_TENSOR_LIST && k < args[i].len; k++)
      if (args[i].tensors[k] && test(args[i].tensors[k])) return true;
  }
  return false;
}

// Whether the call is seen by an engine that differentiates.
bool is_recorded(const ArgandOperator* op, const ArgandValue* args) {
  const ArgandThreadState* state = api->thread_state();
  if (!state->grad_mode || state->exclude_keys >> ARGAND_KEY_AUTOGRAD & 1) return false;
  return any_tensor(op, args, [](ArgandTensor* t) { return Tensor::borrow(t).requires_grad(); });
}

}  // namespace

void raise_renamed(std::string_view name, const Error& error) {
  const std::string& message = error.message;
  const size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.");
  if (end == std::string::npos || message.compare(end, 2, ": ") != 0 || name[0] == '_') throw error;
  std::string inner = message.substr(0, end);
  if (!api->op_find(inner.c_str())) std::replace(inner.begin(), inner.end(), '.', '_');  // "linalg.inv"
  const std::string_view outer = name.substr(0, name.find('.'));
  if (inner == outer || !api->op_find(inner.c_str())) throw error;
  throw Error{error.kind, std::string(outer) + message.substr(end)};
}

void own_results(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets) {
  for (int i = 0; i < op->n_rets; i++) {
    if (rets[i].tag != ARGAND_TAG_TENSOR || !rets[i].t) continue;
    ArgandTensor* result = rets[i].t;
    ArgandStorage* storage = result->storage;
    if ((!storage->version && !result->base) || any_tensor(op, args, [&](ArgandTensor* t) { return t->storage == storage; })) continue;
    if (storage->version && is_recorded(op, args)) continue;  // what was saved may be asked for its version, and histories follow the base
    storage->version = 0;
    if (result->base && __atomic_load_n(&result->base->refcount, __ATOMIC_ACQUIRE) == 1) {
      result->flags &= ~ARGAND_TENSOR_VIEW_NO_GRAD;
      (void)Tensor::steal(std::exchange(result->base, nullptr));
    }
  }
}

int inplace_by_copy(const ArgandOperator* op, uint64_t, const ArgandValue* args, ArgandValue* rets) {
  return guarded_in_name_of(op, [&] {
    const Tensor self = as_tensor(args[0]);
    check_writable(op->name, args[0]);
    const ArgandOperator* functional = find_operator(form_of(op).functional);
    if (form_of(op).apart) check_apart(op, args, form_of(op).apart);
    std::vector<ArgandValue> values(args, args + functional->n_args);
    if (const int dtype = form_of(op).dtype; dtype >= 0) {
      if (values[dtype].tag != ARGAND_TAG_NONE && values[dtype].i != self.dtype())
        fail(ARGAND_RUNTIME_ERROR, "%s: Bad in-place call: input tensor dtype %s and output tensor dtype %s should match", op->name,
             kDTypeName[self.dtype()], kDTypeName[values[dtype].i]);
      values[dtype] = int_value(self.dtype(), ARGAND_TAG_DTYPE);
    }
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
  return guarded_in_name_of(op, [&] {
    const CopiedForm& form = form_of(op);
    const ArgandOperator* functional = find_operator(form.functional);
    std::vector<ArgandValue> values(args, args + functional->n_args);
    if (form.dtype >= 0) {
      const int wanted = as_tensor(args[functional->n_args]).dtype();
      if (values[form.dtype].tag != ARGAND_TAG_NONE)
        check_out_dtype(op->name, OutDtype::kExact, static_cast<int>(values[form.dtype].i), wanted);
      else if (is_computed_in(form.out, as_tensor(args[0]).dtype(), wanted))
        values[form.dtype] = int_value(wanted, ARGAND_TAG_DTYPE);
    }
    const TensorList results = call_functional(functional, values.data());
    const bool reads = std::any_of(values.begin(), values.end(), [](const ArgandValue& v) { return v.tag == ARGAND_TAG_TENSOR && v.t; });
    for (size_t i = 0; i < results.size(); i++) {  // nothing is written before all is checked
      const Tensor out = as_tensor(args[functional->n_args + i]);
      if (reads && ARGAND_DEVICE_TYPE(results[i].device()) != ARGAND_DEVICE_TYPE(out.device()))
        fail(ARGAND_DEVICE_ERROR, "%s: got an out of another device than that of the result, expected one device", op->name);
      check_writable(op->name, args[functional->n_args + i]);
      check_out_dtype(op->name, form.out, results[i].dtype(), out.dtype());
      check_no_internal_overlap(op->name, out);
      check_overlaps(op->name, out, args, 0, functional->n_args, form.apart);
    }
    TensorList written;
    for (size_t i = 0; i < results.size(); i++) {
      const Tensor out = as_tensor(args[functional->n_args + i]);
      fit_out(out, results[i], form.resized);
      if (!(results[i].sizes() == out.sizes())) check(api->tensor_resize(results[i].get(), out->ndim, out->sizes));  // as many elements
      written.push_back(ops::copy_(out, results[i]));
    }
    for (size_t i = 0; i < written.size(); i++) give(rets[i], std::move(written[i]));
  });
}

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
