// Promotion tables; expected values are what PyTorch gives (numbers of ArgandDType).
#include <algorithm>

#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

constexpr int kN = ARGAND_FLOAT8_E4M3FN;  // float8 is promoted to nothing

constexpr int kPromote[kN][kN] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 1, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11},           {2, 3, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
    {3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {4, 4, 4, 4, 4, 5, 6, 7, 8, 9, 10, 11},           {5, 5, 5, 5, 5, 5, 6, 7, 8, 9, 10, 11},
    {6, 6, 6, 6, 6, 6, 6, 8, 8, 9, 10, 11}, {7, 7, 7, 7, 7, 7, 8, 7, 8, 9, 10, 11},           {8, 8, 8, 8, 8, 8, 8, 8, 8, 9, 10, 11},
    {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 11, 11}, {10, 10, 10, 10, 10, 10, 10, 10, 10, 11, 10, 11}, {11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11},
};
// Row: dtype of a tensor with dimensions; column: dtype of a 0-d tensor.
constexpr int kZeroDim[kN][kN] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {1, 1, 1, 1, 1, 1, 6, 7, 8, 9, 10, 11},           {2, 2, 2, 2, 2, 2, 6, 7, 8, 9, 10, 11},
    {3, 3, 3, 3, 3, 3, 6, 7, 8, 9, 10, 11}, {4, 4, 4, 4, 4, 4, 6, 7, 8, 9, 10, 11},           {5, 5, 5, 5, 5, 5, 6, 7, 8, 9, 10, 11},
    {6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 10, 10}, {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 10, 10},           {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 10, 10},
    {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 11, 11}, {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, {11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11},
};
// Row: dtype of a tensor, with or without dimensions; column: True, 1, 1.0, 1j. Default dtype float32.
constexpr int kNumber[kN][4] = {{0, 5, 8, 10}, {1, 1, 8, 10}, {2, 2, 8, 10}, {3, 3, 8, 10}, {4, 4, 8, 10},    {5, 5, 8, 10},
                                {6, 6, 6, 10}, {7, 7, 7, 10}, {8, 8, 8, 10}, {9, 9, 9, 11}, {10, 10, 10, 10}, {11, 11, 11, 11}};

int result_type(std::initializer_list<ArgandValue> values) {
  int out = -1;
  check(api->result_type(values.begin(), values.size(), &out));
  return out;
}

void test_tables() {
  const ArgandValue numbers[] = {value(true), value(1), value(1.0), value(Scalar(0.0, 1.0))};
  for (int a = 0; a < kN; a++) {
    const Tensor x = empty({2}, a), x0 = empty({}, a);
    for (int b = 0; b < kN; b++) {
      CHECK_EQ(api->promote_types(a, b), kPromote[a][b]);
      const Tensor y = empty({3}, b), y0 = empty({}, b);
      CHECK_EQ(result_type({value(x), value(y)}), kPromote[a][b]);
      CHECK_EQ(result_type({value(x0), value(y0)}), kPromote[a][b]);
      CHECK_EQ(result_type({value(x), value(y0)}), kZeroDim[a][b]);
      CHECK_EQ(result_type({value(y0), value(x)}), kZeroDim[a][b]);
      CHECK_EQ(result_type({value(y0), value(x), value(true)}), kZeroDim[a][b]);
    }
    for (int i = 0; i < 4; i++) {
      CHECK_EQ(result_type({value(x), numbers[i]}), kNumber[a][i]);
      CHECK_EQ(result_type({numbers[i], value(x0)}), kNumber[a][i]);
    }
  }
  CHECK_EQ(api->promote_types(ARGAND_DTYPE_NONE, ARGAND_FLOAT32), ARGAND_DTYPE_NONE);
}

// Row: uint16, uint32, uint64; column: the other dtype.
constexpr int kUnsigned[3][kN] = {{14, 14, 4, 4, 4, 5, 6, 7, 8, 9, 10, 11},
                                  {15, 15, 5, 5, 5, 5, 6, 7, 8, 9, 10, 11},
                                  {16, 16, ARGAND_DTYPE_NONE, ARGAND_DTYPE_NONE, ARGAND_DTYPE_NONE, ARGAND_DTYPE_NONE, 6, 7, 8, 9, 10, 11}};

void test_unsigned() {
  const ArgandValue numbers[] = {value(true), value(1), value(1.0), value(Scalar(0.0, 1.0)), value(Scalar::of_unsigned(~uint64_t{0}))};
  for (int i = 0; i < 3; i++) {
    const int a = ARGAND_UINT16 + i;
    const Tensor x = empty({2}, a), x0 = empty({}, a);
    for (int b = 0; b < kN; b++) {
      const Tensor y = empty({3}, b), y0 = empty({}, b);
      CHECK_EQ(api->promote_types(a, b), kUnsigned[i][b]);
      CHECK_EQ(api->promote_types(b, a), kUnsigned[i][b]);
      const bool whole = b <= ARGAND_INT64, real = b < ARGAND_COMPLEX64;
      CHECK_EQ(result_type({value(x), value(y0)}), whole ? a : b);
      CHECK_EQ(result_type({value(y), value(x0)}), b == ARGAND_BOOL ? a : b);
      CHECK(real || result_type({value(x), value(y)}) == b);
    }
    for (int k = 0; k < 3; k++) CHECK_EQ(api->promote_types(a, ARGAND_UINT16 + k), std::max(a, ARGAND_UINT16 + k));
    for (int k = 0; k < 5; k++) {
      const int wanted = k == 2 ? static_cast<int>(ARGAND_FLOAT32) : k == 3 ? static_cast<int>(ARGAND_COMPLEX64) : a;
      CHECK_EQ(result_type({value(x), numbers[k]}), wanted);
      CHECK_EQ(result_type({numbers[k], value(x0)}), wanted);
    }
  }
  const Tensor wide = empty({2}, ARGAND_UINT64), narrow = empty({2}, ARGAND_INT8);
  const ArgandValue pair[] = {value(wide), value(narrow)};
  int out = -1;
  CHECK(api->result_type(pair, 2, &out) != 0);
}

void test_float8() {
  for (int f8 : {ARGAND_FLOAT8_E4M3FN, ARGAND_FLOAT8_E5M2}) {
    const Tensor x = empty({2}, f8);
    for (int other = 0; other < ARGAND_NUM_DTYPES; other++) CHECK_EQ(api->promote_types(f8, other), other == f8 ? f8 : ARGAND_DTYPE_NONE);
    CHECK_EQ(result_type({value(x), value(x)}), f8);
    CHECK_EQ(result_type({value(x), value(1.0)}), f8);
    const Tensor y = empty({2}, ARGAND_FLOAT32);
    const ArgandValue pair[] = {value(x), value(y)};
    int out = -1;
    CHECK(api->result_type(pair, 2, &out) != 0);
  }
}

void test_numbers_alone() {
  CHECK_EQ(result_type({value(true)}), ARGAND_BOOL);
  CHECK_EQ(result_type({value(true), value(2)}), ARGAND_INT64);
  CHECK_EQ(result_type({value(2.0), value(2)}), ARGAND_FLOAT32);
  CHECK_EQ(result_type({value(2.0), value(Scalar(1.0, 2.0))}), ARGAND_COMPLEX64);
}

void test_wrapped_numbers() {
  Tensor number = empty({}, ARGAND_FLOAT64);
  number->flags |= ARGAND_TENSOR_WRAPPED_NUMBER;
  CHECK_EQ(result_type({value(number)}), ARGAND_FLOAT32);
  CHECK_EQ(result_type({value(number), value(empty({}, ARGAND_FLOAT16))}), ARGAND_FLOAT16);
  CHECK_EQ(result_type({value(number), value(empty({}, ARGAND_INT16))}), ARGAND_FLOAT32);
  Tensor plain = empty({}, ARGAND_FLOAT64);
  CHECK_EQ(result_type({value(plain), value(empty({}, ARGAND_FLOAT16))}), ARGAND_FLOAT64);
}

void test_default_dtype() {
  const Tensor ints = empty({2}, ARGAND_INT32);
  api->set_default_dtype(ARGAND_FLOAT64);
  CHECK_EQ(result_type({value(ints), value(0.5)}), ARGAND_FLOAT64);
  CHECK_EQ(result_type({value(ints), value(Scalar(0.0, 1.0))}), ARGAND_COMPLEX128);
  api->set_default_dtype(ARGAND_BFLOAT16);
  CHECK_EQ(result_type({value(ints), value(0.5)}), ARGAND_BFLOAT16);
  CHECK_EQ(result_type({value(ints), value(Scalar(0.0, 1.0))}), ARGAND_COMPLEX64);
  api->set_default_dtype(ARGAND_FLOAT32);
}

void test_lists_and_errors() {
  const Tensor a = empty({2}, ARGAND_INT32), b = empty({2}, ARGAND_FLOAT16);
  const TensorList list = {a, b, Tensor()};
  CHECK_EQ(result_type({value(list)}), ARGAND_FLOAT16);
  CHECK_EQ(result_type({none(), value("text"), value(a)}), ARGAND_INT32);
  int out = -1;
  const ArgandValue nothing[] = {none()};
  CHECK_FAILS(api->result_type(nothing, 1, &out), ARGAND_TYPE_ERROR, "result_type: got no tensor and no number");
  CHECK_EQ(out, -1);
}

}  // namespace

int main() {
  api = argand_api();
  RUN(test_tables);
  RUN(test_unsigned);
  RUN(test_float8);
  RUN(test_numbers_alone);
  RUN(test_wrapped_numbers);
  RUN(test_default_dtype);
  RUN(test_lists_and_errors);
  return 0;
}
