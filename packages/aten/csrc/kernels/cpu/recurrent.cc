// Recurrent layers, all steps in one call: a step's product by a weight that is packed once, then gates and state in one pass, by blocks of the
// state. Threads share the sequences, each with all its steps; or, of few and where a core's cache does not hold the weight, the blocks of every
// step.
#include "packages/aten/csrc/kernels/cpu/recurrent.h"

#include <optional>

#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/panels.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/network.h"
#include "packages/aten/generated/ops/reduction.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kFewProducts = 16;            // rows of all steps for which a weight is not packed
constexpr int64_t kRowBlock = 8, kRowStep = 4;  // of a product; of what threads share
constexpr int64_t kMostRows = 64;               // sequences that a thread takes at once
constexpr int64_t kWork = 200000;               // multiply-adds that are worth a thread
constexpr int64_t kSharedWeight = 512 << 10;    // bytes of a weight, most of what a core's own cache holds

template <class T>
const RecurrentLoops<compute_t<T>>& loops() {
  const RecurrentKernels& kernels = pick_recurrent_kernels();
  if constexpr (std::is_same_v<T, float>) return kernels.f32;
  if constexpr (std::is_same_v<T, double>) return kernels.f64;
  if constexpr (std::is_same_v<T, bf16>) return kernels.bf16;
  if constexpr (std::is_same_v<T, f16>) return kernels.f16;
}

// The right-hand side of every step's product, in blocks of `size` columns in each of `groups` (gates, or one).
template <class E>
class StepWeight {
 public:
  StepWeight(const Matrix& from, int64_t rows, int64_t groups, int64_t size, int64_t products)
      : from_(from),
        k_(rows),
        groups_(groups),
        size_(size),
        packed_(products > kFewProducts),
        panels_(packed_ ? k_ * kPanel * groups * blocks() : 0) {
    if (!packed_) return;
    parallel_for(0, blocks() * groups, row_grain(k_ * kPanel), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const Matrix part = columns(i / groups_, i % groups_);
        const int64_t sizes[2] = {k_, width(i / groups_)}, to[2] = {kPanel, 1}, strides[2] = {part.row_stride, part.col_stride};
        strided_copy(sizeof(E), 2, sizes, panels_ + i * k_ * kPanel, to, part.data, strides);
      }
    });
  }
  bool is_packed() const { return packed_; }
  int64_t blocks() const { return (size_ + kPanel - 1) / kPanel; }
  int64_t width(int64_t block) const { return std::min(kPanel, size_ - block * kPanel); }

  // c[m, width] = a[m, k] b + (accumulate ? c : 0) for a block's columns of every group, `kPanel` apart; a is dense.
  void multiply(int64_t block, int64_t m, const E* a, bool accumulate, E* c, int64_t ldc) const {
    for (int64_t g = 0; g < groups_; g++) {
      if (packed_)
        multiply_cached<E>(m, width(block), k_, 1, a, k_, 1, panels_ + (block * groups_ + g) * k_ * kPanel, kPanel, accumulate, c + g * kPanel, ldc);
      else
        gemm(sizeof(E) == 4 ? ARGAND_FLOAT32 : ARGAND_FLOAT64, m, width(block), k_, 1, {a, k_, 1}, columns(block, g), accumulate, c + g * kPanel, ldc,
             true);
    }
  }

 private:
  Matrix columns(int64_t block, int64_t group) const {
    return {static_cast<const E*>(from_.data) + (group * size_ + block * kPanel) * from_.col_stride, from_.row_stride, from_.col_stride};
  }

  const Matrix from_;
  const int64_t k_, groups_, size_;
  const bool packed_;
  const Scratch<E> panels_;
};

struct Layer {
  RecurrentMode mode;
  Tensor x, hidden, cell, weight;
  bool reverse;
  int64_t steps, batch, size;

  // `like`: (steps, batch, ...) of the dtype that all is computed in.
  Layer(RecurrentMode m, const Tensor& like, const Tensor& h, const Tensor& c, const Tensor& w, bool backwards)
      : mode(m), hidden(h), cell(c), weight(w), reverse(backwards), steps(like.size(0)), batch(like.size(1)), size(h.size(1)) {}
  int64_t gates() const { return mode == kLstm ? 4 : mode == kGru ? 3 : 1; }
  int64_t width() const { return gates() * size; }
  int64_t step(int64_t i) const { return reverse ? steps - 1 - i : i; }  // the i-th in its order
  Tensor results(int64_t count, int64_t columns) const { return argand::empty({count, batch, columns}, weight.dtype()); }
  // Element `unit` of sequence `row` at the i-th step; before the first there is `first`.
  template <class T>
  T* at(const Tensor& t, int64_t i, int64_t row, int64_t unit) const {
    return t ? t.data<T>() + (step(i) * batch + row) * t.size(2) + unit : nullptr;
  }
  template <class T>
  T* before(const Tensor& t, const Tensor& first, int64_t i, int64_t row, int64_t unit) const {
    return !t ? nullptr : i > 0 ? at<T>(t, i - 1, row, unit) : first.data<T>() + row * size + unit;
  }
  // Calls f(first, rows, shared) for the sequences. A packed product's rows have the same bits in any company; others stay together.
  template <class F>
  void for_rows(bool packed, int64_t bytes, F&& f) const {
    if (batch == 0) return;
    const int64_t threads = api->num_threads(), step = batch * width() * size;
    const bool shared = threads > 1 && ((bytes >= kSharedWeight && batch < 2 * kRowBlock * threads) || !packed) && step >= kWork;
    const int64_t rows = packed && !shared ? std::min(kMostRows, round_up((batch + threads - 1) / threads, kRowStep)) : batch;
    if (rows >= batch) return f(int64_t{0}, batch, shared);
    parallel_for(0, (batch + rows - 1) / rows, row_grain(steps * rows * width() * size, kWork), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) f(i * rows, std::min(rows, batch - i * rows), false);
    });
  }
};

// Calls f(begin, end) for a step's blocks.
template <class F>
void for_blocks(int64_t blocks, bool shared, F&& f) {
  if (shared) return parallel_for(0, blocks, 1, f);
  f(int64_t{0}, blocks);
}

bool has_sizes(const Tensor& t, IntList sizes) { return !t || t.sizes() == sizes; }

// The layer if the kernel takes its tensors; other ones go step by step, which converts them or says what is wrong.
std::optional<Layer> layer_of(const char* op, RecurrentMode mode, const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w,
                              const Tensor& bias, bool reverse) {
  if (x.dim() != 3 || x.size(0) == 0)
    fail(ARGAND_SHAPE_ERROR, "%s: expected input of shape (steps, batch, gates * hidden) with at least one step, but got %s", op,
         to_string(x.sizes()).c_str());
  if (h.dim() != 2 || !is_floating(x.dtype()) || is_float8(x.dtype())) return {};
  for (const Tensor& t : {h, c, w, bias})
    if (t && t.dtype() != x.dtype()) return {};
  Layer l(mode, x, contiguous(h), c ? contiguous(c) : c, w, reverse);
  if (x.size(2) != l.width() || !has_sizes(h, {l.batch, l.size}) || !has_sizes(c, {l.batch, l.size}) || !has_sizes(w, {l.width(), l.size}) ||
      !has_sizes(bias, {l.width()}))
    return {};
  l.x = contiguous(x);
  return l;
}

struct Results {
  Tensor output, cells, gates;  // the latter two for all steps if `keep`, else the last cell state
};

template <class T>
void forward(const Layer& l, const Tensor& bias, bool keep, const Results& results) {
  using E = compute_t<T>;
  const int dtype = sizeof(E) == 4 ? ARGAND_FLOAT32 : ARGAND_FLOAT64, from = l.weight.dtype();
  const Tensor w = to_dtype(contiguous(l.weight), dtype), b = bias ? to_dtype(contiguous(bias), dtype) : bias;
  const StepWeight<E> weight({w->data, 1, l.size}, l.size, l.gates(), l.size, l.steps * l.batch);
  l.for_rows(weight.is_packed(), w.numel() * w.itemsize(), [&](int64_t first, int64_t rows, bool shared) {
    const int64_t count = rows * l.size, ld = l.gates() * kPanel;
    Scratch<E> states(2 * count), cell(l.cell ? count : 0);
    convert(count, dtype, states.get(), sizeof(E), from, l.hidden.data<T>() + first * l.size, sizeof(T));
    if (l.cell) convert(count, dtype, cell.get(), sizeof(E), from, l.cell.data<T>() + first * l.size, sizeof(T));
    for (int64_t i = 0; i < l.steps; i++) {
      E *const hidden = states + i % 2 * count, *const next = states + (i + 1) % 2 * count;
      for_blocks(weight.blocks(), shared, [&](int64_t begin, int64_t end) {
        Scratch<E> product(rows * ld);
        for (int64_t block = begin; block < end; block++) {
          weight.multiply(block, rows, hidden, false, product, ld);
          for (int64_t r = 0; r < rows; r++) {
            const int64_t unit = block * kPanel, place = r * l.size + unit;
            StepRow<E> row{weight.width(block),
                           l.size,
                           kPanel,
                           l.at<T>(l.x, i, first + r, unit),
                           product + r * ld,
                           b ? b.data<E>() + unit : nullptr,
                           hidden + place,
                           next + place,
                           l.cell ? cell + place : nullptr,
                           l.at<T>(results.output, i, first + r, unit),
                           nullptr,
                           nullptr};
            if (keep)
              row.cells = l.at<T>(results.cells, i, first + r, unit), row.gates = l.at<T>(results.gates, i, first + r, unit);
            else if (results.cells && i + 1 == l.steps)
              row.cells = results.cells.data<T>() + first * l.size + place;
            loops<T>().forward[l.mode](row);
          }
        }
      });
    }
  });
}

Results run(const char* op, const Layer& l, const Tensor& bias, bool keep) {
  const int64_t kept = keep ? l.steps : 0;
  Results r{l.results(l.steps, l.size), {}, {}};
  if (l.mode == kLstm) r.cells = l.results(keep ? kept : 1, l.size);
  if (l.mode <= kGru) r.gates = l.results(kept, l.width());
  dispatch_floating(op, l.weight.dtype(), [&](auto tag) { forward<typename decltype(tag)::type>(l, bias, keep, r); });
  return r;
}

// Of the forward pass, and what came in.
struct Kept {
  Tensor output, cells, gates, grad_output, grad_cells, grad_gates;
};
struct Gradients {
  Tensor x, product, hidden, cell;  // `product` is undefined where it is x
};

template <class T>
void backward(const Layer& l, const Kept& kept, const Gradients& out) {
  using E = compute_t<T>;
  const int dtype = sizeof(E) == 4 ? ARGAND_FLOAT32 : ARGAND_FLOAT64, to = l.weight.dtype();
  const Tensor w = to_dtype(contiguous(l.weight), dtype);
  const StepWeight<E> weight({w->data, l.size, 1}, l.width(), 1, l.size, l.steps * l.batch);
  l.for_rows(weight.is_packed(), w.numel() * w.itemsize(), [&](int64_t first, int64_t rows, bool shared) {
    const int64_t count = rows * l.size;
    Scratch<E> grads(2 * count * l.gates()), hidden(count), cell(l.cell ? count : 0);  // the products' gradients of a step and of the one after it
    std::fill_n(hidden.get(), count, E(0));
    if (l.cell) std::fill_n(cell.get(), count, E(0));
    const auto multiply = [&](int64_t block, int64_t i) {
      weight.multiply(block, rows, grads + i % 2 * count * l.gates(), l.mode == kGru, hidden + block * kPanel, l.size);
    };
    for (int64_t i = l.steps - 1; i >= 0; i--)
      for_blocks(weight.blocks(), shared, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; block++) {
          if (i + 1 < l.steps) multiply(block, i + 1);
          for (int64_t r = 0; r < rows; r++) {
            const int64_t unit = block * kPanel, place = r * l.size + unit;
            const auto at = [&](const Tensor& t) { return l.at<T>(t, i, first + r, unit); };
            loops<T>().backward[l.mode]({weight.width(block), l.size, at(l.x), at(kept.gates), at(kept.cells), at(kept.output),
                                         l.before<T>(kept.output, l.hidden, i, first + r, unit), l.before<T>(kept.cells, l.cell, i, first + r, unit),
                                         at(kept.grad_output), at(kept.grad_cells), at(kept.grad_gates), hidden + place,
                                         l.cell ? cell + place : nullptr, grads + (i % 2 * rows + r) * l.width() + unit, at(out.x), at(out.product)});
          }
        }
      });
    for (int64_t block = 0; block < weight.blocks(); block++) multiply(block, 0);
    convert(count, to, out.hidden.data<T>() + first * l.size, sizeof(T), dtype, hidden.get(), sizeof(E));
    if (l.cell) convert(count, to, out.cell.data<T>() + first * l.size, sizeof(T), dtype, cell.get(), sizeof(E));
  });
}

// A product over the states that the first step started from, and one over those of all others, which lie together.
Tensor weight_gradient(const Layer& l, const Tensor& product, const Tensor& output) {
  const Tensor out = argand::empty({l.width(), l.size}, l.weight.dtype());
  const int64_t step = l.batch * l.width(), item = out.itemsize();
  const auto add = [&](int64_t first, int64_t steps, const void* states, double beta) {
    const Matrix grads{product.data<char>() + first * step * item, 1, l.width()};
    gemm(out.dtype(), l.width(), l.size, steps * l.batch, 1, grads, {states, l.size, 1}, beta, out->data, l.size);
  };
  add(l.step(0), 1, l.hidden->data, 0);
  if (l.steps > 1) add(l.reverse ? 0 : 1, l.steps - 1, output.data<char>() + (l.reverse ? l.batch * l.size * item : 0), 1);
  return out;
}

// Checks what is given, and brings it into one dtype, the widest, and dense.
void settle(const char* op, Layer* l, Kept* kept) {
  int dtype = kept->output.dtype();
  for (const Tensor& t : {l->x, l->hidden, l->cell, l->weight, kept->cells, kept->gates, kept->grad_output, kept->grad_cells, kept->grad_gates})
    if (t) dtype = api->promote_types(dtype, t.dtype());
  const auto take = [&](Tensor* t, IntList sizes) {
    if (!*t) return;
    if (!has_sizes(*t, sizes))
      fail(ARGAND_SHAPE_ERROR, "%s: got tensors of shapes %s and %s, expected %s for the latter", op, to_string(kept->output.sizes()).c_str(),
           to_string(t->sizes()).c_str(), to_string(sizes).c_str());
    *t = to_dtype(contiguous(*t), dtype);
  };
  for (Tensor* t : {&l->x, &kept->gates, &kept->grad_gates}) take(t, {l->steps, l->batch, l->width()});
  for (Tensor* t : {&kept->output, &kept->cells, &kept->grad_output, &kept->grad_cells}) take(t, {l->steps, l->batch, l->size});
  for (Tensor* t : {&l->hidden, &l->cell}) take(t, {l->batch, l->size});
  take(&l->weight, {l->width(), l->size});
}

struct LayerGradients {
  Tensor x, hidden, cell, weight, product;
};
LayerGradients run_backward(const char* op, RecurrentMode mode, const Tensor& x, const Tensor& hidden, const Tensor& cell, const Tensor& weight,
                            bool reverse, Kept kept) {
  if (kept.output.dim() != 3 || kept.output.size(0) == 0 || hidden.dim() != 2)
    fail(ARGAND_SHAPE_ERROR,
         "%s: got an output of shape %s and a state of shape %s, expected (steps, batch, hidden) with at least one step and (batch, hidden)", op,
         to_string(kept.output.sizes()).c_str(), to_string(hidden.sizes()).c_str());
  Layer l(mode, kept.output, hidden, cell, weight, reverse);
  l.x = x;
  settle(op, &l, &kept);
  const Tensor state = argand::empty({l.batch, l.size}, l.weight.dtype());
  Gradients g{l.results(l.steps, l.width()), {}, state, cell ? argand::empty(state.sizes(), state.dtype()) : cell};
  if (mode == kGru) g.product = l.results(l.steps, l.width());
  dispatch_floating(op, l.weight.dtype(), [&](auto tag) { backward<typename decltype(tag)::type>(l, kept, g); });
  const Tensor& product = g.product ? g.product : g.x;
  return {g.x, g.hidden, g.cell, weight_gradient(l, product, kept.output), product};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm_layer(const Tensor& input, const Tensor& hidden, const Tensor& cell, const Tensor& weight, bool reverse,
                                              bool keep) {
  const auto l = layer_of("lstm_layer", kLstm, input, hidden, cell, weight, {}, reverse);
  if (!l) return ops::_lstm_by_steps(input, hidden, cell, weight, reverse, keep);
  const Results r = run("lstm_layer", *l, {}, keep);
  return {r.output, r.cells, r.gates};
}

std::tuple<Tensor, Tensor> gru_layer(const Tensor& input, const Tensor& hidden, const Tensor& weight, const Tensor& bias, bool reverse, bool keep) {
  const auto l = layer_of("gru_layer", kGru, input, hidden, {}, weight, bias, reverse);
  if (!l) return ops::_gru_by_steps(input, hidden, weight, bias, reverse, keep);
  const Results r = run("gru_layer", *l, bias, keep);
  return {r.output, r.gates};
}

Tensor rnn_layer(const Tensor& input, const Tensor& hidden, const Tensor& weight, bool relu, bool reverse) {
  const auto l = layer_of("rnn_layer", relu ? kRnnRelu : kRnnTanh, input, hidden, {}, weight, {}, reverse);
  return l ? run("rnn_layer", *l, {}, false).output : ops::_rnn_by_steps(input, hidden, weight, relu, reverse);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstm_layer_backward(const Tensor& grad_output, const Tensor& grad_cells, const Tensor& grad_gates,
                                                               const Tensor& hidden, const Tensor& cell, const Tensor& weight, bool reverse,
                                                               const Tensor& output, const Tensor& cells, const Tensor& gates) {
  const LayerGradients g =
      run_backward("lstm_layer_backward", kLstm, {}, hidden, cell, weight, reverse, {output, cells, gates, grad_output, grad_cells, grad_gates});
  return {g.x, g.hidden, g.cell, g.weight};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> gru_layer_backward(const Tensor& grad_output, const Tensor& grad_gates, const Tensor& input,
                                                              const Tensor& hidden, const Tensor& weight, bool reverse, const Tensor& output,
                                                              const Tensor& gates) {
  const LayerGradients g =
      run_backward("gru_layer_backward", kGru, input, hidden, {}, weight, reverse, {output, {}, gates, grad_output, {}, grad_gates});
  return {g.x, g.hidden, g.weight, ops::sum(g.product, IntList{int64_t{0}, int64_t{1}})};
}

std::tuple<Tensor, Tensor, Tensor> rnn_layer_backward(const Tensor& grad_output, const Tensor& hidden, const Tensor& weight, bool relu, bool reverse,
                                                      const Tensor& output) {
  const LayerGradients g =
      run_backward("rnn_layer_backward", relu ? kRnnRelu : kRnnTanh, {}, hidden, {}, weight, reverse, {output, {}, {}, grad_output, {}, {}});
  return {g.x, g.hidden, g.weight};
}

}  // namespace argand::kernels::cpu
