#include "packages/aten/csrc/core/pointwise_rules.h"

#include <algorithm>

#include "packages/aten/csrc/core/number.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand {

int pointwise_dtype(const char* name, int n_operands, Promotion promote, uint8_t bool_operands, const Operand* const* operands) {
  ArgandValue values[kMaxOperands] = {};
  size_t n = 0;
  for (int k = 0; k < n_operands; k++) {
    if (bool_operands >> k & 1) {
      const ArgandTensor* t = operands[k]->get();
      const bool bytes = t && t->dtype == ARGAND_UINT8 && promote != kPromoteSelf;  // as conditions were before there was bool; masks have to be bool
      if (!bytes && (!t || t->dtype != ARGAND_BOOL))
        fail(ARGAND_DTYPE_ERROR, "%s: expected condition to be a boolean tensor, but got a tensor with dtype %s; compare it with 0 first", name,
             t ? kDTypeName[t->dtype] : "of a number");
      continue;
    }
    values[n++] = operands[k]->raw();
  }
  int dtype = ARGAND_FLOAT32;
  if (promote == kPromoteSelf && values[0].tag == ARGAND_TAG_TENSOR) {
    dtype = values[0].t->dtype;
    for (size_t i = 1; i < n; i++) {
      const bool is_complex_value = values[i].tag == ARGAND_TAG_TENSOR ? dtype_category(values[i].t->dtype) == 3 : has_imaginary_part(values[i]);
      if (values[i].tag == ARGAND_TAG_TENSOR && values[i].t->ndim > 0)
        fail(ARGAND_RUNTIME_ERROR, "%s: only supports a 0-dimensional value tensor, but got tensor with %d dimension(s); use where", name,
             values[i].t->ndim);
      if (is_complex_value && dtype_category(dtype) < 3)
        fail(ARGAND_RUNTIME_ERROR, "%s: value cannot be converted to type %s without overflow; expected a real value, or convert self first", name,
             kDTypeName[dtype]);
    }
  } else if (promote == kPromoteNone) {
    ArgandValue tensors[kMaxOperands] = {};
    size_t n_tensors = 0;
    for (size_t i = 0; i < n; i++) {
      if (values[i].tag != ARGAND_TAG_TENSOR) continue;
      tensors[n_tensors++] = values[i];
      const ArgandTensor *first = tensors[0].t, *t = values[i].t;
      if (first->dtype != t->dtype && (i < 2 || t->ndim > 0))
        fail(ARGAND_DTYPE_ERROR, "%s: got tensors of dtypes %s and %s, expected one dtype", name, kDTypeName[first->dtype], kDTypeName[t->dtype]);
    }
    if (n_tensors) check(api->result_type(tensors, n_tensors, &dtype));
    for (size_t i = 0; i < n; i++)
      if (values[i].tag != ARGAND_TAG_TENSOR) check_number(name, dtype, values[i]);
  } else {
    for (size_t i = 0; i < n && promote == kPromoteNumbers; i++)
      if (values[i].tag == ARGAND_TAG_TENSOR ? values[i].t->dtype == ARGAND_BOOL : number_category(values[i]) == 0)
        fail(ARGAND_DTYPE_ERROR, "%s: got a bool, expected numbers; use ~ or logical_xor, or convert it first", name);
    check(api->result_type(values, n, &dtype));
  }
  if (promote == kPromoteFloat && is_integral(dtype, true)) dtype = api->default_dtype();
  return dtype;
}

void check_alpha(const char* name, int dtype, const ArgandValue& alpha) {
  const int got = number_category(alpha), wanted = dtype_category(dtype);
  check_fits(name, dtype, alpha);
  if (got == 0 && wanted > 0) fail(ARGAND_RUNTIME_ERROR, "%s: got a bool for alpha, expected a number for a result of %s", name, kDTypeName[dtype]);
  if (got >= 2 && got > wanted)
    fail(ARGAND_RUNTIME_ERROR, "%s: got a %s number for alpha, expected %s for a result of %s; convert the tensors first", name,
         got == 3 ? "complex" : "floating-point", wanted == 2 ? "a real one" : "an integer", kDTypeName[dtype]);
}

void check_number(const char* name, int dtype, const ArgandValue& number) {
  if (has_imaginary_part(number) && dtype_category(dtype) < 3)
    fail(ARGAND_RUNTIME_ERROR, "%s: got a complex number with tensors of %s, expected a real one; convert the tensors first", name,
         kDTypeName[dtype]);
}

namespace {

int computed_dtype(int dtype) { return is_half(dtype) ? ARGAND_FLOAT32 : dtype; }

// Integers have no negative integer powers; halves none to numbers beyond them.
void check_exponent(const char* name, int dtype, const Operand& exponent) {
  if (!exponent.get() && is_half(dtype)) return check_fits(name, dtype, exponent.raw());
  if (exponent.get() || dtype_category(dtype) != 1 || exponent.raw().tag != ARGAND_TAG_INT) return;
  if (exponent.raw().i >= 0 || beyond_int64(exponent.raw())) return check_fits(name, dtype, exponent.raw());
  fail(ARGAND_RUNTIME_ERROR,
       "%s: got the exponent %lld for integers, expected none that is negative; convert the tensor to a floating-point dtype first", name,
       static_cast<long long>(exponent.raw().i));
}

}  // namespace

void check_scalar(const char* name, int dtype, bool chosen, const ArgandValue& number) {
  check_number(name, dtype, number);
  check_fits(name, chosen ? dtype : computed_dtype(dtype), number);
}

bool passes(NumberRule rule, int dtype, const ArgandValue& number) {
  switch (rule) {
    case kExponent:
      return dtype_category(dtype) != 1 && !is_half(dtype);
    case kChosen:
      return fits(dtype, number);
    case kChosenWide:
      return is_half(dtype) || fits(dtype, number);
    case kComputed:
      return fits(computed_dtype(dtype), number);
    default:
      return true;
  }
}

void check_numbers(const char* name, NumberRule rule, int dtype, int n_operands, const Operand* const* operands) {
  if (rule == kExponent) return check_exponent(name, dtype, *operands[n_operands - 1]);
  for (int k = 0; k < n_operands; k++)
    if (!operands[k]->get() && !passes(rule, dtype, operands[k]->raw())) fail_to_fit(name, dtype);
}

Dims pointwise_shape(const char* name, int n_operands, const Operand* const* operands) {
  Dims shape;
  for (int k = 0; k < n_operands; k++)
    if (const ArgandTensor* t = operands[k]->get()) shape.n = std::max(shape.n, t->ndim);
  for (int32_t i = 0; i < shape.n; i++) shape.d[i] = 1;
  for (int k = 0; k < n_operands; k++) {
    const ArgandTensor* t = operands[k]->get();
    if (!t) continue;
    for (int32_t i = 0; i < t->ndim; i++) {
      int64_t& a = shape.d[i + shape.n - t->ndim];
      const int64_t b = t->sizes[i];
      if (a != b && a != 1 && b != 1)
        fail(ARGAND_SHAPE_ERROR, "%s: The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d", name,
             static_cast<long long>(a), static_cast<long long>(b), i + shape.n - t->ndim);
      if (a == 1) a = b;
    }
  }
  return shape;
}

namespace {

const char* scalar_type_name(int dtype) {  // as users of out= know them
  static constexpr const char* names[ARGAND_NUM_DTYPES] = {"Bool",          "Byte",        "Char",   "Short",  "Int",          "Long",
                                                           "Half",          "BFloat16",    "Float",  "Double", "ComplexFloat", "ComplexDouble",
                                                           "Float8_e4m3fn", "Float8_e5m2", "UInt16", "UInt32", "UInt64"};
  return names[dtype];
}

}  // namespace

bool prepare_pointwise_out(const char* name, const Tensor& out, int dtype, IntList shape, bool inplace, bool exact, int n_operands,
                           const Operand* const* operands) {
  if (inplace && is_complex(out.dtype()) && !is_complex(dtype) && is_floating(dtype))
    fail(ARGAND_RUNTIME_ERROR, "%s: In-place %s is not supported for complex tensors; its result is real", name, name);
  const ArgandTensor* first = operands[0]->get();
  const bool of_complex = first && is_complex(first->dtype) && !is_complex(dtype);  // any dtype that holds real numbers will do
  if (exact && !inplace && out.dtype() != dtype && !of_complex)
    fail(ARGAND_DTYPE_ERROR, "%s: Found dtype %s but expected %s for out", name, scalar_type_name(out.dtype()), scalar_type_name(dtype));
  if (dtype_category(dtype) > dtype_category(out.dtype()))
    fail(ARGAND_DTYPE_ERROR, "%s: result type %s can't be cast to the desired output type %s", name, scalar_type_name(dtype),
         scalar_type_name(out.dtype()));
  const auto check_memory = [&] {
    check_writable(name, out);
    for (int k = 0; k < n_operands; k++)
      if (operands[k]->get()) check_no_partial_overlap(name, out, operands[k]->tensor());
  };
  const bool resized = !(out.sizes() == shape);
  if (resized) {
    check_memory();  // before anything is changed
    bool is_operand = inplace;
    for (int k = 0; k < n_operands; k++) is_operand = is_operand || operands[k]->get() == out.get();
    if (is_operand)
      fail(ARGAND_SHAPE_ERROR, "%s: output with shape %s doesn't match the broadcast shape %s", name, to_string(out.sizes()).c_str(),
           to_string(shape).c_str());
    check(api->tensor_resize(out.get(), static_cast<int32_t>(shape.n), shape.ptr));
  }
  check_memory();
  return resized;
}

namespace {

Dims strides_of_result(const Iteration& inputs, IntList shape, const int* perm) {
  Dims strides;
  strides.n = static_cast<int32_t>(shape.n);
  int64_t stride = 1;
  for (int d = 0; d < static_cast<int>(shape.n); d++) {
    strides[shape.n - 1 - perm[d]] = stride;
    stride *= std::max<int64_t>(inputs.shape[d], 1);
  }
  return strides;
}

}  // namespace

bool are_contiguous(int n_operands, const Operand* const* operands) {
  const ArgandTensor* first = operands[0]->get();
  for (int k = 0; k < n_operands; k++) {
    const ArgandTensor* t = operands[k]->get();
    if (!t || !(t->flags & ARGAND_TENSOR_CONTIGUOUS) || IntList(t->sizes, t->ndim) != IntList(first->sizes, first->ndim)) return false;
  }
  return true;
}

void lie_as_result(const Tensor& out, Iteration inputs, IntList shape) {
  int perm[ARGAND_MAX_DIMS];
  inputs.sort(perm);
  check(api->tensor_set_geometry(out.get(), static_cast<int32_t>(shape.n), shape.ptr, strides_of_result(inputs, shape, perm).d, out->offset));
}

Tensor pointwise_result(const Iteration& inputs, IntList shape, const int* perm, int dtype, ArgandDevice device) {
  return empty_strided(shape, strides_of_result(inputs, shape, perm), dtype, device);
}

}  // namespace argand
