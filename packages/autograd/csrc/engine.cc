#include "packages/autograd/csrc/engine.h"

#include <algorithm>
#include <atomic>

#include "packages/autograd/csrc/accumulate_grad.h"
#include "packages/autograd/csrc/anomaly.h"
#include "packages/autograd/csrc/batching.h"
#include "packages/autograd/csrc/history.h"
#include "packages/autograd/csrc/node_stream.h"
#include "packages/autograd/csrc/profiled_node.h"
#include "packages/autograd/csrc/tensor_ops.h"

namespace argand::autograd {

namespace {

class Backward;
thread_local Node* t_current = nullptr;
thread_local Backward* t_backward = nullptr;  // that runs t_current

constexpr uint32_t kNone = UINT32_MAX;

// Numbers nodes in order of discovery; open addressing, since a backward does one look-up an edge.
class NodeTable {
 public:
  NodeTable() : slots_(64) {}
  // The number of `node`, which is `next` if it is new.
  uint32_t find_or_add(Node* node, uint32_t next) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slot_of(slots_, node);
    if (!slot.node) {
      slot = {node, next};
      used_++;
    }
    return slot.number;
  }
  uint32_t find(const Node* node) const {
    const Slot& slot = slot_of(const_cast<std::vector<Slot>&>(slots_), node);
    return slot.node ? slot.number : kNone;
  }

 private:
  struct Slot {
    Node* node = nullptr;
    uint32_t number = 0;
  };
  static Slot& slot_of(std::vector<Slot>& slots, const Node* node) {
    const size_t mask = slots.size() - 1;
    size_t i = ((reinterpret_cast<uintptr_t>(node) >> 4) * 0x9e3779b97f4a7c15ull >> 20) & mask;
    while (slots[i].node && slots[i].node != node) i = (i + 1) & mask;
    return slots[i];
  }
  void grow() {
    std::vector<Slot> larger(slots_.size() * 4);
    for (const Slot& s : slots_) {
      if (s.node) slot_of(larger, s.node) = s;
    }
    slots_ = std::move(larger);
  }
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

// Gradients that have arrived at a node, one per forward result.
class GradBuffer {
 public:
  Tensor* data(uint32_t n) {
    if (n <= 1) return &one_;
    if (many_.empty()) many_.resize(n);
    return many_.data();
  }

 private:
  Tensor one_;
  std::vector<Tensor> many_;
};

struct Capture {
  uint32_t input_nr;
  uint32_t index;  // in BackwardCall::inputs
};

struct NodeState {
  Node* node;
  uint32_t dependencies = 0;  // edges from needed nodes that have not delivered yet
  bool expanded = false;
  bool queued = false;
  bool executes = false;  // some gradient beyond it is wanted
  bool captures = false;
  GradBuffer buffer;
};

class Backward {
 public:
  explicit Backward(BackwardCall& call) : call_(call) {}

  int64_t id() const { return id_; }

  bool will_execute(const Node* node) const {
    const uint32_t number = table_.find(node);
    return number != kNone && (states_[number].executes || states_[number].captures);
  }

  std::vector<Tensor> run() {
    StateGuard state;
    state->grad_mode = call_.create_graph;
    state->inference_mode = 0;
    state->exclude_keys &= ~ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
    results_.resize(call_.accumulate ? 0 : call_.inputs.size());
    discover();
    seed();
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end());
      const uint32_t number = ready_.back().number;
      ready_.pop_back();
      execute(number);
    }
    return std::move(results_);
  }

  Tensor leaf_of_gradient(Node* node, uint32_t index) {
    if (!call_.accumulate || call_.create_graph || index >= node->num_edges() || (node->hooks() && !node->hooks()->post.empty())) return {};
    Node* next = node->edges()[index].fn.get();
    if (!next || !next->is_accumulate_grad() || next->hooks()) return {};
    NodeState& s = states_[table_.find(next)];
    const Tensor& leaf = static_cast<AccumulateGrad*>(next)->variable();
    const AutogradMeta* meta = meta_of(leaf.get());
    const bool changed = (meta->hooks && !meta->hooks->on_grad.empty()) || meta->grad_dtype != kDTypeOfTensor;
    const bool arrived = s.buffer.data(1)[0] ? true : false;
    return s.executes && s.dependencies == 1 && !arrived && !changed ? leaf : Tensor();
  }

 private:
  // The node with the highest sequence number first; of equal ones (made by different threads) the one discovered first.
  struct Ready {
    uint64_t sequence;
    uint32_t number;
    bool operator<(const Ready& o) const { return sequence != o.sequence ? sequence < o.sequence : number > o.number; }
  };

  uint32_t number_of(Node* node) {
    const auto next = static_cast<uint32_t>(states_.size());
    const uint32_t number = table_.find_or_add(node, next);
    if (number == next) states_.push_back(NodeState{node, 0, false, false, false, false, {}});
    return number;
  }

  // Finds the nodes that the call needs and counts their consumers.
  void discover() {
    const bool selective = !call_.inputs.empty();
    for (uint32_t i = 0; i < call_.inputs.size(); i++) {
      const Edge& input = call_.inputs[i];
      if (!input.fn) continue;
      NodeState& s = states_[number_of(input.fn.get())];
      if (call_.accumulate) {
        if (input.fn->is_accumulate_grad()) s.executes = true;
        s.captures = true;  // a non-leaf: its retained gradient is stored by the hook that runs where captures do
      } else {
        s.captures = true;
        captures_.push_back({number_of(input.fn.get()), {input.input_nr, i}});
      }
    }
    for (const Edge& root : call_.roots) visit(number_of(root.fn.get()), selective);
    if (!selective) {
      for (NodeState& s : states_) s.executes = true;
    }
    for (NodeState& s : states_) {
      if (!s.expanded || !s.executes) continue;
      for (uint32_t i = 0; i < s.node->num_edges(); i++) {
        Node* next = s.node->edges()[i].fn.get();
        if (next) states_[table_.find(next)].dependencies++;
      }
    }
  }

  // Depth first without recursion. A node executes if a node behind it executes or captures.
  void visit(uint32_t root, bool selective) {
    if (states_[root].expanded) return;
    states_[root].expanded = true;
    std::vector<std::pair<uint32_t, uint32_t>> stack{{root, 0}};
    while (!stack.empty()) {
      const uint32_t number = stack.back().first;
      Node* node = states_[number].node;
      if (stack.back().second == node->num_edges()) {
        stack.pop_back();
        if (selective && !stack.empty() && (states_[number].executes || states_[number].captures)) states_[stack.back().first].executes = true;
        continue;
      }
      Node* next = node->edges()[stack.back().second++].fn.get();
      if (!next) continue;
      const uint32_t child = number_of(next);
      if (!states_[child].expanded) {
        states_[child].expanded = true;
        stack.emplace_back(child, 0);
      } else if (selective && (states_[child].executes || states_[child].captures)) {
        states_[number].executes = true;
      }
    }
  }

  void seed() {
    for (size_t i = 0; i < call_.roots.size(); i++) {
      const Edge& root = call_.roots[i];
      const uint32_t number = table_.find(root.fn.get());
      deliver(states_[number], root.input_nr, std::move(call_.grads[i]));
    }
    for (const Edge& root : call_.roots) {
      const uint32_t number = table_.find(root.fn.get());
      if (states_[number].dependencies == 0) push(number);
    }
  }

  void push(uint32_t number) {
    NodeState& s = states_[number];
    if (s.queued || !(s.executes || s.captures)) return;
    s.queued = true;
    ready_.push_back({s.node->sequence(), number});
    std::push_heap(ready_.begin(), ready_.end());
  }

  // Adds a gradient to what has arrived: first + second, then + third, in order of arrival.
  void deliver(NodeState& s, uint32_t input_nr, Tensor grad) {
    if (!grad) return;
    Tensor& sum = s.buffer.data(s.node->num_inputs())[input_nr];
    if (!sum) {
      sum = std::move(grad);
    } else if (sum.has_key(ARGAND_KEY_SPARSE)) {  // to which no dense one is added; elements of two are listed with the last to arrive first
      sum = tensor_ops::add(grad, sum);
    } else if (api->thread_state()->grad_mode || !same_shape_and_dtype(sum, grad) || is_batched(grad.get())) {
      sum = tensor_ops::add(sum, grad);
    } else if (owned_alone(sum)) {
      tensor_ops::add_(sum, grad);
    } else if (owned_alone(grad)) {  // addition of two numbers commutes, so the bits are the same
      tensor_ops::add_(grad, sum);
      sum = std::move(grad);
    } else {
      sum = tensor_ops::add(sum, grad);
    }
  }
  static bool same_shape_and_dtype(const Tensor& a, const Tensor& b) { return a.dtype() == b.dtype() && a.sizes() == b.sizes(); }

  void run_tensor_hooks(Node* node, Tensor* in) {
    if (node->is_accumulate_grad()) {
      AutogradMeta* meta = meta_of(static_cast<AccumulateGrad*>(node)->variable().get());
      if (meta->hooks) {
        const auto hooks = meta->hooks->on_grad;  // a hook may remove itself
        for (const auto& hook : hooks) {
          if (in[0]) hook->call(in[0]);
        }
      }
    }
    if (!node->hooks()) return;
    const auto on_tensor = node->hooks()->on_tensor;
    for (const auto& h : on_tensor) {
      if (in[h.input_nr]) h.hook->call(in[h.input_nr]);
    }
    for (const auto& r : node->hooks()->retained) {
      if (in[r.input_nr]) r.target->store(in[r.input_nr]);
    }
  }

  void execute(uint32_t number) {
    Node* node = states_[number].node;
    const uint32_t n_in = node->num_inputs(), n_out = node->num_edges();
    GradBuffer buffer = std::move(states_[number].buffer);
    Tensor* in = buffer.data(n_in);
    struct Restore {
      Node* node;
      Backward* backward;
      ~Restore() {
        t_current = node;
        t_backward = backward;
      }
    } restore{std::exchange(t_current, node), std::exchange(t_backward, this)};

    const ProfiledNode profiled("autograd::engine::evaluate_function: ", node);
    run_tensor_hooks(node, in);
    if (states_[number].captures) {
      for (const auto& [target, capture] : captures_) {
        if (target == number) results_[capture.index] = in[capture.input_nr];
      }
    }
    if (!states_[number].executes) return;
    if (node->is_accumulate_grad() && !call_.accumulate) return;
    if (node->hooks()) {
      const auto pre = node->hooks()->pre;
      for (const auto& hook : pre) hook->call(in, n_in);
    }

    std::vector<Tensor> out(n_out);
    std::vector<uint8_t> wanted;
    if (!call_.inputs.empty()) {
      wanted.resize(n_out);
      for (uint32_t i = 0; i < n_out; i++) wanted[i] = is_wanted(node->edges()[i].fn.get());
    }
    const bool keep_given = node->hooks() && !node->hooks()->post.empty();
    std::vector<Tensor> given;
    if (keep_given) given.assign(in, in + n_in);
    Gradients gradients{in, out.data(), wanted.empty() ? nullptr : wanted.data()};
    {
      NodeStream stream(node, in, n_in);
      if (!node->scatters() || keep_given || stream.switched() || !add_into_arrived(node, in)) apply(node, gradients);
      stream.leave(out.data(), n_out);
    }
    if (!call_.retain_graph) node->release_variables();
    for (uint32_t i = 0; i < n_in; i++) in[i] = {};  // so that gradients that were passed on are owned alone
    if (keep_given) {
      const auto post = node->hooks()->post;
      for (const auto& hook : post) hook->call(out.data(), n_out, given.data(), n_in);
    }
    pass_on(node, out.data(), n_out);
  }

  // Slices of one tensor: all but the first to arrive add to its gradient in their place, instead of making one of its size each.
  bool add_into_arrived(Node* node, const Tensor* in) {
    if (!in[0] || api->thread_state()->grad_mode || anomaly_mode()) return false;
    const Edge& edge = node->edges()[0];
    if (!is_wanted(edge.fn.get())) return false;
    const Tensor& sum = states_[table_.find(edge.fn.get())].buffer.data(edge.fn->num_inputs())[edge.input_nr];
    return sum && !is_batched(in[0].get()) && sum.dtype() == in[0].dtype() && sum.device() == in[0].device() && owned_alone(sum) &&
           node->add_into(sum, in[0]);
  }

  static void apply(Node* node, Gradients& gradients) {
    const ProfiledNode profiled("", node);
    if (!anomaly_mode()) return node->apply(gradients);
    try {
      node->apply(gradients);
      if (anomaly_checks_nan()) check_for_nan(node, gradients.out, node->num_edges());
    } catch (...) {
      anomaly_failed(node);
      throw;
    }
  }

  bool is_wanted(Node* next) {
    if (!next) return false;
    const NodeState& s = states_[table_.find(next)];
    return s.executes || s.captures;
  }

  void pass_on(Node* node, Tensor* out, uint32_t n_out) {
    for (uint32_t i = 0; i < n_out; i++) {
      const Edge& edge = node->edges()[i];
      Tensor grad = std::move(out[i]);
      if (!edge.fn) continue;
      const uint32_t number = table_.find(edge.fn.get());
      NodeState& s = states_[number];
      if (grad && (s.executes || s.captures)) {
        validate_gradient(edge.fn->input_facts(edge.input_nr), grad, node->name(), i);
        deliver(s, edge.input_nr, std::move(grad));
      }
      if (--s.dependencies == 0) push(number);
    }
  }

  static std::atomic<int64_t> calls_;

  BackwardCall& call_;
  const int64_t id_ = calls_++;
  NodeTable table_;
  std::vector<NodeState> states_;
  std::vector<Ready> ready_;
  std::vector<std::pair<uint32_t, Capture>> captures_;  // by node
  std::vector<Tensor> results_;
};

std::atomic<int64_t> Backward::calls_{0};

bool expandable(IntList from, IntList to) {
  if (from.n > to.n) return false;
  for (int64_t i = 0; i < from.n; i++) {
    const int64_t f = from[from.n - 1 - i];
    if (f != 1 && f != to[to.n - 1 - i]) return false;
  }
  return true;
}

}  // namespace

Node* current_node() { return t_current; }

int64_t current_call() { return t_backward ? t_backward->id() : -1; }

bool will_execute(const Node* node) { return t_backward && t_backward->will_execute(node); }

Tensor leaf_of_gradient(uint32_t index) { return t_backward ? t_backward->leaf_of_gradient(t_current, index) : Tensor(); }

void validate_gradient(const TensorFacts& facts, Tensor& grad, const char* producer, uint32_t index) {
  if (!facts.defined()) return;
  const IntList expected = facts.size_list();
  if (grad.sizes() != expected) {
    if (!expandable(expected, grad.sizes()))
      fail(ARGAND_RUNTIME_ERROR, "Function %s returned an invalid gradient at index %u - got %s but expected shape compatible with %s", producer,
           index, to_string(grad.sizes()).c_str(), to_string(expected).c_str());
    grad = tensor_ops::sum_to_size(grad, expected);
  }
  if (grad.device() != facts.device && !grad.has_key(ARGAND_KEY_SPARSE))
    fail(ARGAND_RUNTIME_ERROR, "Function %s returned an invalid gradient at index %u - expected device type %d but got %d", producer, index,
         static_cast<int>(ARGAND_DEVICE_TYPE(facts.device)), static_cast<int>(ARGAND_DEVICE_TYPE(grad.device())));
  if (grad.dtype() == facts.dtype || facts.any_dtype) return;
  if (is_complex(grad.dtype()) && !is_complex(facts.dtype)) grad = tensor_ops::real(grad);
  if (grad.dtype() != facts.dtype) grad = tensor_ops::to_dtype(grad, facts.dtype);
}

std::vector<Tensor> run_backward(BackwardCall call) { return Backward(call).run(); }

}  // namespace argand::autograd
