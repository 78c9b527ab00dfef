#include "packages/autograd/csrc/tape.h"

#include <string>
#include <string_view>

#include "packages/autograd/csrc/batching.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/op_node.h"
#include "packages/autograd/csrc/tensor_ops.h"
#include "packages/autograd/csrc/view_nodes.h"

namespace argand::autograd {

namespace {

constexpr uint64_t kAutogradBit = ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);

// Stands for operators that nobody gave a derivative.
const Derivative kNoRecord{nullptr, nullptr, 0, 0, 0, 0, nullptr, nullptr};

class NotImplementedBackward final : public VectorNode {
 public:
  NotImplementedBackward(const char* op, std::vector<Edge> edges, std::vector<OwnedFacts> results) : op_(op) {
    set_edges(std::move(edges));
    set_inputs(std::move(results));
  }
  const char* name() const override { return "NotImplemented"; }
  void apply(Gradients&) override {
    fail(ARGAND_NOT_IMPLEMENTED_ERROR,
         "%s: the derivative of this operator is not implemented; detach its arguments, or write it as a custom Function", op_);
  }

 private:
  const char* op_;
};

template <class F>
void for_each_tensor(const ArgandValue& v, F&& f) {
  if (v.tag == ARGAND_TAG_TENSOR) {
    if (v.t) f(v.t);
  } else if (v.tag == ARGAND_TAG_TENSOR_LIST) {
    for (uint32_t i = 0; i < v.len; i++) {
      if (v.tensors[i]) f(v.tensors[i]);
    }
  }
}

uint64_t arguments_requiring_grad(const ArgandOperator* op, const ArgandValue* args, uint64_t among) {
  uint64_t needed = 0;
  for (int i = 0; i < op->n_args; i++) {
    if (!(among >> i & 1)) continue;
    bool any = false;
    for_each_tensor(args[i], [&](ArgandTensor* t) { any = any || requires_grad(t); });
    if (any) needed |= uint64_t{1} << i;
  }
  return needed;
}

int redispatch_below(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets, ArgandThreadState* state) {
  const uint64_t excluded = state->exclude_keys;
  state->exclude_keys = excluded | kAutogradBit;
  const int status = api->redispatch(op, keys & ~kAutogradBit, args, rets);
  state->exclude_keys = excluded;
  return status;
}

// A result that is one of the arguments itself gets a face of its own, so that the argument keeps its history.
void separate_from_arguments(const ArgandOperator* op, const ArgandValue* args, ArgandTensor*& result) {
  if (__atomic_load_n(&result->refcount, __ATOMIC_RELAXED) == 1) return;
  bool same = false;
  for (int i = 0; i < op->n_args; i++) for_each_tensor(args[i], [&](ArgandTensor* t) { same = same || t == result; });
  if (!same) return;
  ArgandTensor* view = nullptr;
  check(api->tensor_view(result, result->ndim, result->sizes, result->strides, result->offset, result->dtype, &view));
  share_entries(result, view);
  Tensor::release(std::exchange(result, view));
}

// Calls f(result slot, number, record bit) for every tensor among the results; lists are flattened.
template <class F>
void for_each_result(const ArgandOperator* op, ArgandValue* rets, F&& f) {
  uint32_t nr = 0;
  for (int i = 0; i < op->n_rets; i++) {
    if (rets[i].tag == ARGAND_TAG_TENSOR_LIST) {
      for (uint32_t k = 0; k < rets[i].len; k++, nr++) {
        if (rets[i].tensors[k]) f(rets[i].tensors[k], nr, i);
      }
    } else {
      if (rets[i].tag == ARGAND_TAG_TENSOR && rets[i].t) f(rets[i].t, nr, i);
      nr++;
    }
  }
}

NodeRef make_not_implemented(const ArgandOperator* op, const ArgandValue* args, const std::vector<Tensor>& results) {
  std::vector<Edge> edges;
  for (int i = 0; i < op->n_args; i++) for_each_tensor(args[i], [&](ArgandTensor* t) { edges.push_back(gradient_edge(t)); });
  return not_implemented(op->name, std::move(edges), results);
}

void record_results(const ArgandOperator* op, const Derivative* record, const ArgandValue* args, ArgandValue* rets, uint64_t needed) {
  const bool known = record != &kNoRecord;
  const uint64_t candidates = known ? record->differentiable_results : ~uint64_t{0};
  bool any = false;
  for_each_result(op, rets, [&](ArgandTensor*& t, uint32_t, int i) { any = any || ((candidates >> i & 1) && is_differentiable(t->dtype)); });
  if (!any) return;
  NodeRef node;
  OpNode* op_node = nullptr;
  if (known) {
    auto made = OpNode::make(op, record, args, needed, {}, rets);
    op_node = made.get();
    node = std::move(made);
  } else {
    std::vector<Tensor> results;
    for_each_result(op, rets, [&](ArgandTensor*& t, uint32_t, int) { results.push_back(Tensor::borrow(t)); });
    node = make_not_implemented(op, args, results);
  }
  for_each_result(op, rets, [&](ArgandTensor*& t, uint32_t nr, int i) {
    if ((candidates >> i & 1) && is_differentiable(t->dtype)) {
      separate_from_arguments(op, args, t);
      set_history(t, node, nr);
    }
    if (op_node && op_node->saves_result(nr)) op_node->save_result(Tensor::borrow(t), nr);
  });
}

void release_results(const ArgandOperator* op, ArgandValue* rets) {
  for (int i = 0; i < op->n_rets; i++) {
    if (rets[i].tag == ARGAND_TAG_TENSOR_LIST) {
      take_tensors(rets[i]);
    } else {
      take_tensor(rets[i]);
    }
    rets[i] = ArgandValue{};
  }
}

// In-place: everything that is kept is taken before the change.
int run_in_place(const ArgandOperator* op, const Derivative* record, uint64_t keys, const ArgandValue* args, ArgandValue* rets,
                 ArgandThreadState* state) {
  ArgandTensor* self = args[0].t;
  const bool known = record != &kNoRecord;
  const uint64_t among = known && record->backward ? record->differentiable_args | 1 : ~uint64_t{0};
  const uint64_t needed = arguments_requiring_grad(op, args, among);
  check_inplace(op->name, self, needed & ~uint64_t{1});
  const bool differentiable = needed && is_differentiable(self->dtype) && (!self->base || is_differentiable(self->base->dtype));
  Ref<OpNode> op_node;
  NodeRef node;
  if (differentiable && known) {
    const Tensor before = OpNode::saved_arguments(record, op, needed) & 1 ? tensor_ops::clone(Tensor::borrow(self)) : Tensor();
    op_node = OpNode::make(op, record, args, needed, before, nullptr);
    node = NodeRef::borrow(op_node.get());
  } else if (differentiable) {
    node = make_not_implemented(op, args, {Tensor::borrow(self)});
  }
  const int status = redispatch_below(op, keys, args, rets, state);
  if (status || !node) return status;
  try {
    rebase_history(self, node, 0);
    if (op_node && op_node->saves_result(0)) op_node->save_result(Tensor::borrow(self), 0);
  } catch (...) {
    release_results(op, rets);
    throw;
  }
  return 0;
}

int run(const ArgandOperator* op, const Derivative* record, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  ArgandThreadState* state = api->thread_state();
  const bool recording = state->grad_mode && !state->inference_mode;
  if (recording && (op->flags & ARGAND_OP_INPLACE) && args[0].tag == ARGAND_TAG_TENSOR && args[0].t)
    return run_in_place(op, record, keys, args, rets, state);
  uint64_t needed = 0;
  if (recording && !(op->flags & ARGAND_OP_INPLACE)) {
    const bool known = record != &kNoRecord;
    needed = arguments_requiring_grad(op, args, known ? (record->backward ? record->differentiable_args : 0) : ~uint64_t{0});
  }
  const int status = redispatch_below(op, keys, args, rets, state);
  if (status) return status;
  if (needed) {
    try {
      record_results(op, record, args, rets, needed);
    } catch (...) {
      release_results(op, rets);
      throw;
    }
  } else if (op->flags & ARGAND_OP_VIEW) {
    // A view without history of a tensor with one: made while gradients are off, or from such a view.
    const bool inherited = args[0].tag == ARGAND_TAG_TENSOR && args[0].t && (args[0].t->flags & ARGAND_TENSOR_VIEW_NO_GRAD);
    if (!recording || inherited) {
      for_each_result(op, rets, [&](ArgandTensor*& t, uint32_t, int) {
        if (t->base && !(args[0].tag == ARGAND_TAG_TENSOR && t == args[0].t)) note_view_without_history(t);
      });
    }
  }
  return 0;
}

int tape_kernel(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  int status = 0;
  const int thrown = guarded([&] { status = run(op, static_cast<const Derivative*>(op->key_data[ARGAND_KEY_AUTOGRAD]), keys, args, rets); });
  return thrown ? thrown : status;
}

bool is_out_form(const char* name) {
  const std::string_view s(name);
  return s.ends_with("_out") || s.ends_with(".out");
}

// Whether an out= form writes tensors that may require gradients; they are its last arguments, one a result.
bool writes_differentiable(const ArgandOperator* op, const ArgandValue* args) {
  bool any = false;
  for (int i = op->n_args - op->n_rets; i < op->n_args; i++)
    for_each_tensor(args[i], [&](ArgandTensor* t) { any = any || is_differentiable(t->dtype); });
  return any;
}

// The functional form of an in-place operator: "mul" for "mul_", "max.dim" for "max_.dim".
const ArgandOperator* functional_form(const ArgandOperator* op) {
  std::string name(op->name);
  const size_t dot = name.find('.'), end = dot == std::string::npos ? name.size() : dot;
  if (end == 0 || name[end - 1] != '_') return nullptr;
  const ArgandOperator* functional = api->op_find(name.erase(end - 1, 1).c_str());
  return functional && functional->n_args == op->n_args ? functional : nullptr;
}

int tape_fallback(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  bool composite = op->flags & ARGAND_OP_COMPOSITE;
  if (const ArgandOperator* functional = op->flags & ARGAND_OP_INPLACE ? functional_form(op) : nullptr) {
    if (functional->kernels[ARGAND_KEY_AUTOGRAD] == tape_kernel) {
      void* record = functional->key_data[ARGAND_KEY_AUTOGRAD];
      if (const int status = api->op_set_kernel(const_cast<ArgandOperator*>(op), ARGAND_KEY_AUTOGRAD, tape_kernel, record)) return status;
      return tape_kernel(op, keys, args, rets);
    }
    // Without a record the in-place form calls the functional one and copies; both are recorded.
    composite = composite || (functional->flags & ARGAND_OP_COMPOSITE) || functional->kernels[ARGAND_KEY_AUTOGRAD];
  }
  if (is_out_form(op->name)) {
    return guarded([&] {
      ArgandThreadState* state = api->thread_state();
      if (state->grad_mode && writes_differentiable(op, args) && arguments_requiring_grad(op, args, ~uint64_t{0}))
        fail(ARGAND_RUNTIME_ERROR,
             "%s: functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.", op->name);
      check(redispatch_below(op, keys, args, rets, state));
    });
  }
  // A composite's body calls operators that are recorded themselves.
  if (composite) return api->redispatch(op, keys & ~kAutogradBit, args, rets);
  int status = 0;
  const int thrown = guarded([&] { status = run(op, &kNoRecord, keys, args, rets); });
  return thrown ? thrown : status;
}

int detach_kernel(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  if (keys & ARGAND_KEYBIT(ARGAND_KEY_BATCHED)) return api->redispatch(op, keys & ~kAutogradBit, args, rets);  // what entries are of, too
  return guarded([&] { give(rets[0], detach(args[0].t)); });
}

// as_strided_ makes its tensor what as_strided gives; the tensor takes that view's place in the history.
int as_strided_in_place(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  return guarded([&] {
    ArgandTensor* self = args[0].t;
    ArgandThreadState* state = api->thread_state();
    if (!state->grad_mode || state->inference_mode || !requires_grad(self)) return check(redispatch_below(op, keys, args, rets, state));
    check_inplace(op->name, self, false);
    NodeRef node;
    if (!self->base) {
      ArgandValue made[1] = {};
      check(api->call(api->op_find("as_strided"), args, made));
      node = NodeRef::borrow(grad_fn(take_tensor(made[0]).get()));
    }
    check(redispatch_below(op, keys, args, rets, state));
    set_history(self, node ? node : make_view_node(self, gradient_edge(self->base)), 0);
  });
}

}  // namespace

NodeRef not_implemented(const char* op, std::vector<Edge> edges, const std::vector<Tensor>& results) {
  std::vector<OwnedFacts> facts;
  for (const Tensor& t : results) facts.emplace_back(t);
  return NodeRef::steal(new NotImplementedBackward(op, std::move(edges), std::move(facts)));
}

int record(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  const ArgandKernel kernel = __atomic_load_n(&op->kernels[ARGAND_KEY_AUTOGRAD], __ATOMIC_ACQUIRE);
  return (kernel ? kernel : tape_fallback)(op, keys, args, rets);
}

void register_derivatives(const Derivative* first, size_t n) {
  for (const Derivative* d = first; d != first + n; d++) {
    ArgandOperator* op = api->op_find(d->op);
    if (!op)
      fail(ARGAND_INTERNAL_ERROR, "register_derivatives: got the unknown operator '%s', expected a registered one; load the operators first", d->op);
    check(api->op_set_kernel(op, ARGAND_KEY_AUTOGRAD, tape_kernel, const_cast<Derivative*>(d)));
  }
}

void install_tape() {
  check(api->set_fallback(ARGAND_KEY_AUTOGRAD, tape_fallback));
  if (ArgandOperator* geometry = api->op_find("as_strided_")) check(api->op_set_kernel(geometry, ARGAND_KEY_AUTOGRAD, as_strided_in_place, nullptr));
  // A detached tensor is no view: it must not follow its source when that gets a history by an in-place change.
  ArgandOperator* op = api->op_find("detach");
  if (!op) return;
  for (int key = 0; key <= ARGAND_KEY_COMPOSITE; key++) {
    if (op->kernels[key]) check(api->op_set_kernel(op, static_cast<ArgandDispatchKey>(key), detach_kernel, nullptr));
  }
  check(api->op_set_kernel(op, ARGAND_KEY_AUTOGRAD, detach_kernel, nullptr));
}

}  // namespace argand::autograd
