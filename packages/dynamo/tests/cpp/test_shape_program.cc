// Shape programs against values worked out by hand, and their failures; tensor facts field by field.
#include "packages/dynamo/csrc/shape_program.h"

#include "packages/c10/tests/cpp/check.h"
#include "packages/dynamo/csrc/tensor_facts.h"

using namespace argand::dynamo;

namespace {

constexpr int64_t kFails = INT64_MIN + 77;

int64_t apply(ShapeOp op, int64_t a, int64_t b) {
  const int64_t symbols[] = {a, b};
  ShapeProgram program;
  program.push(ShapeOp::Symbol, 0);
  if (op < ShapeOp::Neg) program.push(ShapeOp::Symbol, 1);
  program.push(op);
  int64_t out = 0;
  return program.run(symbols, &out) ? out : kFails;
}

void test_division_rounds_down() {
  const int64_t cases[][4] = {{7, 2, 3, 1}, {-7, 2, -4, 1}, {7, -2, -4, -1}, {-7, -2, 3, -1}, {6, 3, 2, 0}, {-6, 3, -2, 0}, {0, 5, 0, 0}};
  for (const auto& c : cases) {
    CHECK_EQ(apply(ShapeOp::FloorDiv, c[0], c[1]), c[2]);
    CHECK_EQ(apply(ShapeOp::Mod, c[0], c[1]), c[3]);
    CHECK_EQ(apply(ShapeOp::CeilDiv, c[0], c[1]), c[2] + (c[3] != 0));
  }
}

void test_overflow_and_division_by_zero_fail() {
  CHECK_EQ(apply(ShapeOp::Add, INT64_MAX, 1), kFails);
  CHECK_EQ(apply(ShapeOp::Sub, INT64_MIN, 1), kFails);
  CHECK_EQ(apply(ShapeOp::Mul, INT64_MAX, 2), kFails);
  CHECK_EQ(apply(ShapeOp::FloorDiv, 1, 0), kFails);
  CHECK_EQ(apply(ShapeOp::CeilDiv, 1, 0), kFails);
  CHECK_EQ(apply(ShapeOp::Mod, 1, 0), kFails);
  CHECK_EQ(apply(ShapeOp::FloorDiv, INT64_MIN, -1), kFails);
  CHECK_EQ(apply(ShapeOp::Neg, INT64_MIN, 0), kFails);
  CHECK_EQ(apply(ShapeOp::Abs, INT64_MIN, 0), kFails);
  CHECK_EQ(apply(ShapeOp::Pow, 10, 19), kFails);
  CHECK_EQ(apply(ShapeOp::Pow, 10, -1), kFails);
  CHECK_EQ(apply(ShapeOp::Pow, 10, 18), 1000000000000000000);
  CHECK_EQ(apply(ShapeOp::Pow, -1, INT64_MAX), -1);
  CHECK_EQ(apply(ShapeOp::Pow, 0, 0), 1);
}

void test_comparisons_and_logic() {
  CHECK_EQ(apply(ShapeOp::Lt, 1, 2), 1);
  CHECK_EQ(apply(ShapeOp::Le, 2, 2), 1);
  CHECK_EQ(apply(ShapeOp::Gt, 1, 2), 0);
  CHECK_EQ(apply(ShapeOp::Ge, 1, 2), 0);
  CHECK_EQ(apply(ShapeOp::Ne, 1, 1), 0);
  CHECK_EQ(apply(ShapeOp::And, 3, 0), 0);
  CHECK_EQ(apply(ShapeOp::Or, 0, 3), 1);
  CHECK_EQ(apply(ShapeOp::Not, 3, 0), 0);
  CHECK_EQ(apply(ShapeOp::Min, 3, -1), -1);
  CHECK_EQ(apply(ShapeOp::Max, 3, -1), 3);
}

void test_depth_is_counted() {
  ShapeProgram program;
  for (int i = 0; i < 5; i++) program.push(ShapeOp::Constant, i);
  for (int i = 0; i < 4; i++) program.push(ShapeOp::Add);
  CHECK_EQ(program.depth(), 5u);
  int64_t out;
  CHECK(program.run(nullptr, &out));
  CHECK_EQ(out, 10);
}

void test_tensor_facts() {
  ArgandStorage storage{};
  storage.device = ARGAND_DEVICE(ARGAND_CPU, 0);
  ArgandTensor base{}, t{};
  int64_t sizes[] = {2, 3}, strides[] = {3, 1};
  t.storage = &storage;
  t.dtype = ARGAND_FLOAT32;
  t.ndim = 2;
  t.sizes = sizes;
  t.strides = strides;
  t.flags = ARGAND_TENSOR_CONTIGUOUS | ARGAND_TENSOR_OWNS_PYOBJECT;
  TensorFacts facts;
  facts.dtype = ARGAND_FLOAT32;
  facts.flags = ARGAND_TENSOR_CONTIGUOUS;
  facts.device = storage.device;
  facts.sizes = {2, 3};
  facts.strides = {3, 1};
  CHECK(facts.hold(&t));
  sizes[0] = 4;
  CHECK(!facts.hold(&t));
  facts.sizes[0] = TensorFacts::kAny;
  CHECK(facts.hold(&t));
  strides[0] = 1;
  CHECK(!facts.hold(&t));
  strides[0] = 3;
  t.base = &base;
  base.keys = ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  CHECK(!facts.hold(&t));
  facts.requires_grad = true;
  CHECK(facts.hold(&t));
  storage.device = ARGAND_DEVICE(ARGAND_CUDA, 0);
  CHECK(!facts.hold(&t));
  facts.device = ARGAND_DEVICE(ARGAND_CUDA, 0xff);
  CHECK(facts.hold(&t));
}

}  // namespace

int main() {
  RUN(test_division_rounds_down);
  RUN(test_overflow_and_division_by_zero_fail);
  RUN(test_comparisons_and_logic);
  RUN(test_depth_is_counted);
  RUN(test_tensor_facts);
}
