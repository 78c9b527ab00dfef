// Stable sorting along a dimension, NaN last: the host side of argand_aten_cuda/kernels/sort.py and radix.py.
#include <algorithm>
#include <limits>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/dtype_checks.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/cuda/csrc/sort.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

using namespace places;
using argand::cuda::kernel;
using argand::cuda::launch;

constexpr int64_t kTile = 2048;
// Rows of narrow elements up to the second are sorted in registers, up to the first several by a program.
constexpr int64_t kShortRow = 256, kRegisters = 1024;
constexpr int64_t kBlock = 1024;
constexpr int64_t kMostKept = 1024, kLongestRow = 16384;             // of topk_rows
constexpr int64_t kPrograms = 2048;                                  // fill a device
constexpr int64_t kRadixTile = 4096, kDigits = 256, kFewTiles = 16;  // of radix.py: longer rows are sorted by passes over memory

// A dimension of a row-major tensor as three nested loops, and its rows: n elements `inner` apart.
struct Rows {
  int64_t outer, n, inner;
  Rows(const Tensor& t, int64_t dim)
      : outer(product(t.sizes(), 0, dim)), n(size_of(t, dim)), inner(product(t.sizes(), std::min(dim + 1, t.dim()), t.dim())) {}
  int64_t rows() const { return outer * inner; }
  int64_t total() const { return rows() * n; }
};

Tensor packed_like(const Tensor& t, int64_t n) { return empty({n}, ARGAND_INT64, t.device()); }

// I is int32_t where all offsets fit.
template <class F>
void with_offsets(int64_t total, F&& f) {
  if (total < std::numeric_limits<int32_t>::max() - 2 * kTile)
    f(int32_t{});
  else
    f(int64_t{});
}
template <class I>
constexpr const char* kOffsets = sizeof(I) == 4 ? ";I=int32" : ";I=int64";

// Elements with their positions as one integer each; `part` 1 and 2: by the low and then the high half of a 64-bit key.
Tensor pack(const char* op, const Tensor& x, const Rows& s, const Tensor& previous, int part, bool descending) {
  const Tensor packed = packed_like(x, s.total());
  with_offsets(s.total(), [&](auto tag) {
    using I = decltype(tag);
    const auto* k = kernel("sort_pack;T=" + std::string(real_name(x.dtype())) + kOffsets<I> + ";PART=" + std::to_string(part) +
                           ";DESCENDING=" + flag(descending) + ";BLOCK=1024");
    launch(k, programs(op, divide_up(s.total(), kBlock)), packed->data, x->data, previous ? previous->data : packed->data, static_cast<I>(s.total()),
           static_cast<I>(s.n), static_cast<I>(s.inner));
  });
  return packed;
}

int32_t small(const char* op, int64_t n) {
  if (n > std::numeric_limits<int32_t>::max() - kRadixTile)
    fail(ARGAND_RUNTIME_ERROR, "%s: got %lld elements along a dimension, expected fewer than 2^31; split the tensor", op, static_cast<long long>(n));
  return static_cast<int32_t>(n);
}

// Sorts each row of n <= kShortRow integers, which are all different.
Tensor sort_rows(const char* op, const Tensor& packed, const Rows& s) {
  const int64_t block = s.n <= 16 ? 16 : s.n <= 64 ? 64 : kShortRow, together = 1024 / block;
  launch(kernel("sort_tiles;BLOCK=" + std::to_string(block)), programs(op, divide_up(s.rows(), together)), packed->data, small(op, s.rows()),
         small(op, s.n));
  return packed;
}

// The first k of each packed row (`stride` apart) as values and indices.
void unpack(const char* op, const Tensor& values, const Tensor& indices, const Tensor& x, const Rows& s, const Tensor& packed, const Tensor& previous,
            int64_t k, int64_t stride) {
  const int64_t total = s.rows() * k;
  with_offsets(std::max(s.total(), s.rows() * stride), [&](auto tag) {
    using I = decltype(tag);
    const auto* f =
        kernel("sort_unpack;T=" + std::string(integer_name(x.itemsize())) + kOffsets<I> + ";SECOND=" + flag(previous.defined()) + ";BLOCK=1024");
    launch(f, programs(op, divide_up(total, kBlock)), values->data, indices->data, x->data, packed->data, previous ? previous->data : packed->data,
           static_cast<I>(total), static_cast<I>(s.n), static_cast<I>(k), static_cast<I>(stride), static_cast<I>(s.inner));
  });
}

// The k (at most `keep`) first elements of each row, by tiles of which each keeps that many, until one tile is left.
Tensor select_rows(const char* op, const Tensor& x, const Rows& s, bool descending, int64_t keep) {
  int64_t tiles = divide_up(s.n, kTile);
  Tensor best = packed_like(x, s.rows() * tiles * keep);
  const std::string end = ";KEEP=" + std::to_string(keep) + ";BLOCK=2048";
  launch(kernel("topk_tiles;T=" + std::string(real_name(x.dtype())) + ";FIRST=True;LARGEST=" + flag(descending) + end),
         programs(op, s.rows() * tiles), best->data, x->data, small(op, s.n), small(op, s.inner));
  while (tiles > 1) {
    const int64_t n = tiles * keep;
    tiles = divide_up(n, kTile);
    const Tensor next = packed_like(x, s.rows() * tiles * keep);
    launch(kernel("topk_tiles;T=int64;FIRST=False;LARGEST=False" + end), programs(op, s.rows() * tiles), next->data, best->data, small(op, n),
           int32_t{1});
    best = next;
  }
  return best;
}

// What kernels that take elements of 32 bits or fewer as integers need to order them.
struct KeyOrder {
  int64_t infinity, flip;
};

KeyOrder key_order(int dtype, bool descending) {
  const int64_t sign = -(int64_t{1} << (8 * item_size(dtype) - 1));
  const bool is_unsigned = dtype == ARGAND_BOOL || dtype == ARGAND_UINT8 || is_wide_unsigned(dtype);
  const int64_t infinity = dtype == ARGAND_FLOAT32 ? 0x7F800000 : dtype == ARGAND_BFLOAT16 ? 0x7F80 : dtype == ARGAND_FLOAT16 ? 0x7C00 : 0;
  return {infinity, (is_unsigned ? sign : 0) ^ (descending ? -1 : 0)};
}

// Sorts each of `rows` rows of n elements by digits, into row-major values and, where they are defined, indices.
void radix_sort(const char* op, const Tensor& x, int64_t rows, int64_t n, bool descending, const Tensor& values, const Tensor& indices) {
  const int64_t tiles = divide_up(n, kRadixTile), steps = std::clamp<int64_t>(rows * tiles / kPrograms, 1, tiles), parts = divide_up(tiles, steps);
  const bool few = tiles <= kFewTiles;
  const Tensor counts = empty({rows * tiles * kDigits}, ARGAND_INT32, x.device()),
               totals = empty({few ? 0 : rows * kDigits}, ARGAND_INT32, x.device());
  const int digits = x.dtype() == ARGAND_BOOL ? 1 : x.itemsize();
  // Elements go back and forth between `spare` and `values`, indices between two places: from which and to which, programs find in `varying`.
  const Tensor varying = zeros({rows}, ARGAND_INT64, x.device());
  const auto room = [&](int dtype) { return empty({digits > 1 ? rows * n : 1}, dtype, x.device()); };
  const Tensor spare = room(x.dtype()), from = indices ? room(ARGAND_INT32) : Tensor(), to = indices ? room(ARGAND_INT32) : Tensor();
  const auto data = [](const Tensor& t) { return t ? t->data : nullptr; };
  const argand::cuda::Grid grid = programs(op, rows * tiles);
  const int32_t length = small(op, n), n_tiles = static_cast<int32_t>(tiles);
  const bool aligned = x.itemsize() >= 4 && n % 16 == 0 && reinterpret_cast<uintptr_t>(x->data) % 16 == 0;
  const std::string type = ";T=" + std::string(real_name(x.dtype())), order = std::string(";DESCENDING=") + flag(descending),
                    align = std::string(";ALIGNED=") + flag(aligned);
  static const auto *const total = kernel("radix_totals;BLOCK=1024"), *const start = kernel("radix_starts;BLOCK=1024"),
                           *const few_starts = kernel("radix_few_starts;BLOCK=" + std::to_string(kFewTiles));
  const auto *count = kernel("radix_count" + type + order + align),
             *scatter = kernel("radix_scatter" + type + order + align + ";INDICES=" + flag(indices.defined()));
  launch(kernel("radix_varying" + type + align), programs(op, rows * parts), varying->data, x->data, length, static_cast<int32_t>(parts),
         static_cast<int32_t>(steps));
  for (int shift = 0; shift < 8 * digits; shift += 8) {
    launch(count, grid, counts->data, x->data, spare->data, values->data, varying->data, length, n_tiles, shift);
    if (few) {
      launch(few_starts, programs(op, rows), counts->data, varying->data, n_tiles, shift);
    } else {
      launch(total, programs(op, rows * kDigits), totals->data, counts->data, varying->data, n_tiles, shift);
      launch(start, programs(op, rows * kDigits), counts->data, totals->data, varying->data, n_tiles, shift);
    }
    launch(scatter, grid, values->data, data(indices), x->data, spare->data, data(from), data(to), counts->data, varying->data, length, n_tiles,
           shift);
  }
}

bool in_registers(const Tensor& x, int64_t n) { return x.itemsize() < 8 && n <= kRegisters; }

// The first k of each of `rows` dense rows of n narrow elements, with their places, sorted in registers.
void sort_in_registers(const char* op, const Tensor& x, int64_t rows, int64_t n, int64_t k, bool descending, const Tensor& values,
                       const Tensor& indices) {
  const KeyOrder key = key_order(x.dtype(), descending);
  int64_t block = 16;
  while (block < n) block *= block == 16 ? 4 : 2;
  const int64_t together = block <= kShortRow ? kTile / block : 1;
  const auto* f = kernel("sort_rows;T=" + std::string(integer_name(x.itemsize())) + ";LINES=16;ROWS=" + std::to_string(together) +
                         ";BLOCK=" + std::to_string(block));
  launch(f, programs(op, divide_up(rows, together)), values->data, indices->data, x->data, rows, small(op, n), small(op, k), key.infinity, key.flip);
}

// Sorts each of `rows` dense rows of n elements into row-major values and indices, a program a row: narrow elements of short ones with their places,
// others by digits.
void sort_in_program(const char* op, const Tensor& x, int64_t rows, int64_t n, bool descending, const Tensor& values, const Tensor& indices) {
  if (in_registers(x, n)) return sort_in_registers(op, x, rows, n, n, descending, values, indices);
  const char* block = n <= 1024 ? "1024" : n <= 2048 ? "2048" : "4096";
  const auto* f = kernel("radix_rows;T=" + std::string(real_name(x.dtype())) + ";DESCENDING=" + flag(descending) + ";BLOCK=" + block);
  launch(f, programs(op, rows), values->data, indices->data, x->data, small(op, n),
         static_cast<int32_t>(x.dtype() == ARGAND_BOOL ? 1 : x.itemsize()));
}

// The first k of each row of x (outer, n, inner) by sorting whole rows.
std::tuple<Tensor, Tensor> sorted_rows(const char* op, const Tensor& x, int64_t dim, int64_t k, bool descending) {
  const int64_t last = std::max<int64_t>(x.dim() - 1, 0);
  const Tensor rows = dim == last ? x : dense(ops::transpose(x, dim, last));
  Tensor values = empty(rows.sizes(), x.dtype(), x.device()), indices = empty(rows.sizes(), ARGAND_INT64, x.device());
  const int64_t n = size_of(rows, last);
  (n <= kRadixTile ? sort_in_program : radix_sort)(op, rows, rows.numel() / n, n, descending, values, indices);
  for (Tensor* t : {&values, &indices}) {
    if (k < n) *t = ops::narrow(*t, last, 0, k);
    if (dim != last) *t = ops::transpose(*t, dim, last);
    *t = dense(*t);
  }
  return {values, indices};
}

// The first k of rows that a program holds in registers.
void topk_rows(const char* op, const Tensor& values, const Tensor& indices, const Tensor& x, const Rows& s, bool largest, int64_t k) {
  const int64_t keep = k <= 16 ? 16 : k <= 128 ? 128 : kMostKept, block = s.n <= 1024 ? 1024 : s.n <= 4096 ? 4096 : kLongestRow;
  const Tensor scratch = packed_like(x, s.rows() * k);
  const auto* f = kernel("topk_rows;T=" + std::string(real_name(x.dtype())) + ";LARGEST=" + flag(largest) + ";KEEP=" + std::to_string(keep) +
                         ";BLOCK=" + std::to_string(block));
  launch(f, programs(op, s.rows()), values->data, indices->data, scratch->data, x->data, small(op, s.n), small(op, k), s.inner);
}

std::tuple<Tensor, Tensor> order_dim(const char* op, const Tensor& self, int64_t dim, int64_t k, bool descending, IntList sizes) {
  const Below below;
  check_ordered(op, self.dtype());
  const Tensor x = dense(self);
  const Rows s(x, dim);
  const bool few = x.itemsize() < 8 && ((k <= kMostKept && 2 * k < s.n && s.n <= kLongestRow) || (k <= 128 && k < s.n));
  if (s.n > kShortRow && s.total() && k && !few) return sorted_rows(op, x, dim, k, descending);
  const Tensor values = empty(sizes, self.dtype(), self.device()), indices = empty(sizes, ARGAND_INT64, self.device());
  if (values.numel() == 0) return {values, indices};
  if (few && s.n <= kLongestRow && s.n > kShortRow) {
    topk_rows(op, values, indices, x, s, descending, k);
    return {values, indices};
  }
  if (s.n <= kShortRow && s.inner == 1 && in_registers(x, s.n)) {
    sort_in_registers(op, x, s.rows(), s.n, k, descending, values, indices);
    return {values, indices};
  }
  if (few && s.n > kLongestRow) {
    const int64_t keep = k <= 16 ? 16 : 128;
    unpack(op, values, indices, x, s, select_rows(op, x, s, descending, keep), Tensor(), k, keep);
    return {values, indices};
  }
  Tensor previous;
  if (x.itemsize() == 8) previous = sort_rows(op, pack(op, x, s, Tensor(), 1, descending), s);
  const Tensor sorted = sort_rows(op, pack(op, x, s, previous, previous ? 2 : 0, descending), s);
  unpack(op, values, indices, x, s, sorted, previous, k, s.n);
  return {values, indices};
}

}  // namespace

namespace {

// Of rows that a program can hold.
void choose_in_registers(const char* op, const Tensor& x, const Rows& s, Choice choice, int64_t k, const Tensor& values, const Tensor& indices) {
  const int64_t block = s.n <= 1024 ? 1024 : s.n <= 4096 ? 4096 : kLongestRow;
  const auto* f = kernel("order_statistic;T=" + std::string(real_name(x.dtype())) + ";KIND=" + std::to_string(static_cast<int>(choice)) +
                         ";BLOCK=" + std::to_string(block));
  launch(f, programs(op, s.rows()), values->data, indices->data, x->data, small(op, s.n), small(op, k), s.inner);
}

// Of long rows, which lie dense: by digits of the key, as kernels/select.py says.
void choose_by_digits(const char* op, const Tensor& x, int64_t rows, int64_t n, Choice choice, int64_t k, const Tensor& values,
                      const Tensor& indices) {
  const int64_t all = divide_up(n, kTile), steps = divide_up(all, std::clamp<int64_t>(kPrograms / rows, 1, all)), tiles = divide_up(all, steps);
  const argand::cuda::Grid grid = programs(op, rows * tiles), each = programs(op, rows);
  const int32_t length = small(op, n), n_tiles = small(op, tiles), n_steps = small(op, steps);
  const Tensor prefix = empty({rows}, ARGAND_UINT64, x.device()), left = empty({rows}, ARGAND_INT32, x.device()),
               numbers = zeros({rows}, ARGAND_INT32, x.device()), counts = zeros({rows * 256}, ARGAND_INT32, x.device()),
               equal = empty({rows * tiles}, ARGAND_INT32, x.device());
  const std::string type = ";T=" + std::string(real_name(x.dtype())) + ";BLOCK=" + std::to_string(kTile);
  if (choice != Choice::kKth) launch(kernel("select_numbers" + type), grid, numbers->data, x->data, length, n_tiles, n_steps);
  launch(kernel("select_start;KIND=" + std::to_string(static_cast<int>(choice))), each, prefix->data, left->data, numbers->data, length,
         small(op, k));
  const auto* count = kernel("select_count" + type);
  static const auto* const next = kernel("select_digit");
  for (int32_t shift = static_cast<int32_t>(8 * x.itemsize()) - 8; shift >= 0; shift -= 8) {
    launch(count, grid, counts->data, prefix->data, x->data, length, n_tiles, n_steps, shift);
    launch(next, each, prefix->data, left->data, counts->data, shift);
  }
  launch(kernel("select_equal" + type), grid, equal->data, prefix->data, x->data, length, n_tiles, n_steps);
  launch(kernel("select_element" + type), grid, values->data, indices->data, equal->data, prefix->data, left->data, x->data, length, n_tiles,
         n_steps);
}

}  // namespace

bool can_choose(const Tensor& self, int64_t dim) {
  const int64_t n = size_of(self, dim);
  return self.dtype() != ARGAND_BOOL && self.numel() > 0 && (n > kTile || (self.itemsize() < 8 && n <= kLongestRow));
}

std::tuple<Tensor, Tensor> choose(const char* op, const Tensor& self, int64_t dim, Choice choice, int64_t k) {
  const Below below;
  check_ordered(op, self.dtype());
  Dims sizes(self.sizes());
  sizes[dim] = 1;
  const Tensor values = empty(sizes, self.dtype(), self.device()), indices = empty(sizes, ARGAND_INT64, self.device());
  const Tensor x = dense(self);
  const Rows s(x, dim);
  if (x.itemsize() < 8 && s.n <= kLongestRow)
    choose_in_registers(op, x, s, choice, k, values, indices);
  else
    choose_by_digits(op, dense(ops::transpose(ops::reshape(x, {s.outer, s.n, s.inner}), 1, 2)), s.rows(), s.n, choice, k, values, indices);
  return {values, indices};
}

std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending, std::optional<bool>) {
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  const auto found = order_dim("sort", self, d, size_of(self, d), descending, self.sizes());
  const builtins::Strided like = builtins::clone_shape(self.sizes(), self.strides(), std::nullopt);
  const auto as_self = [&](const Tensor& t) {  // lies in memory as `self`
    if (t.strides() == IntList(like.strides)) return t;
    const Tensor out = empty_strided(like.sizes, like.strides, t.dtype(), t.device());
    copy_(out, t, false);
    return out;
  };
  return {as_self(std::get<0>(found)), as_self(std::get<1>(found))};
}

Tensor sorted_values(const Tensor& self) {
  const Below below;
  const char* op = "sort";
  check_ordered(op, self.dtype());
  if (self.dim() != 1 || self.numel() <= kRadixTile) return std::get<0>(sort(self, 0, false, std::nullopt));
  const Tensor x = dense(self), values = empty(x.sizes(), x.dtype(), x.device());
  radix_sort(op, x, 1, x.numel(), false, values, Tensor());
  return values;
}

std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  check_not_bool("topk", self.dtype());
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  const int64_t n = size_of(self, d);
  if (k < 0 || k > n)
    fail(ARGAND_RUNTIME_ERROR, "topk: selected index k out of range: got k=%ld for a dimension of size %ld", static_cast<long>(k),
         static_cast<long>(n));
  Dims sizes(self.sizes());
  if (sizes.n)
    sizes[d] = k;
  else
    k = 1;  // a number is its own selection, of none, too
  return order_dim("topk", self, d, k, largest, sizes);
}

}  // namespace argand::kernels::cuda
