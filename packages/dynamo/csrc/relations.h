// Guards about several values at once: the same object, different tensors, shared storages, sizes.
#pragma once

#include <memory>
#include <vector>

#include "packages/dynamo/csrc/binding.h"
#include "packages/dynamo/csrc/shape_program.h"

namespace argand::dynamo {

// Gives the slot in which the tree leaves a source's value during a check; throws PythonError.
struct SlotAllocator {
  virtual int slot_of(PyObject* source) = 0;
  virtual ~SlotAllocator() = default;
};

class Relation {
 public:
  explicit Relation(int guard) : guard_(guard) {}
  virtual ~Relation() = default;
  // `slots` are borrowed and not NULL.
  virtual bool holds(PyObject* const* slots) const = 0;
  int guard() const { return guard_; }

 private:
  int guard_;
};

// Parses ALIAS, DISTINCT, STORAGE and SHAPE; NULL for another kind; throws PythonError.
std::unique_ptr<Relation> parse_relation(const char* kind, PyObject* source, PyObject* value, int guard, SlotAllocator& slots);

}  // namespace argand::dynamo
