#include "packages/dynamo/csrc/relations.h"

#include <cstring>
#include <string>

namespace argand::dynamo {

namespace {

[[noreturn]] void bad_value(const char* kind, PyObject* value, const char* expected) {
  PyErr_Format(PyExc_TypeError, "GuardTree: %s guard got %R, expected %s", kind, value, expected);
  throw PythonError{};
}

ArgandTensor* tensor_of(PyObject* o) {
  ArgandTensor* t = python->unwrap(o);
  if (!t) PyErr_Clear();
  return t;
}

// ---- identities ----------------------------------------------------------------------------------------------------------
class Alias : public Relation {
 public:
  Alias(int guard, int a, int b) : Relation(guard), a_(a), b_(b) {}
  bool holds(PyObject* const* slots) const override { return slots[a_] == slots[b_]; }

 private:
  int a_, b_;
};

// A set of addresses with room for n of them, on the stack where that is small.
class AddressSet {
 public:
  explicit AddressSet(size_t n) {
    size_t size = 16;
    while (size < 2 * n) size *= 2;
    mask_ = size - 1;
    if (size > kInline) heap_.resize(size);
    table_ = size > kInline ? heap_.data() : inline_;
    std::memset(table_, 0, size * sizeof *table_);
  }
  // The number under which the address was first added; `number` if it is new.
  int add(const void* address, int number) {
    size_t i = (reinterpret_cast<uintptr_t>(address) >> 4) * 0x9e3779b97f4a7c15u >> 20;
    for (;; i++) {
      Entry& entry = table_[i & mask_];
      if (entry.address == address) return entry.number;
      if (entry.address) continue;
      entry = {address, number};
      return number;
    }
  }

 private:
  struct Entry {
    const void* address;
    int number;
  };
  static constexpr size_t kInline = 64;
  Entry inline_[kInline];
  std::vector<Entry> heap_;
  Entry* table_;
  size_t mask_;
};

class Distinct : public Relation {
 public:
  Distinct(int guard, std::vector<int> members) : Relation(guard), members_(std::move(members)) {}
  bool holds(PyObject* const* slots) const override {
    if (members_.size() <= 4) {
      for (size_t i = 0; i < members_.size(); i++)
        for (size_t j = 0; j < i; j++)
          if (slots[members_[i]] == slots[members_[j]]) return false;
      return true;
    }
    AddressSet seen(members_.size());
    for (size_t i = 0; i < members_.size(); i++)
      if (seen.add(slots[members_[i]], static_cast<int>(i)) != static_cast<int>(i)) return false;
    return true;
  }

 private:
  std::vector<int> members_;
};

// Tensors have one storage exactly where the pattern has one number: [0, 1, 0] says that the first and the third share theirs.
// Storage offsets are compared too where they are given.
class SharedStorage : public Relation {
 public:
  SharedStorage(int guard, std::vector<int> members, std::vector<int> pattern, std::vector<int64_t> offsets)
      : Relation(guard), members_(std::move(members)), pattern_(std::move(pattern)), offsets_(std::move(offsets)) {}
  bool holds(PyObject* const* slots) const override {
    AddressSet seen(members_.size());
    for (size_t i = 0; i < members_.size(); i++) {
      const ArgandTensor* t = tensor_of(slots[members_[i]]);
      if (!t) return false;
      const int number = static_cast<int>(i), first = pattern_[i];
      if (first == number ? seen.add(t->storage, number) != number : tensor_of(slots[members_[first]])->storage != t->storage) return false;
      if (!offsets_.empty() && offsets_[i] >= 0 && t->offset != offsets_[i]) return false;
    }
    return true;
  }

 private:
  std::vector<int> members_, pattern_;
  std::vector<int64_t> offsets_;
};

// ---- sizes ---------------------------------------------------------------------------------------------------------------
struct Binding {
  enum Kind : uint8_t { Size, Stride, Offset, Value } kind;
  int slot;
  int32_t dim;

  bool load(PyObject* const* slots, int64_t* out) const {
    PyObject* o = slots[slot];
    if (kind == Value) {
      if (!PyLong_CheckExact(o)) return false;
      int overflow = 0;
      *out = PyLong_AsLongLongAndOverflow(o, &overflow);
      return !overflow;
    }
    const ArgandTensor* t = tensor_of(o);
    if (!t) return false;
    if (kind == Offset) {
      *out = t->offset;
      return true;
    }
    const int32_t d = dim < 0 ? dim + t->ndim : dim;
    if (d < 0 || d >= t->ndim) return false;
    *out = kind == Size ? t->sizes[d] : t->strides[d];
    return true;
  }
};

class Shapes : public Relation {
 public:
  Shapes(int guard, std::vector<Binding> bindings, std::vector<ShapeProgram> programs)
      : Relation(guard), bindings_(std::move(bindings)), programs_(std::move(programs)) {}
  bool holds(PyObject* const* slots) const override {
    int64_t few[16];
    std::vector<int64_t> many;
    if (bindings_.size() > 16) many.resize(bindings_.size());
    int64_t* symbols = bindings_.size() > 16 ? many.data() : few;
    for (size_t i = 0; i < bindings_.size(); i++)
      if (!bindings_[i].load(slots, &symbols[i])) return false;
    for (const ShapeProgram& program : programs_) {
      int64_t value;
      if (!program.run(symbols, &value) || !value) return false;
    }
    return true;
  }

 private:
  std::vector<Binding> bindings_;
  std::vector<ShapeProgram> programs_;
};

struct OperatorSpec {
  const char* name;
  ShapeOp op;
};
constexpr OperatorSpec kOperators[] = {{"+", ShapeOp::Add},   {"-", ShapeOp::Sub},   {"*", ShapeOp::Mul},   {"//", ShapeOp::FloorDiv},
                                       {"%", ShapeOp::Mod},   {"**", ShapeOp::Pow},  {"==", ShapeOp::Eq},   {"!=", ShapeOp::Ne},
                                       {"<", ShapeOp::Lt},    {"<=", ShapeOp::Le},   {">", ShapeOp::Gt},    {">=", ShapeOp::Ge},
                                       {"and", ShapeOp::And}, {"or", ShapeOp::Or},   {"not", ShapeOp::Not}, {"min", ShapeOp::Min},
                                       {"max", ShapeOp::Max}, {"abs", ShapeOp::Abs}, {"neg", ShapeOp::Neg}, {"ceildiv", ShapeOp::CeilDiv}};

// Compiles nested tuples such as ("<=", ("+", ("*", 2, "s0"), 3), 10).
class ShapeCompiler {
 public:
  explicit ShapeCompiler(const std::vector<std::string>& symbols) : symbols_(symbols) {}

  ShapeProgram compile(PyObject* expression) {
    program_ = ShapeProgram();
    emit(expression, 0);
    if (program_.depth() > ShapeProgram::kMaxDepth) fail(expression, "an expression of at most 64 levels");
    return std::move(program_);
  }

 private:
  [[noreturn]] static void fail(PyObject* expression, const char* expected) { bad_value("SHAPE", expression, expected); }

  void emit(PyObject* e, size_t level) {
    if (level > ShapeProgram::kMaxDepth) fail(e, "an expression of at most 64 levels");
    if (PyLong_Check(e)) {
      const int64_t value = PyLong_AsLongLong(e);
      if (value == -1 && PyErr_Occurred()) throw PythonError{};
      program_.push(ShapeOp::Constant, value);
    } else if (PyUnicode_Check(e)) {
      program_.push(ShapeOp::Symbol, symbol(e));
    } else if (PyTuple_Check(e) && PyTuple_GET_SIZE(e) >= 2 && PyUnicode_Check(PyTuple_GET_ITEM(e, 0))) {
      apply(e, level);
    } else {
      fail(e, "an int, a symbol or a tuple (operator, operand, ...)");
    }
  }

  void apply(PyObject* e, size_t level) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(e, 0));
    if (!name) throw PythonError{};
    const OperatorSpec* spec = nullptr;
    for (const OperatorSpec& s : kOperators)
      if (std::strcmp(s.name, name) == 0) spec = &s;
    if (!spec) fail(e, "one of the operators + - * // % ** == != < <= > >= and or not min max abs neg ceildiv");
    const Py_ssize_t n = PyTuple_GET_SIZE(e) - 1;
    const bool is_unary = spec->op >= ShapeOp::Neg, takes_any = is_associative(spec->op);
    const bool negates = n == 1 && spec->op == ShapeOp::Sub;
    if (is_unary ? n != 1 : n != 2 && !takes_any && !negates) fail(e, is_unary ? "one operand" : "two operands");
    emit(PyTuple_GET_ITEM(e, 1), level + 1);
    if (is_unary || negates) program_.push(is_unary ? spec->op : ShapeOp::Neg);
    for (Py_ssize_t i = 2; i <= n; i++) {
      emit(PyTuple_GET_ITEM(e, i), level + 1);
      program_.push(spec->op);
    }
  }

  static bool is_associative(ShapeOp op) {
    return op == ShapeOp::Add || op == ShapeOp::Mul || op == ShapeOp::And || op == ShapeOp::Or || op == ShapeOp::Min || op == ShapeOp::Max;
  }

  int64_t symbol(PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) throw PythonError{};
    for (size_t i = 0; i < symbols_.size(); i++)
      if (symbols_[i] == text) return static_cast<int64_t>(i);
    fail(name, "a symbol that the guard binds");
  }

  const std::vector<std::string>& symbols_;
  ShapeProgram program_;
};

// (source, "size", dim), or the same with the kind first.
Binding parse_binding(PyObject* value, SlotAllocator& slots) {
  if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) < 2 || PyTuple_GET_SIZE(value) > 3)
    bad_value("SHAPE", value, "a binding (source, 'size' | 'stride' | 'offset' | 'value', dim)");
  const int at = PyUnicode_Check(PyTuple_GET_ITEM(value, 0)) ? 0 : 1;
  PyObject *kind = PyTuple_GET_ITEM(value, at), *source = PyTuple_GET_ITEM(value, 1 - at);
  const char* text = PyUnicode_Check(kind) ? PyUnicode_AsUTF8(kind) : nullptr;
  constexpr const char* kNames[] = {"size", "stride", "offset", "value"};
  for (int i = 0; text && i < 4; i++) {
    if (std::strcmp(kNames[i], text) != 0) continue;
    const long dim = PyTuple_GET_SIZE(value) == 3 && i < 2 ? PyLong_AsLong(PyTuple_GET_ITEM(value, 2)) : 0;
    if (dim == -1 && PyErr_Occurred()) throw PythonError{};
    return {static_cast<Binding::Kind>(i), slots.slot_of(source), static_cast<int32_t>(dim)};
  }
  bad_value("SHAPE", kind, "'size', 'stride', 'offset' or 'value'");
}

std::unique_ptr<Relation> parse_shapes(PyObject* value, int guard, SlotAllocator& slots) {
  PyObject* expressions = PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2 ? PyTuple_GET_ITEM(value, 0) : nullptr;
  PyObject* symbols = expressions ? PyTuple_GET_ITEM(value, 1) : nullptr;
  if (!expressions || !PyDict_Check(symbols) || !(PyTuple_Check(expressions) || PyList_Check(expressions)))
    bad_value("SHAPE", value, "(expressions, {symbol: (source, 'size', dim)})");
  std::vector<std::string> names;
  std::vector<Binding> bindings;
  PyObject *name, *binding;
  for (Py_ssize_t i = 0; PyDict_Next(symbols, &i, &name, &binding);) {
    const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (!text) bad_value("SHAPE", name, "a symbol's name");
    names.emplace_back(text);
    bindings.push_back(parse_binding(binding, slots));
  }
  ShapeCompiler compiler(names);
  std::vector<ShapeProgram> programs;
  // One expression may be given without a tuple around it.
  const bool single = PyTuple_Check(expressions) && PyTuple_GET_SIZE(expressions) && PyUnicode_Check(PyTuple_GET_ITEM(expressions, 0)) &&
                      PyTuple_GET_SIZE(expressions) > 1;
  if (single) {
    programs.push_back(compiler.compile(expressions));
  } else {
    Ref list(checked(PySequence_Tuple(expressions)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); i++) programs.push_back(compiler.compile(PyTuple_GET_ITEM(list.get(), i)));
  }
  return std::make_unique<Shapes>(guard, std::move(bindings), std::move(programs));
}

// ---- lists of sources ----------------------------------------------------------------------------------------------------
std::vector<int> parse_sources(const char* kind, PyObject* value, SlotAllocator& slots) {
  if (!PyTuple_Check(value) && !PyList_Check(value)) bad_value(kind, value, "a sequence of sources");
  Ref list(checked(PySequence_Tuple(value)));
  std::vector<int> result;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); i++) result.push_back(slots.slot_of(PyTuple_GET_ITEM(list.get(), i)));
  return result;
}

std::vector<int64_t> parse_ints(const char* kind, PyObject* value, size_t n) {
  Ref list(checked(PySequence_Tuple(value)));
  if (static_cast<size_t>(PyTuple_GET_SIZE(list.get())) != n) bad_value(kind, value, "one number a source");
  std::vector<int64_t> result;
  for (size_t i = 0; i < n; i++) {
    PyObject* entry = PyTuple_GET_ITEM(list.get(), static_cast<Py_ssize_t>(i));
    const int64_t number = entry == Py_None ? -1 : PyLong_AsLongLong(entry);
    if (number == -1 && PyErr_Occurred()) throw PythonError{};
    result.push_back(number);
  }
  return result;
}

std::unique_ptr<Relation> parse_storage(PyObject* value, int guard, SlotAllocator& slots) {
  const Py_ssize_t n = PyTuple_Check(value) ? PyTuple_GET_SIZE(value) : 0;
  if (n != 2 && n != 3) bad_value("STORAGE", value, "(sources, pattern) or (sources, pattern, offsets)");
  std::vector<int> members = parse_sources("STORAGE", PyTuple_GET_ITEM(value, 0), slots), pattern, groups;
  for (int64_t group : parse_ints("STORAGE", PyTuple_GET_ITEM(value, 1), members.size())) groups.push_back(static_cast<int>(group));
  std::vector<int64_t> offsets;
  if (n == 3) offsets = parse_ints("STORAGE", PyTuple_GET_ITEM(value, 2), members.size());
  for (size_t i = 0; i < groups.size(); i++) {  // a group is numbered by its first member
    size_t first = 0;
    while (groups[first] != groups[i]) first++;
    pattern.push_back(static_cast<int>(first));
  }
  return std::make_unique<SharedStorage>(guard, std::move(members), std::move(pattern), std::move(offsets));
}

}  // namespace

std::unique_ptr<Relation> parse_relation(const char* kind, PyObject* source, PyObject* value, int guard, SlotAllocator& slots) {
  if (std::strcmp(kind, "ALIAS") == 0) {
    const int a = slots.slot_of(source), b = slots.slot_of(value);
    return std::make_unique<Alias>(guard, a, b);
  }
  if (std::strcmp(kind, "DISTINCT") == 0) return std::make_unique<Distinct>(guard, parse_sources(kind, value, slots));
  if (std::strcmp(kind, "STORAGE") == 0) return parse_storage(value, guard, slots);
  if (std::strcmp(kind, "SHAPE") == 0) return parse_shapes(value, guard, slots);
  return nullptr;
}

}  // namespace argand::dynamo
