// Negative log likelihood and margins between classes (argand_aten_cuda/kernels/loss.py). Reductions: 0 none, 1 mean, 2 sum.
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kRows = 256, kClasses = 2048;

struct Problem {
  int64_t rows, classes;
  Tensor target, weight;  // int64; the dtype of sums, or undefined
  Problem(const char* op, const Tensor& self, const Tensor& y, const Tensor& w) {
    if (self.dim() < 1 || self.dim() > 2)
      fail(ARGAND_SHAPE_ERROR, "%s: input tensor should be 1D or 2D, got %s", op, to_string(self.sizes()).c_str());
    rows = self.dim() == 2 ? self.size(0) : 1, classes = self.size(-1);
    if (y.dim() > 1 || y.numel() != rows || (self.dim() == 2 && y.dim() != 1))
      fail(ARGAND_SHAPE_ERROR, "%s: size mismatch (got input: %s, target: %s)", op, to_string(self.sizes()).c_str(), to_string(y.sizes()).c_str());
    if (y.dtype() != ARGAND_INT64 && y.dtype() != ARGAND_INT32 && y.dtype() != ARGAND_UINT8)
      fail(ARGAND_DTYPE_ERROR, "%s: expected target of dtype int64, got %s", op, kDTypeName[y.dtype()]);
    if (w && (w.dim() != 1 || w.numel() != classes))
      fail(ARGAND_SHAPE_ERROR, "%s: weight tensor should be defined either for all %lld classes or no classes but got weight tensor of shape: %s", op,
           static_cast<long long>(classes), to_string(w.sizes()).c_str());
    size32(op, rows), size32(op, classes);
    target = aligned_dense(y, ARGAND_INT64), weight = aligned_dense(w, sum_dtype(self.dtype()));
  }
};

}  // namespace

std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore_index) {
  static Slot slots[kFloats][3][2], totals[kFloats][3];
  const char* op = "nll_loss";
  const Problem p(op, self, target, weight);
  // One element a row is read, so that rows may lie anywhere.
  const Tensor x = self.size(-1) > 1 && self.stride(-1) != 1 ? ops::clone(self, 0) : self;
  const int dtype = x.dtype(), index = float_index(op, dtype), r = static_cast<int>(reduction);
  const Tensor total = empty_on(x, {}, dtype), out = empty_on(x, reduction == 0 ? target.sizes() : IntList(), dtype);
  const int64_t parts = cdiv(p.rows, kRows);
  const Tensor partial = empty_on(x, {parts, 2}, ARGAND_FLOAT64);
  const Kernel* k = slots[index][r][p.weight.defined()].get("nll_loss_rows;T=%s;A=%s;REDUCTION=%d;HAS_W=%d;BLOCK=%d", kDTypeName[dtype],
                                                            kDTypeName[sum_dtype(dtype)], r, p.weight.defined(), kRows);
  launch(k, grid(op, parts), address(x), address(p.target), address(p.weight), address(out), address(partial), error_record(x), operator_name(op),
         p.classes << 6 | 1, static_cast<int32_t>(p.rows), static_cast<int32_t>(p.classes), x.dim() == 2 ? x.stride(0) : p.classes, ignore_index);
  k = totals[index][r].get("nll_loss_total;T=%s;REDUCTION=%d;BLOCK=%d", kDTypeName[dtype], r, kRows);
  launch(k, Grid{1, 1, 1}, address(partial), address(out), address(total), static_cast<int32_t>(parts));
  return {out, total};
}

Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                         int64_t ignore_index, const Tensor& total_weight) {
  static Slot slots[kFloats][3][2][2];
  const char* op = "nll_loss_backward";
  const Problem p(op, self, target, weight);
  const int64_t grads = reduction == 0 ? p.rows : 1;
  if (grad_output.numel() != grads || total_weight.numel() != 1)
    fail(ARGAND_SHAPE_ERROR, "%s: got grad_output of shape %s and total_weight of shape %s, expected %lld elements and one", op,
         to_string(grad_output.sizes()).c_str(), to_string(total_weight.sizes()).c_str(), static_cast<long long>(grads));
  const Tensor grad = aligned_dense(grad_output, self.dtype()), total = aligned_dense(total_weight, self.dtype()),
               out = empty_on(self, self.sizes(), self.dtype());
  if (out.numel() == 0) return out;
  const int dtype = self.dtype(), r = static_cast<int>(reduction), align = alignment(p.classes);
  const Kernel* k = slots[float_index(op, dtype)][r][p.weight.defined()][align == 16].get(
      "nll_loss_backward;T=%s;A=%s;REDUCTION=%d;HAS_W=%d;BLOCK=%d;ALIGN=%d", kDTypeName[dtype], kDTypeName[sum_dtype(dtype)], r, p.weight.defined(),
      kClasses, align);
  launch(k, grid(op, p.rows * cdiv(p.classes, kClasses)), address(grad), address(p.target), address(p.weight), address(total), address(out),
         static_cast<int32_t>(p.classes / align), ignore_index);
  return out;
}

Tensor multi_margin(const Tensor& self, const Tensor& target, int64_t p, double margin) {
  static Slot slots[kFloats][2][2][2];
  const char* op = "multi_margin_loss";
  if (self.dim() != 2 || target.dim() != 1 || target.size(0) != self.size(0) || target.dtype() != ARGAND_INT64)
    fail(ARGAND_SHAPE_ERROR, "%s: got scores of shape %s and %s targets of shape %s, expected (N, C) and int64 targets (N)", op,
         to_string(self.sizes()).c_str(), kDTypeName[target.dtype()], to_string(target.sizes()).c_str());
  places::check_device(op, "target", target, self);
  const int64_t rows = self.size(0), classes = self.size(1);
  const Tensor x = classes > 1 && self.stride(1) != 1 ? ops::clone(self, 0) : self, places = aligned_dense(target);
  const Tensor out = empty_on(x, {rows}, x.dtype());
  if (rows == 0) return out;
  const bool squared = p == 2, many = classes > 512;
  const int64_t row_tile = many ? 1 : 16, block = many ? 2048 : 128;
  const int64_t align = (reinterpret_cast<uintptr_t>(x->data) | static_cast<uintptr_t>(classes | x.stride(0))) % 16 == 0 ? 16 : 1;
  const Kernel* k = slots[float_index(op, x.dtype())][squared][many][align == 16].get(
      "multi_margin_rows;T=%s;SQUARED=%s;ROWS=%lld;BLOCK=%lld;ALIGN=%lld", kDTypeName[x.dtype()], squared ? "True" : "False",
      static_cast<long long>(row_tile), static_cast<long long>(block), static_cast<long long>(align));
  // The CPU's gather raises a RuntimeError: the complement asks for one.
  launch(k, grid(op, cdiv(rows, row_tile)), address(x), address(places), address(out), error_record(x), operator_name(op), ~(classes << 6 | 1),
         size32(op, rows), static_cast<int32_t>(size32(op, classes) / align), x.stride(0) / align, margin);
  return out;
}

}  // namespace argand::kernels::cuda
