// embedding, gather, scatter, index_select, index_add and advanced indexing against element-wise definitions.
#include "packages/aten/generated/kernels.h"
#include "packages/aten/tests/cpp/every_tier.h"

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

constexpr int kDTypes[] = {ARGAND_BOOL,     ARGAND_UINT8,   ARGAND_INT16,   ARGAND_INT64,     ARGAND_FLOAT16,
                           ARGAND_BFLOAT16, ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_COMPLEX64, ARGAND_COMPLEX128};

Tensor copy_of(const Tensor& t) { return cpu::clone(t, std::nullopt); }

// The coordinates of a flat index.
std::vector<int64_t> coordinates(int64_t flat, IntList sizes) {
  std::vector<int64_t> c(static_cast<size_t>(sizes.n));
  for (int64_t d = sizes.n - 1; d >= 0; d--) c[static_cast<size_t>(d)] = flat % sizes[d], flat /= sizes[d];
  return c;
}
int64_t flatten(const std::vector<int64_t>& c, IntList sizes) {
  int64_t flat = 0;
  for (int64_t d = 0; d < sizes.n; d++) flat = flat * sizes[d] + c[static_cast<size_t>(d)];
  return flat;
}

void embeddings() {
  for (int dtype : kDTypes) {
    const Tensor w = random_tensor({20, 13}, dtype), index = index_tensor({3, 5}, 0, 20);
    for (const Tensor& table : {w, transposed(random_tensor({13, 20}, dtype), 0, 1)}) {
      const Tensor y = cpu::embedding(table, index, -1, false, false);
      CHECK(y.sizes() == IntList({3, 5, 13}));
      for (int64_t i = 0; i < y.numel(); i++) CHECK(at(y, i) == at(table, static_cast<int64_t>(at(index, i / 13)) * 13 + i % 13));
    }
  }
  for (int dtype : kFloating)
    for (int64_t padding : {-1, 2})
      for (bool scale : {false, true}) {
        const Tensor index = index_tensor({4, 60}, 0, 7), g = random_tensor({4, 60, 33}, dtype, -2, 2);
        const Tensor grad = cpu::embedding_backward(g, index, 7, padding, scale);
        std::vector<double> want(7 * 33), count(7);
        for (int64_t i = 0; i < index.numel(); i++) count[static_cast<size_t>(at(index, i))]++;
        for (int64_t i = 0; i < g.numel(); i++) {
          const int64_t row = static_cast<int64_t>(at(index, i / 33));
          if (row != padding) want[static_cast<size_t>(row * 33 + i % 33)] += at(g, i) / (scale ? count[static_cast<size_t>(row)] : 1);
        }
        for (int64_t i = 0; i < grad.numel(); i++) check_close("embedding_backward", at(grad, i), want[static_cast<size_t>(i)], dtype);
      }
}

void along_a_dim() {
  const std::vector<std::vector<int64_t>> shapes = {{6}, {4, 5}, {3, 4, 5}};
  for (int dtype : kDTypes)
    for (const auto& shape : shapes)
      for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); d++)
        for (bool strided : {false, true}) {
          const int64_t last = static_cast<int64_t>(shape.size()) - 1;
          std::vector<int64_t> reversed = shape, smaller = shape;
          std::swap(reversed[0], reversed[static_cast<size_t>(last)]);
          for (int64_t k = 0; k <= last; k++) smaller[static_cast<size_t>(k)] += k == d ? 3 : -1;
          auto make = [&] { return strided ? transposed(random_tensor(reversed, dtype, -2, 2), 0, last) : random_tensor(shape, dtype, -2, 2); };
          const Tensor x = make(), index = index_tensor(smaller, 0, shape[static_cast<size_t>(d)]), src = random_tensor(smaller, dtype, -2, 2);
          const Tensor picked = cpu::gather(x, d, index, false), added = make(), written = make();
          std::vector<double> sums, values;
          for (int64_t i = 0; i < x.numel(); i++) sums.push_back(at(added, i)), values.push_back(at(written, i));
          cpu::scatter_add_(added, d, index, src);
          cpu::scatter_(written, d, index, Operand(3));
          for (int64_t i = 0; i < index.numel(); i++) {
            auto c = coordinates(i, smaller);
            c[static_cast<size_t>(d)] = static_cast<int64_t>(at(index, i));
            const int64_t k = flatten(c, shape);
            CHECK(at(picked, i) == at(x, k));
            sums[static_cast<size_t>(k)] += at(src, i);
            values[static_cast<size_t>(k)] = rounded(3, dtype);
          }
          for (int64_t i = 0; i < x.numel(); i++) {
            CHECK(at(added, i) == rounded(sums[static_cast<size_t>(i)], dtype), "scatter_add %s: got %g, expected %g", kDTypeName[dtype],
                  at(added, i), sums[static_cast<size_t>(i)]);
            CHECK(at(written, i) == values[static_cast<size_t>(i)]);
          }
          const Tensor rows = index_tensor({7}, 0, shape[static_cast<size_t>(d)]), selected = cpu::index_select(x, d, rows);
          std::vector<int64_t> wide = shape;
          wide[static_cast<size_t>(d)] = 7;
          const Tensor source = random_tensor(wide, dtype, -2, 2), target = make();
          std::vector<double> totals;
          for (int64_t i = 0; i < x.numel(); i++) totals.push_back(at(target, i));
          cpu::index_add_(target, d, rows, source, 2);
          for (int64_t i = 0; i < selected.numel(); i++) {
            auto c = coordinates(i, wide);
            c[static_cast<size_t>(d)] = static_cast<int64_t>(at(rows, c[static_cast<size_t>(d)]));
            CHECK(at(selected, i) == at(x, flatten(c, shape)));
            totals[static_cast<size_t>(flatten(c, shape))] += 2 * at(source, i);
          }
          for (int64_t i = 0; i < x.numel(); i++)
            CHECK(at(target, i) == rounded(totals[static_cast<size_t>(i)], dtype), "index_add %s", kDTypeName[dtype]);
        }
}

// x[indices] for int64 index tensors of equal shape: result coordinates are `pre`, the indices' shape, then the other dims.
void advanced(const Tensor& x, const TensorList& indices, IntList result, int64_t indexed_at, int64_t indexed_dims) {
  const Tensor y = cpu::index(x, indices);
  CHECK(y.sizes() == result, "index: got %s, expected %s", to_string(y.sizes()).c_str(), to_string(result).c_str());
  const Tensor put_to = copy_of(x), add_to = copy_of(x), values = random_tensor(result, x.dtype(), 1, 2);
  std::vector<double> sums;
  for (int64_t i = 0; i < x.numel(); i++) sums.push_back(at(x, i));
  cpu::index_put_(put_to, indices, values, false);
  cpu::index_put_(add_to, indices, values, true);
  for (int64_t i = 0; i < y.numel(); i++) {
    const auto c = coordinates(i, result);
    std::vector<int64_t> from;
    int64_t plain = 0;
    for (int64_t d = 0; d < x.dim(); d++) {
      if (d < static_cast<int64_t>(indices.size()) && indices[static_cast<size_t>(d)]) {
        const Tensor& t = indices[static_cast<size_t>(d)];
        int64_t flat = 0;
        for (int64_t k = 0; k < t.dim(); k++)
          flat = flat * t.size(k) + (t.size(k) == 1 ? 0 : c[static_cast<size_t>(indexed_at + indexed_dims - t.dim() + k)]);
        const int64_t v = static_cast<int64_t>(at(t, flat));
        from.push_back(v < 0 ? v + x.size(d) : v);
      } else {
        from.push_back(c[static_cast<size_t>(plain < indexed_at ? plain : plain + indexed_dims)]);
        plain++;
      }
    }
    const int64_t k = flatten(from, x.sizes());
    CHECK(at(y, i) == at(x, k));
    sums[static_cast<size_t>(k)] += at(values, i);
    CHECK(at(put_to, k) == 1 || at(put_to, k) == 2);
  }
  for (int64_t i = 0; i < x.numel(); i++)
    CHECK(at(add_to, i) == rounded(sums[static_cast<size_t>(i)], x.dtype()), "accumulate %s: got %g, expected %g", kDTypeName[x.dtype()],
          at(add_to, i), sums[static_cast<size_t>(i)]);
}

void advanced_indexing() {
  const Tensor none;
  for (int dtype : {ARGAND_UINT8, ARGAND_INT64, ARGAND_FLOAT16, ARGAND_FLOAT32, ARGAND_COMPLEX128})
    for (bool strided : {false, true}) {
      const Tensor x = strided ? transposed(random_tensor({6, 5, 4}, dtype), 0, 2) : random_tensor({4, 5, 6}, dtype);
      const Tensor a = index_tensor({3}, -4, 4), b = index_tensor({2, 3}, -5, 5), c = index_tensor({2, 1}, -6, 6), scalar = index_tensor({}, 0, 4);
      advanced(x, {a}, {3, 5, 6}, 0, 1);
      advanced(x, {none, b}, {4, 2, 3, 6}, 1, 2);
      advanced(x, {none, none, c}, {4, 5, 2, 1}, 2, 2);
      advanced(x, {a, b}, {2, 3, 6}, 0, 2);
      advanced(x, {a, none, c}, {2, 3, 5}, 0, 2);
      advanced(x, {none, b, c}, {4, 2, 3}, 1, 2);
      advanced(x, {a, b, c}, {2, 3}, 0, 2);
      advanced(x, {scalar}, {5, 6}, 0, 0);
      advanced(x, {index_tensor({0}, 0, 4)}, {0, 5, 6}, 0, 1);
    }
}

void masks_and_values() {
  const Tensor x = random_tensor({3, 4}, ARGAND_FLOAT32), mask = empty({3, 4}, ARGAND_BOOL);
  for (int64_t i = 0; i < 12; i++) put(mask, i, i % 3 == 1);
  const Tensor y = cpu::index(x, {mask});
  CHECK(y.sizes() == IntList({4}));
  for (int64_t i = 0; i < 4; i++) CHECK(at(y, i) == at(x, 3 * i + 1));
  cpu::index_put_(x, {mask}, random_tensor({}, ARGAND_FLOAT32, 9, 9), false);  // one value, broadcast
  for (int64_t i = 0; i < 4; i++) CHECK(at(x, 3 * i + 1) == 9);
  for (int yes : {0, 1}) {  // a 0-d mask is a new dimension of size 0 or 1
    const Tensor bit = empty(IntList{}, ARGAND_BOOL);
    put(bit, 0, yes);
    CHECK(cpu::index(x, {bit}).sizes() == IntList({yes, 3, 4}));
  }
  const Tensor v = empty({6}, ARGAND_FLOAT32), places = empty({3}, ARGAND_INT64);
  for (int64_t i = 0; i < 6; i++) put(v, i, static_cast<double>(i));
  for (int64_t i = 0; i < 3; i++) put(places, i, static_cast<double>(i + 1));
  cpu::index_put_(v, {places}, view_of(v, {3}, {1}, 0), false);  // values that share memory with self are read first
  for (int64_t i = 1; i < 4; i++) CHECK(at(v, i) == static_cast<double>(i - 1));
}

void errors() {
  const Tensor x = random_tensor({3, 4}, ARGAND_FLOAT32), five = index_tensor({1}, 5, 6), two = index_tensor({2}, 0, 3),
               three = index_tensor({3}, 0, 3);
  CHECK_THROWS("index 5 is out of bounds for dimension 0 with size 3", cpu::index(x, {five}));
  CHECK_THROWS("could not be broadcast together with shapes [2], [3]", cpu::index(x, {two, three}));
  CHECK_THROWS("shape of the mask [2] at index 0", cpu::index(x, {random_tensor({2}, ARGAND_BOOL)}));
  CHECK_THROWS("too many indices", cpu::index(x, {two, two, two}));
  CHECK_THROWS("expected int64, int32 or bool", cpu::index(x, {random_tensor({2}, ARGAND_FLOAT32)}));
  CHECK_THROWS("cannot be broadcast to indexing result of shape [2, 4]", cpu::index_put_(x, {two}, random_tensor({3}, ARGAND_FLOAT32), false));
  CHECK_THROWS("expected the same dtype", cpu::index_put_(x, {two}, random_tensor({4}, ARGAND_FLOAT64), false));
  CHECK_THROWS("index 5 is out of bounds for dimension 1 with size 4", cpu::gather(x, 1, view_of(five, {1, 1}, {1, 1}, 0), false));
  CHECK_THROWS("no size greater than theirs", cpu::gather(x, 1, index_tensor({4, 1}, 0, 3), false));
  CHECK_THROWS("Expected self.dtype to be equal to src.dtype",
               cpu::scatter_(x, 0, index_tensor({1, 1}, 0, 1), Operand(random_tensor({1, 1}, ARGAND_FLOAT64))));
  CHECK_THROWS("index out of range", cpu::index_select(x, 0, five));
  CHECK_THROWS("supposed to be a vector", cpu::index_select(x, 0, index_tensor({1, 1}, 0, 1)));
  CHECK_THROWS("index out of range", cpu::embedding(x, five, -1, false, false));
}

void tests() {
  RUN(embeddings);
  RUN(along_a_dim);
  RUN(advanced_indexing);
  RUN(masks_and_values);
  RUN(errors);
}
}  // namespace

int main() { return run_in_every_tier(tests); }
