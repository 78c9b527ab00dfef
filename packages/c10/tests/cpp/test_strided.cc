// Shape and stride arithmetic, checked against enumeration of the elements.
#include <algorithm>
#include <set>

#include "packages/c10/csrc/core/strided.h"
#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

uint64_t g_random = 88172645463325252ull;
int64_t random(int64_t n) {  // [0, n), xorshift
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return static_cast<int64_t>(g_random % static_cast<uint64_t>(n));
}

// Offsets of all elements in row-major order.
std::vector<int64_t> offsets(IntList sizes, IntList strides) {
  std::vector<int64_t> out{0};
  for (int64_t d = 0; d < sizes.n; d++) {
    std::vector<int64_t> next;
    for (int64_t o : out) {
      for (int64_t i = 0; i < sizes[d]; i++) next.push_back(o + i * strides[d]);
    }
    out = next;
  }
  return out;
}

void test_contiguous() {
  CHECK(IntList(contiguous_strides(IntList({2, 3, 4}))) == IntList({12, 4, 1}));
  CHECK(IntList(contiguous_strides(IntList({2, 0, 4}))) == IntList({4, 4, 1}));
  const int64_t sizes[] = {2, 1, 3}, strides[] = {3, 99, 1}, other[] = {1, 1, 2};
  CHECK(is_contiguous(3, sizes, strides) && !is_contiguous(3, sizes, other));
  CHECK(is_non_overlapping_and_dense(IntList(sizes, 3), IntList(other, 3)));
  CHECK(!is_non_overlapping_and_dense(IntList({2, 3}), IntList({4, 1})) && !is_non_overlapping_and_dense(IntList({2, 3}), IntList({0, 1})));
  CHECK_EQ(numel_of(IntList({2, 3, 4})), 24);
  CHECK_EQ(numel_of(IntList()), 1);
}

// Copies of random geometry have no gaps, no overlap, and the dimensions in the same order.
void test_dense_strides() {
  CHECK(IntList(dense_strides({3, 3, 4}, {2, 20, 5})) == IntList({1, 12, 3}));
  CHECK(IntList(dense_strides({4, 5, 3}, {5, 1, 0})) == IntList({15, 3, 1}));  // a broadcast dimension stays where it is
  CHECK(IntList(dense_strides({3, 4}, {0, 1})) == IntList({4, 1}) && IntList(dense_strides({2, 1, 3}, {3, 99, 1})) == IntList({3, 99, 1}));
  CHECK(IntList(dense_strides({2, 0, 3}, {9, 5, 7})) == IntList({9, 5, 7}) && IntList(dense_strides({}, {})) == IntList());
  for (int round = 0; round < 2000; round++) {
    Dims sizes, strides, perm;
    sizes.n = strides.n = perm.n = static_cast<int32_t>(random(5));
    for (int64_t i = 0; i < perm.n; i++) perm[i] = i;
    for (int64_t i = 1; i < perm.n; i++) std::swap(perm[i], perm[random(i + 1)]);
    int64_t stride = 1;
    for (int64_t d : IntList(perm)) {
      stride += random(2);
      sizes[d] = 2 + random(3);
      strides[d] = stride;
      stride *= sizes[d];
    }
    const Dims found = dense_strides(sizes, strides);
    CHECK(is_non_overlapping_and_dense(sizes, found));
    for (int64_t i = 1; i < perm.n; i++) CHECK(found[perm[i - 1]] < found[perm[i]]);
  }
}

void test_wrap_dim() {
  CHECK(wrap_dim("sum", -1, 3) == 2 && wrap_dim("sum", 2, 3) == 2 && wrap_dim("sum", -3, 3) == 0 && wrap_dim("sum", 0, 0) == 0 &&
        wrap_dim("sum", -1, 0) == 0);
  CHECK_THROWS(ARGAND_INDEX_ERROR, "sum: Dimension out of range (expected to be in range of [-2, 1], but got 5)", wrap_dim("sum", 5, 2));
  CHECK_THROWS(ARGAND_INDEX_ERROR, "max: Dimension out of range (expected to be in range of [-1, 0], but got -2)", wrap_dim("max.dim", -2, 0));
  CHECK_EQ(wrap_dims("sum", {0, -1}, 3), 5);
  CHECK_EQ(wrap_dims("sum", {}, 3), 0);
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "sum: dim 1 appears multiple times in the list of dims", wrap_dims("sum", {1, -2}, 3));
}

void test_broadcast() {
  CHECK(IntList(broadcast_shapes("add", {2, 1, 3}, {4, 1})) == IntList({2, 4, 3}));
  CHECK(IntList(broadcast_shapes("add", {}, {0, 1})) == IntList({0, 1}));
  CHECK(IntList(broadcast_shapes("add", {1}, {0})) == IntList({0}));
  CHECK_THROWS(ARGAND_SHAPE_ERROR,
               "add: got shapes [2, 3] and [4]: the size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
               broadcast_shapes("add", {2, 3}, {4}));
}

void test_infer_size() {
  CHECK(IntList(infer_size("view", {2, -1}, 6)) == IntList({2, 3}));
  CHECK(IntList(infer_size("view", {}, 1)) == IntList());
  CHECK(IntList(infer_size("view", {3, -1}, 0)) == IntList({3, 0}));
  CHECK(IntList(infer_size("view", {0, 3}, 0)) == IntList({0, 3}));
  CHECK_THROWS(ARGAND_SHAPE_ERROR, "view: shape '[2, -1]' is invalid for input of size 5", infer_size("view", {2, -1}, 5));
  CHECK_THROWS(ARGAND_SHAPE_ERROR, "at most one -1", infer_size("view", {-1, -1}, 4));
  CHECK_THROWS(ARGAND_SHAPE_ERROR, "invalid negative size -2", infer_size("view", {-2}, 4));
  CHECK_THROWS(ARGAND_SHAPE_ERROR, "ambiguous", infer_size("view", {0, -1}, 0));
  CHECK_THROWS(ARGAND_SHAPE_ERROR, "is invalid for input of size 4", infer_size("view", {0, -1}, 4));
  CHECK_THROWS(ARGAND_SHAPE_ERROR, "is invalid", infer_size("view", {int64_t{1} << 40, int64_t{1} << 40}, 0));
}

// Every factorization of random geometry: a given view reads the same elements in the same order, and none is missed.
void test_view_strides() {
  int viewed = 0, copied = 0;
  for (int round = 0; round < 20000; round++) {
    Dims sizes, strides, shape;
    sizes.n = strides.n = static_cast<int32_t>(random(5));
    int64_t stride = 1;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
      sizes[i] = 1 + random(4);
      if (random(5) == 0) stride += random(3);
      strides[i] = random(8) == 0 ? 0 : stride;
      stride *= sizes[i];
    }
    if (sizes.n > 1 && random(3) == 0) {
      std::swap(sizes[0], sizes[1]);
      std::swap(strides[0], strides[1]);
    }
    int64_t left = numel_of(sizes);
    while (left > 1 || (shape.n < 4 && random(3) == 0)) {
      std::vector<int64_t> factors;
      for (int64_t f = 1; f <= left; f++) {
        if (left % f == 0 && (f > 1 || shape.n < 4)) factors.push_back(f);
      }
      const int64_t f = factors[static_cast<size_t>(random(static_cast<int64_t>(factors.size())))];
      shape.push_back(f);
      left /= f;
    }
    const std::vector<int64_t> expected = offsets(sizes, strides);
    const auto found = view_strides(sizes, strides, shape);
    if (found) {
      viewed++;
      CHECK(offsets(shape, *found) == expected);
      continue;
    }
    copied++;
    // No strides can do it: the first step along each dimension fixes its stride, and that does not reproduce the order.
    Dims forced(shape);
    int64_t step = numel_of(shape);
    for (int64_t i = 0; i < shape.n; i++) {
      step /= shape[i];
      forced[i] = shape[i] > 1 ? expected[static_cast<size_t>(step)] - expected[0] : 0;
    }
    CHECK(offsets(shape, forced) != expected);
  }
  CHECK(viewed > 1000 && copied > 1000);
  CHECK(IntList(*view_strides({2, 0}, {9, 1}, {0, 5})) == IntList({5, 1}));
  CHECK(IntList(*view_strides({2, 0}, {9, 1}, {2, 0})) == IntList({9, 1}));
  CHECK(view_strides({}, {}, {1, 1})->n == 2);
}

void test_internal_overlap() {
  int exact = 0;
  for (int round = 0; round < 20000; round++) {
    Dims sizes, strides;
    sizes.n = strides.n = static_cast<int32_t>(random(4));
    for (int64_t i = 0; i < sizes.n; i++) {
      sizes[i] = random(5);
      strides[i] = random(9);
    }
    const std::vector<int64_t> all = offsets(sizes, strides);
    const bool overlaps = std::set<int64_t>(all.begin(), all.end()).size() != all.size();
    const Overlap answer = internal_overlap(sizes, strides);
    if (answer == Overlap::maybe) continue;
    exact++;
    CHECK_EQ(answer == Overlap::yes, overlaps);
  }
  CHECK(exact > 15000);
}

void test_overlap_checks() {
  Tensor t = empty({4, 4}, ARGAND_FLOAT32);
  const Tensor row = view_of(t, {4}, {1}, 4), next = view_of(t, {4}, {1}, 8), shifted = view_of(t, {4}, {1}, 5), column = view_of(t, {4}, {4}, 0);
  CHECK(partial_overlap(row, next) == Overlap::no && partial_overlap(row, shifted) == Overlap::yes && partial_overlap(t, t) == Overlap::no);
  CHECK(partial_overlap(row, view_of(t, {4}, {1}, 4)) == Overlap::no);  // the same elements in the same places
  CHECK(partial_overlap(column, row) == Overlap::maybe);
  CHECK(partial_overlap(t, empty({4, 4}, ARGAND_FLOAT32)) == Overlap::no);
  CHECK(partial_overlap(t, view_of(t, {4, 4}, {1, 4}, 0)) == Overlap::yes);
  CHECK_THROWS(ARGAND_RUNTIME_ERROR,
               "add: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location",
               check_no_partial_overlap("add", row, shifted));
  const Tensor expanded = view_of(t, {3, 4}, {0, 1}, 0);
  CHECK_THROWS(ARGAND_RUNTIME_ERROR, "add_: unsupported operation: more than one element of the written-to tensor",
               check_no_internal_overlap("add_", expanded));
  check_no_internal_overlap("add_", column);
}

}  // namespace

int main() {
  api = argand_api();
  RUN(test_contiguous);
  RUN(test_dense_strides);
  RUN(test_wrap_dim);
  RUN(test_broadcast);
  RUN(test_infer_size);
  RUN(test_view_strides);
  RUN(test_internal_overlap);
  RUN(test_overlap_checks);
  return 0;
}
