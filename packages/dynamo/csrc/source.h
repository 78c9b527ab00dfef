// Sources: paths from a call's arguments to a value, as the steps of a tree that shares their prefixes.
#pragma once

#include <vector>

#include "packages/dynamo/csrc/binding.h"

namespace argand::dynamo {

// One call (or frame) that guards are checked against. Everything is borrowed.
struct Call {
  PyObject* const* locals = nullptr;  // in the order of co_varnames; an entry may be NULL
  Py_ssize_t n_locals = 0;
  PyObject* globals = nullptr;  // a dict
  PyObject* closure = nullptr;  // a tuple of cells, or NULL
  PyObject* names = nullptr;    // a tuple whose entries from `first_name` on name the cells, or NULL
  Py_ssize_t first_name = 0;
};
// The part of a Call that a function gives.
Call call_of(PyFunctionObject* function);

enum class StepKind : uint8_t {
  Arg,  // the first step of a path is one of these five
  Cell,
  Global,
  Builtin,
  Module,
  Attr,
  Item,
  DictItem,
  InstanceDict,
  Type,
  Grad,
  Closure,
  Default,
  KwDefault,
  Func,
  Self,
  Key,
  Value,
  Len,
  Call,
  Held,  // a Call of a function of `functools.lru_cache`, if its cache has the result
};

struct Step;
// What a Call or Held step gives its function: a constant, or what a path leads to.
struct CallArgument {
  Ref constant;
  std::vector<Step> path;
};

struct Step {
  StepKind kind = StepKind::Arg;
  Py_ssize_t index = 0;  // Arg, Default, Key, Value, and Item of a list or tuple
  bool has_index = false;
  Ref name;                             // str, the key of an Item or DictItem, or of a Call or Held the payload itself
  std::vector<CallArgument> arguments;  // of a Call or Held: those by name come last
  Ref keywords;                         // their names

  bool same(const Step& other) const;
};

// Parses ("attr", "weight") and the like; throws PythonError. `first`: it begins a path.
Step parse_step(PyObject* step, bool first);

// The value that `step` leads to from `parent` (NULL for first steps): a new reference, or NULL without an exception when there is none.
PyObject* follow(const Step& step, PyObject* parent, const Call& call);

int init_sources();

}  // namespace argand::dynamo
