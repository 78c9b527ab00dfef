// All the guards of one compiled frame: a tree by source prefix in which each value is fetched once, state of the thread first,
// relations between values last.
#pragma once

#include <memory>
#include <vector>

#include "packages/dynamo/csrc/guard_check.h"
#include "packages/dynamo/csrc/relations.h"
#include "packages/dynamo/csrc/source.h"

namespace argand::dynamo {

// What a failed check found, for explanations.
struct Failure {
  int guard = -1;
  Ref value;  // of the guard's source; empty when there is none
};

class GuardTree : private SlotAllocator {
 public:
  // `guards` is a tuple of (source, kind, value); throws PythonError.
  explicit GuardTree(PyObject* guards);
  ~GuardTree() override;

  // Leaves no exception. Runs user code only where a source says so (attributes that are properties, keys with an own __eq__).
  // The caller keeps the tree alive.
  bool check(const Call& call, Failure* failure = nullptr);

  // Are all the objects that the guards expect by identity still there: a tree that is not alive can never hold again.
  bool alive() const;
  int traverse(visitproc visit, void* arg);

 private:
  struct Node;
  struct StateCheck;
  struct KnownClass;
  struct Run;

  Node* node_of(PyObject* source);
  int slot_of(PyObject* source) override;
  void add(PyObject* guard, int index);
  bool add_state(const char* kind, PyObject* value, int guard);
  void hoist_class_attributes(Node& node);
  void order(Node& node);
  bool check_state(Failure* failure) const;
  bool check_classes(Failure* failure);
  bool check_relations(PyObject* const* slots, Failure* failure) const;
  static bool visit(Node& node, PyObject* value, Run& run);
  static bool enter(Node& node, PyObject* parent, Run& run);
  static bool alive(const Node& node);
  static int traverse(Node& node, visitproc visit, void* arg);

  std::unique_ptr<Node> root_;
  std::vector<StateCheck> state_;
  std::vector<KnownClass> classes_;
  std::vector<std::unique_ptr<Relation>> relations_;
  int n_slots_ = 0;
};

}  // namespace argand::dynamo
