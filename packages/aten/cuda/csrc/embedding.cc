// The dense gradient of an embedding, and sums of its rows by bags (argand_aten_cuda/kernels/embedding.py).
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kBlock = 256, kWideBlock = 1024;  // the latter of long rows' bags, which each program has to search for

}  // namespace

// Indices are sorted, stably, and each run of equal ones is added up in order: the result is always the same.
Tensor embedding_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
  static Slot slots[kFloats][2];
  const char* op = "embedding_backward";
  if (indices.dtype() != ARGAND_INT64 && indices.dtype() != ARGAND_INT32)
    fail(ARGAND_DTYPE_ERROR, "%s: got indices of dtype %s, expected int64 or int32", op, kDTypeName[indices.dtype()]);
  const Tensor grad = aligned_dense(grad_output);
  const int64_t n = grad.size(-1), count = indices.numel();
  if (grad.numel() != n * count)
    fail(ARGAND_SHAPE_ERROR, "%s: got grad of shape %s, expected %s and one more dim", op, to_string(grad.sizes()).c_str(),
         to_string(indices.sizes()).c_str());
  const Tensor out = ops::zeros({num_weights, n}, grad.dtype(), grad.device());
  if (count == 0 || n == 0) return out;
  const Tensor packed = aligned_dense(indices, ARGAND_INT64);
  const Tensor flat = view_of(packed, {count}, {1}, packed->offset);
  const auto [index, order] = ops::sort(flat, 0, false, true);
  const Kernel* k = slots[float_index(op, grad.dtype())][scale_grad_by_freq].get("embedding_backward_runs;T=%s;BY_COUNT=%d;BLOCK=%d",
                                                                                 kDTypeName[grad.dtype()], scale_grad_by_freq, kBlock);
  launch(k, grid(op, count, cdiv(n, kBlock)), address(grad), address(index), address(order), address(out), error_record(grad), operator_name(op),
         size32(op, count), size32(op, n), size32(op, num_weights), padding_idx);
  return out;
}

Tensor bag_sums(const Tensor& weight, const Tensor& indices, const Tensor& bag_of, int64_t bags, bool) {
  static Slot slots[kFloats][2][2];
  const char* op = "embedding_bag";
  if (weight.dim() != 2) fail(ARGAND_SHAPE_ERROR, "%s: 'weight' must be 2-D, got %s", op, to_string(weight.sizes()).c_str());
  if (bag_of.numel() != indices.numel())
    fail(ARGAND_SHAPE_ERROR, "%s: got bags %s, expected %s", op, to_string(bag_of.sizes()).c_str(), to_string(indices.sizes()).c_str());
  const Tensor table = aligned_dense(weight), index = aligned_dense(indices, ARGAND_INT64), bag = aligned_dense(bag_of, ARGAND_INT64);
  const int64_t n = weight.size(1);
  const Tensor out = empty_on(weight, {bags, n}, sum_dtype(weight.dtype()));
  if (out.numel() == 0) return out;
  const int block = n > kBlock ? kWideBlock : kBlock;
  const Kernel* k = slots[float_index(op, weight.dtype())][block == kWideBlock][n % 16 == 0].get(
      "bag_sums;T=%s;A=%s;ROWS=8;BLOCK=%d;ALIGN=%d", kDTypeName[weight.dtype()], kDTypeName[out.dtype()], block, alignment(n));
  launch(k, grid(op, bags, cdiv(n, block)), address(out), address(table), address(index), address(bag), error_record(weight), operator_name(op),
         size32(op, index.numel()), size32(op, n), size32(op, weight.size(0)));
  return out;
}

}  // namespace argand::kernels::cuda
