// Sizes of the operands of scaled dot-product attention, for the kernels of every backend.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand {

struct AttentionSizes {
  int64_t batch, heads, kv_heads, queries, keys, features, value_features;
  // Fails where the three are not (batch, heads, positions, features) of one problem.
  AttentionSizes(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
    const bool four = q.dim() == 4 && k.dim() == 4 && v.dim() == 4;
    if (!four || k.size(0) != q.size(0) || v.size(0) != q.size(0) || v.size(1) != k.size(1) || v.size(2) != k.size(2) || k.size(3) != q.size(3) ||
        k.size(1) == 0 || q.size(1) % k.size(1))
      fail(ARGAND_SHAPE_ERROR,
           "%s: got query %s, key %s, value %s, expected (batch, heads, positions, features) with heads of key and value dividing those of query", op,
           to_string(q.sizes()).c_str(), to_string(k.sizes()).c_str(), to_string(v.sizes()).c_str());
    batch = q.size(0), heads = q.size(1), kv_heads = k.size(1), queries = q.size(2), keys = k.size(2), features = q.size(3);
    value_features = v.size(3);
  }
  // What the backward pass reads beside them.
  void check_results(const char* op, const Tensor& grad_out, const Tensor& out, const Tensor& logsumexp) const {
    const int64_t sizes[4] = {batch, heads, queries, value_features};
    if (grad_out.sizes() != IntList{sizes, 4} || out.sizes() != IntList{sizes, 4} || logsumexp.sizes() != IntList{sizes, 3})
      fail(ARGAND_SHAPE_ERROR, "%s: got grad_out %s, out %s, logsumexp %s, expected %s, the same, and %s", op, to_string(grad_out.sizes()).c_str(),
           to_string(out.sizes()).c_str(), to_string(logsumexp.sizes()).c_str(), to_string({sizes, 4}).c_str(), to_string({sizes, 3}).c_str());
  }
  int64_t group() const { return heads / kv_heads; }
};

}  // namespace argand
