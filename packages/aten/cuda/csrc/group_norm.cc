// Group normalisation with its gradients (argand_aten_cuda/kernels/group_norm.py).
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kBlock = 2048, kSumBlock = 1024, kChannelBlock = 64;

struct Groups {
  int64_t batch, channels, space, groups;
  int align;
  Groups(const char* op, const Tensor& x, int64_t n, int64_t c, int64_t hxw, int64_t group)
      : batch(n), channels(c), space(hxw), groups(group), align(alignment(hxw)) {
    if (group <= 0 || c % group)
      fail(ARGAND_SHAPE_ERROR,
           "%s: Expected number of channels in input to be divisible by num_groups, but got input of shape %s and num_groups=%lld", op,
           to_string(x.sizes()).c_str(), static_cast<long long>(group));
    if (x.numel() != n * c * hxw)
      fail(ARGAND_SHAPE_ERROR, "%s: got input of shape %s, expected N * C * HxW = %lld elements", op, to_string(x.sizes()).c_str(),
           static_cast<long long>(n * c * hxw));
    size32(op, c * hxw), size32(op, n * c);
  }
  int32_t per() const { return static_cast<int32_t>(channels / groups); }
  int32_t length() const { return static_cast<int32_t>(space / align); }
  bool empty() const { return batch * channels * space == 0; }
};

// A weight or bias of the input's dtype, or of the sums'.
Tensor weight_of(const char* op, const Tensor& w, int64_t channels, int dtype) {
  if (w && w.numel() != channels)
    fail(ARGAND_SHAPE_ERROR, "%s: got a weight or bias of shape %s, expected %lld elements", op, to_string(w.sizes()).c_str(),
         static_cast<long long>(channels));
  return aligned_dense(w, dtype);
}
int weights_dtype(int dtype, const Tensor& a, const Tensor& b) {
  return (!a || a.dtype() == dtype) && (!b || b.dtype() == dtype) ? dtype : sum_dtype(dtype);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t N, int64_t C, int64_t HxW,
                                                     int64_t group, double eps) {
  static Slot slots[kFloats][2][2][2][2];
  const char* op = "group_norm";
  const Tensor x = aligned_dense(input);
  const Groups s(op, x, N, C, HxW, group);
  const int dtype = x.dtype(), stat = sum_dtype(dtype), wide = weights_dtype(dtype, weight, bias);
  const Tensor w = weight_of(op, weight, C, wide), b = weight_of(op, bias, C, wide);
  const Tensor out = empty_on(x, x.sizes(), dtype), mean = empty_on(x, {N, group}, stat), rstd = empty_on(x, {N, group}, stat);
  if (s.empty()) return {out, mean, rstd};
  const bool has_w = w.defined(), has_b = b.defined();
  const Kernel* k = slots[float_index(op, dtype)][wide != dtype][has_w][has_b][s.align == 16].get(
      "group_norm_forward;T=%s;W=%s;A=%s;HAS_W=%d;HAS_B=%d;BLOCK=%d;ALIGN=%d", kDTypeName[dtype], kDTypeName[wide], kDTypeName[stat], has_w, has_b,
      kBlock, s.align);
  launch(k, grid(op, N * group), address(x), address(w), address(b), address(out), address(mean), address(rstd), static_cast<int32_t>(group), s.per(),
         s.length(), eps);
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                                              const Tensor& weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
                                                              IntList output_mask) {
  static Slot sums[kFloats][2], slots[kFloats][2][2][2];
  const char* op = "group_norm_backward";
  if (grad_out.dtype() != input.dtype())
    fail(ARGAND_DTYPE_ERROR, "%s: got dtypes %s and %s, expected the same", op, kDTypeName[grad_out.dtype()], kDTypeName[input.dtype()]);
  const Tensor dy = aligned_dense(grad_out), x = aligned_dense(input), m = aligned_dense(mean), r = aligned_dense(rstd);
  const Groups s(op, x, N, C, HxW, group);
  const int dtype = x.dtype(), stat = sum_dtype(dtype), index = float_index(op, dtype), wide = weights_dtype(dtype, weight, Tensor()),
            aligned = s.align == 16;
  const Tensor w = weight_of(op, weight, C, wide);
  const int weight_dtype = weight ? weight.dtype() : dtype;
  Tensor dx, dw, db;
  if (output_mask[0]) dx = empty_on(x, x.sizes(), dtype);
  if (output_mask[1]) dw = empty_on(x, {C}, weight_dtype);
  if (output_mask[2]) db = empty_on(x, {C}, weight_dtype);
  if (s.empty()) {
    for (const Tensor* t : {&dw, &db})
      if (*t) ops::fill_(*t, Scalar(0));
    return {dx, dw, db};
  }
  const Tensor partial = empty_on(x, {2, N, C}, stat);
  const Kernel* k = sums[index][aligned].get("group_norm_sums;T=%s;A=%s;BLOCK=%d;ALIGN=%d", kDTypeName[dtype], kDTypeName[stat], kSumBlock, s.align);
  launch(k, grid(op, N * C), address(dy), address(x), address(m), address(r), address(partial), static_cast<int32_t>(group), static_cast<int32_t>(C),
         s.length());
  if (dx) {
    k = slots[index][wide != dtype][w.defined()][aligned].get("group_norm_backward;T=%s;W=%s;A=%s;HAS_W=%d;BLOCK_C=%d;BLOCK=%d;ALIGN=%d",
                                                              kDTypeName[dtype], kDTypeName[wide], kDTypeName[stat], w.defined(), kChannelBlock,
                                                              kBlock, s.align);
    launch(k, grid(op, N * group), address(dy), address(x), address(w), address(m), address(r), address(partial), address(dx),
           static_cast<int32_t>(group), s.per(), s.length());
  }
  sum_partials(op, partial, dw, db);
  return {dx, dw, db};
}

}  // namespace argand::kernels::cuda
