// Custom Functions: the context object, the node that calls a Python backward, and apply().
#include "packages/autograd/csrc/batching.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/python/binding.h"
#include "packages/autograd/csrc/saved_tensor.h"
#include "packages/autograd/csrc/tensor_ops.h"

#include <structmember.h>  // after Python.h

namespace argand::autograd::binding {

namespace {

class FunctionNode;

// `ctx`. The node owns it; it knows the node while that lives.
struct ContextObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  FunctionNode* node;  // not owned
  PyObject *needs_input_grad, *to_save, *dirty, *non_differentiable;
  bool materialize_grads;
  bool was_recorded;
};
PyTypeObject* context_type = nullptr;
ContextObject* context_of(PyObject* o) { return reinterpret_cast<ContextObject*>(o); }

class FunctionNode final : public VectorNode {
 public:
  // arg_edges[i]: the edge of forward argument i, -1 where it was no tensor.
  FunctionNode(Object function, Object context, std::vector<int> arg_edges, std::vector<Edge> edges)
      : function_(std::move(function)), context_(std::move(context)), arg_edges_(std::move(arg_edges)) {
    name_ = Py_TYPE(context_.get())->tp_name;
    const size_t dot = name_.rfind('.');
    if (dot != std::string::npos) name_.erase(0, dot + 1);
    set_edges(std::move(edges));
    context_of(context_.get())->node = this;
  }
  ~FunctionNode() override {
    if (finalizing()) {
      context_.take();
      function_.take();
      return;
    }
    Gil gil;
    context_of(context_.get())->node = nullptr;
    context_ = {};
    function_ = {};
  }
  const char* name() const override { return name_.c_str(); }
  void set_owner(Node* owner) override { owner_ = owner; }
  PyObject* context() const { return context_.get(); }
  void set_results(std::vector<OwnedFacts> results) { set_inputs(std::move(results)); }
  void save(std::vector<SavedTensor> saved) { saved_ = std::move(saved); }
  Object saved_tensors() {
    Object tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(saved_.size())));
    for (size_t i = 0; i < saved_.size(); i++) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(saved_[i].unpack(this, owner_)).take());
    return tuple;
  }
  void release_variables() override {
    for (SavedTensor& s : saved_) s.release();
  }

  void apply(Gradients& g) override {
    Gil gil;
    Object args = checked(PyTuple_New(num_inputs() + 1));
    PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(context_.get()));
    for (uint32_t i = 0; i < num_inputs(); i++) {
      const TensorFacts& f = input_facts(i);
      Tensor grad = std::move(g.in[i]);
      if (!grad && f.defined() && context_of(context_.get())->materialize_grads) grad = tensor_ops::zeros(f.size_list(), f.dtype, f.device);
      PyTuple_SET_ITEM(args.get(), i + 1, wrap(std::move(grad)).take());
    }
    Object backward = checked(PyObject_GetAttrString(function_.get(), "backward"));
    Object result = checked(PyObject_CallObject(backward.get(), args.get()));
    if (!PyTuple_Check(result.get())) result = checked(PyTuple_Pack(1, result.get()));
    take_gradients(result.get(), g);
  }

 private:
  void take_gradients(PyObject* result, Gradients& g) {
    const auto n = static_cast<Py_ssize_t>(arg_edges_.size()), got = PyTuple_GET_SIZE(result);
    bool extra_are_none = true;
    for (Py_ssize_t i = n; i < got; i++) extra_are_none = extra_are_none && PyTuple_GET_ITEM(result, i) == Py_None;
    if (got < n || !extra_are_none)
      fail(ARGAND_RUNTIME_ERROR, "function %s returned an incorrect number of gradients (expected %zd, got %zd)", name(), n, got);
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* item = PyTuple_GET_ITEM(result, i);
      if (item == Py_None) continue;
      const int edge = arg_edges_[static_cast<size_t>(i)];
      if (edge < 0)
        fail(ARGAND_RUNTIME_ERROR,
             "function %s returned a gradient different from None at position %zd, but the corresponding forward input was not a Tensor", name(),
             i + 1);
      if (!is_tensor(item))
        fail(ARGAND_TYPE_ERROR, "function %s returned %s at position %zd, expected Tensor or None", name(), Py_TYPE(item)->tp_name, i + 1);
      g.out[edge] = unwrap(item);
    }
  }

  Object function_, context_;
  std::vector<int> arg_edges_;
  std::vector<SavedTensor> saved_;
  std::string name_;
  Node* owner_ = nullptr;
};

// ---- the context's type ----------------------------------------------------------------------------------------------
PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o) context_of(o)->materialize_grads = true;
  return o;
}
int context_traverse(PyObject* o, visitproc visit, void* arg) {
  ContextObject* c = context_of(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(c->dict);
  Py_VISIT(c->needs_input_grad);
  Py_VISIT(c->to_save);
  Py_VISIT(c->dirty);
  Py_VISIT(c->non_differentiable);
  return 0;
}
int context_clear(PyObject* o) {
  ContextObject* c = context_of(o);
  Py_CLEAR(c->dict);
  Py_CLEAR(c->needs_input_grad);
  Py_CLEAR(c->to_save);
  Py_CLEAR(c->dirty);
  Py_CLEAR(c->non_differentiable);
  return 0;
}
void context_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (context_of(o)->weakrefs) PyObject_ClearWeakRefs(o);
  context_clear(o);
  type->tp_free(o);
  Py_DECREF(type);
}

template <PyObject* ContextObject::* Field>
PyObject* store_arguments(PyObject* o, PyObject* args) {
  Py_XSETREF(context_of(o)->*Field, Py_NewRef(args));
  Py_RETURN_NONE;
}
PyObject* set_materialize_grads(PyObject* o, PyObject* value) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  context_of(o)->materialize_grads = on;
  Py_RETURN_NONE;
}
PyObject* save_for_forward(PyObject*, PyObject*) { Py_RETURN_NONE; }
PyObject* get_saved_tensors(PyObject* o, void*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    ContextObject* c = context_of(o);
    if (c->node) return c->node->saved_tensors().take();
    if (c->was_recorded) fail_released();
    return PyTuple_New(0);
  });
}
PyObject* get_saved_variables(PyObject* o, void* closure) {
  if (PyErr_WarnEx(PyExc_DeprecationWarning, "'saved_variables' is deprecated; use 'saved_tensors'", 1) < 0) return nullptr;
  return get_saved_tensors(o, closure);
}
PyMethodDef context_methods[] = {
    {"save_for_backward", store_arguments<&ContextObject::to_save>, METH_VARARGS,
     "save_for_backward(*tensors)\n\nKeeps arguments or results of forward for `saved_tensors`. Call it once, in forward or setup_context."},
    {"save_for_forward", save_for_forward, METH_VARARGS,
     "save_for_forward(*tensors)\n\nNothing: derivatives along a direction are made of backward, which has what save_for_backward kept."},
    {"mark_dirty", store_arguments<&ContextObject::dirty>, METH_VARARGS,
     "mark_dirty(*tensors)\n\nSays that forward changed these arguments in place."},
    {"mark_non_differentiable", store_arguments<&ContextObject::non_differentiable>, METH_VARARGS,
     "mark_non_differentiable(*tensors)\n\nSays that no gradient flows through these results."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "set_materialize_grads(value)\n\nWhether backward gets zeros (the default) or None for results that no gradient reached."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef context_getset[] = {
    {"saved_tensors", get_saved_tensors, nullptr, "What save_for_backward kept.", nullptr},
    {"saved_variables", get_saved_variables, nullptr, "An old name of saved_tensors.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef context_members[] = {
    {"needs_input_grad", T_OBJECT, offsetof(ContextObject, needs_input_grad), 0, "For each argument of forward, whether its gradient is wanted."},
    {"materialize_grads", T_BOOL, offsetof(ContextObject, materialize_grads), 0, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(ContextObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ContextObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// ---- apply -----------------------------------------------------------------------------------------------------------
bool contains(PyObject* tuple, PyObject* o) {
  for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); i++) {
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  }
  return false;
}

// One call of apply(): `outputs` is a tuple.
class Application {
 public:
  Application(PyObject* function, PyObject* context, PyObject* args) : function_(function), context_(context), args_(args), c_(context_of(context)) {}

  PyObject* run() {
    examine_arguments();
    Object result = call_forward();
    const bool is_tuple = PyTuple_Check(result.get());
    Object outputs = is_tuple ? Object::borrow(result.get()) : checked(PyTuple_Pack(1, result.get()));
    Object made = recorded_ ? record(outputs.get()) : Object::borrow(outputs.get());
    if (!is_tuple) return Py_NewRef(PyTuple_GET_ITEM(made.get(), 0));
    return made.take();
  }

 private:
  void examine_arguments() {
    const Py_ssize_t n = PyTuple_GET_SIZE(args_);
    Object needs = checked(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* arg = PyTuple_GET_ITEM(args_, i);
      const bool tensor = is_tensor(arg), wanted = tensor && requires_grad(self_of(arg));
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(wanted));
      arg_edges_.push_back(tensor ? static_cast<int>(edges_.size()) : -1);
      if (!tensor) continue;
      edges_.push_back(wanted ? gradient_edge(self_of(arg)) : Edge{});
      recorded_ = recorded_ || wanted;
    }
    Py_XSETREF(c_->needs_input_grad, needs.take());
    const ArgandThreadState* state = api->thread_state();
    recorded_ = recorded_ && state->grad_mode && !state->inference_mode;
  }

  // forward(ctx, *args), or forward(*args) with setup_context(ctx, inputs, output); without gradients.
  Object call_forward() {
    StateGuard state;
    state->grad_mode = 0;
    Object forward = checked(PyObject_GetAttrString(function_, "forward"));
    Object separate = checked(PyObject_GetAttrString(function_, "_uses_setup_context"));
    if (PyObject_IsTrue(separate.get())) {
      Object result = checked(PyObject_CallObject(forward.get(), args_));
      Object setup = checked(PyObject_GetAttrString(function_, "setup_context"));
      checked(PyObject_CallFunctionObjArgs(setup.get(), context_, args_, result.get(), nullptr));
      return result;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(args_);
    Object with_context = checked(PyTuple_New(n + 1));
    PyTuple_SET_ITEM(with_context.get(), 0, Py_NewRef(context_));
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(with_context.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args_, i)));
    return checked(PyObject_CallObject(forward.get(), with_context.get()));
  }

  Object record(PyObject* outputs) {
    const Py_ssize_t n = PyTuple_GET_SIZE(outputs);
    check_marks(outputs);
    auto* node = new FunctionNode(Object::borrow(function_), Object::borrow(context_), std::move(arg_edges_), std::move(edges_));
    const NodeRef owned = NodeRef::steal(node);
    c_->was_recorded = true;
    std::vector<OwnedFacts> facts;
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* o = PyTuple_GET_ITEM(outputs, i);
      facts.emplace_back(is_tensor(o) ? unwrap(o) : Tensor());
    }
    node->set_results(std::move(facts));
    Object made = checked(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* o = PyTuple_GET_ITEM(outputs, i);
      Object out = is_tensor(o) ? wrap_output(o, owned, static_cast<uint32_t>(i)) : Object::borrow(o);
      if (is_tensor(out.get())) track(out.get());
      PyTuple_SET_ITEM(made.get(), i, out.take());
    }
    save(node, outputs, made.get());
    Py_CLEAR(c_->to_save);
    Py_CLEAR(c_->dirty);
    Py_CLEAR(c_->non_differentiable);
    return made;
  }

  void check_marks(PyObject* outputs) {
    for (Py_ssize_t i = 0; c_->dirty && i < PyTuple_GET_SIZE(c_->dirty); i++) {
      PyObject* o = PyTuple_GET_ITEM(c_->dirty, i);
      if (!is_tensor(o)) fail(ARGAND_TYPE_ERROR, "mark_dirty: got %s, expected tensors", Py_TYPE(o)->tp_name);
      if (!contains(args_, o))
        fail(ARGAND_RUNTIME_ERROR, "mark_dirty: got a tensor that is no argument of forward, expected arguments that forward changed in place");
      if (!contains(outputs, o))
        fail(ARGAND_RUNTIME_ERROR, "mark_dirty: got a tensor that forward does not return, expected every changed argument among the results");
      ArgandTensor* t = self_of(o);
      check_inplace("apply", t, true);
      if (t->base && (PyTuple_GET_SIZE(outputs) != 1 || o != first_tensor()))
        fail(ARGAND_RUNTIME_ERROR,
             "mark_dirty: got a view, expected it to be the first tensor argument and the only result of forward; clone it otherwise");
    }
  }
  PyObject* first_tensor() {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args_); i++) {
      if (is_tensor(PyTuple_GET_ITEM(args_, i))) return PyTuple_GET_ITEM(args_, i);
    }
    return nullptr;
  }

  Object wrap_output(PyObject* o, const NodeRef& node, uint32_t i) {
    ArgandTensor* t = self_of(o);
    if (contains(c_->dirty, o)) {
      rebase_history(t, node, i);
      return Object::borrow(o);
    }
    const bool differentiable = is_differentiable(t->dtype) && !contains(c_->non_differentiable, o);
    const bool is_argument = contains(args_, o);
    if (!differentiable) return is_argument || requires_grad(t) ? wrap(detach(t)) : Object::borrow(o);
    if (!is_argument && !requires_grad(t)) {
      set_history(t, node, i, t->base ? ViewOrigin::kCustomFunction : ViewOrigin::kOperator);
      return Object::borrow(o);
    }
    // An argument (or another tensor with a history) returned as it is: the result is a view of it.
    ArgandTensor* view = nullptr;
    check(api->tensor_view(t, t->ndim, t->sizes, t->strides, t->offset, t->dtype, &view));
    Tensor owned = Tensor::steal(view);
    share_entries(t, view);
    set_history(view, node, i, ViewOrigin::kCustomFunction);
    return wrap(std::move(owned));
  }

  void save(FunctionNode* node, PyObject* outputs, PyObject* made) {
    if (!c_->to_save) return;
    std::vector<SavedTensor> saved(static_cast<size_t>(PyTuple_GET_SIZE(c_->to_save)));
    for (size_t i = 0; i < saved.size(); i++) {
      PyObject* o = PyTuple_GET_ITEM(c_->to_save, static_cast<Py_ssize_t>(i));
      if (o == Py_None) continue;
      if (!is_tensor(o))
        fail(ARGAND_TYPE_ERROR, "save_for_backward: got %s at position %zu, expected tensors; store other things as attributes of ctx",
             Py_TYPE(o)->tp_name, i);
      Py_ssize_t result = -1;
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(outputs); k++) {
        if (PyTuple_GET_ITEM(outputs, k) == o) result = k;
      }
      // What has this node as its history is kept without it, else the two would keep each other.
      const bool own = result >= 0 && grad_fn(self_of(PyTuple_GET_ITEM(made, result))) && !contains_unchanged(o);
      if (own) {
        saved[i].save_result(unwrap(o), static_cast<uint32_t>(result), true);
      } else {
        saved[i].save_argument(unwrap(o));
      }
    }
    node->save(std::move(saved));
  }
  bool contains_unchanged(PyObject* o) { return contains(args_, o) && !contains(c_->dirty, o); }

  PyObject *function_, *context_, *args_;
  ContextObject* c_;
  std::vector<int> arg_edges_;
  std::vector<Edge> edges_;
  bool recorded_ = false;
};

}  // namespace

int init_function_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(context_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(context_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(context_clear)},
                         {Py_tp_methods, context_methods},
                         {Py_tp_getset, context_getset},
                         {Py_tp_members, context_members},
                         {Py_tp_doc, const_cast<char*>("What forward keeps for backward: `ctx`.")},
                         {0, nullptr}};
  PyType_Spec spec = {"argand_autograd.FunctionCtx", sizeof(ContextObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  context_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return context_type ? PyModule_AddObjectRef(module, "FunctionCtx", reinterpret_cast<PyObject*>(context_type)) : -1;
}

PyObject* function_context(Node* node) {
  auto* function = dynamic_cast<FunctionNode*>(node);
  return function ? function->context() : nullptr;
}

// _function_apply(function class, ctx, args)
PyObject* function_apply(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 3 || !PyObject_TypeCheck(args[1], context_type) || !PyTuple_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError, "_function_apply: expected a Function class, a FunctionCtx and a tuple of arguments");
    return nullptr;
  }
  return guard<PyObject*>(nullptr, [&] { return Application(args[0], args[1], args[2]).run(); });
}

}  // namespace argand::autograd::binding
