#include "packages/c10/csrc/core/promotion.h"

#include "packages/c10/csrc/abi/tensor.h"
#include "packages/c10/csrc/core/errors.h"

namespace argand::core {
namespace {

constexpr bool complex_dtype(int d) { return d == ARGAND_COMPLEX64 || d == ARGAND_COMPLEX128; }
constexpr bool floating_dtype(int d) { return (d >= ARGAND_FLOAT16 && d <= ARGAND_FLOAT64) || is_float8(d); }

// There is no complex of half precision: narrower types go to complex64.
constexpr int to_complex(int d) { return d == ARGAND_FLOAT64 || d == ARGAND_COMPLEX128 ? ARGAND_COMPLEX128 : ARGAND_COMPLEX64; }

constexpr int promote(int a, int b) {
  if (a != b && (is_float8(a) || is_float8(b))) return ARGAND_DTYPE_NONE;  // which of the two to round to is the program's to say
  const int low = a < b ? a : b, high = a < b ? b : a;                     // the order of ArgandDType is the order of generality, but for three cases
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
  bool mixed = false;  // float8 beside another dtype
  void add(int& category, int dtype) {
    const bool first = category == ARGAND_DTYPE_NONE;
    category = first ? dtype : promote(category, dtype);
    mixed |= category == ARGAND_DTYPE_NONE;
  }

  void add_number(int dtype) {  // of a kind, not a width: the default dtype gives that
    const int standard = default_dtype();
    add(number, complex_dtype(dtype) ? to_complex(standard) : floating_dtype(dtype) ? standard : dtype);
  }
  void add_tensor(const ArgandTensor* t) {
    if (!t) return;
    if (t->ndim > 0)
      add(dim, t->dtype);
    else if (t->flags & ARGAND_TENSOR_WRAPPED_NUMBER)
      add_number(t->dtype);
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
  const int dtype = combine(c.dim, combine(c.zero, c.number));
  if (c.mixed || (dtype == ARGAND_DTYPE_NONE && (is_float8(c.dim) || is_float8(c.zero))))
    return error(ARGAND_RUNTIME_ERROR, "result_type: got float8 beside another dtype, which are not promoted to each other; convert one with .to()");
  if (dtype == ARGAND_DTYPE_NONE) return error(ARGAND_TYPE_ERROR, "result_type: got no tensor and no number; expected at least one");
  *out = dtype;
  return 0;
}

int default_dtype() { return __atomic_load_n(&g_default_dtype, __ATOMIC_RELAXED); }
void set_default_dtype(int dtype) { __atomic_store_n(&g_default_dtype, dtype, __ATOMIC_RELAXED); }

}  // namespace argand::core
