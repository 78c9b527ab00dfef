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
// A complex number without one may stand for a real number.
inline bool has_imaginary_part(const ArgandValue& v) { return v.tag == ARGAND_TAG_COMPLEX && v.c.im != 0; }

// What an operator asks of its operands beyond their dtypes.
enum NumberRule : uint8_t {
  kAnyIntegers = 0,
  kDivisor = 1,     // the last operand is a divisor: a zero in it is an error for integers
  kExponent = 2,    // the last operand is an exponent: for integers a number that is negative, or beyond their dtype, is an error
  kChosen = 3,      // operands become elements as they are: a number has to fit the dtype, of whatever numbers
  kChosenWide = 4,  // ... before they are converted to a dtype of half precision
  kComputed = 5,    // a number has to fit the dtype that elements are computed in
};

// The computation's dtype. bool_operands: bit k: operand k is a bool tensor that takes no part in promotion.
int pointwise_dtype(const char* name, int n_operands, Promotion promote, uint8_t bool_operands, const Operand* const* operands);
Dims pointwise_shape(const char* name, int n_operands, const Operand* const* operands);
// Checks a given result for values of `dtype`, and resizes it unless `inplace`; whether it did.
bool prepare_pointwise_out(const char* name, const Tensor& out, int dtype, IntList shape, bool inplace, bool exact, int n_operands,
                           const Operand* const* operands);
// A number that scales an operand must be of the computation's category or a lower one.
void check_alpha(const char* name, int dtype, const ArgandValue& alpha);
// A number besides the operands that has to fit the computation's dtype, or that which its elements are computed in.
void check_scalar(const char* name, int dtype, bool chosen, const ArgandValue& number);
// A complex number is none of the elements of a real dtype.
void check_number(const char* name, int dtype, const ArgandValue& number);
// Numbers among the operands as the rule asks for them, on every device.
void check_numbers(const char* name, NumberRule rule, int dtype, int n_operands, const Operand* const* operands);
// Whether check_numbers has nothing to say of a number that gives no dtype.
bool passes(NumberRule rule, int dtype, const ArgandValue& number);
// Lets a given result that was resized lie as a new one would.
void lie_as_result(const Tensor& out, Iteration inputs, IntList shape);
// Whether all operands are contiguous tensors of one shape: a new result is row-major, whatever dimensions of one element say of formats.
bool are_contiguous(int n_operands, const Operand* const* operands);
// A new result whose dimensions lie in memory as the operands' do: `inputs` was sorted, `perm` as sort gave it.
Tensor pointwise_result(const Iteration& inputs, IntList shape, const int* perm, int dtype, ArgandDevice device);

}  // namespace argand
