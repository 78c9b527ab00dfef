// The engine: runs the nodes of a backward graph in a fixed order (docs/notes/engine.md).
#pragma once

#include <vector>

#include "packages/autograd/csrc/node.h"

namespace argand::autograd {

struct BackwardCall {
  std::vector<Edge> roots;    // where the gradients enter
  std::vector<Tensor> grads;  // one per root; must be defined and match its facts
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;    // into leaves; else only the gradients of `inputs` are made
  std::vector<Edge> inputs;  // empty: everything. Edges of leaves name their AccumulateGrad
};

// Returns one gradient per input (undefined where none flowed) when accumulate is false, else an empty list. Runs on the calling thread;
// several threads, and nodes and hooks themselves, may call it at once.
std::vector<Tensor> run_backward(BackwardCall call);

// Brings a gradient to the sizes and dtype that `facts` ask for; throws when it is not expandable from them.
void validate_gradient(const TensorFacts& facts, Tensor& grad, const char* producer, uint32_t index);

// The node that this thread's engine is running, NULL outside of one.
Node* current_node();

// Numbers the backward call that this thread is running, -1 outside of one.
int64_t current_call();

// Does this thread's backward call run `node`. Only its address is looked at, so that it may be gone.
bool will_execute(const Node* node);

// The leaf that gradient `index` of this thread's running node goes to, if nothing will be added to it or done with it on the way; else undefined.
Tensor leaf_of_gradient(uint32_t index);

}  // namespace argand::autograd
