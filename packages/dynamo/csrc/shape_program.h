// Integer expressions over the sizes of a call's arguments, as postfix code. Knows nothing of Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace argand::dynamo {

enum class ShapeOp : uint8_t {
  Constant,  // pushes `operand`
  Symbol,    // pushes symbols[operand]
  Add,
  Sub,
  Mul,
  FloorDiv,  // rounds down, as Python's //
  CeilDiv,
  Mod,  // has the sign of the divisor, as Python's %
  Pow,
  Min,
  Max,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Neg,  // unary from here on
  Abs,
  Not,
};

class ShapeProgram {
 public:
  static constexpr size_t kMaxDepth = 64;

  void push(ShapeOp op, int64_t operand = 0);
  // Deepest stack so far; a program deeper than kMaxDepth must not be run.
  size_t depth() const { return max_depth_; }
  // The value left on the stack. False: overflow of 64 bits, division by zero or a negative exponent.
  bool run(const int64_t* symbols, int64_t* out) const;

 private:
  struct Instruction {
    ShapeOp op;
    int64_t operand;
  };
  std::vector<Instruction> code_;
  size_t depth_ = 0;
  size_t max_depth_ = 0;
};

}  // namespace argand::dynamo
