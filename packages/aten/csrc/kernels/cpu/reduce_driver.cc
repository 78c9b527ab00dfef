#include "packages/aten/csrc/kernels/cpu/reduce_driver.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "packages/aten/csrc/core/reduced_dims.h"
#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/sweep.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand {
namespace {

constexpr int64_t kGroup = 65536;      // elements that one task takes in: fixed, so that the order of sums is
constexpr int64_t kTileColumns = 512;  // accumulators that stay in the first cache
constexpr int64_t kGap = 4;            // columns so far apart are reduced with those between them rather than gathered
constexpr int64_t kGrain = 32768;

// The index space split in two: kept dimensions (operands: input, output) and reduced ones (operand: input).
struct Plan {
  const ReduceKernel* kernel;
  Iteration kept, reduced;
  Iteration planes;  // the reduced dimensions but the innermost, if groups are whole rows of that
  bool whole_rows;
  int in_size, acc_size;
  bool columns;  // neighbouring outputs together; else one output after the other
  int64_t gap;   // columns from one to the next, of which those between are reduced, too, and forgotten
  int64_t tile;  // outputs of a tile, along the kept dimension 0
  int64_t tiles_in_row, tiles;
  int64_t groups, per_group;  // of flat reduced indices

  void locate(int64_t index, const char** in, char** out, int64_t* n) const {  // of a tile
    const int64_t column = index % tiles_in_row * tile;
    int64_t rest = index / tiles_in_row;
    *in = kept.data[0] + column * kept.strides[0][0];
    *out = kept.data[1] + column * kept.strides[1][0];
    for (int d = 1; d < kept.ndim; d++) {
      const int64_t i = rest % kept.shape[d];
      rest /= kept.shape[d];
      *in += i * kept.strides[0][d];
      *out += i * kept.strides[1][d];
    }
    *n = std::min(tile, kept.shape[0] - column);
  }

  // Takes a group of the reduced indices of n outputs into acc.
  void accumulate(const char* in, int64_t n, int64_t group, char* acc) const {
    if (gap > 1) return accumulate_apart(in, n, group, acc);
    start(n, acc);
    const int64_t begin = group * per_group, end = std::min(reduced.numel, begin + per_group);
    char* const data = const_cast<char*>(in);
    if (columns)
      for_each_row(reduced, &data, begin, end, [&](int64_t rows, char* const* p) { take_columns(p[0], rows, n, acc); });
    else
      take_rows(data, begin, end, acc);
  }
  void start(int64_t n, char* acc) const {
    kernel->init(acc);
    for (int64_t i = 1; i < n; i++) std::memcpy(acc + i * acc_size, acc, acc_size);
  }
  void accumulate_apart(const char* in, int64_t n, int64_t group, char* acc) const {
    alignas(64) char wide[kTileColumns * 16];
    Plan dense = *this;
    dense.gap = 1;
    dense.kept.strides[0][0] = in_size;
    dense.accumulate(in, (n - 1) * gap + 1, group, wide);
    for (int64_t i = 0; i < n; i++) std::memcpy(acc + i * acc_size, wide + i * gap * acc_size, acc_size);
  }
  void take_rows(char* data, int64_t begin, int64_t end, char* acc) const {
    bool first = true;
    alignas(16) char part[16];
    auto take = [&](int64_t rows, int64_t row_stride, int64_t n, const char* p) {
      kernel->rows(rows, row_stride, n, p, reduced.strides[0][0], first ? acc : part);
      if (!first) kernel->combine(1, acc, part);
      first = false;
    };
    const int64_t n = reduced.shape[0];
    if (whole_rows)
      for_each_row(planes, &data, begin / n, end / n, [&](int64_t rows, char* const* p) { take(rows, planes.strides[0][0], n, p[0]); });
    else
      for_each_row(reduced, &data, begin, end, [&](int64_t m, char* const* p) { take(1, 0, m, p[0]); });
  }
  void take_columns(const char* in, int64_t rows, int64_t n, char* acc) const {
    const int64_t row_stride = reduced.strides[0][0], column_stride = kept.strides[0][0];
    if (column_stride == in_size) return kernel->columns(rows, n, in, row_stride, acc);
    alignas(64) char buffer[16 * kTileColumns * 16];
    for (int64_t r = 0; r < rows; r += 16) {
      const int64_t m = std::min<int64_t>(16, rows - r);
      kernels::cpu::gather_tile(buffer, in_size * n, in + r * row_stride, row_stride, column_stride, m, n, in_size);
      kernel->columns(m, n, buffer, in_size * n, acc);
    }
  }

  void run() const;
};

void Plan::run() const {
  const int64_t acc_bytes = tile * acc_size, count = reduced.numel;
  const int64_t work = std::max<int64_t>(1, tile * per_group);
  if (groups == 1) {
    auto range = [&](int64_t begin, int64_t end) {
      alignas(64) char local[kTileColumns * 16];
      if (!columns && kept.ndim == 1 && reduced.ndim == 1 && count > 0) {  // rows side by side: their results are finished together
        for (int64_t m; begin < end; begin += m) {
          m = std::min(end - begin, kTileColumns);
          const char* in = kept.data[0] + begin * kept.strides[0][0];
          for (int64_t i = 0; i < m; i++, in += kept.strides[0][0]) kernel->rows(1, 0, count, in, reduced.strides[0][0], local + i * acc_size);
          kernel->finish(m, kept.data[1] + begin * kept.strides[1][0], kept.strides[1][0], local, count);
        }
        return;
      }
      for (int64_t index = begin; index < end; index++) {
        const char* in;
        char* out;
        int64_t n;
        locate(index, &in, &out, &n);
        accumulate(in, n, 0, local);
        kernel->finish(n, out, kept.strides[1][0], local, count);
      }
    };
    if (tiles * work <= kGrain)
      range(0, tiles);
    else
      parallel_sweep(tiles, std::max<int64_t>(1, kGrain / work), work * in_size, range);
    return;
  }
  // Groups in parallel, then pairwise sums of groups: the same tree however many threads there are.
  std::unique_ptr<char[]> parts(new char[tiles * groups * acc_bytes]);
  auto part = [&](int64_t index, int64_t group) { return parts.get() + (index * groups + group) * acc_bytes; };
  auto fill = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const char* in;
      char* out;
      int64_t n;
      locate(i / groups, &in, &out, &n);
      accumulate(in, n, i % groups, part(i / groups, i % groups));
    }
  };
  parallel_sweep(tiles * groups, std::max<int64_t>(1, kGrain / work), work * in_size, fill);
  auto join = [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; index++) {
      const char* in;
      char* out;
      int64_t n;
      locate(index, &in, &out, &n);
      for (int64_t step = 1; step < groups; step *= 2)
        for (int64_t g = 0; g + step < groups; g += 2 * step) kernel->combine(n, part(index, g), part(index, g + step));
      kernel->finish(n, out, kept.strides[1][0], part(index, 0), count);
    }
  };
  parallel_for(0, tiles, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, tile * groups)), join);
}

// A dense [rows, few columns] table is summed as [rows / fold, fold * columns], so that whole vectors are used; the folds are joined
// afterwards. Returns false where that does not apply.
bool run_folded(const Plan& plan, int64_t columns) {
  const int64_t rows = plan.reduced.shape[0];
  if (plan.reduced.ndim != 1 || plan.kept.ndim != 1 || columns >= 64 || plan.kept.strides[0][0] != plan.in_size ||
      plan.reduced.strides[0][0] != columns * plan.in_size)
    return false;
  int64_t fold = 1;
  while (fold * columns < 128) fold *= 2;
  if (rows < 4 * fold) return false;
  Plan wide = plan;
  const int64_t whole = rows / fold;
  wide.reduced.shape[0] = wide.reduced.numel = whole;
  wide.reduced.strides[0][0] = fold * columns * plan.in_size;
  const int64_t n = fold * columns;
  wide.tile = n;
  wide.per_group = std::max<int64_t>(64, kGroup / n);
  wide.groups = (whole + wide.per_group - 1) / wide.per_group;
  std::unique_ptr<char[]> parts(new char[(wide.groups + 1) * n * plan.acc_size]);
  parallel_for(0, wide.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; g++) wide.accumulate(plan.kept.data[0], n, g, parts.get() + g * n * plan.acc_size);
  });
  for (int64_t step = 1; step < wide.groups; step *= 2)
    for (int64_t g = 0; g + step < wide.groups; g += 2 * step)
      plan.kernel->combine(n, parts.get() + g * n * plan.acc_size, parts.get() + (g + step) * n * plan.acc_size);
  for (int64_t half = fold / 2; half; half /= 2) plan.kernel->combine(half * columns, parts.get(), parts.get() + half * columns * plan.acc_size);
  if (const int64_t rest = rows - whole * fold)
    plan.kernel->columns(rest, columns, plan.kept.data[0] + whole * fold * columns * plan.in_size, columns * plan.in_size, parts.get());
  plan.kernel->finish(columns, plan.kept.data[1], plan.kept.strides[1][0], parts.get(), rows);
  return true;
}

// The kernel of elements of `dtype`; uint16 and uint32 have none of their own, and are reduced as uint64.
const ReduceKernel& require_kernel(const ReduceOp& op, int dtype) {
  const ReduceKernel* table = op.kernels[api->cpu_tier()];
  const int held = is_wide_unsigned(dtype) ? ARGAND_UINT64 : dtype;
  for (int i = 0; i < op.n_kernels; i++)
    if (table[i].in_dtype == held) return table[i];
  std::string known;
  for (int i = 0; i < op.n_kernels; i++) known += (i ? ", " : "") + std::string(kDTypeName[static_cast<int>(table[i].in_dtype)]);
  fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for dtype %s; expected one of %s", op.name, kDTypeName[dtype], known.c_str());
}

void run_plan(const ReduceKernel& kernel, const Tensor& input, const Tensor& result, uint64_t mask, bool keepdim) {
  Plan plan;
  plan.kernel = &kernel;
  plan.in_size = input.itemsize();
  plan.acc_size = kItemSize[static_cast<int>(kernel.acc_dtype)];
  split_dims(input, result, mask, keepdim, &plan.kept, &plan.reduced);
  const int64_t outputs = plan.kept.numel, count = plan.reduced.numel, n0 = plan.kept.shape[0], r0 = plan.reduced.shape[0];
  const bool dense_rows = plan.reduced.strides[0][0] == plan.in_size, dense_columns = plan.kept.strides[0][0] == plan.in_size;
  const bool near_rows = std::abs(plan.reduced.strides[0][0]) < std::abs(plan.kept.strides[0][0]);  // with gaps, if they are not dense
  plan.columns = outputs > 1 && n0 > 1 && (dense_columns ? true : n0 >= 8 && (!near_rows || r0 < 32));
  if (dense_columns && dense_rows) plan.columns = r0 == 1;  // sizes of 1
  const int64_t apart = plan.kept.strides[0][0] / plan.in_size;
  plan.gap = plan.columns && apart > 1 && apart <= kGap && apart * plan.in_size == plan.kept.strides[0][0] ? apart : 1;
  plan.tile = plan.columns ? std::min(n0, kTileColumns / plan.gap) : 1;
  if (plan.columns && run_folded(plan, n0)) return;
  plan.tiles_in_row = (n0 + plan.tile - 1) / plan.tile;
  plan.tiles = plan.tiles_in_row * (outputs / n0);
  plan.per_group = std::max<int64_t>(1, kGroup / (plan.columns ? std::min(n0, kTileColumns) : 1));
  if (plan.columns) plan.per_group = std::min<int64_t>(plan.per_group, 4096);
  if (count <= 2 * plan.per_group) plan.per_group = std::max<int64_t>(count, 1);
  plan.whole_rows = !plan.columns && plan.reduced.ndim >= 2 && r0 > 0 && r0 <= plan.per_group;
  if (plan.whole_rows) {
    plan.per_group -= plan.per_group % r0;
    plan.planes = plan.reduced;
    plan.planes.ndim--;
    for (int d = 0; d < plan.planes.ndim; d++) {
      plan.planes.shape[d] = plan.reduced.shape[d + 1];
      plan.planes.strides[0][d] = plan.reduced.strides[0][d + 1];
    }
  }
  plan.groups = std::max<int64_t>(1, (count + plan.per_group - 1) / plan.per_group);
  plan.run();
}

// Whether results are bools whatever the elements are: float8 elements are asked as float32 ones.
bool tells_truth(const ReduceOp& op) {
  for (int i = 0; i < op.n_kernels; i++)
    if (op.kernels[0][i].in_dtype == ARGAND_FLOAT32) return op.kernels[0][i].out_dtype == ARGAND_BOOL;
  return false;
}

}  // namespace

Tensor reduce(const ReduceOp& op, const Tensor& self, std::optional<IntList> dims, bool keepdim, int dtype) {
  const int from = dtype != ARGAND_DTYPE_NONE ? dtype : is_float8(self.dtype()) && tells_truth(op) ? ARGAND_FLOAT32 : self.dtype();
  const ReduceKernel& kernel = require_kernel(op, from);
  const Tensor input = kernel.in_dtype != self.dtype() ? kernels::cpu::to_copy(self, kernel.in_dtype, std::nullopt, false, std::nullopt) : self;
  const int result_dtype = dtype != ARGAND_DTYPE_NONE ? dtype : kernel.out_dtype == kernel.in_dtype ? from : kernel.out_dtype;
  uint64_t mask = dims ? wrap_dims(op.name, *dims, self.dim()) : 0;
  if (mask == 0) mask = ~uint64_t{0};
  Dims sizes;
  int64_t count = 1;
  for (int64_t d = 0; d < self.dim(); d++) {
    const bool is_reduced = mask >> d & 1;
    if (is_reduced) count *= self.size(d);
    if (!is_reduced || keepdim) sizes.push_back(is_reduced ? 1 : self.size(d));
  }
  if (count == 0 && op.nonempty)
    fail(dims && dims->n ? ARGAND_INDEX_ERROR : ARGAND_RUNTIME_ERROR,
         "%s: expected reduction dim to have non-zero size, but got a tensor of shape %s; the operation has no identity", op.name,
         to_string(self.sizes()).c_str());
  const Tensor result = empty(sizes, kernel.out_dtype, self.device());
  if (!self.is_meta() && result.numel() > 0) {
    if (result.numel() == 1 && input.is_contiguous() && count > 0 && count <= kGroup / 4) {  // one row
      alignas(16) char acc[16];
      kernel.rows(1, 0, count, input.data<char>(), input.itemsize(), acc);
      kernel.finish(1, result.data<char>(), result.itemsize(), acc, count);
    } else {
      run_plan(kernel, input, result, mask, keepdim);
    }
  }
  return result.dtype() == result_dtype ? result : kernels::cpu::to_copy(result, result_dtype, std::nullopt, false, std::nullopt);
}

}  // namespace argand
