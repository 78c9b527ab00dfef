// A node's backward as an event of the profiler.
#pragma once

#include <string>

#include "packages/autograd/csrc/node.h"
#include "packages/c10/csrc/abi/profiler.h"

namespace argand::autograd {

inline const ArgandProfiler* profiler = nullptr;  // set with `api`; NULL in programs without Python

class ProfiledNode {
 public:
  ProfiledNode(const char* prefix, Node* node) {
    if (__builtin_expect(!profiler || !*profiler->recording, 1)) return;
    event_ =
        profiler->enter((prefix + std::string(node->is_accumulate_grad() ? "torch::autograd::" : "") + node->name()).c_str(), ARGAND_EVENT_BACKWARD);
  }
  ~ProfiledNode() {
    if (__builtin_expect(event_ >= 0, 0)) profiler->leave(event_);
  }
  ProfiledNode(const ProfiledNode&) = delete;
  ProfiledNode& operator=(const ProfiledNode&) = delete;

 private:
  int64_t event_ = -1;
};

}  // namespace argand::autograd
