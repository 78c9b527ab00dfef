// Layer and RMS normalisation with their gradients (argand_aten_cuda/kernels/norm.py).
#include <iterator>

#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kBlocks[] = {16, 64, 256, 1024, 2048, 4096, 8192};
constexpr int kSeveral[] = {128, 32, 4};  // rows of a program, of the first of these blocks; one of the others
constexpr int kLong = 4096, kUnaligned = 1024, kWeightRows = 16, kWeightColumns = 64;
constexpr int64_t kPrograms = 528;  // at most, that share the rows of a backward pass: four for each multiprocessor of an H200

// Trailing dims that are normalised: rows x n.
struct Rows {
  int64_t rows, n;
  int align, block, each;  // each: rows at a time; block -1: the kernels for long rows
  Rows(const char* op, const Tensor& x, IntList shape) {
    const int64_t lead = x.dim() - shape.n;
    if (shape.n == 0 || lead < 0 || !(IntList(x->sizes + lead, shape.n) == shape))
      fail(ARGAND_SHAPE_ERROR, "%s: Given normalized_shape=%s, expected input with shape [*, %s, but got input of size %s", op,
           to_string(shape).c_str(), to_string(shape).c_str() + 1, to_string(x.sizes()).c_str());
    n = elements_in(shape, 0, shape.n), rows = elements_in(x.sizes(), 0, lead), align = alignment(n);
    block = n > kUnaligned && align == 1 ? -1 : block_index(kBlocks, n);
    each = block >= 0 && block < static_cast<int>(std::size(kSeveral)) ? kSeveral[block] : 1;
    size32(op, rows), size32(op, n);
  }
  bool empty() const { return rows * n == 0; }
  int32_t rows32() const { return static_cast<int32_t>(rows); }
  int32_t length() const { return static_cast<int32_t>(n / align); }
};

Tensor statistics(const Tensor& x, IntList shape) {
  Dims sizes(x.sizes());
  for (int64_t i = sizes.n - shape.n; i < sizes.n; i++) sizes[i] = 1;
  return empty_on(x, sizes, sum_dtype(x.dtype()));
}

// Weight and bias of one dtype, the input's or float32.
struct Weights {
  Tensor w, b;
  int dtype;
  Weights(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t n) {
    for (const Tensor* t : {&weight, &bias})
      if (*t && t->numel() != n)
        fail(ARGAND_SHAPE_ERROR, "%s: got a weight or bias of shape %s, expected %lld elements", op, to_string(t->sizes()).c_str(),
             static_cast<long long>(n));
    const bool as_input = (!weight || weight.dtype() == x.dtype()) && (!bias || bias.dtype() == x.dtype());
    dtype = as_input ? x.dtype() : sum_dtype(x.dtype());
    w = aligned_dense(weight, dtype), b = aligned_dense(bias, dtype);
  }
};

using Slots = Slot[2][2][2][2][2][8];  // weights of the sums' dtype, RMS, weight, bias or partial sums, aligned, block (last: long)

void forward(const char* op, const Tensor& x, const Rows& s, const Weights& p, double eps, const Tensor& out, const Tensor& mean,
             const Tensor& rstd) {
  static Slots slots[kFloats];
  if (s.empty()) return;
  const bool rms = !mean, w = p.w.defined(), b = p.b.defined();
  Slot& slot = slots[float_index(op, x.dtype())][p.dtype != x.dtype()][rms][w][b][s.align == 16][s.block < 0 ? 7 : s.block];
  const char *t = kDTypeName[x.dtype()], *tw = kDTypeName[p.dtype], *ta = kDTypeName[sum_dtype(x.dtype())];
  if (s.block < 0) {
    const Kernel* k = slot.get("norm_forward_long;T=%s;W=%s;A=%s;RMS=%d;HAS_W=%d;HAS_B=%d;BLOCK=%d;ALIGN=%d", t, tw, ta, rms, w, b, kLong, s.align);
    launch(k, grid(op, s.rows), address(x), address(p.w), address(p.b), address(out), address(mean), address(rstd), s.length(), eps);
  } else {
    const Kernel* k = slot.get("norm_forward;T=%s;W=%s;A=%s;RMS=%d;HAS_W=%d;HAS_B=%d;BLOCK=%d;ROWS=%d;ALIGN=%d", t, tw, ta, rms, w, b,
                               kBlocks[s.block], s.each, s.align);
    launch(k, grid(op, cdiv(s.rows, s.each)), address(x), address(p.w), address(p.b), address(out), address(mean), address(rstd), s.rows32(),
           s.length(), eps);
  }
}

// The parts whose sums for weight and bias lie in the result[2, parts, n].
Tensor backward_long(const char* op, const Tensor& dy, const Tensor& x, const Rows& s, const Weights& p, const Tensor& mean, const Tensor& rstd,
                     const Tensor& dx, bool sums) {
  static Slots slots[kFloats];
  static Slot sum_slots[kFloats][2][2];
  const bool rms = !mean, w = p.w.defined();
  const int index = float_index(op, x.dtype()), aligned = s.align == 16;
  const char *t = kDTypeName[x.dtype()], *ta = kDTypeName[sum_dtype(x.dtype())];
  if (dx) {
    Slot& slot = slots[index][p.dtype != x.dtype()][rms][w][0][aligned][7];
    const Kernel* k =
        slot.get("norm_backward_long;T=%s;W=%s;A=%s;RMS=%d;HAS_W=%d;BLOCK=%d;ALIGN=%d", t, kDTypeName[p.dtype], ta, rms, w, kLong, s.align);
    launch(k, grid(op, s.rows), address(dy), address(x), address(p.w), address(mean), address(rstd), address(dx), s.length());
  }
  if (!sums) return Tensor();
  const int64_t each = cdiv(cdiv(s.rows, 16), kWeightRows) * kWeightRows, parts = cdiv(s.rows, each);
  const Tensor partial = empty_on(x, {2, parts, s.n}, sum_dtype(x.dtype()));
  const Kernel* k = sum_slots[index][rms][aligned].get("norm_backward_weight;T=%s;A=%s;RMS=%d;BLOCK_R=%d;BLOCK=%d;ALIGN=%d", t, ta, rms, kWeightRows,
                                                       kWeightColumns, s.align);
  launch(k, grid(op, cdiv(s.n, kWeightColumns), parts), address(dy), address(x), address(mean), address(rstd), address(partial), s.rows32(),
         s.length(), static_cast<int32_t>(each));
  return partial;
}

Tensor backward_fit(const char* op, const Tensor& dy, const Tensor& x, const Rows& s, const Weights& p, const Tensor& mean, const Tensor& rstd,
                    const Tensor& dx, bool sums) {
  static Slots slots[kFloats];
  const bool rms = !mean, w = p.w.defined();
  Slot& slot = slots[float_index(op, x.dtype())][p.dtype != x.dtype()][rms][w][sums][s.align == 16][s.block];
  const int64_t programs = std::min(kPrograms, cdiv(s.rows, s.each));
  Tensor partial;
  if (sums) partial = empty_on(x, {2, programs, s.n}, sum_dtype(x.dtype()));
  const Kernel* k = slot.get("norm_backward;T=%s;W=%s;A=%s;RMS=%d;HAS_W=%d;PARTIAL=%d;BLOCK=%d;ROWS=%d;ALIGN=%d", kDTypeName[x.dtype()],
                             kDTypeName[p.dtype], kDTypeName[sum_dtype(x.dtype())], rms, w, sums, kBlocks[s.block], s.each, s.align);
  launch(k, grid(op, programs), address(dy), address(x), address(p.w), address(mean), address(rstd), address(dx), address(partial), s.rows32(),
         s.length());
  return partial;
}

// Gradients of layer norm (mean defined) and RMS norm: input, weight, bias by mask.
std::tuple<Tensor, Tensor, Tensor> backward(const char* op, const Tensor& grad, const Tensor& input, IntList shape, const Tensor& mean,
                                            const Tensor& rstd, const Tensor& weight, int bias_dtype, bool want_x, bool want_w, bool want_b) {
  if (grad.dtype() != input.dtype())
    fail(ARGAND_DTYPE_ERROR, "%s: got dtypes %s and %s, expected the same", op, kDTypeName[grad.dtype()], kDTypeName[input.dtype()]);
  const Tensor dy = aligned_dense(grad), x = aligned_dense(input), m = aligned_dense(mean), r = aligned_dense(rstd);
  const Rows s(op, x, shape);
  const Weights p(op, x, weight, Tensor(), s.n);
  const bool sums = want_w || want_b;
  Tensor dx, dw, db;
  if (want_x || (sums && s.block >= 0)) dx = empty_on(x, x.sizes(), x.dtype());  // one kernel makes both
  if (want_w) dw = empty_on(x, shape, weight ? weight.dtype() : x.dtype());
  if (want_b) db = empty_on(x, shape, bias_dtype);
  if (s.empty()) {
    for (const Tensor* t : {&dw, &db})
      if (*t) ops::fill_(*t, Scalar(0));
    return {dx, dw, db};
  }
  const Tensor partial = (s.block < 0 ? backward_long : backward_fit)(op, dy, x, s, p, m, r, dx, sums);
  if (sums) sum_partials(op, partial, dw, db);
  return {want_x ? dx : Tensor(), dw, db};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, const Tensor& bias,
                                                     double eps) {
  const Tensor x = aligned_dense(input);
  const Rows s("layer_norm", x, normalized_shape);
  const Weights p("layer_norm", x, weight, bias, s.n);
  const Tensor out = empty_on(x, x.sizes(), x.dtype()), mean = statistics(x, normalized_shape), rstd = statistics(x, normalized_shape);
  forward("layer_norm", x, s, p, eps, out, mean, rstd);
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntList normalized_shape,
                                                              const Tensor& mean, const Tensor& rstd, const Tensor& weight, const Tensor& bias,
                                                              IntList output_mask) {
  return backward("layer_norm_backward", grad_out, input, normalized_shape, mean, rstd, weight, bias ? bias.dtype() : input.dtype(),
                  output_mask[0] != 0, output_mask[1] != 0, output_mask[2] != 0);
}

std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, double eps) {
  const Tensor x = aligned_dense(input);
  const Rows s("rms_norm", x, normalized_shape);
  const Weights p("rms_norm", x, weight, Tensor(), s.n);
  const Tensor out = empty_on(x, x.sizes(), x.dtype()), rrms = statistics(x, normalized_shape);
  forward("rms_norm", x, s, p, eps, out, Tensor(), rrms);
  return {out, rrms};
}

std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input, IntList normalized_shape, const Tensor& rrms,
                                                   const Tensor& weight, IntList output_mask) {
  auto [dx, dw, db] = backward("rms_norm_backward", grad_out, input, normalized_shape, Tensor(), rrms, weight, input.dtype(), output_mask[0] != 0,
                               output_mask[1] != 0, false);
  return {dx, dw};
}

}  // namespace argand::kernels::cuda
