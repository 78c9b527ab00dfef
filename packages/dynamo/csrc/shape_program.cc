#include "packages/dynamo/csrc/shape_program.h"

namespace argand::dynamo {

namespace {

bool floor_div(int64_t a, int64_t b, int64_t* out) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  *out = a / b - (a % b != 0 && (a < 0) != (b < 0));
  return true;
}

bool power(int64_t base, int64_t exponent, int64_t* out) {
  if (exponent < 0) return false;
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return false;
    exponent >>= 1;
    if (exponent && __builtin_mul_overflow(base, base, &base)) return false;
  }
  *out = result;
  return true;
}

bool binary(ShapeOp op, int64_t a, int64_t b, int64_t* out) {
  switch (op) {
    case ShapeOp::Add:
      return !__builtin_add_overflow(a, b, out);
    case ShapeOp::Sub:
      return !__builtin_sub_overflow(a, b, out);
    case ShapeOp::Mul:
      return !__builtin_mul_overflow(a, b, out);
    case ShapeOp::FloorDiv:
      return floor_div(a, b, out);
    case ShapeOp::CeilDiv:
      return floor_div(a, b, out) && (a % b == 0 || !__builtin_add_overflow(*out, 1, out));
    case ShapeOp::Mod:
      if (!floor_div(a, b, out)) return false;
      *out = a - *out * b;
      return true;
    case ShapeOp::Pow:
      return power(a, b, out);
    case ShapeOp::Min:
      *out = a < b ? a : b;
      return true;
    case ShapeOp::Max:
      *out = a > b ? a : b;
      return true;
    case ShapeOp::Eq:
      *out = a == b;
      return true;
    case ShapeOp::Ne:
      *out = a != b;
      return true;
    case ShapeOp::Lt:
      *out = a < b;
      return true;
    case ShapeOp::Le:
      *out = a <= b;
      return true;
    case ShapeOp::Gt:
      *out = a > b;
      return true;
    case ShapeOp::Ge:
      *out = a >= b;
      return true;
    case ShapeOp::And:
      *out = a && b;
      return true;
    case ShapeOp::Or:
      *out = a || b;
      return true;
    default:
      return false;
  }
}

bool unary(ShapeOp op, int64_t a, int64_t* out) {
  if (op == ShapeOp::Not) {
    *out = !a;
    return true;
  }
  if (op == ShapeOp::Abs && a >= 0) {
    *out = a;
    return true;
  }
  return !__builtin_sub_overflow(static_cast<int64_t>(0), a, out);
}

}  // namespace

void ShapeProgram::push(ShapeOp op, int64_t operand) {
  code_.push_back({op, operand});
  if (op <= ShapeOp::Symbol)
    depth_++;
  else if (op < ShapeOp::Neg)
    depth_--;
  if (depth_ > max_depth_) max_depth_ = depth_;
}

bool ShapeProgram::run(const int64_t* symbols, int64_t* out) const {
  int64_t stack[kMaxDepth];
  int64_t* top = stack;  // one past the last value
  for (const Instruction& i : code_) {
    if (i.op == ShapeOp::Constant) {
      *top++ = i.operand;
    } else if (i.op == ShapeOp::Symbol) {
      *top++ = symbols[i.operand];
    } else if (i.op < ShapeOp::Neg) {
      top--;
      if (!binary(i.op, top[-1], top[0], &top[-1])) return false;
    } else if (!unary(i.op, top[-1], &top[-1])) {
      return false;
    }
  }
  *out = stack[0];
  return true;
}

}  // namespace argand::dynamo
