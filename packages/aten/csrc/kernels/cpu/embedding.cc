// embedding: rows of a table by index, their sums, and the table's dense gradient.
#include <algorithm>

#include "packages/aten/csrc/kernels/cpu/rows.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/csrc/kernels/sweep.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

// Indices as dense int64 in [0, rows); others raise an error of this kind.
Tensor checked_indices(const char* op, const Tensor& indices, int64_t rows, ArgandErrorKind kind = ARGAND_INDEX_ERROR) {
  check_index_dtype(op, indices);
  const Tensor t = to_dtype(indices, ARGAND_INT64);
  const int64_t* p = t.data<int64_t>();
  if (pick_row_kernels().in_range(t.numel(), p, rows)) return t;
  for (int64_t i = 0; i < t.numel(); i++)
    if (p[i] < 0 || p[i] >= rows)
      fail(kind, "%s: index out of range: got index %ld at position %ld, expected 0 <= index < %ld (num_embeddings)", op, static_cast<long>(p[i]),
           static_cast<long>(i), static_cast<long>(rows));
  return t;
}

}  // namespace

// padding_idx and the flags after it only concern the gradient.
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool sparse) {
  if (sparse) fail(ARGAND_NOT_IMPLEMENTED_ERROR, "embedding: got sparse=True, expected False; gradients of embeddings are dense");
  if (weight.dim() != 2) fail(ARGAND_SHAPE_ERROR, "embedding: 'weight' must be 2-D, got %s", to_string(weight.sizes()).c_str());
  const Tensor index = checked_indices("embedding", indices, weight.size(0), weight.size(0) ? ARGAND_INDEX_ERROR : ARGAND_RUNTIME_ERROR);
  const Tensor table = weight.size(1) == 1 || weight.stride(1) == 1 ? weight : contiguous(weight);
  Dims sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  Tensor out = empty(sizes, weight.dtype());
  const int64_t row = weight.size(1) * weight.itemsize(), step = table.stride(0) * weight.itemsize();
  const int64_t* p = index.data<int64_t>();
  parallel_sweep(index.numel(), row_grain(row, 65536), 2 * row, [&](int64_t begin, int64_t end) {
    pick_row_kernels().take(end - begin, p + begin, table.data<char>(), step, row, out.data<char>() + begin * row);
  });
  return out;
}

Tensor bag_sums(const Tensor& weight, const Tensor& indices, const Tensor& bag_of, int64_t bags, bool) {
  if (weight.dim() != 2) fail(ARGAND_SHAPE_ERROR, "_bag_sums: 'weight' must be 2-D, got %s", to_string(weight.sizes()).c_str());
  const Tensor index = checked_indices("_bag_sums", indices, weight.size(0), ARGAND_RUNTIME_ERROR), bag = checked_indices("_bag_sums", bag_of, bags);
  const Tensor table = weight.size(1) == 1 || weight.stride(1) == 1 ? weight : contiguous(weight);
  const int64_t n = weight.size(1), step = table.stride(0), count = index.numel();
  if (bag.numel() != count)
    fail(ARGAND_SHAPE_ERROR, "_bag_sums: got bags %s, expected %s", to_string(bag_of.sizes()).c_str(), to_string(indices.sizes()).c_str());
  const int64_t *p = index.data<int64_t>(), *b = bag.data<int64_t>();
  const Tensor sum = zeros({bags, n}, weight.dtype() == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32);
  dispatch_floating("_bag_sums", weight.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const RowKernels& kernels = pick_row_kernels();
    parallel_for(0, bags, bags ? std::max<int64_t>(1, row_grain(count * n / bags)) : 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = std::lower_bound(b, b + count, begin) - b; i < count && b[i] < end; i++)
        add_row(kernels, n, sum.data<compute_t<T>>() + b[i] * n, table.data<T>() + p[i] * step, compute_t<T>(1));
    });
  });
  return sum;
}

Tensor embedding_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
  const Tensor index = checked_indices("embedding_backward", indices, num_weights);
  const Tensor grad = contiguous(grad_output);
  const int64_t n = grad.size(-1), count = index.numel();
  if (grad.numel() != n * count)
    fail(ARGAND_SHAPE_ERROR, "embedding_backward: got grad of shape %s, expected %s and one more dim", to_string(grad.sizes()).c_str(),
         to_string(indices.sizes()).c_str());
  Tensor sum = zeros({num_weights, n}, grad.dtype() == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32);
  const int64_t* p = index.data<int64_t>();
  Scratch<int32_t> frequency(scale_grad_by_freq ? num_weights : 0);
  if (scale_grad_by_freq) {
    std::memset(frequency.get(), 0, sizeof(int32_t) * static_cast<size_t>(num_weights));
    for (int64_t i = 0; i < count; i++) frequency[p[i]]++;
  }
  dispatch_floating("embedding_backward", grad.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const RowKernels& kernels = pick_row_kernels();
    // Each thread owns a range of the table and adds in the order of the indices, so the sums are always the same.
    const int64_t grain = count * n < 32768 ? num_weights : (num_weights + 15) / 16;
    parallel_for(0, num_weights, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; i++) {
        if (p[i] < begin || p[i] >= end || p[i] == padding_idx) continue;
        const E alpha = scale_grad_by_freq ? E(1) / static_cast<E>(frequency[p[i]]) : E(1);
        add_row(kernels, n, sum.data<E>() + p[i] * n, grad.data<T>() + i * n, alpha);
      }
    });
  });
  return to_dtype(sum, grad.dtype());
}

}  // namespace argand::kernels::cpu
