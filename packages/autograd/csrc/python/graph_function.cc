// A compiled graph as a differentiable callable: one node a call, saved values checked as any node's, changed inputs written back.
#include <algorithm>
#include <map>

#include "packages/autograd/csrc/batching.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/python/binding.h"
#include "packages/autograd/csrc/saved_tensor.h"
#include "packages/autograd/csrc/tensor_ops.h"

#include <structmember.h>  // after Python.h

namespace argand::autograd::binding {

namespace {

struct Mutation {
  uint32_t input, value;
  bool recorded;  // the change has a gradient
};
struct SymbolBinding {
  uint32_t input;
  char kind;  // 's': size, 't': stride, 'v': the input itself
  uint32_t dim;
};

// What a compiled graph is; shared by its nodes.
struct GraphSpec {
  std::string name;
  bool always = false;                              // it turns gradients on itself: a node is made whatever the mode at the call
  Object forward, backward_for, again;              // callables; `again` may be None
  uint32_t n_inputs = 0, n_values = 0, n_kept = 0;  // n_kept: results that are for backward alone
  std::vector<uint32_t> differentiable_inputs, differentiable_values, kept_inputs, kept_values;  // numbers of inputs and of results
  std::vector<Mutation> mutations;
  std::vector<SymbolBinding> symbols;
  std::map<std::string, Object> backwards;  // by which gradients have arrived; guarded by the GIL

  // The function for this pattern of gradients: (*symbols, *kept inputs, *kept values, *gradients) -> gradients of the inputs.
  PyObject* backward(const std::string& pattern) {
    auto it = backwards.find(pattern);
    if (it != backwards.end()) return it->second.get();
    Object key = checked(PyBytes_FromStringAndSize(pattern.data(), static_cast<Py_ssize_t>(pattern.size())));
    Object function = checked(PyObject_CallOneArg(backward_for.get(), key.get()));
    return backwards.emplace(pattern, std::move(function)).first->second.get();
  }
};

bool has_strides(const Tensor& t, const TensorFacts& f) {
  for (int32_t i = 0; i < f.ndim; i++) {
    if (f.sizes[i] != 1 && t.strides()[i] != f.strides[i]) return t.numel() == 0;
  }
  return true;
}

class GraphNode final : public VectorNode {
 public:
  GraphNode(std::shared_ptr<GraphSpec> spec, std::vector<Edge> edges) : spec_(std::move(spec)) { set_edges(std::move(edges)); }
  ~GraphNode() override {
    if (finalizing()) {
      for (Object& o : arguments_) o.take();
      new std::shared_ptr<GraphSpec>(std::move(spec_));  // its Python objects must be left alone
      return;
    }
    Gil gil;
    arguments_.clear();
    spec_.reset();
  }
  const char* name() const override { return spec_->name.c_str(); }
  void set_owner(Node* owner) override { owner_ = owner; }
  void set_results(std::vector<OwnedFacts> facts) { set_inputs(std::move(facts)); }

  void keep(PyObject* const* args, PyObject* result) {
    const GraphSpec& s = *spec_;
    inputs_kept_ = std::vector<SavedTensor>(s.n_inputs);
    arguments_.resize(s.n_inputs);
    for (uint32_t i : s.kept_inputs) inputs_kept_[i].save_argument(Tensor::borrow(self_of(args[i])));
    // The others are there for `again` alone: hooks on what backward keeps do not see them.
    SavedTensorHooks* const hooks = set_saved_tensor_hooks(nullptr);
    for (uint32_t i = 0; i < s.n_inputs; i++) {
      if (!is_tensor(args[i])) {
        arguments_[i] = Object::borrow(args[i]);
      } else if (!inputs_kept_[i].defined() && !(self_of(args[i])->flags & ARGAND_TENSOR_INFERENCE)) {
        inputs_kept_[i].save_argument(Tensor::borrow(self_of(args[i])));
      }
    }
    set_saved_tensor_hooks(hooks);
    values_kept_ = std::vector<SavedTensor>(s.kept_values.size());
    for (size_t k = 0; k < values_kept_.size(); k++) keep_value(values_kept_[k], unwrap(PyTuple_GET_ITEM(result, s.kept_values[k])), result);
    for (const SymbolBinding& b : s.symbols) symbols_.push_back(symbol(b, args));
  }

  void release_variables() override {
    released_ = true;
    for (SavedTensor& s : inputs_kept_) s.release();
    for (SavedTensor& s : values_kept_) s.release();
  }

  void apply(Gradients& g) override {
    bool any = false;
    for (uint32_t i = 0; i < num_inputs(); i++) any |= g.in[i].defined();
    if (!any) return;
    if (released_) fail_released();
    Gil gil;
    Object grads = api->thread_state()->grad_mode ? run_again(g) : run_backward(g);
    if (!PyTuple_Check(grads.get()) || PyTuple_GET_SIZE(grads.get()) < static_cast<Py_ssize_t>(n_edges_))
      fail(ARGAND_RUNTIME_ERROR, "%s: the backward function returned something else than a tuple that begins with %u gradients", name(), n_edges_);
    for (uint32_t i = 0; i < n_edges_; i++) {
      PyObject* item = PyTuple_GET_ITEM(grads.get(), i);
      if (item != Py_None) g.out[i] = unwrap(item);
    }
  }

 private:
  // A kept value that is a result of the node is kept without its history, which would be a cycle.
  void keep_value(SavedTensor& slot, const Tensor& t, PyObject* result) {
    const auto& flows = spec_->differentiable_values;
    for (uint32_t k = 0; k < flows.size(); k++) {
      if (self_of(PyTuple_GET_ITEM(result, flows[k])) == t.get()) return slot.save_result(t, k, true);
    }
    slot.save_argument(t);
  }

  static int64_t symbol(const SymbolBinding& b, PyObject* const* args) {
    PyObject* x = args[b.input];
    if (b.kind == 'v') {
      const long long value = PyLong_AsLongLong(x);
      if (value == -1 && PyErr_Occurred()) throw_python();
      return value;
    }
    const ArgandTensor* t = self_of(x);
    return b.kind == 's' ? t->sizes[b.dim] : t->strides[b.dim];
  }

  // Gradients as the backward graph expects them: laid out like the results.
  Tensor laid_out(Tensor grad, const TensorFacts& facts) {
    if (has_strides(grad, facts)) return grad;
    Tensor out = empty_strided(facts.size_list(), {facts.strides, facts.ndim}, facts.dtype, facts.device);
    tensor_ops::copy_(out, grad);
    return out;
  }

  Object run_backward(Gradients& g) {
    GraphSpec& s = *spec_;
    std::string pattern(num_inputs(), '\0');
    std::vector<Object> args;
    args.reserve(symbols_.size() + s.kept_inputs.size() + values_kept_.size() + num_inputs());
    for (int64_t v : symbols_) args.push_back(checked(PyLong_FromLongLong(v)));
    for (uint32_t i : s.kept_inputs) args.push_back(wrap(inputs_kept_[i].unpack(this, owner_)));
    for (const SavedTensor& v : values_kept_) args.push_back(wrap(v.unpack(this, owner_)));
    for (uint32_t i = 0; i < num_inputs(); i++) {
      if (!g.in[i]) continue;
      pattern[i] = 1;
      args.push_back(wrap(laid_out(std::move(g.in[i]), input_facts(i))));
    }
    PyObject* function = s.backward(pattern);
    std::vector<PyObject*> raw;
    raw.reserve(args.size());
    for (const Object& o : args) raw.push_back(o.get());
    return checked(PyObject_Vectorcall(function, raw.data(), raw.size(), nullptr));
  }

  // Under create_graph the gradients must have a history: the graph is run once more, operator by operator.
  Object run_again(Gradients& g) {
    if (spec_->again.get() == Py_None)
      fail(ARGAND_NOT_IMPLEMENTED_ERROR,
           "%s: got create_graph=True for a compiled function that draws random numbers or changes its inputs, expected a plain backward; "
           "disable compilation for the function that is differentiated twice",
           name());
    Object inputs = checked(PyTuple_New(static_cast<Py_ssize_t>(arguments_.size())));
    for (size_t i = 0; i < arguments_.size(); i++) {
      PyObject* o = arguments_[i] ? Py_NewRef(arguments_[i].get()) : wrap(inputs_kept_[i].unpack(this, owner_)).take();
      PyTuple_SET_ITEM(inputs.get(), static_cast<Py_ssize_t>(i), o);
    }
    Object grads = checked(PyTuple_New(num_inputs()));
    for (uint32_t i = 0; i < num_inputs(); i++) PyTuple_SET_ITEM(grads.get(), i, wrap(std::move(g.in[i])).take());
    return checked(PyObject_CallFunctionObjArgs(spec_->again.get(), inputs.get(), grads.get(), nullptr));
  }

  std::shared_ptr<GraphSpec> spec_;
  std::vector<Object> arguments_;         // inputs that are no tensors
  std::vector<SavedTensor> inputs_kept_;  // all tensor inputs: `again` needs them
  std::vector<SavedTensor> values_kept_;
  std::vector<int64_t> symbols_;
  Node* owner_ = nullptr;  // not owned
  bool released_ = false;
};

struct GraphFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::shared_ptr<GraphSpec> spec;
};
PyTypeObject* graph_function_type = nullptr;

// One call.
class Call {
 public:
  Call(const std::shared_ptr<GraphSpec>& spec, PyObject* const* args) : spec_(spec), s_(*spec), args_(args) {}

  PyObject* run() {
    const ArgandThreadState* state = api->thread_state();
    if (state->grad_mode && std::any_of(args_, args_ + s_.n_inputs, [](PyObject* o) { return is_tensor(o) && is_batched(self_of(o)); }))
      ask_entries();
    const bool recording = (state->grad_mode || s_.always) && !state->inference_mode && find_edges();
    if (recording) check_mutations();
    result_ = forward();
    write_back();
    own_values();
    if (recording) record();
    if (PyTuple_GET_SIZE(result_.get()) == static_cast<Py_ssize_t>(s_.n_values)) return result_.take();
    return checked(PyTuple_GetSlice(result_.get(), 0, s_.n_values)).take();
  }

 private:
  // Throws where the vmap that runs has to call its function once an entry.
  void ask_entries() {
    const Object level = checked(PyImport_ImportModule("argand_autograd.batching.level")), inputs = checked(PyTuple_New(s_.n_inputs));
    for (uint32_t i = 0; i < s_.n_inputs; i++) PyTuple_SET_ITEM(inputs.get(), i, Py_NewRef(args_[i]));
    checked(PyObject_CallMethod(level.get(), "ask_before_recording", "(O)", inputs.get()));
  }

  bool find_edges() {
    bool any = false;
    edges_.reserve(s_.differentiable_inputs.size());
    for (uint32_t i : s_.differentiable_inputs) {
      edges_.push_back(gradient_edge(self_of(args_[i])));
      any = any || edges_.back().fn;
    }
    return any;
  }

  void check_mutations() {
    for (const Mutation& m : s_.mutations) {
      if (!m.recorded) continue;
      ArgandTensor* t = self_of(args_[m.input]);
      check_inplace(s_.name.c_str(), t, true);
      if (t->base)
        fail(
            ARGAND_RUNTIME_ERROR,
            "%s: input %u is a view and is changed in place with gradients by a compiled function; pass the tensor that it is a view of, or clone it",
            s_.name.c_str(), m.input);
    }
  }

  Object forward() {
    StateGuard state;
    state->grad_mode = 0;
    Object result = checked(PyObject_Vectorcall(s_.forward.get(), args_, s_.n_inputs, nullptr));
    const Py_ssize_t n = s_.n_values + static_cast<Py_ssize_t>(s_.mutations.size()) + s_.n_kept;
    if (!PyTuple_Check(result.get()) || PyTuple_GET_SIZE(result.get()) != n)
      fail(ARGAND_RUNTIME_ERROR, "%s: the forward function returned something else than a tuple of %zd results", s_.name.c_str(), n);
    return result;
  }

  void write_back() {
    if (s_.mutations.empty()) return;
    StateGuard state;
    state->grad_mode = 0;
    for (const Mutation& m : s_.mutations) tensor_ops::copy_(unwrap(args_[m.input]), unwrap(PyTuple_GET_ITEM(result_.get(), m.value)));
  }

  // A view of memory of the graph's own is no view to the program: changes of it belong to its history alone.
  void own_values() {
    Object own;
    for (uint32_t i = 0; i < s_.n_values; i++) {
      ArgandTensor* value = self_of(PyTuple_GET_ITEM(result_.get(), i));
      if (!value->base) continue;
      if (!own) own = checked(PySequence_List(result_.get()));
      if (PyList_SetItem(own.get(), i, wrap(detach(value)).take()) < 0) throw_python();
    }
    if (own) result_ = checked(PyList_AsTuple(own.get()));
  }

  void record() {
    auto* node = new GraphNode(spec_, std::move(edges_));
    const NodeRef owned = NodeRef::steal(node);
    std::vector<OwnedFacts> facts;
    facts.reserve(s_.differentiable_values.size());
    for (uint32_t k : s_.differentiable_values) facts.emplace_back(Tensor::borrow(self_of(PyTuple_GET_ITEM(result_.get(), k))));
    node->set_results(std::move(facts));
    node->keep(args_, result_.get());
    for (uint32_t k = 0; k < s_.differentiable_values.size(); k++) {
      const uint32_t value = s_.differentiable_values[k];
      const Mutation* changed = nullptr;
      for (const Mutation& m : s_.mutations) {
        if (m.recorded && m.value == value) changed = &m;
      }
      if (changed) {
        rebase_history(self_of(args_[changed->input]), owned, k);
      } else {
        set_history(self_of(PyTuple_GET_ITEM(result_.get(), value)), owned, k);
      }
    }
  }

  const std::shared_ptr<GraphSpec>& spec_;
  GraphSpec& s_;
  PyObject* const* args_;
  std::vector<Edge> edges_;
  Object result_;
};

PyObject* graph_function_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const auto& spec = reinterpret_cast<GraphFunctionObject*>(self)->spec;
    const auto nargs = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    if (kwnames && PyTuple_GET_SIZE(kwnames)) fail(ARGAND_TYPE_ERROR, "%s: got keyword arguments, expected positional ones", spec->name.c_str());
    if (nargs != spec->n_inputs) fail(ARGAND_TYPE_ERROR, "%s: got %zu inputs, expected %u", spec->name.c_str(), nargs, spec->n_inputs);
    return Call(spec, args).run();
  });
}

std::vector<uint32_t> numbers(PyObject* o) {
  Object tuple = checked(PySequence_Tuple(o));
  std::vector<uint32_t> found;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); i++) {
    const long v = PyLong_AsLong(PyTuple_GET_ITEM(tuple.get(), i));
    if (v == -1 && PyErr_Occurred()) throw_python();
    found.push_back(static_cast<uint32_t>(v));
  }
  return found;
}

template <class F>
void for_each_item(PyObject* o, F&& f) {
  Object tuple = checked(PySequence_Tuple(o));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); i++) f(PyTuple_GET_ITEM(tuple.get(), i));
}

PyObject* graph_function_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {
      "name",        "forward",     "backward_for", "again",   "n_inputs", "n_values", "n_kept", "differentiable_inputs", "differentiable_values",
      "kept_inputs", "kept_values", "mutations",    "symbols", "always",   nullptr};
  const char* name;
  PyObject *forward, *backward_for, *again, *inputs, *values, *kept_inputs, *kept_values, *mutations, *symbols;
  unsigned n_inputs, n_values, n_kept;
  int always = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sOOOIIIOOOOOO|p:GraphFunction", const_cast<char**>(names), &name, &forward, &backward_for, &again,
                                   &n_inputs, &n_values, &n_kept, &inputs, &values, &kept_inputs, &kept_values, &mutations, &symbols, &always))
    return nullptr;
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    auto spec = std::make_shared<GraphSpec>();
    spec->name = name;
    spec->always = always != 0;
    spec->forward = Object::borrow(forward);
    spec->backward_for = Object::borrow(backward_for);
    spec->again = Object::borrow(again);
    spec->n_inputs = n_inputs, spec->n_values = n_values, spec->n_kept = n_kept;
    spec->differentiable_inputs = numbers(inputs);
    spec->differentiable_values = numbers(values);
    spec->kept_inputs = numbers(kept_inputs);
    spec->kept_values = numbers(kept_values);
    for_each_item(mutations, [&](PyObject* item) {
      unsigned input, value;
      int recorded;
      if (!PyArg_ParseTuple(item, "IIp", &input, &value, &recorded)) throw_python();
      spec->mutations.push_back({input, value, recorded != 0});
    });
    for_each_item(symbols, [&](PyObject* item) {
      unsigned input, dim;
      const char* kind;
      if (!PyArg_ParseTuple(item, "IsI", &input, &kind, &dim)) throw_python();
      spec->symbols.push_back({input, kind[0] == 's' && kind[1] == 't' ? 't' : kind[0], dim});
    });
    Object o = checked(type->tp_alloc(type, 0));
    auto* self = reinterpret_cast<GraphFunctionObject*>(o.get());
    self->vectorcall = graph_function_call;
    new (&self->spec) std::shared_ptr<GraphSpec>(std::move(spec));
    return o.take();
  });
}

int graph_function_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  const auto& spec = reinterpret_cast<GraphFunctionObject*>(o)->spec;
  if (!spec || spec.use_count() > 1) return 0;  // nodes hold it too: not ours to count
  Py_VISIT(spec->forward.get());
  Py_VISIT(spec->backward_for.get());
  Py_VISIT(spec->again.get());
  for (const auto& entry : spec->backwards) Py_VISIT(entry.second.get());
  return 0;
}
int graph_function_clear(PyObject* o) {
  reinterpret_cast<GraphFunctionObject*>(o)->spec.reset();
  return 0;
}
void graph_function_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  reinterpret_cast<GraphFunctionObject*>(o)->spec.~shared_ptr();
  type->tp_free(o);
  Py_DECREF(type);
}

PyMemberDef graph_function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(GraphFunctionObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

int init_graph_function_type(PyObject* module) {
  static const char doc[] =
      "GraphFunction(name, forward, backward_for, again, n_inputs, n_values, n_kept, differentiable_inputs, differentiable_values, kept_inputs, "
      "kept_values, mutations, symbols)\n\nA compiled graph as a differentiable callable.\n\n"
      "`forward(*inputs)` returns values, the new contents of changed inputs, and what is kept for backward alone. `backward_for(pattern)` gives, "
      "for bytes that\n"
      "say which differentiable results have a gradient, a function of symbols, kept inputs, kept values and these gradients.\n"
      "`again(inputs, grads)` computes gradients that have a history themselves; None: that is an error.";
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(graph_function_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(graph_function_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(graph_function_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(graph_function_clear)},
                         {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                         {Py_tp_members, graph_function_members},
                         {Py_tp_doc, const_cast<char*>(doc)},
                         {0, nullptr}};
  PyType_Spec spec = {"argand_autograd._C.GraphFunction", sizeof(GraphFunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  graph_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return graph_function_type ? PyModule_AddObjectRef(module, "GraphFunction", reinterpret_cast<PyObject*>(graph_function_type)) : -1;
}

}  // namespace argand::autograd::binding
