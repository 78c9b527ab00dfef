// Variance, and extreme values with their positions.
#include <algorithm>
#include <cmath>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/dtype_checks.h"
#include "packages/aten/cuda/csrc/sort.h"
#include "packages/aten/cuda/csrc/specialization.h"
#include "packages/aten/cuda/csrc/strided_copy.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/joining.h"
#include "packages/aten/generated/ops/reduction.h"
#include "packages/aten/generated/ops/view.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cuda {
namespace {

constexpr int64_t kPrograms = 1056;                // about eight for each multiprocessor: fewer rows are cut into pieces
constexpr int64_t kTile = 2048, kLongTile = 4096;  // elements that a program takes at a time, of short and of long rows
constexpr int64_t kLongestPiece = 1 << 30;
constexpr int64_t kSmallestPiece = 16384;  // elements

// A reduction as rows of n elements: row r begins at (r / n_inner) * outer + r % n_inner * inner, its elements lie `stride` apart.
struct Rows {
  Tensor owner;  // a rearranged copy, where self's own strides do not fit
  const void* data;
  int64_t rows, n, n_inner, outer, inner, stride;
  int unit;  // as in kernels/statistics.py
  int64_t tile_rows, tile_n, piece, pieces;

  // Neighbouring dimensions that are one run, as one; false where there are more than `limit`.
  static bool merge(const Tensor& t, uint64_t mask, bool reduced, int limit, int64_t* sizes, int64_t* strides, int* count) {
    *count = 0;
    for (int64_t d = 0; d < t.dim(); d++) {
      if (static_cast<bool>(mask >> d & 1) != reduced || t.size(d) == 1) continue;
      if (*count && strides[*count - 1] == t.size(d) * t.stride(d)) {
        sizes[*count - 1] *= t.size(d);
        strides[*count - 1] = t.stride(d);
      } else {
        if (*count == limit) return false;
        sizes[*count] = t.size(d);
        strides[(*count)++] = t.stride(d);
      }
    }
    return true;
  }

  Rows(const Tensor& self, uint64_t mask) : owner(self) {
    int64_t kept[2] = {1, 1}, kept_strides[2] = {0, 0}, reduced[1] = {1}, reduced_strides[1] = {1};
    int n_kept = 0, n_reduced = 0;
    if (!merge(self, mask, false, 2, kept, kept_strides, &n_kept) || !merge(self, mask, true, 1, reduced, reduced_strides, &n_reduced)) {
      owner = rearranged(self, mask);
      n_kept = n_reduced = 1;
      reduced[0] = reduced_strides[0] = 1;
      for (int64_t d = 0; d < self.dim(); d++)
        if (mask >> d & 1) reduced[0] *= self.size(d);
      kept[0] = self.numel() / reduced[0];
      kept_strides[0] = reduced[0];
    }
    data = owner->data;
    n = reduced[0];
    stride = reduced_strides[0];
    rows = kept[0] * (n_kept == 2 ? kept[1] : 1);
    n_inner = n_kept == 2 ? kept[1] : n_kept == 1 ? kept[0] : 1;
    inner = n_kept == 2 ? kept_strides[1] : kept_strides[0];
    outer = n_kept == 2 ? kept_strides[0] : 0;
    unit = stride == 1 ? (n_kept == 2 ? 3 : 1) : n_kept == 1 && inner == 1 ? 2 : 0;
    choose_tile();
  }

  // The reduced dimensions last, row-major.
  static Tensor rearranged(const Tensor& self, uint64_t mask) {
    Dims sizes, strides;
    for (int pass = 0; pass < 2; pass++)
      for (int64_t d = 0; d < self.dim(); d++)
        if (static_cast<int>(mask >> d & 1) == pass) {
          sizes.push_back(self.size(d));
          strides.push_back(self.stride(d));
        }
    const Tensor out = empty(sizes, self.dtype(), self.device());
    copy_place(Place(out), Place(self->data, self.dtype(), sizes, strides));
    return out;
  }

  void choose_tile() {
    tile_rows = tile_n = 64;
    if (unit % 2) {
      if (n <= 32) tile_n = n <= 8 ? 8 : n <= 16 ? 16 : 32;
      while (tile_n < std::min(n, kLongTile)) tile_n *= 2;
      tile_rows = std::max<int64_t>(kTile / tile_n, 1);
    }
    const int64_t programs = divide_up(rows, tile_rows), wanted = divide_up(kPrograms, std::max<int64_t>(programs, 1));
    pieces = std::max(std::clamp<int64_t>(n * tile_rows / kSmallestPiece, 1, wanted), divide_up(n, kLongestPiece));
    piece = std::max<int64_t>(divide_up(divide_up(n, pieces), tile_n) * tile_n, 1);
    pieces = std::max<int64_t>(divide_up(n, piece), 1);
  }
  int64_t join_rows() const { return rows >= 1024 ? 64 : 4; }  // of a program that joins pieces
  Grid grid() const { return grid_of(divide_up(rows, tile_rows), pieces); }
  Specialization named(const char* name, int dtype) const {
    Specialization s(name);
    s.type("T", dtype == ARGAND_BOOL ? static_cast<int>(ARGAND_UINT8) : dtype)
        .constant("BR", tile_rows)
        .constant("BN", tile_n)
        .constant("UNIT", unit)
        .flag("ALIGNED", unit % 2 && (reinterpret_cast<uintptr_t>(data) | n | outer | inner) % 16 == 0)
        .flag("WHOLE", unit % 2 && tile_n < kLongTile);
    return s;
  }
  Tensor parts(int dtype) const { return pieces == 1 ? empty({0}, dtype, owner.device()) : empty({2, pieces, rows}, dtype, owner.device()); }
};

Dims reduced_sizes(const Tensor& self, uint64_t mask, bool keepdim) {
  Dims sizes;
  for (int64_t d = 0; d < self.dim(); d++) {
    const bool reduced = mask >> d & 1;
    if (!reduced || keepdim) sizes.push_back(reduced ? 1 : self.size(d));
  }
  return sizes;
}

}  // namespace

Tensor var(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim) {
  if (is_complex(self.dtype())) return ops::add(var(ops::real(self), dim, correction, keepdim), var(ops::imag(self), dim, correction, keepdim));
  if (!is_floating(self.dtype()))
    fail(ARGAND_NOT_IMPLEMENTED_ERROR, "var: got dtype %s, expected a floating dtype; convert with .to(torch.float32)", kDTypeName[self.dtype()]);
  uint64_t mask = dim ? wrap_dims("var", *dim, self.dim()) : 0;
  if (mask == 0) mask = ~uint64_t{0};
  const Tensor out = empty(reduced_sizes(self, mask, keepdim), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  const DeviceGuard guard(self);
  if (self.numel() == 0) {
    fill_(out, Operand(NAN));
    return out;
  }
  const Rows r(self, mask);
  const double divisor = static_cast<double>(r.n) - (correction ? correction->to_double() : 1.0);
  const Tensor parts = r.parts(ARGAND_FLOAT64);
  launch(kernel(r.named("moments", self.dtype()).constant("STEPS", 16).text()), r.grid(), r.data, out->data, parts->data, r.rows, r.n, r.n_inner,
         r.outer, r.inner, r.stride, divisor, r.piece, r.pieces);
  if (r.pieces > 1) {
    Specialization s("join_moments");
    s.type("T", self.dtype()).constant("BR", r.join_rows()).constant("BP", 1024 / r.join_rows());
    launch(kernel(s.text()), grid_of(divide_up(r.rows, r.join_rows())), parts->data, out->data, r.rows, r.n, divisor, r.piece, r.pieces);
  }
  return out;
}

Tensor standard_deviation(const Tensor& self, std::optional<IntList> dim, std::optional<Scalar> correction, bool keepdim) {
  return ops::sqrt(var(self, dim, correction, keepdim));
}

namespace {

// Fills indices, and values where they are defined; self has elements.
void find_extremes(bool smallest, const Tensor& self, uint64_t mask, const Tensor& values, const Tensor& indices) {
  const DeviceGuard guard(self);
  const Rows r(self, mask);
  const bool wants_values = values.defined();
  const void* value_data = wants_values ? values->data : nullptr;
  const Tensor parts = r.parts(ARGAND_INT64);
  Specialization s = r.named("extreme", self.dtype());
  s.flag("SMALLEST", smallest).flag("VALUES", wants_values);
  launch(kernel(s.text()), r.grid(), r.data, value_data, indices->data, parts->data, r.rows, r.n, r.n_inner, r.outer, r.inner, r.stride, r.piece,
         r.pieces);
  if (r.pieces == 1) return;
  Specialization join("join_extremes");
  join.type("T", self.dtype() == ARGAND_BOOL ? static_cast<int>(ARGAND_UINT8) : self.dtype())
      .constant("BR", r.join_rows())
      .constant("BP", 1024 / r.join_rows())
      .flag("VALUES", wants_values);
  launch(kernel(join.text()), grid_of(divide_up(r.rows, r.join_rows())), r.data, value_data, indices->data, parts->data, r.rows, r.n_inner, r.outer,
         r.inner, r.stride, r.pieces);
}

uint64_t checked_dim(const char* op, const Tensor& self, int64_t dim, int64_t results) {
  check_ordered(op, self.dtype());
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  if (results > 0 && self.dim() && self.size(d) == 0)
    fail(ARGAND_INDEX_ERROR, "%s: Expected reduction dim %lld to have non-zero size, but got a tensor of shape %s", op, static_cast<long long>(dim),
         to_string(self.sizes()).c_str());
  return uint64_t{1} << d;
}

std::tuple<Tensor, Tensor> extreme(const char* op, bool smallest, const Tensor& self, int64_t dim, bool keepdim) {
  const uint64_t mask = uint64_t{1} << builtins::wrap_dim(dim, self.dim());
  const Dims sizes = reduced_sizes(self, mask, keepdim);
  const Tensor values = empty(sizes, self.dtype(), self.device()), indices = empty(sizes, ARGAND_INT64, self.device());
  checked_dim(op, self, dim, values.numel());
  if (values.numel() > 0) find_extremes(smallest, self, mask, values, indices);
  return {values, indices};
}

Tensor arg_extreme(const char* op, bool smallest, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  check_ordered(op, self.dtype());
  check_not_bool(op, self.dtype());
  if (!dim && self.numel() == 0)
    fail(ARGAND_INDEX_ERROR, "%s: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
         op);
  const uint64_t mask = dim ? uint64_t{1} << builtins::wrap_dim(*dim, self.dim()) : ~uint64_t{0};
  const Tensor indices = empty(reduced_sizes(self, mask, keepdim), ARGAND_INT64, self.device());
  if (dim) checked_dim(op, self, *dim, indices.numel());
  if (indices.numel() == 0) return indices;
  // a position in the flattened tensor counts in row-major order
  find_extremes(smallest, dim ? self : dense(self), mask, Tensor(), indices);
  return indices;
}

}  // namespace

// Both by one reading. Numbers only; of none, the two reductions say what is wrong.
std::tuple<Tensor, Tensor> extremes(const Tensor& self, std::optional<IntList> dim, bool keepdim) {
  uint64_t mask = dim ? wrap_dims("aminmax", *dim, self.dim()) : 0;
  if (mask == 0) mask = ~uint64_t{0};
  if (self.numel() == 0 || self.dtype() == ARGAND_BOOL || is_complex(self.dtype()))
    return {ops::amin(self, dim, keepdim), ops::amax(self, dim, keepdim)};
  const DeviceGuard guard(self);
  const Dims sizes = reduced_sizes(self, mask, keepdim);
  const Tensor least = empty(sizes, self.dtype(), self.device()), greatest = empty(sizes, self.dtype(), self.device());
  const Rows r(self, mask);
  const Tensor parts = r.parts(self.dtype());
  launch(kernel(r.named("least_and_greatest", self.dtype()).text()), r.grid(), r.data, least->data, greatest->data, parts->data, r.rows, r.n,
         r.n_inner, r.outer, r.inner, r.stride, r.piece, r.pieces);
  if (r.pieces > 1) {
    Specialization join("join_least_and_greatest");
    join.type("T", self.dtype()).constant("BR", r.join_rows()).constant("BP", 1024 / r.join_rows());
    launch(kernel(join.text()), grid_of(divide_up(r.rows, r.join_rows())), least->data, greatest->data, parts->data, r.rows, r.pieces);
  }
  return {least, greatest};
}

std::tuple<Tensor, Tensor> max_dim(const Tensor& self, int64_t dim, bool keepdim) { return extreme("max", false, self, dim, keepdim); }
std::tuple<Tensor, Tensor> min_dim(const Tensor& self, int64_t dim, bool keepdim) { return extreme("min", true, self, dim, keepdim); }
Tensor argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) { return arg_extreme("argmax", false, self, dim, keepdim); }
Tensor argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim) { return arg_extreme("argmin", true, self, dim, keepdim); }

// Other rows than those chosen from: by their order, in which equal elements stand as they did and NaN last.
std::tuple<Tensor, Tensor> _order_statistic(const Tensor& self, int64_t dim, std::string_view kind, int64_t k) {
  if (kind != "mode" && can_choose(self, dim)) {
    if (kind == "kth") return choose("kthvalue", self, dim, Choice::kKth, k);
    return kind == "median" ? choose("median", self, dim, Choice::kMedian, 0) : choose("nanmedian", self, dim, Choice::kNanMedian, 0);
  }
  if (kind == "kth") {
    const auto [values, indices] = ops::topk(self, k + 1, dim, false);
    return {ops::contiguous(ops::narrow(values, dim, k, 1)), ops::contiguous(ops::narrow(indices, dim, k, 1))};
  }
  const int64_t n = self.size(dim);
  const auto [ordered, order] = ops::sort(self, dim, false, true);
  Tensor at;
  if (kind == "mode") {
    const Tensor first = ops::ones_like(ops::narrow(ordered, dim, 0, 1), ARGAND_BOOL);
    const Tensor starts = ops::cat({first, ops::ne(ops::narrow(ordered, dim, 1, n - 1), ops::narrow(ordered, dim, 0, n - 1))}, dim);
    at = ops::argmax(ops::sub(ops::cumsum(ops::ones_like(ordered, ARGAND_INT64), dim), ops::latest_along(starts, dim)), dim, true);
    const Tensor indices = ops::gather(order, dim, at);
    return {ops::gather(self, dim, indices), indices};
  }
  const Tensor numbers = ops::sum(ops::logical_not(ops::isnan(self)), IntList({dim}), true);
  if (kind == "nanmedian")
    at = ops::clamp_min(ops::floor_divide(ops::sub(numbers, Scalar(int64_t{1})), Scalar(int64_t{2})), Scalar(int64_t{0}));
  else  // the first NaN, if there is one
    at = ops::where(ops::lt(numbers, Scalar(n)), numbers, Scalar((n - 1) / 2));
  return {ops::gather(ordered, dim, at), ops::gather(order, dim, at)};
}

// Two elements chosen, or a sort of other rows; a NaN is above all.
std::tuple<Tensor, Tensor, Tensor, Tensor> quantile_neighbours(const Tensor& self, int64_t dim, double q) {
  const int64_t d = builtins::wrap_dim(dim, self.dim()), n = self.dim() ? self.size(d) : 1;
  if (self.numel() == 0 || self.dim() == 0)
    fail(ARGAND_SHAPE_ERROR, "quantile: got shape %s, expected a dimension with elements", to_string(self.sizes()).c_str());
  const double rank =
      self.dtype() == ARGAND_FLOAT32 ? static_cast<double>(static_cast<float>(q) * static_cast<float>(n - 1)) : q * static_cast<double>(n - 1);
  const int64_t low = std::clamp<int64_t>(static_cast<int64_t>(std::floor(rank)), 0, n - 1),
                high = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(rank)), 0, n - 1);
  using Pair = std::tuple<Tensor, Tensor>;
  Pair last, below, above;
  if (can_choose(self, d)) {
    last = max_dim(self, d, true);
    below = choose("quantile", self, d, Choice::kKth, low);
    above = high == low ? below : choose("quantile", self, d, Choice::kKth, high);
  } else {
    const auto [ordered, order] = ops::sort(self, d);
    const auto at = [&, &ordered = ordered, &order = order](int64_t k) { return Pair(ops::narrow(ordered, d, k, 1), ops::narrow(order, d, k, 1)); };
    last = at(n - 1), below = at(low), above = at(high);
  }
  const Tensor missing = ops::isnan(std::get<0>(last));
  const auto unless_missing = [&](const Tensor& known, const Tensor& t) { return ops::where(missing, known, t); };
  return {unless_missing(std::get<0>(last), std::get<0>(below)), unless_missing(std::get<0>(last), std::get<0>(above)),
          unless_missing(std::get<1>(last), std::get<1>(below)), unless_missing(std::get<1>(last), std::get<1>(above))};
}

}  // namespace argand::kernels::cuda
