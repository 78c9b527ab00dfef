// An operand of an operator: a borrowed tensor, a number, or nothing. Valid while what it was made from lives.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand {

class Operand {
 public:
  Operand() : v_{} {}
  Operand(const ArgandValue& v) : v_(v) {}
  Operand(const Tensor& t) : v_(value(t)) {}
  Operand(const Scalar& s) : v_(value(s)) {}
  Operand(bool b) : v_(value(b)) {}
  Operand(int i) : v_(value(i)) {}
  Operand(int64_t i) : v_(value(i)) {}
  Operand(double d) : v_(value(d)) {}

  bool defined() const { return !is_none(v_); }
  bool is_tensor() const { return v_.tag == ARGAND_TAG_TENSOR && v_.t; }
  Tensor tensor() const { return as_tensor(v_); }  // undefined for numbers
  ArgandTensor* get() const { return is_tensor() ? v_.t : nullptr; }
  Scalar scalar() const { return as_scalar(v_); }  // numbers only
  const ArgandValue& raw() const { return v_; }

 private:
  ArgandValue v_;
};

inline ArgandValue value(const Operand& o) { return o.raw(); }

}  // namespace argand
