#include "packages/aten/cuda/csrc/reduction.h"

#include <algorithm>

#include "packages/aten/csrc/core/reduced_dims.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::cuda {
namespace {

constexpr int kDims = 3;                               // of kept and of reduced dimensions, after merging
constexpr int64_t kPrograms = 1024;                    // enough to fill a device
constexpr int64_t kLongTile = 8192;                    // elements of a program's step along long rows
constexpr int64_t kSmall = (int64_t{1} << 31) - 8192;  // offsets that 32 bits hold, a tile's overhang included

const AccumulationDtypes& dtypes_of(const char* name, const AccumulationDtypes* rows, int n, int dtype) {
  std::string known;
  for (int i = 0; i < n; i++) {
    if (rows[i].in == dtype) return rows[i];
    known += (i ? ", " : "") + std::string(kDTypeName[static_cast<int>(rows[i].in)]);
  }
  fail(ARGAND_NOT_IMPLEMENTED_ERROR,
       "%s: not implemented for dtype %s on device 'cuda'; expected one of %s; convert the tensor, or move it to the cpu", name, kDTypeName[dtype],
       known.c_str());
}

// Bools are accumulated as bytes.
int part_dtype(const AccumulationDtypes& d) { return d.acc == ARGAND_BOOL ? static_cast<int>(ARGAND_INT8) : d.acc; }

// Parameters of a kernel: pointers first, then sizes of one width.
class Parameters {
 public:
  explicit Parameters(bool wide) : wide_(wide) {}
  void pointer(const void* p) { next().p = p; }
  void number(double d) { next().d = d; }
  void size(int64_t v) {
    Slot& s = next();
    if (wide_)
      s.wide = v;
    else
      s.small = static_cast<int32_t>(v);
  }
  // Sizes of the two inner dimensions.
  void sizes(const Iteration& it) {
    size(it.shape[0]);
    size(it.ndim > 1 ? it.shape[1] : 1);
  }
  void strides(const Iteration& it, int operand, int itemsize) {
    for (int d = 0; d < kDims; d++) size(d < it.ndim ? it.strides[operand][d] / itemsize : 0);
  }
  void launch(const Kernel* kernel, int64_t x, int64_t y) {
    pointer(nullptr);  // the scratch pointers
    pointer(nullptr);
    void* addresses[kMost];
    for (int i = 0; i < n_; i++) addresses[i] = &slots_[i];
    launch_parameters(kernel, {static_cast<uint32_t>(x), static_cast<uint32_t>(y)}, addresses);
  }

 private:
  static constexpr int kMost = 32;
  union Slot {
    const void* p;
    double d;
    int64_t wide;
    int32_t small;
  } slots_[kMost];
  Slot& next() { return slots_[n_++]; }
  int n_ = 0;
  bool wide_;
};

int64_t last_offset(const Iteration& it, int operand, int itemsize) {
  int64_t last = 0;
  for (int d = 0; d < it.ndim; d++) last += it.strides[operand][d] / itemsize * (it.shape[d] - 1);
  return last;
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Whether an operand's address is a multiple of 16 bytes, and its strides, but the innermost one if that is 1, are multiples of `vector` elements.
bool is_aligned(const Iteration& it, int operand, int itemsize, int64_t vector) {
  if (reinterpret_cast<uintptr_t>(it.data[operand]) % 16) return false;
  for (int d = 0; d < it.ndim; d++)
    if (it.shape[d] != 1 && it.strides[operand][d] % (vector * itemsize) && !(d == 0 && it.strides[operand][d] == itemsize)) return false;
  return true;
}

// Whether the innermost dimension is a number of whole vectors.
bool whole_vectors(const Iteration& it, int itemsize) { return it.shape[0] * itemsize % 16 == 0; }

// ---- reductions ---------------------------------------------------------------------------------------------------------------------
// The index space in two: kept dimensions (operands: input, output) and reduced ones (operand: input).
struct Plan {
  const ReduceOp& op;
  AccumulationDtypes dtypes;
  Iteration kept, reduced;
  int in_size, out_size;
  bool wide;

  int layout() const {
    if (reduced.strides[0][0] == in_size || reduced.numel == 1) return 0;
    return kept.strides[0][0] == in_size ? 1 : 2;
  }
  // As reduction.py says. Strides of 1 lie in one of the two parts only, unless that is a single element.
  bool aligned(int layout) const {
    if (layout == 2 || reduced.numel == 1 || !is_aligned(kept, 0, in_size, 16 / in_size) || !is_aligned(reduced, 0, in_size, 16 / in_size))
      return false;
    if (layout == 0) return (kept.numel == 1 || kept.strides[0][0] != in_size) && (reduced.ndim == 1 || whole_vectors(reduced, in_size));
    return whole_vectors(kept, in_size);
  }
  const Kernel* kernel_of(int stage, int layout, int d, int64_t y, int64_t x) const {
    char name[256];
    snprintf(name, sizeof name, "%s_reduce;T=%s;I=%s;STAGE=%d;LAYOUT=%d;D=%d;Y=%d;X=%d;ALIGNED=%s", op.kernel,
             kDTypeName[static_cast<int>(dtypes.in)], wide ? "i64" : "i32", stage, layout, d, static_cast<int>(y), static_cast<int>(x),
             stage < 2 && aligned(layout) ? "True" : "False");
    return kernel(name);
  }
  void run_stage(int stage, const Tensor& part, int64_t chunk, int64_t chunks, int layout, int d, int64_t y, int64_t x) const {
    Parameters p(wide);
    p.pointer(kept.data[1]);
    p.pointer(part ? part->data : nullptr);
    p.pointer(kept.data[0]);
    p.size(kept.numel);
    p.size(reduced.numel);
    p.size(chunk);
    p.number(static_cast<double>(reduced.numel));
    p.sizes(kept);
    p.strides(kept, 0, in_size);
    p.strides(kept, 1, out_size);
    p.sizes(reduced);
    p.strides(reduced, 0, in_size);
    p.launch(kernel_of(stage, layout, d, y, x), (kept.numel + y - 1) / y, chunks);
  }
  // Accumulators [outputs, chunks], to the result.
  void join(const Tensor& part, int64_t chunks) const {
    Parameters p(wide);
    p.pointer(kept.data[1]);
    p.pointer(part->data);
    p.pointer(nullptr);
    p.size(kept.numel);
    p.size(chunks);
    p.size(chunks);
    p.number(static_cast<double>(reduced.numel));
    p.sizes(kept);
    int64_t stride = chunks;
    for (int d = 0; d < kDims; d++) {
      p.size(stride);
      stride *= d < kept.ndim ? kept.shape[d] : 1;
    }
    p.strides(kept, 1, out_size);
    p.size(chunks);
    p.size(1);
    for (int64_t s : {1, 0, 0}) p.size(s);
    p.launch(kernel_of(2, 0, kept.ndim > 1 ? 3 : 1, 1, 2048), kept.numel, 1);
  }
  void run(ArgandDevice device) const {
    const int l = layout(), d = kept.ndim > 1 || reduced.ndim > 1 ? 3 : 1;
    const int64_t n = reduced.numel;
    const int64_t y = l == 0 ? (n > 512 ? 1 : n > 32 ? 16 : n > 8 ? 64 : 256) : l == 1 ? 64 : 32;
    int64_t x = l == 0 ? (n > 512 ? 2048 : n > 32 ? 64 : n > 8 ? 32 : 8) : l == 1 ? 16 : 32;
    const int64_t programs = (kept.numel + y - 1) / y, many = kPrograms / programs;
    int64_t wanted = std::min(reduced.numel / (4 * x), many);
    if (y == 1 && reduced.numel / (2 * kLongTile) >= many / 2 && many >= 2) {  // few long rows
      x = kLongTile;
      wanted = many;
    }
    if (wanted < 2) return run_stage(0, {}, std::max<int64_t>(reduced.numel, 1), 1, l, d, y, x);
    const int64_t chunk = round_up((reduced.numel + wanted - 1) / wanted, x), chunks = (reduced.numel + chunk - 1) / chunk;
    const Tensor part = empty({kept.numel * chunks}, part_dtype(dtypes), device);
    run_stage(1, part, chunk, chunks, l, d, y, x);
    join(part, chunks);
  }
};

void split(const Tensor& self, const Tensor& out, uint64_t mask, bool keepdim, Plan* plan) {
  plan->kept = plan->reduced = Iteration();
  split_dims(self, out, mask, keepdim, &plan->kept, &plan->reduced);
  plan->wide = last_offset(plan->kept, 0, plan->in_size) + last_offset(plan->reduced, 0, plan->in_size) > kSmall ||
               last_offset(plan->kept, 1, plan->out_size) > kSmall || plan->kept.numel > kSmall || plan->reduced.numel > kSmall;
}

// The reduced dimensions moved to the end, row-major.
Tensor gathered(const Tensor& self, uint64_t mask) {
  Dims order;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t d = 0; d < self.dim(); d++)
      if (static_cast<int>(mask >> d & 1) == pass) order.push_back(d);
  return ops::clone(ops::permute(self, order), int64_t{0});
}

// ---- scans --------------------------------------------------------------------------------------------------------------------------
struct ScanPlan {
  const ScanOp& op;
  Iteration rows;                    // the other dimensions; operands: output, input
  int64_t count, in_step, out_step;  // along the scanned one, in elements
  int in_size, out_size;
  bool wide;

  // As reduction.py says, of input and output.
  int layout() const {
    if (in_step == 1 && out_step == 1) return 0;
    return rows.strides[0][0] == out_size && rows.strides[1][0] == in_size ? 1 : 2;
  }
  bool aligned(int layout) const {
    const int64_t vector = 16 / in_size;  // of input elements; results are no smaller
    if (layout == 2 || !is_aligned(rows, 0, out_size, vector) || !is_aligned(rows, 1, in_size, vector)) return false;
    if (layout == 1) return in_step % vector == 0 && out_step % vector == 0 && whole_vectors(rows, in_size);
    return rows.numel == 1 || (rows.strides[0][0] != out_size && rows.strides[1][0] != in_size);
  }
  void run_stage(int stage, int dtype, const void* part, int64_t chunk, int64_t chunks, int64_t y, int64_t x) const {
    char name[256];
    const int l = layout();
    snprintf(name, sizeof name, "%s_scan;T=%s;I=%s;STAGE=%d;LAYOUT=%d;Y=%d;X=%d;ALIGNED=%s", op.kernel, kDTypeName[dtype], wide ? "i64" : "i32",
             stage, l, static_cast<int>(y), static_cast<int>(x), aligned(l) ? "True" : "False");
    Parameters p(wide);
    p.pointer(rows.data[0]);
    p.pointer(part);
    p.pointer(rows.data[1]);
    p.size(rows.numel);
    p.size(count);
    p.size(chunk);
    p.sizes(rows);
    p.strides(rows, 1, in_size);
    p.strides(rows, 0, out_size);
    p.size(in_step);
    p.size(out_step);
    p.launch(kernel(name), (rows.numel + y - 1) / y, chunks);
  }
};

void run_scan(const ScanOp& op, const AccumulationDtypes& dtypes, const Tensor& in, const Tensor& out, int64_t d) {
  Dims sizes, in_strides, out_strides;
  for (int64_t i = 0; i < in.dim(); i++) {
    if (i == d) continue;
    sizes.push_back(in.size(i));
    in_strides.push_back(in.stride(i));
    out_strides.push_back(out.stride(i));
  }
  ScanPlan plan{op, {}, in.size(d), in.stride(d), out.stride(d), in.itemsize(), out.itemsize(), false};
  plan.rows.set_shape(sizes);
  plan.rows.add(out->data, sizes, out_strides, plan.out_size);
  plan.rows.add(in->data, sizes, in_strides, plan.in_size);
  plan.rows.sort(nullptr);
  plan.rows.coalesce();
  if (plan.rows.ndim > kDims) return run_scan(op, dtypes, ops::clone(in, int64_t{0}), out, d);
  plan.wide = last_offset(plan.rows, 1, plan.in_size) + plan.in_step * (plan.count - 1) > kSmall ||
              last_offset(plan.rows, 0, plan.out_size) + plan.out_step * (plan.count - 1) > kSmall || plan.rows.numel > kSmall || plan.count > kSmall;
  const bool across = plan.layout() == 1, several = plan.rows.numel >= kPrograms || plan.count <= 512;
  const int64_t y = across ? 64 : several ? 16 : 1;
  const int64_t x = across ? 16 : several ? 64 : plan.layout() == 0 && plan.rows.numel * plan.count >= kPrograms * kLongTile ? kLongTile : 2048;
  const int64_t programs = (plan.rows.numel + y - 1) / y;
  // A program of stage 2 takes in the totals of the chunks before its own, 2048 at most.
  const int64_t wanted = std::min({plan.count / (y == 1 ? x : 8 * x), 2 * kPrograms / programs, 2048 / y});
  if (wanted < 4) return plan.run_stage(0, dtypes.in, nullptr, plan.count, 1, y, x);
  const int64_t chunk = round_up((plan.count + wanted - 1) / wanted, x), chunks = (plan.count + chunk - 1) / chunk;
  const Tensor part = empty({plan.rows.numel, chunks}, part_dtype(dtypes), in.device());
  plan.run_stage(1, dtypes.in, part->data, chunk, chunks, y, x);
  plan.run_stage(2, dtypes.in, part->data, chunk, chunks, y, x);
}

}  // namespace

Tensor reduce(const ReduceOp& op, const Tensor& self, std::optional<IntList> dims, bool keepdim, int dtype) {
  const Tensor input = dtype != ARGAND_DTYPE_NONE && dtype != self.dtype() ? ops::_to_copy(self, dtype) : self;
  const AccumulationDtypes& dtypes = dtypes_of(op.name, op.dtypes, op.n_dtypes, input.dtype());
  uint64_t mask = dims ? wrap_dims(op.name, *dims, self.dim()) : 0;
  if (mask == 0) mask = ~uint64_t{0};
  Dims sizes;
  int64_t count = 1;
  for (int64_t d = 0; d < self.dim(); d++) {
    const bool is_reduced = mask >> d & 1;
    if (is_reduced) count *= self.size(d);
    if (!is_reduced || keepdim) sizes.push_back(is_reduced ? 1 : self.size(d));
  }
  const Tensor result = empty(sizes, dtypes.out, self.device());
  if (result.numel() > 0) {
    if (count == 0 && op.nonempty)
      fail(dims && dims->size() > 0 ? ARGAND_INDEX_ERROR : ARGAND_RUNTIME_ERROR,
           "%s: expected reduction dim to have non-zero size, but got a tensor of shape %s; the operation has no identity", op.name,
           to_string(self.sizes()).c_str());
    Plan plan{op, dtypes, {}, {}, input.itemsize(), result.itemsize(), false};
    split(input, result, mask, keepdim, &plan);
    if (plan.kept.ndim > kDims || plan.reduced.ndim > kDims) {
      const Tensor rows = gathered(input, mask);
      int64_t n_kept = 0;
      for (int64_t d = 0; d < self.dim(); d++) n_kept += !(mask >> d & 1);
      Dims flat;
      for (int64_t d = 0; d < n_kept; d++) flat.push_back(rows.size(d));
      split(rows, view_of(result, flat, contiguous_strides(flat), result->offset), ~uint64_t{0} << n_kept, false, &plan);
      plan.run(self.device());
    } else {
      plan.run(self.device());
    }
  }
  const int result_dtype = dtype != ARGAND_DTYPE_NONE ? dtype : result.dtype();
  return result.dtype() == result_dtype ? result : ops::_to_copy(result, result_dtype);
}

Tensor scan(const ScanOp& op, const Tensor& self, int64_t dim, int dtype) {
  const int64_t d = wrap_dim(op.name, dim, self.dim());
  const Tensor input = dtype != ARGAND_DTYPE_NONE && dtype != self.dtype() ? ops::_to_copy(self, dtype) : self;
  const AccumulationDtypes& dtypes = dtypes_of(op.name, op.dtypes, op.n_dtypes, input.dtype());
  const Tensor result = empty(self.sizes(), dtypes.out, self.device());
  if (self.numel() > 0) {
    if (self.dim() == 0)
      run_scan(op, dtypes, view_of(input, {1}, {1}, input->offset), view_of(result, {1}, {1}, result->offset), 0);
    else
      run_scan(op, dtypes, input, result, d);
  }
  const int result_dtype = dtype != ARGAND_DTYPE_NONE ? dtype : result.dtype();
  return result.dtype() == result_dtype ? result : ops::_to_copy(result, result_dtype);
}

}  // namespace argand::cuda
