// Pointwise loops and their driver against naive loops, in every instruction tier.
#include <algorithm>
#include <functional>

#include "packages/aten/csrc/kernels/cpu/pointwise_driver.h"
#include "packages/aten/tests/cpp/every_tier.h"

GENERATED(PointwiseKernel, add)
GENERATED(PointwiseKernel, exp)
GENERATED(PointwiseKernel, gelu_none)
GENERATED(PointwiseKernel, eq)
GENERATED(PointwiseKernel, where)
GENERATED(PointwiseKernel, floor_divide)
GENERATED(PointwiseKernel, remainder)
GENERATED(PointwiseKernel, pow)
GENERATED(PointwiseKernel, div)
GENERATED(PointwiseKernel, log)
GENERATED(PointwiseKernel, tanh)
GENERATED(PointwiseKernel, erf)
GENERATED(PointwiseKernel, sin)
GENERATED(PointwiseKernel, expm1)
GENERATED(PointwiseKernel, lgamma)
GENERATED(PointwiseKernel, digamma)
GENERATED(PointwiseKernel, erfinv)
GENERATED(PointwiseKernel, sigmoid)
GENERATED(PointwiseKernel, floor)
GENERATED(PointwiseKernel, round)
GENERATED(PointwiseKernel, sign)
GENERATED(PointwiseKernel, sqrt)

namespace {
using namespace argand;
using namespace testing;

// Of the first `rows` dtypes of the operator's tables.
#define OP(name, operands, table, rows, ...) \
  PointwiseOp { name, operands, TIERS(table), rows, __VA_ARGS__ }
const PointwiseOp add_op = OP("add", 2, add, 12, 0, -1, 1), exp_op = OP("exp", 1, exp, 6, 1, -1, 8), gelu_op = OP("gelu", 1, gelu_none, 4, 0, -1, 8);
const PointwiseOp eq_op = OP("eq", 2, eq, 12, 0, 0, 1), where_op = OP("where", 3, where, 12, 0, -1, 1, 1);
const PointwiseOp floor_op = OP("floor_divide", 2, floor_divide, 9, 0, -1, 4, 0, kDivisor),
                  mod_op = OP("remainder", 2, remainder, 9, 0, -1, 4, 0, kDivisor);
const PointwiseOp pow_op = OP("pow", 2, pow, 9, 0, -1, 8), div_op = OP("div", 2, div, 4, 1, -1, 1);

Tensor call(const PointwiseOp& op, std::initializer_list<Operand> operands, double alpha = 1, const Tensor& out = {}, bool inplace = false) {
  const Operand* list[kMaxOperands];
  int n = 0;
  for (const Operand& o : operands) list[n++] = &o;
  const double scalars[kMaxOperands] = {alpha};
  const int64_t ints[kMaxOperands] = {static_cast<int64_t>(alpha)};
  return pointwise(op, list, scalars, ints, out, inplace);
}

void check_result(const Tensor& r, std::initializer_list<Tensor> in, const std::function<double(const double*)>& f) {
  for (int64_t i = 0; i < r.numel(); i++) {
    double x[4];
    int n = 0;
    for (const Tensor& t : in) x[n++] = at_broadcast(t, r.sizes(), i);
    const double want = rounded(f(x), r.dtype()), got = at(r, i);
    CHECK(got == want || (got != got && want != want), "element %ld of %s: got %g, expected %g (dtype %s)", i, to_string(r.sizes()).c_str(), got,
          want, kDTypeName[r.dtype()]);
  }
}
double sum_of(const double* x) { return x[0] + x[1]; }

void dtypes_and_lengths() {
  for (int dtype = 0; dtype < kComputedDTypes; dtype++)
    for (int64_t n = 0; n <= 130; n += n < 70 ? 1 : 7) {
      const Tensor a = random_tensor({n}, dtype), b = random_tensor({n}, dtype), c = random_tensor({n}, ARGAND_BOOL);
      check_result(call(add_op, {a, b}), {a, b}, dtype == ARGAND_BOOL ? [](const double* x) { return x[0] || x[1] ? 1.0 : 0.0; } : sum_of);
      const Tensor e = call(eq_op, {a, b});
      CHECK(e.dtype() == ARGAND_BOOL);
      check_result(e, {a, b}, [](const double* x) { return x[0] == x[1]; });
      check_result(call(where_op, {c, a, b}), {c, a, b}, [](const double* x) { return x[0] != 0 ? x[1] : x[2]; });
    }
}

void layouts() {
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_BFLOAT16, ARGAND_INT8, ARGAND_INT64, ARGAND_COMPLEX64, ARGAND_COMPLEX128}) {
    const Tensor a = random_tensor({37, 53}, dtype), b = random_tensor({53, 37}, dtype), row = random_tensor({53}, dtype),
                 column = random_tensor({37, 1}, dtype);
    check_result(call(add_op, {a, transposed(b, 0, 1)}), {a, transposed(b, 0, 1)}, sum_of);
    check_result(call(add_op, {a, row}), {a, row}, sum_of);
    check_result(call(add_op, {column, row}), {column, row}, sum_of);
    const Tensor odd = sliced(a, 1, 2), wide = sliced(random_tensor({37, 80}, dtype), 3, 3);
    check_result(call(add_op, {odd, wide}), {odd, wide}, sum_of);
    const Tensor cube = random_tensor({5, 6, 7}, dtype), turned = transposed(random_tensor({7, 6, 5}, dtype), 0, 2),
                 middle = random_tensor({6, 1}, dtype);
    check_result(call(add_op, {cube, turned}), {cube, turned}, sum_of);
    check_result(call(add_op, {turned, middle}), {turned, middle}, sum_of);
    const Tensor thin = random_tensor({300, 9}, dtype), bias = random_tensor({9}, dtype);  // short rows
    check_result(call(add_op, {thin, bias}), {thin, bias}, sum_of);
    check_result(call(add_op, {bias, Operand(3)}), {bias}, [](const double* x) { return x[0] + 3; });
    // a result is laid out as its operands
    const Tensor t = call(add_op, {transposed(a, 0, 1), transposed(a, 0, 1)});
    CHECK(t.stride(0) == 1 && t.stride(1) == 53);
    CHECK(call(add_op, {turned, turned}).strides() == turned.strides());
  }
  const Tensor scalar = random_tensor({}, ARGAND_FLOAT32), empty_one = random_tensor({0, 3}, ARGAND_FLOAT32);
  check_result(call(add_op, {scalar, scalar}), {scalar, scalar}, sum_of);
  CHECK(call(add_op, {empty_one, scalar}).sizes() == IntList({0, 3}));
}

void mixed_dtypes() {
  for (int a_dtype = 0; a_dtype < kComputedDTypes; a_dtype++)
    for (int b_dtype = 0; b_dtype < kComputedDTypes; b_dtype++) {
      const Tensor a = random_tensor({3, 41}, a_dtype), b = transposed(random_tensor({41, 3}, b_dtype), 0, 1);
      const Tensor r = call(add_op, {a, b});
      CHECK(r.dtype() == api->promote_types(a_dtype, b_dtype));
      if (r.dtype() != ARGAND_BOOL) check_result(r, {a, b}, sum_of);
    }
  const Tensor ints = random_tensor({2000}, ARGAND_INT32);
  CHECK(call(add_op, {ints, Operand(1.5)}).dtype() == ARGAND_FLOAT32);
  check_result(call(add_op, {ints, Operand(1.5)}), {ints}, [](const double* x) { return x[0] + 1.5; });
  CHECK(call(exp_op, {ints}).dtype() == ARGAND_FLOAT32);
  const Tensor doubles = random_tensor({2000}, ARGAND_FLOAT64), zero_d = random_tensor({}, ARGAND_INT64);
  const Tensor r = call(add_op, {doubles, zero_d});
  CHECK(r.dtype() == ARGAND_FLOAT64);
  check_result(r, {doubles, zero_d}, sum_of);
}

void outputs() {
  const Tensor a = random_tensor({64, 50}, ARGAND_FLOAT32), b = random_tensor({64, 50}, ARGAND_FLOAT32);
  const Tensor out = empty({3}, ARGAND_FLOAT64);
  CHECK(call(add_op, {a, b}, 1, out).get() == out.get() && out.sizes() == a.sizes());  // resized, converted
  check_result(out, {a, b}, sum_of);
  const Tensor whole = empty({64, 100}, ARGAND_FLOAT32), view = sliced(whole, 0, 2);
  call(add_op, {a, b}, 1, view, true);
  check_result(view, {a, b}, sum_of);
  const char* shared = "refer to a single memory location";
  const Tensor square = random_tensor({40, 40}, ARGAND_FLOAT32), line = random_tensor({100}, ARGAND_FLOAT32);
  CHECK_THROWS(shared, call(add_op, {square, transposed(square, 0, 1)}, 1, square, true));
  const Tensor head = view_of(line, {99}, {1}, 0), tail = view_of(line, {99}, {1}, 1);
  CHECK_THROWS(shared, call(add_op, {tail, head}, 1, tail, true));
  const Tensor longs = random_tensor({3}, ARGAND_INT64), floats = random_tensor({3}, ARGAND_FLOAT32), three = random_tensor({2, 3}, ARGAND_FLOAT32);
  CHECK_THROWS("result type Float can't be cast to the desired output type Long", call(add_op, {longs, Operand(1.5)}, 1, longs, true));
  CHECK_THROWS("doesn't match the broadcast shape [2, 3]", call(add_op, {floats, three}, 1, floats, true));
  CHECK_THROWS("add: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
               call(add_op, {random_tensor({2, 3}, ARGAND_FLOAT32), random_tensor({2, 4}, ARGAND_FLOAT32)}));
  const Tensor expanded = view_of(floats, {4, 3}, {0, 1}, 0);
  CHECK_THROWS("more than one element", call(add_op, {expanded, Operand(1)}, 1, expanded, true));
  CHECK_THROWS("not implemented for dtype int64", call(gelu_op, {longs}));
  CHECK_THROWS("boolean tensor", call(where_op, {floats, floats, floats}));
  const Tensor meta = empty({2, 3}, ARGAND_FLOAT32, ARGAND_DEVICE(ARGAND_META, 0));
  const Tensor shaped = call(add_op, {meta, empty({3}, ARGAND_FLOAT64, ARGAND_DEVICE(ARGAND_META, 0))});
  CHECK_THROWS("expected all on one device", call(add_op, {meta, random_tensor({3}, ARGAND_FLOAT64)}));
  CHECK(shaped.is_meta() && shaped.sizes() == IntList({2, 3}) && shaped.dtype() == ARGAND_FLOAT64);
  const Tensor large = empty({5, 1 << 20}, ARGAND_FLOAT32);  // written past the caches
  for (int64_t i = 0; i < large.numel(); i++) large.data<float>()[i] = static_cast<float>(i & 1023);
  const Tensor sum = call(add_op, {large, large}, 2);
  for (int64_t i = 0; i < large.numel(); i++) CHECK(sum.data<float>()[i] == 3 * large.data<float>()[i]);
}

void integer_division() {
  for (int dtype : {ARGAND_UINT8, ARGAND_INT8, ARGAND_INT16, ARGAND_INT32, ARGAND_INT64, ARGAND_FLOAT32, ARGAND_FLOAT64}) {
    const Tensor a = random_tensor({501}, dtype, -100, 100), b = random_tensor({501}, dtype, -7, 7);
    for (int64_t i = 0; i < 501; i++)
      if (at(b, i) == 0) put(b, i, 3);
    check_result(call(floor_op, {a, b}), {a, b}, [](const double* x) { return std::floor(x[0] / x[1]); });
    check_result(call(mod_op, {a, b}), {a, b}, [](const double* x) { return x[0] - x[1] * std::floor(x[0] / x[1]); });
    const Tensor e = random_tensor({501}, dtype, 0, 3), base = random_tensor({501}, dtype, -4, 4);
    check_result(call(pow_op, {base, e}), {base, e}, [](const double* x) { return std::pow(x[0], x[1]); });
  }
  const Tensor a = random_tensor({5}, ARGAND_INT32), zero = random_tensor({5}, ARGAND_INT32, 0, 0);
  CHECK_THROWS("ZeroDivisionError", call(floor_op, {a, zero}));
  const Tensor lowest = random_tensor({1}, ARGAND_INT64, 0, 0), minus = random_tensor({1}, ARGAND_INT64, -1, -1);
  lowest.data<int64_t>()[0] = INT64_MIN;
  CHECK(call(floor_op, {lowest, minus}).data<int64_t>()[0] == INT64_MIN && call(mod_op, {lowest, minus}).data<int64_t>()[0] == 0);
  const double x[] = {7.5, -7.5, 1e30, 5, -0.0, INFINITY, 3, NAN, 0.1}, y[] = {2, 2, 3.7, 0, 5, 2, INFINITY, 1, 0.01};
  for (int i = 0; i < 9; i++) {
    const Tensor p = random_tensor({1}, ARGAND_FLOAT64), q = random_tensor({1}, ARGAND_FLOAT64);
    put(p, 0, x[i]), put(q, 0, y[i]);
    double want = std::fmod(x[i], y[i]);
    if (want != 0 && (want < 0) != (y[i] < 0)) want += y[i];
    const double got = at(call(mod_op, {p, q}), 0);
    CHECK(got == want || (got != got && want != want), "%g %% %g: %g, expected %g", x[i], y[i], got, want);
  }
}

// Quotients next to whole numbers, of numbers of every length.
template <class T>
void quotients(int dtype) {
  using Wide = __int128;
  const auto any = [] { return static_cast<T>((random_below(int64_t{1} << 32) << 32 | random_below(int64_t{1} << 32)) >> random_below(64)); };
  const Tensor a = empty({4003}, dtype), b = empty({4003}, dtype);
  for (int64_t i = 0; i < a.numel(); i++) {
    T y = any();
    if (y == 0 || static_cast<T>(y + 1) == 0) y = 2;
    a.data<T>()[i] = i % 3 ? static_cast<T>(static_cast<uint64_t>(any() / y * y) + static_cast<uint64_t>(i % 7 - 3)) : any();
    b.data<T>()[i] = y;
  }
  a.data<T>()[1] = a.data<T>()[2] = std::numeric_limits<T>::min();
  b.data<T>()[1] = static_cast<T>(-1), b.data<T>()[2] = 1;
  const Tensor quotient = call(floor_op, {a, b}), rest = call(mod_op, {a, b});
  for (int64_t i = 0; i < a.numel(); i++) {
    const Wide x = a.data<T>()[i], y = b.data<T>()[i], q = x / y - (x % y != 0 && (x < 0) != (y < 0));
    CHECK(quotient.data<T>()[i] == static_cast<T>(q) && rest.data<T>()[i] == static_cast<T>(x - q * y), "%s: %lld // %lld", kDTypeName[dtype],
          static_cast<long long>(x), static_cast<long long>(y));
  }
}
void quotients_of_all_lengths() {
  quotients<uint8_t>(ARGAND_UINT8);
  quotients<int8_t>(ARGAND_INT8);
  quotients<int16_t>(ARGAND_INT16);
  quotients<int32_t>(ARGAND_INT32);
  quotients<int64_t>(ARGAND_INT64);
}

// ---- mathematics ----------------------------------------------------------------------------------------------------------
double inverse_erf(double x) {  // bisection on the exact function
  double low = 0, high = 6;
  const double a = std::fabs(x);
  for (int i = 0; i < 200; i++) {
    const double middle = (low + high) / 2;
    const bool below = a < 0.5 ? std::erf(middle) < a : std::erfc(middle) > 1 - a;
    (below ? low : high) = middle;
  }
  return std::copysign(low, x);
}
double psi(double x) {  // derivative of lgamma by recurrence and the series, in long double
  long double r = 0, z = x;
  while (z < 30) r -= 1 / z, z += 1;
  return static_cast<double>(r + std::log(z) - 1 / (2 * z) - 1 / (12 * z * z) + 1 / (120 * z * z * z * z) - 1 / (252 * z * z * z * z * z * z));
}

#define UNARY(table, rows) OP(#table, 1, table, rows, 0, -1, 8)

void check_function(const PointwiseOp& op, double low, double high, double ulps, double (*f)(double)) {
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64}) {
    const Tensor x = empty({4099}, dtype);
    for (int64_t i = 0; i < x.numel(); i++) put(x, i, random_real(low, high));
    const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 1e-40, 0.5, -0.5, 2.5, 88.9, -104, 1e10};
    for (int i = 0; i < 14; i++) put(x, i * 7, special[i]);
    const Tensor y = call(op, {x});
    for (int64_t i = 0; i < x.numel(); i++) {
      const double want = f(at(x, i)), got = at(y, i), r = rounded(want, dtype);
      if (got == r || (got != got && want != want)) continue;
      const double unit = dtype == ARGAND_FLOAT32 ? std::ldexp(1.0, std::max(std::ilogb(want), -126) - 23) : std::ldexp(1.0, std::ilogb(want) - 52);
      CHECK(std::fabs(got - want) <= ulps * unit, "%s(%.17g) = %.17g, expected %.17g (%g ulp, %s)", op.name, at(x, i), got, want,
            std::fabs(got - want) / unit, kDTypeName[dtype]);
    }
    // the same at every length and offset
    for (int64_t n = 0; n <= 130; n++) {
      const int64_t offset = random_below(100);
      const Tensor z = call(op, {view_of(x, {n}, {1}, offset)}), strided = call(op, {view_of(x, {n}, {3}, offset)});
      CHECK(n == 0 || std::memcmp(z->data, y.data<char>() + offset * y.itemsize(), n * y.itemsize()) == 0, "%s: length %ld, offset %ld", op.name, n,
            offset);
      for (int64_t i = 0; i < n; i++) CHECK(std::memcmp(address(strided, i), address(y, offset + 3 * i), y.itemsize()) == 0, "%s: strided", op.name);
    }
    for (int64_t i = 0; i < 100; i++) {
      const Tensor one = call(op, {view_of(x, {}, {}, i)});
      CHECK(std::memcmp(one->data, address(y, i), y.itemsize()) == 0, "%s: 0-d", op.name);
    }
  }
}

void functions() {
  check_function(UNARY(log, 4), 0, 100, 4, [](double x) { return std::log(x); });
  check_function(UNARY(expm1, 4), -20, 90, 2, [](double x) { return std::expm1(x); });
  check_function(UNARY(expm1, 4), -1, 1, 2, [](double x) { return std::expm1(x); });
  check_function(UNARY(tanh, 4), -10, 10, 4, [](double x) { return std::tanh(x); });
  check_function(UNARY(erf, 4), -5, 5, 6, [](double x) { return std::erf(x); });
  check_function(UNARY(sin, 4), -100, 100, 4, [](double x) { return std::sin(x); });
  check_function(UNARY(lgamma, 4), 0.1, 100, 40, [](double x) { return std::lgamma(x); });
  check_function(UNARY(erfinv, 4), -1, 1, 32, [](double x) {
    return std::fabs(x) < 1 && x != 0 ? inverse_erf(x) : x == 0 ? x : std::fabs(x) == 1 ? std::copysign(INFINITY, x) : NAN;
  });
  check_function(UNARY(sigmoid, 4), -20, 20, 4, [](double x) { return 1 / (1 + std::exp(-x)); });
  check_function(UNARY(floor, 9), -100, 100, 0, [](double x) { return std::floor(x); });
  check_function(UNARY(round, 9), -100, 100, 0, [](double x) { return std::nearbyint(x); });
  check_function(UNARY(sign, 10), -100, 100, 0, [](double x) { return static_cast<double>((x > 0) - (x < 0)); });
  check_function(UNARY(sqrt, 4), 0, 100, 1, [](double x) { return std::sqrt(x); });
  const PointwiseOp digamma = UNARY(digamma, 4);
  for (double x : {0.25, 1.0, 1.5, 3.0, 10.0, 123.0}) {
    const Tensor t = random_tensor({1}, ARGAND_FLOAT64);
    put(t, 0, x);
    CHECK(std::fabs(at(call(digamma, {t}), 0) - psi(x)) < 1e-13 * std::max(1.0, std::fabs(psi(x))), "digamma(%g)", x);
    put(t, 0, -x - 0.125);  // reflection
    const double want = psi(1 + x + 0.125) + M_PI / std::tan(M_PI * (x + 0.125));
    CHECK(std::fabs(at(call(digamma, {t}), 0) - want) < 1e-12 * std::max(1.0, std::fabs(want)), "digamma(%g)", -x - 0.125);
  }
}

void pow_and_division() {
  const double special[] = {0.0, -0.0, 1, -1, 2, 3, -2, 0.5, INFINITY, -INFINITY, NAN, 1e-30, 1e30, 7.25};
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64}) {
    const Tensor x = empty({14 * 14}, dtype), y = empty({14 * 14}, dtype);
    for (int64_t i = 0; i < x.numel(); i++) put(x, i, special[i / 14]), put(y, i, special[i % 14]);
    const Tensor r = call(pow_op, {x, y}), q = call(div_op, {x, y});
    for (int64_t i = 0; i < x.numel(); i++) {
      const double a = at(x, i), b = at(y, i), want = rounded(std::pow(a, b), dtype), got = at(r, i);
      CHECK(got == want || (got != got && want != want) || std::fabs(got - want) <= 4e-7 * std::fabs(want), "%g ** %g = %g, expected %g", a, b, got,
            want);
      const double quotient = rounded(a / b, dtype);
      CHECK(at(q, i) == quotient || (quotient != quotient && at(q, i) != at(q, i)), "%g / %g", a, b);
    }
    for (int64_t n = 0; n <= 130; n++) {
      const int64_t offset = random_below(60);
      const Tensor z = call(pow_op, {view_of(x, {n}, {1}, offset), view_of(y, {n}, {1}, offset)});
      CHECK(n == 0 || std::memcmp(z->data, r.data<char>() + offset * r.itemsize(), n * r.itemsize()) == 0, "pow: length %ld", n);
    }
  }
}

void halves() {  // every float16, and roundings of both 16-bit types
  const Tensor h = empty({65536}, ARGAND_FLOAT16);
  for (int i = 0; i < 65536; i++) h.data<uint16_t>()[i] = static_cast<uint16_t>(i);
  const Tensor one = call(add_op, {h, Operand(0)}, 0);  // x + 0 * 0 in float32 and back
  for (int i = 0; i < 65536; i++) {
    const float x = half_to_float(static_cast<uint16_t>(i));
    CHECK(x != x ? half_to_float(one.data<uint16_t>()[i]) != half_to_float(one.data<uint16_t>()[i]) : half_to_float(one.data<uint16_t>()[i]) == x,
          "float16 0x%x", i);
  }
  for (int dtype : {ARGAND_FLOAT16, ARGAND_BFLOAT16}) {
    const Tensor x = empty({4001}, dtype), y = empty({4001}, dtype);
    for (int64_t i = 0; i < x.numel(); i++)
      put(x, i, std::ldexp(random_real(-2, 2), static_cast<int>(random_below(36)) - 20)), put(y, i, std::ldexp(random_real(-2, 2), -16));
    check_result(call(add_op, {x, y}), {x, y},
                 [](const double* v) { return static_cast<double>(static_cast<float>(v[0]) + static_cast<float>(v[1])); });
  }
}

void complex_exp() {
  const Tensor z = empty({5}, ARGAND_COMPLEX128);
  for (int i = 0; i < 10; i++) z.data<double>()[i] = random_real(-2, 2);
  const Tensor e = call(exp_op, {z});
  for (int i = 0; i < 5; i++) {
    const double re = z.data<double>()[2 * i], im = z.data<double>()[2 * i + 1];
    CHECK(std::fabs(e.data<double>()[2 * i] - std::exp(re) * std::cos(im)) < 1e-13 &&
          std::fabs(e.data<double>()[2 * i + 1] - std::exp(re) * std::sin(im)) < 1e-13);
  }
}

void tests() {
  RUN(dtypes_and_lengths);
  RUN(layouts);
  RUN(mixed_dtypes);
  RUN(outputs);
  RUN(integer_division);
  RUN(quotients_of_all_lengths);
  RUN(functions);
  RUN(pow_and_division);
  RUN(halves);
  RUN(complex_exp);
}
}  // namespace

int main() { return run_in_every_tier(tests); }
