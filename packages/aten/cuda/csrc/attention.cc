// Scaled dot-product attention and its gradients (argand_aten_cuda/kernels/attention.py).
#include <cmath>

#include "packages/aten/csrc/core/attention_sizes.h"
#include "packages/aten/cuda/csrc/attention_tiles.h"
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/exponential.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/joining.h"
#include "packages/aten/generated/ops/matrix.h"
#include "packages/aten/generated/ops/reduction.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kWidths[] = {16, 32, 64, 128, 256};
constexpr int kWidest = 4;

struct Problem : AttentionSizes {
  Problem(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) : AttentionSizes(op, q, k, v) {
    if (k.dtype() != q.dtype() || v.dtype() != q.dtype())
      fail(ARGAND_DTYPE_ERROR, "%s: got query of %s, key of %s, value of %s, expected one dtype", op, kDTypeName[q.dtype()], kDTypeName[k.dtype()],
           kDTypeName[v.dtype()]);
    size32(op, batch * heads * queries), size32(op, batch * kv_heads * keys);
  }
  int32_t group() const { return static_cast<int32_t>(AttentionSizes::group()); }
  int32_t q() const { return static_cast<int32_t>(queries); }
  int32_t k() const { return static_cast<int32_t>(keys); }
  int32_t d() const { return static_cast<int32_t>(features); }
  int32_t dv() const { return static_cast<int32_t>(value_features); }
  int block() const { return block_index(kWidths, std::max(features, value_features)); }
};

// With unit stride along features, and rows not further apart than kernels count in 32 bits.
Tensor heads_of(const Tensor& t) { return (t.stride(3) == 1 || t.size(3) == 1) && t.stride(2) < (1 << 23) ? t : ops::clone(t, 0); }

// A result laid out as `like` is: (batch, position, head, feature) in memory where that is so.
Tensor result_like(const Tensor& like, IntList sizes) {
  if (like.stride(1) >= like.stride(2)) return empty_on(like, sizes, like.dtype());
  return empty_strided(sizes, {sizes[2] * sizes[1] * sizes[3], sizes[3], sizes[1] * sizes[3], int64_t{1}}, like.dtype(), like.device());
}

bool aligned(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t->data) % 16 == 0 && t.stride(0) % 16 == 0 && t.stride(1) % 16 == 0 && t.stride(2) % 16 == 0;
}

// A mask broadcast to (batch, heads, queries, keys). mode: 0 none, 1 boolean, 2 added (float32).
struct Mask {
  Tensor t;
  int mode = 0;
  int64_t b = 0, h = 0;
  int32_t q = 0, k = 0;
  Mask(const char* op, const Tensor& mask, const Problem& p) {
    if (!mask) return;
    mode = mask.dtype() == ARGAND_BOOL ? 1 : 2;
    t = mode == 1 || mask.dtype() == ARGAND_FLOAT32 ? mask : ops::_to_copy(mask, ARGAND_FLOAT32);
    const int64_t sizes[4] = {p.batch, p.heads, p.queries, p.keys};
    int64_t strides[4] = {0, 0, 0, 0};
    const int64_t lead = 4 - t.dim();
    bool fits = lead >= 0;
    for (int64_t i = 0; fits && i < t.dim(); i++) {
      fits = t.size(i) == sizes[lead + i] || t.size(i) == 1;
      strides[lead + i] = t.size(i) == 1 ? 0 : t.stride(i);
    }
    if (!fits)
      fail(ARGAND_SHAPE_ERROR, "%s: got attn_mask of shape %s, expected one that broadcasts to %s", op, to_string(mask.sizes()).c_str(),
           to_string({sizes, 4}).c_str());
    b = strides[0], h = strides[1], q = size32(op, strides[2]), k = size32(op, strides[3]);
  }
};

// float64, features wider than the widest tile, a scale that is not positive: the definition, in operators. Scores of a row that sees no key have
// logsumexp -inf.
Tensor scores(const Problem& p, const Tensor& q, const Tensor& k, const Tensor& mask, bool causal, double scale) {
  Tensor s = ops::mul(ops::matmul(q, ops::transpose(k, -2, -1)), Scalar(scale));
  const Scalar hidden(-std::numeric_limits<double>::infinity());
  if (causal) {
    const Tensor seen = ops::tril(ops::ones({p.queries, p.keys}, ARGAND_BOOL, q.device()));
    s = ops::masked_fill(s, ops::logical_not(seen), hidden);
  }
  if (!mask) return s;
  return mask.dtype() == ARGAND_BOOL ? ops::masked_fill(s, ops::logical_not(mask), hidden) : ops::add(s, mask);
}
Tensor shared_heads(const Problem& p, const Tensor& t) { return p.heads == p.kv_heads ? t : ops::repeat_interleave(t, p.heads / p.kv_heads, 1); }
Tensor over_groups(const Problem& p, const Tensor& t) {
  if (p.heads == p.kv_heads) return t;
  return ops::sum(ops::reshape(t, {p.batch, p.kv_heads, p.heads / p.kv_heads, t.size(2), t.size(3)}), IntList{2});
}
// exp(scores - logsumexp), zeros where a row sees no key.
Tensor probabilities(const Tensor& s, const Tensor& lse) {
  const Scalar infinity(std::numeric_limits<double>::infinity());
  const Tensor shift = ops::masked_fill(lse, ops::eq(lse, Scalar(-infinity.to_double())), infinity);
  return ops::exp(ops::sub(s, ops::unsqueeze(shift, -1)));
}
std::tuple<Tensor, Tensor> forward_by_operators(const Problem& p, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal,
                                                double scale) {
  const int wide = sum_dtype(q.dtype());
  const Tensor s = scores(p, aligned_dense(q, wide), shared_heads(p, aligned_dense(k, wide)), mask, causal, scale);
  const Tensor lse = ops::logsumexp(s, IntList{-1});
  return {aligned_dense(ops::matmul(probabilities(s, lse), shared_heads(p, aligned_dense(v, wide))), q.dtype()), lse};
}
std::tuple<Tensor, Tensor, Tensor> backward_by_operators(const Problem& p, const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                                         const Tensor& mask, const Tensor& out, const Tensor& lse, bool causal, double scale) {
  const int wide = sum_dtype(q.dtype());
  const Tensor qw = aligned_dense(q, wide), kw = shared_heads(p, aligned_dense(k, wide)), vw = shared_heads(p, aligned_dense(v, wide)),
               g = aligned_dense(grad, wide);
  const Tensor prob = probabilities(scores(p, qw, kw, mask, causal, scale), lse);
  const Tensor delta = ops::sum(ops::mul(g, aligned_dense(out, wide)), IntList{-1}, true);
  const Tensor ds = ops::mul(ops::mul(prob, ops::sub(ops::matmul(g, ops::transpose(vw, -2, -1)), delta)), Scalar(scale));
  const Tensor gk = ops::matmul(ops::transpose(ds, -2, -1), qw), gv = ops::matmul(ops::transpose(prob, -2, -1), g);
  return {aligned_dense(ops::matmul(ds, kw), q.dtype()), aligned_dense(over_groups(p, gk), k.dtype()), aligned_dense(over_groups(p, gv), v.dtype())};
}
bool by_operators(const Problem& p, const Tensor& q, double scale) {
  const bool wide = p.block() < 0 || (p.block() == kWidest && q.dtype() == ARGAND_FLOAT32);
  return q.dtype() == ARGAND_FLOAT64 || wide || !(scale > 0);
}

using Slots = Slot[3][2][3][kWidest + 1][2][2];  // dtype, causal, mask, width, padded, aligned

// The specialization for a problem; `tile` becomes its tile. `more`: what its name has after the others' constants.
const Kernel* variant(Slots& slots, const char* name, const AttentionTile (&tiles)[2][5], const Problem& p, int dtype, bool causal, int mask,
                      bool align, const char* more, AttentionTile* tile) {
  const int width = p.block(), pad = p.features != kWidths[width] || p.value_features != kWidths[width];
  *tile = tiles[dtype == ARGAND_FLOAT32][width];
  return slots[float_index(name, dtype)][causal][mask][width][pad][align].get(
      "%s;T=%s;M=%s;CAUSAL=%d;MASK=%d;BLOCK_M=%d;BLOCK_N=%d;BLOCK_D=%d;PAD=%d;ALIGN=%d%s", name, kDTypeName[dtype], mask == 1 ? "uint8" : "float32",
      causal, mask, tile->m, tile->n, kWidths[width], pad, align ? 16 : 1, more);
}

// A row stride in units of the kernel's ALIGN.
int32_t step(const Tensor& t, bool align) { return static_cast<int32_t>(align ? t.stride(2) / 16 : t.stride(2)); }

}  // namespace

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask, bool is_causal,
                                     double scale) {
  static Slots slots;
  const char* op = "attention";
  const Problem p(op, query, key, value);
  const Mask mask(op, attn_mask, p);
  const Tensor out = result_like(query, {p.batch, p.heads, p.queries, p.value_features}),
               lse = empty_on(query, {p.batch, p.heads, p.queries}, sum_dtype(query.dtype()));
  if (p.keys == 0) return {ops::fill_(out, Scalar(0)), ops::fill_(lse, Scalar(-std::numeric_limits<double>::infinity()))};
  if (out.numel() == 0) return {out, lse};
  if (by_operators(p, query, scale)) return forward_by_operators(p, query, key, value, attn_mask, is_causal, scale);
  const Tensor q = heads_of(query), k = heads_of(key), v = heads_of(value);
  const bool align = aligned(q) && aligned(k) && aligned(v) && aligned(out);
  AttentionTile tile;
  const Kernel* kernel = variant(slots, "attention_forward", attention_forward_tiles, p, q.dtype(), is_causal, mask.mode, align, "", &tile);
  launch(kernel, grid(op, cdiv(p.queries, tile.m) * p.batch * p.heads), address(q), address(k), address(v), address(mask.t), address(out),
         address(lse), static_cast<float>(scale), static_cast<int32_t>(p.heads), p.group(), p.q(), p.k(), p.d(), p.dv(), q.stride(0), q.stride(1),
         step(q, align), k.stride(0), k.stride(1), step(k, align), v.stride(0), v.stride(1), step(v, align), mask.b, mask.h, mask.q, mask.k,
         out.stride(0), out.stride(1), step(out, align));
  return {out, lse};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const Tensor& attn_mask, const Tensor& out, const Tensor& logsumexp, bool is_causal,
                                                      double scale) {
  static Slots query_slots, key_slots[2];
  const char* op = "attention_backward";
  const Problem p(op, query, key, value);
  p.check_results(op, grad_out, out, logsumexp);
  const Mask mask(op, attn_mask, p);
  if (p.keys == 0 || out.numel() == 0)
    return {ops::fill_(result_like(query, query.sizes()), Scalar(0)), ops::fill_(result_like(key, key.sizes()), Scalar(0)),
            ops::fill_(result_like(value, value.sizes()), Scalar(0))};
  if (by_operators(p, query, scale)) return backward_by_operators(p, grad_out, query, key, value, attn_mask, out, logsumexp, is_causal, scale);
  const Tensor g = heads_of(grad_out.dtype() == query.dtype() ? grad_out : aligned_dense(grad_out, query.dtype())), q = heads_of(query),
               k = heads_of(key), v = heads_of(value), o = heads_of(out), lse = aligned_dense(logsumexp, sum_dtype(query.dtype()));
  const Tensor gq = result_like(query, query.sizes()), gk = result_like(key, key.sizes()), gv = result_like(value, value.sizes()),
               delta = empty_on(lse, lse.sizes(), lse.dtype());
  bool align = true;
  for (const Tensor* t : {&g, &q, &k, &v, &o, &gq, &gk, &gv}) align &= aligned(*t);
  const float factor = static_cast<float>(scale);
  AttentionTile tile;
  const Kernel* kernel =
      variant(query_slots, "attention_backward_query", attention_backward_query_tiles, p, q.dtype(), is_causal, mask.mode, align, "", &tile);
  launch(kernel, grid(op, cdiv(p.queries, tile.m) * p.batch * p.heads), address(g), address(q), address(k), address(v), address(mask.t), address(o),
         address(lse), address(delta), address(gq), factor, static_cast<int32_t>(p.heads), p.group(), p.q(), p.k(), p.d(), p.dv(), g.stride(0),
         g.stride(1), step(g, align), q.stride(0), q.stride(1), step(q, align), k.stride(0), k.stride(1), step(k, align), v.stride(0), v.stride(1),
         step(v, align), mask.b, mask.h, mask.q, mask.k, o.stride(0), o.stride(1), step(o, align), gq.stride(0), gq.stride(1), step(gq, align));
  const bool grouped = p.group() > 1;
  kernel = variant(key_slots[grouped], "attention_backward_key", attention_backward_key_tiles, p, q.dtype(), is_causal, mask.mode, align,
                   grouped ? ";GROUPED=1" : ";GROUPED=0", &tile);
  launch(kernel, grid(op, cdiv(p.keys, tile.n) * p.batch * p.kv_heads), address(g), address(q), address(k), address(v), address(mask.t), address(lse),
         address(delta), address(gk), address(gv), factor, static_cast<int32_t>(p.kv_heads), p.group(), p.q(), p.k(), p.d(), p.dv(), g.stride(0),
         g.stride(1), step(g, align), q.stride(0), q.stride(1), step(q, align), k.stride(0), k.stride(1), step(k, align), v.stride(0), v.stride(1),
         step(v, align), mask.b, mask.h, mask.q, mask.k, gk.stride(0), gk.stride(1), step(gk, align), gv.stride(0), gv.stride(1), step(gv, align));
  return {gq, gk, gv};
}

}  // namespace argand::kernels::cuda
