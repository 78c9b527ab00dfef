// Scaled dot-product attention in tiles of queries: scores of a tile against all its keys stay in cache and are never stored.
// The backward pass recomputes them from the logarithms of the sums (T. Dao et al., "FlashAttention", 2022).
#include "packages/aten/csrc/kernels/cpu/attention.h"

#include "packages/aten/csrc/core/attention_sizes.h"
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/cpu/panels.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kTile = 64;   // queries
constexpr int64_t kKeys = 192;  // keys of the backward pass whose rows, gradients and scores stay in the second-level cache
static_assert(kKeys % kPanel == 0);

template <class E>
const AttentionLoops<E>& loops() {
  if constexpr (sizeof(E) == 4)
    return pick_attention_kernels().f32;
  else
    return pick_attention_kernels().f64;
}

// A (batch, head, position, feature) operand in compute type with unit stride along features.
template <class E>
struct Heads {
  Tensor t;
  Heads(const Tensor& x, int dtype) : t(x.dtype() == dtype && x.stride(3) == 1 ? x : to_dtype(contiguous(x), dtype)) {}
  E* at(int64_t b, int64_t h, int64_t row = 0) const { return t.data<E>() + b * t.stride(0) + h * t.stride(1) + row * t.stride(2); }
  int64_t ld() const { return t.stride(2); }
};

// Leading dimension of rows of `n` that lie apart in the sets of a cache.
int64_t spread(int64_t n) { return round_up(n, 16) + 16; }

// The transposed matrix of one (batch, head) at a time, in panels of columns: what a block of a product reads lies together.
template <class E>
class Transposed {
 public:
  Transposed(const Heads<E>& from, int64_t rows, int64_t columns)
      : from_(from), rows_(rows), columns_(columns), data_(columns * round_up(rows, kPanel)) {}
  // c[m, n] = alpha * a[m, columns] b[columns, n], with b of (batch, head) `b`, `h` from its column `first`, which begins a panel.
  void multiply(int64_t b, int64_t h, int64_t first, int64_t m, int64_t n, E alpha, const E* a, int64_t lda, E* c, int64_t ldc) {
    if (const E* p = from_.at(b, h); p != held_) {
      for (int64_t j = 0; j < rows_; j += kPanel) {
        const int64_t sizes[2] = {columns_, std::min(kPanel, rows_ - j)}, to[2] = {kPanel, 1}, strides[2] = {1, from_.ld()};
        strided_copy(sizeof(E), 2, sizes, data_.get() + j * columns_, to, p + j * from_.ld(), strides);
      }
      held_ = p;
    }
    for (int64_t j = 0; j < n; j += kPanel)
      multiply_cached<E>(m, std::min(kPanel, n - j), columns_, alpha, a, lda, 1, data_.get() + (first + j) * columns_, kPanel, false, c + j, ldc);
  }

 private:
  const Heads<E>& from_;
  int64_t rows_, columns_;
  Scratch<E> data_;
  const E* held_ = nullptr;
};

struct Problem : AttentionSizes {
  bool causal;
  Problem(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal) : AttentionSizes(op, q, k, v), causal(is_causal) {}
  int64_t tiles() const { return (queries + kTile - 1) / kTile; }
  // Keys that query `row` sees; causal: those not behind it, aligned at the first.
  int64_t visible(int64_t row) const { return causal ? std::min(keys, row + 1) : keys; }
};

// An additive mask broadcast to (batch, heads, queries, keys); bools become 0 and -inf.
template <class E>
class Mask {
 public:
  Mask(const Tensor& mask, const Problem& p, int dtype) {
    if (!mask) return;
    Tensor t = contiguous(mask);
    if (mask.dtype() == ARGAND_BOOL) {
      const Tensor additive = argand::empty(mask.sizes(), dtype);
      for (int64_t i = 0; i < t.numel(); i++) additive.data<E>()[i] = t.data<uint8_t>()[i] ? E(0) : -std::numeric_limits<E>::infinity();
      t = additive;
    } else {
      t = to_dtype(t, dtype);
    }
    if (t.dim() > 0 && t.size(-1) == 1 && p.keys != 1) {  // rows must be dense
      builtins::Ints sizes = t.sizes().vec();
      sizes.back() = p.keys;
      const Tensor wide = argand::empty(sizes, dtype);
      for (int64_t r = 0; r < t.numel(); r++) std::fill_n(wide.data<E>() + r * p.keys, p.keys, t.data<E>()[r]);
      t = wide;
    }
    tensor_ = t;
    strides_ = broadcast_strides("attention", t, {p.batch, p.heads, p.queries, p.keys});
  }
  const E* row(int64_t b, int64_t h, int64_t i) const {
    return tensor_ ? tensor_.data<E>() + b * strides_[0] + h * strides_[1] + i * strides_[2] : nullptr;
  }

 private:
  Tensor tensor_;
  Dims strides_;
};

// A result laid out as `like` is: (batch, position, head, feature) in memory where that is so.
Tensor result_like(const Tensor& like, IntList sizes, int dtype) {
  if (like.stride(1) >= like.stride(2)) return argand::empty(sizes, dtype);
  return argand::empty_strided(sizes, {sizes[2] * sizes[1] * sizes[3], sizes[3], sizes[1] * sizes[3], int64_t{1}}, dtype);
}

template <class E>
void forward(const Problem& p, const Heads<E>& q, const Heads<E>& k, const Heads<E>& v, const Mask<E>& mask, double scale, const Heads<E>& out,
             E* lse) {
  argand::parallel_for(0, p.batch * p.heads * p.tiles(), 1, [&](int64_t begin, int64_t end) {
    const int64_t ld = spread(p.keys);
    Scratch<E> scores(kTile * ld);
    E sums[kTile];
    Transposed<E> keys(k, p.keys, p.features);
    for (int64_t task = begin; task < end; task++) {
      const int64_t first = task % p.tiles() * kTile, h = task / p.tiles() % p.heads, b = task / p.tiles() / p.heads, kv = h / p.group();
      const int64_t rows = std::min(kTile, p.queries - first), width = p.visible(first + rows - 1);
      keys.multiply(b, kv, 0, rows, width, static_cast<E>(scale), q.at(b, h, first), q.ld(), scores, ld);
      for (int64_t i = 0; i < rows; i++)
        lse[(b * p.heads + h) * p.queries + first + i] =
            loops<E>().exponentials(p.visible(first + i), width, scores + i * ld, mask.row(b, h, first + i), &sums[i]);
      multiply_cached<E>(rows, p.value_features, width, 1, scores.get(), ld, 1, v.at(b, kv), v.ld(), false, out.at(b, h, first), out.ld());
      for (int64_t i = 0; i < rows; i++) loops<E>().divide(p.value_features, out.at(b, h, first + i), sums[i]);
    }
  });
}

template <class E>
void backward(const Problem& p, const Heads<E>& go, const Heads<E>& q, const Heads<E>& k, const Heads<E>& v, const Mask<E>& mask, const Heads<E>& out,
              const E* lse, double scale, const Heads<E>& gq, const Heads<E>& gk, const Heads<E>& gv) {
  argand::parallel_for(0, p.batch * p.kv_heads, 1, [&](int64_t begin, int64_t end) {
    const int64_t ld = spread(kKeys);
    Scratch<E> scores(kTile * ld), grads(kTile * ld), deltas(p.queries);
    Transposed<E> keys(k, p.keys, p.features), values(v, p.keys, p.value_features);
    for (int64_t task = begin; task < end; task++) {
      const int64_t b = task / p.kv_heads, kv = task % p.kv_heads;
      for (int64_t j = 0; j < p.keys; j++) {
        std::fill_n(gk.at(b, kv, j), p.features, E(0));
        std::fill_n(gv.at(b, kv, j), p.value_features, E(0));
      }
      for (int64_t h = kv * p.group(); h < (kv + 1) * p.group(); h++) {
        for (int64_t i = 0; i < p.queries; i++) deltas[i] = loops<E>().dot(p.value_features, go.at(b, h, i), out.at(b, h, i));
        int64_t seen = 0;  // keys before those at hand
        do                 // once where there are none: the queries' gradients become 0
          for (int64_t first = 0; first < p.queries; first += kTile) {
            const int64_t rows = std::min(kTile, p.queries - first), width = std::min(kKeys, p.visible(first + rows - 1) - seen);
            if (width <= 0 && seen > 0) continue;
            keys.multiply(b, kv, seen, rows, width, static_cast<E>(scale), q.at(b, h, first), q.ld(), scores, ld);
            values.multiply(b, kv, seen, rows, width, 1, go.at(b, h, first), go.ld(), grads, ld);
            for (int64_t i = 0; i < rows; i++) {
              const int64_t row = first + i, count = std::clamp<int64_t>(p.visible(row) - seen, 0, width);
              const E* const added = mask.row(b, h, row);
              loops<E>().backward(count, width, scores + i * ld, added ? added + seen : nullptr, lse[(b * p.heads + h) * p.queries + row],
                                  grads + i * ld, deltas[row], static_cast<E>(scale));
            }
            multiply_cached<E>(width, p.value_features, rows, 1, scores.get(), 1, ld, go.at(b, h, first), go.ld(), true, gv.at(b, kv, seen), gv.ld());
            multiply_cached<E>(rows, p.features, width, 1, grads.get(), ld, 1, k.at(b, kv, seen), k.ld(), seen > 0, gq.at(b, h, first), gq.ld());
            multiply_cached<E>(width, p.features, rows, 1, grads.get(), 1, ld, q.at(b, h, first), q.ld(), true, gk.at(b, kv, seen), gk.ld());
          }
        while ((seen += kKeys) < p.keys);
      }
    }
  });
}

// Converted if need be; keeps the layout of what it leaves alone.
Tensor converted(const Tensor& t, int dtype) { return t.dtype() == dtype ? t : to_dtype(t, dtype); }
int compute_dtype(int dtype) { return dtype == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32; }

}  // namespace

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask, bool is_causal,
                                     double scale) {
  const Problem p("attention", query, key, value, is_causal);
  const int dtype = compute_dtype(query.dtype());
  const Tensor lse = argand::empty({p.batch, p.heads, p.queries}, dtype);
  const Tensor out = result_like(query, {p.batch, p.heads, p.queries, p.value_features}, dtype);
  if (p.keys == 0) {
    zero_(out);
    fill_(lse, -std::numeric_limits<double>::infinity());
  } else {
    dispatch_floating("attention", dtype, [&](auto tag) {
      using E = compute_t<typename decltype(tag)::type>;
      forward<E>(p, {query, dtype}, {key, dtype}, {value, dtype}, {attn_mask, p, dtype}, scale, {out, dtype}, lse.data<E>());
    });
  }
  return {converted(out, query.dtype()), lse};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const Tensor& attn_mask, const Tensor& out, const Tensor& logsumexp, bool is_causal,
                                                      double scale) {
  const Problem p("attention_backward", query, key, value, is_causal);
  p.check_results("attention_backward", grad_out, out, logsumexp);
  const int dtype = compute_dtype(query.dtype());
  const Tensor gq = result_like(query, query.sizes(), dtype), gk = result_like(key, key.sizes(), dtype),
               gv = result_like(value, value.sizes(), dtype);
  const Tensor lse = contiguous(converted(logsumexp, dtype));
  dispatch_floating("attention_backward", dtype, [&](auto tag) {
    using E = compute_t<typename decltype(tag)::type>;
    backward<E>(p, {grad_out, dtype}, {query, dtype}, {key, dtype}, {value, dtype}, {attn_mask, p, dtype}, {out, dtype}, lse.data<E>(), scale,
                {gq, dtype}, {gk, dtype}, {gv, dtype});
  });
  return {converted(gq, query.dtype()), converted(gk, key.dtype()), converted(gv, value.dtype())};
}

}  // namespace argand::kernels::cpu
