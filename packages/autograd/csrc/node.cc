#include "packages/autograd/csrc/node.h"

#include <cstdlib>
#include <cstring>

#include "packages/autograd/csrc/history.h"

namespace argand::autograd {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kRecycle = false;
#else
constexpr bool kRecycle = true;
#endif
constexpr size_t kStep = 64, kClasses = 16, kKeep = 4096;  // bytes, size classes, free blocks kept a class

struct Block {
  Block* next;
};

// Free blocks of a thread; a block may be freed by another thread than the one that made it. Without a destructor of its own, so
// that an access costs nothing more than an address.
struct FreeLists {
  Block* head[kClasses];
  size_t count[kClasses];
  bool closed;  // the thread is ending
};
constinit thread_local FreeLists t_free __attribute__((tls_model("initial-exec"))) = {};
constinit thread_local uint64_t t_sequence __attribute__((tls_model("initial-exec"))) = 0;

// Gives the lists back when the thread ends.
struct FreeListsOwner {
  bool used = false;
  ~FreeListsOwner() {
    t_free.closed = true;
    for (Block*& list : t_free.head) {
      while (Block* b = list) {
        list = b->next;
        std::free(b);
      }
    }
  }
};
thread_local FreeListsOwner t_free_owner;

// Nodes to destroy. Destroying one drops its edges, which queues the next: a chain of any length needs no recursion.
struct DeletionQueue {
  std::vector<Node*> nodes;
  bool draining = false;
};
constinit thread_local DeletionQueue* t_deletions __attribute__((tls_model("initial-exec"))) = nullptr;

struct DeletionQueueOwner {
  bool used = false;
  ~DeletionQueueOwner() {
    delete t_deletions;
    t_deletions = nullptr;
  }
};
thread_local DeletionQueueOwner t_deletions_owner;

}  // namespace

// A header of 16 bytes in front of a node's memory holds its size class.
void* Node::allocate(size_t nbytes) {
  const size_t total = nbytes + 16;
  const size_t size_class = (total + kStep - 1) / kStep - 1;
  void* p = nullptr;
  if (kRecycle && size_class < kClasses && t_free.head[size_class]) {
    Block* b = t_free.head[size_class];
    t_free.head[size_class] = b->next;
    t_free.count[size_class]--;
    p = b;
  } else {
    t_free_owner.used = true;  // makes it, and so registers its destructor
    p = std::malloc((size_class + 1) * kStep);
    if (!p) throw std::bad_alloc();
  }
  *static_cast<size_t*>(p) = size_class;
  return static_cast<char*>(p) + 16;
}

void Node::deallocate(void* memory) {
  if (!memory) return;
  void* p = static_cast<char*>(memory) - 16;
  const size_t size_class = *static_cast<size_t*>(p);
  if (kRecycle && size_class < kClasses && !t_free.closed && t_free.count[size_class] < kKeep) {
    auto* b = static_cast<Block*>(p);
    b->next = t_free.head[size_class];
    t_free.head[size_class] = b;
    t_free.count[size_class]++;
  } else {
    std::free(p);
  }
}

Node::Node() : sequence_(t_sequence++) {}

Node::~Node() { delete binding_data; }

NodeHooks& Node::ensure_hooks() {
  if (!hooks_) hooks_ = std::make_unique<NodeHooks>();
  return *hooks_;
}

bool Node::try_retain() {
  int32_t n = refcount_.load(std::memory_order_relaxed);
  while (n > 0) {
    if (refcount_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void Node::destroy_later(Node* node) {
  if (!t_deletions) {
    t_deletions = new DeletionQueue;
    t_deletions_owner.used = true;  // registers its destructor
  }
  DeletionQueue& queue = *t_deletions;
  if (queue.draining) {
    queue.nodes.push_back(node);
    return;
  }
  queue.draining = true;
  delete node;
  while (!queue.nodes.empty()) {
    Node* next = queue.nodes.back();
    queue.nodes.pop_back();
    delete next;
  }
  queue.draining = false;
}

OwnedFacts::OwnedFacts(const Tensor& t) {
  if (!t) return;
  const auto n = static_cast<size_t>(t.dim());
  dims_.resize(2 * n);
  if (n) {
    std::memcpy(dims_.data(), t->sizes, n * sizeof(int64_t));
    std::memcpy(dims_.data() + n, t->strides, n * sizeof(int64_t));
  }
  facts_.sizes = dims_.data();
  facts_.strides = dims_.data() + n;
  facts_.offset = t->offset;
  facts_.ndim = t->ndim;
  facts_.device = t.device();
  facts_.dtype = static_cast<uint8_t>(t.dtype());
}

OwnedFacts::OwnedFacts(const TensorFacts& facts) : facts_(facts) {
  const auto n = static_cast<size_t>(facts.ndim);
  dims_.assign(facts.sizes, facts.sizes + n);
  if (facts.strides) dims_.insert(dims_.end(), facts.strides, facts.strides + n);
  facts_.sizes = dims_.data();
  facts_.strides = facts.strides ? dims_.data() + n : nullptr;
}

void VectorNode::set_edges(std::vector<Edge> edges) {
  edge_storage_ = std::move(edges);
  edges_ = edge_storage_.data();
  n_edges_ = static_cast<uint32_t>(edge_storage_.size());
}

void VectorNode::set_inputs(std::vector<OwnedFacts> inputs) {
  owned_inputs_ = std::move(inputs);
  input_storage_.clear();
  for (const OwnedFacts& f : owned_inputs_) input_storage_.push_back(f.facts());
  inputs_ = input_storage_.data();
  n_inputs_ = static_cast<uint32_t>(input_storage_.size());
}

}  // namespace argand::autograd
