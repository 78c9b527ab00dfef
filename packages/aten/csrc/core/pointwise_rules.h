// What pointwise operators of every backend have in common: promotion, broadcasting, the result's layout.
#pragma once

#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/csrc/core/operand.h"

namespace argand {

enum Promotion : uint8_t {
  kPromoteDefault = 0,  // result_type of the operands
  kPromoteFloat = 1,    // ... and integers become the default dtype
  kPromoteNone = 2,     // tensors have one dtype; after the second, those without dimensions are promoted
  kPromoteSelf = 3,     // the first operand that is not in bool_operands decides
  kPromoteNumbers = 4,  // result_type of the operands, none of which is a bool
};

// How a new result lies.
enum Layout : uint8_t {
  kAsOperands = 0,
  kRowMajor = 1,
  kRowMajorOfNumber = 2,   // row-major where the first operand is a number
  kRowMajorOfComplex = 3,  // row-major where the first operand is a complex tensor
};
inline bool is_row_major(Layout layout, const Operand& first) {
  return layout == kRowMajor || (layout == kRowMajorOfNumber && (!first.is_tensor() || first.get()->flags & ARGAND_TENSOR_WRAPPED_NUMBER)) ||
         (layout == kRowMajorOfComplex && first.is_tensor() && is_complex(first.get()->dtype));
}

// bool, integers, floating-point numbers, complex numbers: 0 to 3
inline int dtype_category(int dtype) { return dtype == ARGAND_BOOL ? 0 : is_integral(dtype, true) ? 1 : is_complex(dtype) ? 3 : 2; }
inline int number_category(const ArgandValue& v) {
  return v.tag == ARGAND_TAG_BOOL ? 0 : v.tag == ARGAND_TAG_INT ? 1 : v.tag == ARGAND_TAG_FLOAT ? 2 : 3;
}

// The computation's dtype. bool_operands: bit k: operand k is a bool tensor that takes no part in promotion.
int pointwise_dtype(const char* name, int n_operands, Promotion promote, uint8_t bool_operands, const Operand* const* operands);
Dims pointwise_shape(const char* name, int n_operands, const Operand* const* operands);
// Checks a given result for values of `dtype`, and resizes it unless `inplace`.
void prepare_pointwise_out(const char* name, const Tensor& out, int dtype, IntList shape, bool inplace, bool exact, int n_operands,
                           const Operand* const* operands);
// A number that scales an operand must be of the computation's category or a lower one.
void check_alpha(const char* name, int dtype, const ArgandValue& alpha);
// A complex number is none of the elements of a real dtype.
void check_number(const char* name, int dtype, const ArgandValue& number);
// Integers have no negative integer powers.
void check_exponent(const char* name, int dtype, const Operand& exponent);
// A new result whose dimensions lie in memory as the operands' do: `inputs` was sorted, `perm` as sort gave it.
Tensor pointwise_result(const Iteration& inputs, IntList shape, const int* perm, int dtype, ArgandDevice device);

}  // namespace argand
