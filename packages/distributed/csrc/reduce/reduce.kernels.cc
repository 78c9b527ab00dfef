#include <cstdint>
#include <cstring>
#include <type_traits>

#include "packages/c10/csrc/abi/argand.h"
#include "packages/distributed/csrc/reduce/reduce.h"

namespace argand::distributed::ARGAND_TIER_NAMESPACE {

namespace {

struct BFloat16 {
  uint16_t bits;
};
struct Complex64 {
  float re, im;
};
struct Complex128 {
  double re, im;
};

// The type that a dtype is computed in; results are rounded once.
inline float load(BFloat16 x) {
  const uint32_t wide = static_cast<uint32_t>(x.bits) << 16;
  float f;
  std::memcpy(&f, &wide, 4);
  return f;
}
inline float load(_Float16 x) { return static_cast<float>(x); }
template <class T>
inline T load(T x) {
  return x;
}

template <class T>
inline T store(decltype(load(T{})) x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    uint32_t wide;
    std::memcpy(&wide, &x, 4);
    const uint32_t rounded = (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
    return {static_cast<uint16_t>(x == x ? rounded : (wide >> 16) | 0x40)};
  } else {
    return static_cast<T>(x);
  }
}

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
      return {a.re + b.re, a.im + b.im};
    } else if constexpr (std::is_integral_v<T>) {  // wraps
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
    } else {
      return a + b;
    }
  }
};
struct Product {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
      return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct Min {  // a NaN wins
  template <class T>
  static T apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Band {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Bor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Bxor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <class T, class Op>
void reduce(void* out, const void* a, const void* b, size_t n) {
  T* o = static_cast<T*>(out);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
#pragma GCC ivdep
  for (size_t i = 0; i < n; i++) o[i] = store<T>(Op::apply(load(x[i]), load(y[i])));
}

template <class T>
void divide(void* out, double divisor, size_t n) {
  T* x = static_cast<T*>(out);
  for (size_t i = 0; i < n; i++) {
    if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
      using Real = decltype(x->re);
      x[i] = {x[i].re / static_cast<Real>(divisor), x[i].im / static_cast<Real>(divisor)};
    } else {
      using Wide = decltype(load(T{}));
      x[i] = store<T>(static_cast<Wide>(load(x[i]) / static_cast<Wide>(divisor)));
    }
  }
}

template <class T>
ReduceFn ordered(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return reduce<T, Sum>;
    case ReduceOp::kProduct:
      return reduce<T, Product>;
    case ReduceOp::kMin:
      return reduce<T, Min>;
    case ReduceOp::kMax:
      return reduce<T, Max>;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::kBand) return reduce<T, Band>;
    if (op == ReduceOp::kBor) return reduce<T, Bor>;
    if (op == ReduceOp::kBxor) return reduce<T, Bxor>;
  }
  return nullptr;
}

template <class T>
ReduceFn complex(ReduceOp op) {
  if (op == ReduceOp::kSum || op == ReduceOp::kAvg) return reduce<T, Sum>;
  return op == ReduceOp::kProduct ? reduce<T, Product> : nullptr;
}

// Booleans are the bytes 0 and 1: sums are "or", products "and".
ReduceFn boolean(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kBor:
      return reduce<uint8_t, Bor>;
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBand:
      return reduce<uint8_t, Band>;
    case ReduceOp::kBxor:
      return reduce<uint8_t, Bxor>;
    default:
      return nullptr;
  }
}

}  // namespace

ReduceFn find_reduce(int dtype, ReduceOp op) {
  switch (dtype) {
    case ARGAND_BOOL:
      return boolean(op);
    case ARGAND_UINT8:
      return ordered<uint8_t>(op);
    case ARGAND_INT8:
      return ordered<int8_t>(op);
    case ARGAND_INT16:
      return ordered<int16_t>(op);
    case ARGAND_INT32:
      return ordered<int32_t>(op);
    case ARGAND_INT64:
      return ordered<int64_t>(op);
    case ARGAND_UINT16:
      return ordered<uint16_t>(op);
    case ARGAND_UINT32:
      return ordered<uint32_t>(op);
    case ARGAND_UINT64:
      return ordered<uint64_t>(op);
    case ARGAND_FLOAT16:
      return ordered<_Float16>(op);
    case ARGAND_BFLOAT16:
      return ordered<BFloat16>(op);
    case ARGAND_FLOAT32:
      return ordered<float>(op);
    case ARGAND_FLOAT64:
      return ordered<double>(op);
    case ARGAND_COMPLEX64:
      return complex<Complex64>(op);
    case ARGAND_COMPLEX128:
      return complex<Complex128>(op);
    default:
      return nullptr;
  }
}

DivideFn find_divide(int dtype) {
  switch (dtype) {
    case ARGAND_UINT8:
      return divide<uint8_t>;
    case ARGAND_INT8:
      return divide<int8_t>;
    case ARGAND_INT16:
      return divide<int16_t>;
    case ARGAND_INT32:
      return divide<int32_t>;
    case ARGAND_INT64:
      return divide<int64_t>;
    case ARGAND_UINT16:
      return divide<uint16_t>;
    case ARGAND_UINT32:
      return divide<uint32_t>;
    case ARGAND_UINT64:
      return divide<uint64_t>;
    case ARGAND_FLOAT16:
      return divide<_Float16>;
    case ARGAND_BFLOAT16:
      return divide<BFloat16>;
    case ARGAND_FLOAT32:
      return divide<float>;
    case ARGAND_FLOAT64:
      return divide<double>;
    case ARGAND_COMPLEX64:
      return divide<Complex64>;
    case ARGAND_COMPLEX128:
      return divide<Complex128>;
    default:
      return nullptr;
  }
}

}  // namespace argand::distributed::ARGAND_TIER_NAMESPACE
