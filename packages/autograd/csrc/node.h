// A node of the backward graph: one function that turns gradients of its forward results into gradients of its forward arguments.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "packages/autograd/csrc/hooks.h"
#include "packages/autograd/csrc/intrusive.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::autograd {

class Node;
using NodeRef = Ref<Node>;

// "Gradient number `input_nr` of node `fn`"; an empty `fn` takes no gradient.
struct Edge {
  NodeRef fn;
  uint32_t input_nr = 0;
};

// What a gradient must look like. `sizes` and `strides` belong to whoever made the record.
struct TensorFacts {
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;  // kept for arguments of view operators and of records that ask for them
  int64_t offset = 0;
  int32_t ndim = 0;
  ArgandDevice device = 0;
  uint8_t dtype = ARGAND_DTYPE_NONE;  // NONE: there was no tensor, or no gradient flows to it
  bool any_dtype = false;             // the gradient keeps its own
  bool defined() const { return dtype != ARGAND_DTYPE_NONE; }
  IntList size_list() const { return {sizes, ndim}; }
};

// Facts that own their sizes, for nodes that are not on the hot path.
class OwnedFacts {
 public:
  OwnedFacts() = default;
  explicit OwnedFacts(const Tensor& t);
  explicit OwnedFacts(const TensorFacts& facts);  // with strides if it has them
  OwnedFacts(OwnedFacts&&) = default;             // the heap block of the dims does not move
  OwnedFacts& operator=(OwnedFacts&&) = default;
  const TensorFacts& facts() const { return facts_; }

 private:
  std::vector<int64_t> dims_;  // sizes, then strides
  TensorFacts facts_;
};

// One backward call.
struct Gradients {
  Tensor* in = nullptr;             // [num_inputs]; undefined where nothing flowed; the node may take from it
  Tensor* out = nullptr;            // [num_edges]
  const uint8_t* wanted = nullptr;  // [num_edges] or NULL: every edge that exists
  bool wants(const Edge* edges, uint32_t i) const { return edges[i].fn && (!wanted || wanted[i]); }
};

// Priority of nodes that accumulate into leaves: they run as soon as they are ready.
inline constexpr uint64_t kAccumulateSequence = UINT64_MAX;

class Node {
 public:
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  virtual void apply(Gradients& gradients) = 0;
  virtual const char* name() const = 0;  // "MulBackward0"
  virtual void release_variables() {}    // drops what was saved; a second backward is then an error
  virtual bool is_accumulate_grad() const { return false; }
  // Of a view: apply() gives zeros but for the gradient where the view lies in its argument.
  bool scatters() const { return scatters_; }
  // Then: adds what apply() would give to `sum`, and touches only where the view lies; false: it can't, nothing was done.
  virtual bool add_into(const Tensor& sum, const Tensor& grad) {
    (void)sum, (void)grad;
    return false;
  }
  // In-place nodes that changed a view belong to the node of its base, which knows the history that their result has now.
  virtual void set_owner(Node*) {}
  virtual Edge owned_result_edge() { return {}; }

  uint32_t num_inputs() const { return n_inputs_; }
  uint32_t num_edges() const { return n_edges_; }
  Edge* edges() { return edges_; }
  const Edge* edges() const { return edges_; }
  const TensorFacts& input_facts(uint32_t i) const { return inputs_[i]; }
  uint64_t sequence() const { return sequence_; }

  // Where the forward ran: the device of its result and the current stream of that device; the CPU unless noted.
  ArgandDevice device() const { return device_; }
  void* stream() const { return stream_; }
  void note_device(ArgandDevice device) {
    device_ = device;
    stream_ = current_stream(device);
  }

  // Hooks are made on demand; NULL when there are none.
  NodeHooks* hooks() const { return hooks_.get(); }
  NodeHooks& ensure_hooks();

  void retain() { refcount_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refcount_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy_later(this);
  }
  bool has_one_owner() const { return refcount_.load(std::memory_order_relaxed) == 1; }
  // Adds a reference unless the node is already going away (for weak pointers under their own lock).
  bool try_retain();

  // The binding's object for this node (not owned; the binding clears it) and a place for what it keeps with the node.
  void* binding_object = nullptr;
  Keeper* binding_data = nullptr;  // owned

  // Nodes are small and short-lived: memory comes from per-thread free lists.
  static void* operator new(size_t nbytes) { return allocate(nbytes); }
  static void operator delete(void* p, size_t) { deallocate(p); }
  static void* allocate(size_t nbytes);
  static void deallocate(void* p);

 protected:
  Node();
  explicit Node(uint64_t sequence) : sequence_(sequence) {}

  Edge* edges_ = nullptr;  // owned by the derived class, as is inputs_
  TensorFacts* inputs_ = nullptr;
  uint32_t n_edges_ = 0;
  uint32_t n_inputs_ = 0;
  bool scatters_ = false;

 private:
  static void destroy_later(Node* node);

  std::atomic<int32_t> refcount_{1};
  ArgandDevice device_ = ARGAND_DEVICE(ARGAND_CPU, 0);
  uint64_t sequence_;
  void* stream_ = nullptr;
  std::unique_ptr<NodeHooks> hooks_;
};

// A node whose edges and facts live in vectors.
class VectorNode : public Node {
 protected:
  VectorNode() = default;
  explicit VectorNode(uint64_t sequence) : Node(sequence) {}
  void set_edges(std::vector<Edge> edges);
  void set_inputs(std::vector<OwnedFacts> inputs);

 private:
  std::vector<Edge> edge_storage_;
  std::vector<OwnedFacts> owned_inputs_;
  std::vector<TensorFacts> input_storage_;
};

}  // namespace argand::autograd
