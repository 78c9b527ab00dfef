#include "packages/c10/csrc/core/promotion.h"

#include "packages/c10/csrc/abi/tensor.h"
#include "packages/c10/csrc/core/errors.h"

namespace argand::core {
namespace {

constexpr bool complex_dtype(int d) { return d == ARGAND_COMPLEX64 || d == ARGAND_COMPLEX128; }
constexpr bool floating_dtype(int d) { return (d >= ARGAND_FLOAT16 && d <= ARGAND_FLOAT64) || is_float8(d); }

// There is no complex of half precision: narrower types go to complex64.
constexpr int to_complex(int d) { return d == ARGAND_FLOAT64 || d == ARGAND_COMPLEX128 ? ARGAND_COMPLEX128 : ARGAND_COMPLEX64; }

// Of an unsigned integer of 16 bits or more and another dtype: what holds both, as the array API has it.
constexpr int promote_unsigned(int wide, int other) {
  if (other == ARGAND_BOOL) return wide;
  if (floating_dtype(other) || complex_dtype(other)) return other;
  if (other == ARGAND_UINT8 || is_wide_unsigned(other)) return kItemSize[other] > kItemSize[wide] ? other : wide;
  if (kItemSize[other] > kItemSize[wide]) return other;
  return wide == ARGAND_UINT64 ? ARGAND_DTYPE_NONE : same_width_signed(wide) + 1;
}

constexpr int promote(int a, int b) {
  if (a == b) return a;
  if (is_float8(a) || is_float8(b)) return ARGAND_DTYPE_NONE;  // which of the two to round to is the program's to say
  if (is_wide_unsigned(a)) return promote_unsigned(a, b);
  if (is_wide_unsigned(b)) return promote_unsigned(b, a);
  const int low = a < b ? a : b, high = a < b ? b : a;  // the order of ArgandDType is the order of generality, but for three cases
  if (complex_dtype(high) && floating_dtype(low)) return high == ARGAND_COMPLEX128 ? high : to_complex(low);
  if (low == ARGAND_UINT8 && high == ARGAND_INT8) return ARGAND_INT16;
  if (low == ARGAND_FLOAT16 && high == ARGAND_BFLOAT16) return ARGAND_FLOAT32;
  return high;
}

int g_default_dtype = ARGAND_FLOAT32;  // atomic

// Tensors with dimensions decide, then 0-d tensors, then numbers: a lower category matters only by being of a higher kind.
int combine(int higher, int lower) {
  if (higher == ARGAND_DTYPE_NONE) return lower;
  if (lower == ARGAND_DTYPE_NONE || complex_dtype(higher)) return higher;
  if (floating_dtype(higher)) return complex_dtype(lower) ? to_complex(higher) : higher;
  if (higher == ARGAND_BOOL || floating_dtype(lower) || complex_dtype(lower)) return promote(higher, lower);
  return higher;
}

struct Categories {
  int dim = ARGAND_DTYPE_NONE, zero = ARGAND_DTYPE_NONE, number = ARGAND_DTYPE_NONE;
  bool float8 = false, wide = false;  // beside another dtype, that has no dtype in common with float8, or with uint64
  bool large = false;                 // an int that only uint64 holds is among the numbers
  void add(int& category, int dtype) {
    const int before = category;
    category = before == ARGAND_DTYPE_NONE ? dtype : promote(before, dtype);
    if (category == ARGAND_DTYPE_NONE) (is_float8(before) || is_float8(dtype) ? float8 : wide) = true;
  }

  void add_number(int dtype) {  // of a kind, not a width: the default dtype gives that
    const int standard = default_dtype();
    add(number, complex_dtype(dtype)      ? to_complex(standard)
                : floating_dtype(dtype)   ? standard
                : is_wide_unsigned(dtype) ? static_cast<int>(ARGAND_INT64)
                                          : dtype);
  }
  void add_tensor(const ArgandTensor* t) {
    if (!t) return;
    if (t->ndim > 0)
      add(dim, t->dtype);
    else if (t->flags & ARGAND_TENSOR_WRAPPED_NUMBER)
      add_number(t->dtype), large |= t->dtype == ARGAND_UINT64;
    else
      add(zero, t->dtype);
  }
  void add_value(const ArgandValue& v) {
    switch (v.tag) {
      case ARGAND_TAG_TENSOR:
        return add_tensor(v.t);
      case ARGAND_TAG_TENSOR_LIST:
        for (uint32_t i = 0; i < v.len; i++) add_tensor(v.tensors[i]);
        return;
      case ARGAND_TAG_BOOL:
        return add_number(ARGAND_BOOL);
      case ARGAND_TAG_INT:
        large |= beyond_int64(v);
        return add_number(ARGAND_INT64);
      case ARGAND_TAG_FLOAT:
        return add_number(ARGAND_FLOAT64);
      case ARGAND_TAG_COMPLEX:
        return add_number(ARGAND_COMPLEX128);
      default:
        return;
    }
  }
};

}  // namespace

int promote_types(int a, int b) {
  if (a < 0 || b < 0 || a >= ARGAND_NUM_DTYPES || b >= ARGAND_NUM_DTYPES) return ARGAND_DTYPE_NONE;
  return promote(a, b);
}

int result_type(const ArgandValue* values, size_t n, int* out) {
  Categories c;
  for (size_t i = 0; i < n; i++) c.add_value(values[i]);
  const int tensors = combine(c.dim, c.zero);
  int dtype = combine(c.dim, combine(c.zero, c.number));
  if (c.large && dtype == ARGAND_INT64 && (tensors == ARGAND_DTYPE_NONE || tensors == ARGAND_BOOL)) dtype = ARGAND_UINT64;
  if (c.wide)
    return error(ARGAND_RUNTIME_ERROR,
                 "result_type: got uint64 beside a signed integer dtype, and no integer dtype holds the numbers of both; convert one with .to()");
  if (c.float8 || (dtype == ARGAND_DTYPE_NONE && (is_float8(c.dim) || is_float8(c.zero))))
    return error(ARGAND_RUNTIME_ERROR, "result_type: got float8 beside another dtype, which are not promoted to each other; convert one with .to()");
  if (dtype == ARGAND_DTYPE_NONE) return error(ARGAND_TYPE_ERROR, "result_type: got no tensor and no number; expected at least one");
  *out = dtype;
  return 0;
}

int default_dtype() { return __atomic_load_n(&g_default_dtype, __ATOMIC_RELAXED); }
void set_default_dtype(int dtype) { __atomic_store_n(&g_default_dtype, dtype, __ATOMIC_RELAXED); }

}  // namespace argand::core
