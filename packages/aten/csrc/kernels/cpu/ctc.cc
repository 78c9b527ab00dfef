// Connectionist temporal classification (Graves et al. 2006): sums over all alignments by the forward-backward algorithm, in logarithms.
// States of a target of n labels: blank, label 0, blank, label 1, ..., blank.
#include <algorithm>
#include <vector>

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

template <class E>
constexpr E kNever = -std::numeric_limits<E>::infinity();

template <class E>
E log_add(E a, E b) {
  const E high = std::max(a, b);
  return high == kNever<E> ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

struct Batch {
  int64_t steps, count, classes, blank;
  Tensor labels, input_lengths, target_lengths;  // int64
  std::vector<int64_t> first;                    // of each target in labels

  Batch(const Tensor& log_probs, const Tensor& targets, const Tensor& inputs, const Tensor& lengths, int64_t blank_)
      : steps(log_probs.size(0)), count(log_probs.size(1)), classes(log_probs.size(2)), blank(blank_) {
    if (blank < 0 || blank >= classes)
      fail(ARGAND_RUNTIME_ERROR, "ctc_loss: blank must be in label range, got %ld of %ld classes", static_cast<long>(blank),
           static_cast<long>(classes));
    labels = to_dtype(targets, ARGAND_INT64);
    input_lengths = to_dtype(inputs, ARGAND_INT64);
    target_lengths = to_dtype(lengths, ARGAND_INT64);
    const bool padded = targets.dim() == 2;
    if (input_lengths.numel() != count || target_lengths.numel() != count || targets.dim() < 1 || targets.dim() > 2 ||
        (padded && targets.size(0) != count))
      fail(ARGAND_RUNTIME_ERROR,
           "ctc_loss: got targets %s, %ld input lengths and %ld target lengths, expected (batch, length) or (all labels) for a batch of %ld",
           to_string(targets.sizes()).c_str(), static_cast<long>(input_lengths.numel()), static_cast<long>(target_lengths.numel()),
           static_cast<long>(count));
    int64_t at = 0;
    for (int64_t b = 0; b < count; b++) {
      const int64_t n = target(b);
      if (input(b) < 0 || input(b) > steps)
        fail(ARGAND_RUNTIME_ERROR, "ctc_loss: Expected input_lengths to have value at most %ld, but got value %ld", static_cast<long>(steps),
             static_cast<long>(input(b)));
      first.push_back(padded ? b * targets.size(1) : at);
      at += n;
      if (n < 0 || (padded ? n > targets.size(1) : at > labels.numel()))
        fail(ARGAND_RUNTIME_ERROR, "ctc_loss: got target length %ld, expected no more than there are labels in targets %s", static_cast<long>(n),
             to_string(targets.sizes()).c_str());
      for (int64_t i = 0; i < n; i++)
        if (label(b, i) < 0 || label(b, i) >= classes)
          fail(ARGAND_INDEX_ERROR, "ctc_loss: got label %ld, expected 0 <= label < %ld", static_cast<long>(label(b, i)), static_cast<long>(classes));
    }
  }
  int64_t input(int64_t b) const { return input_lengths.data<int64_t>()[b]; }
  int64_t target(int64_t b) const { return target_lengths.data<int64_t>()[b]; }
  int64_t label(int64_t b, int64_t i) const { return labels.data<int64_t>()[first[static_cast<size_t>(b)] + i]; }
  int64_t states(int64_t b) const { return 2 * target(b) + 1; }
  int64_t symbol(int64_t b, int64_t state) const { return state % 2 ? label(b, state / 2) : blank; }
  // A label may follow another one without a blank in between.
  bool skips(int64_t b, int64_t from, int64_t to) const { return from % 2 && symbol(b, from) != symbol(b, to); }
  int64_t row(int64_t b, int64_t step) const { return (step * count + b) * classes; }
};

// alpha[t][s]: log probability of the beginnings that are in state s at step t.
template <class E>
void forward(const Batch& batch, int64_t b, const E* log_probs, E* alpha) {
  const int64_t n = batch.states(b);
  for (int64_t t = 0; t < batch.input(b); t++, alpha += n) {
    const E* p = log_probs + batch.row(b, t);
    for (int64_t s = 0; s < n; s++) {
      E sum = kNever<E>;
      if (t == 0) {
        sum = s < 2 ? 0 : kNever<E>;
      } else {
        const E* before = alpha - n;
        sum = before[s];
        if (s >= 1) sum = log_add(sum, before[s - 1]);
        if (s >= 2 && batch.skips(b, s - 2, s)) sum = log_add(sum, before[s - 2]);
      }
      alpha[s] = sum + p[batch.symbol(b, s)];
    }
  }
}

template <class E>
E loss_of(const Batch& batch, int64_t b, const E* alpha) {
  const int64_t n = batch.states(b), steps = batch.input(b);
  if (steps == 0) return n == 1 ? E(0) : -kNever<E>;
  const E* last = alpha + (steps - 1) * n;
  return -(n > 1 ? log_add(last[n - 1], last[n - 2]) : last[n - 1]);
}

// gradient = scale * (exp(log_probs) - probability of each class given the target); beta as alpha, for the ends.
template <class E>
void backward(const Batch& batch, int64_t b, const E* log_probs, const E* alpha, E loss, E scale, E* gradient) {
  const int64_t n = batch.states(b), steps = batch.input(b);
  Scratch<E> now(n), next(n), total(batch.classes);
  for (int64_t t = steps - 1; t >= 0; t--) {
    const E* p = log_probs + batch.row(b, t);
    std::fill_n(total.get(), batch.classes, kNever<E>);
    for (int64_t s = 0; s < n; s++) {
      E sum = kNever<E>;
      if (t == steps - 1) {
        sum = s + 2 >= n ? 0 : kNever<E>;
      } else {
        sum = next[s];
        if (s + 1 < n) sum = log_add(sum, next[s + 1]);
        if (s + 2 < n && batch.skips(b, s, s + 2)) sum = log_add(sum, next[s + 2]);
      }
      const int64_t c = batch.symbol(b, s);
      now[s] = sum + p[c];
      total[c] = log_add(total[c], alpha[t * n + s] + sum);
    }
    std::copy_n(now.get(), n, next.get());
    for (int64_t c = 0; c < batch.classes; c++) gradient[batch.row(b, t) + c] = scale * (std::exp(p[c]) - std::exp(total[c] + loss));
  }
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank, bool) {
  const Batch batch(log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor x = contiguous(log_probs), out = empty({batch.count}, x.dtype());
  dispatch_floating("ctc_loss", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const Tensor wide = to_dtype(x, sizeof(E) == 8 ? ARGAND_FLOAT64 : ARGAND_FLOAT32);
    parallel_for(0, batch.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b++) {
        Scratch<E> alpha(batch.input(b) * batch.states(b));
        forward<E>(batch, b, wide.data<E>(), alpha);
        out.data<T>()[b] = narrow<T>(loss_of<E>(batch, b, alpha));
      }
    });
  });
  return out;
}

Tensor ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                         const Tensor& target_lengths, int64_t blank, bool zero_infinity) {
  const Batch batch(log_probs, targets, input_lengths, target_lengths, blank);
  if (grad.numel() != batch.count)
    fail(ARGAND_SHAPE_ERROR, "ctc_loss_backward: got grad of shape %s, expected (%ld)", to_string(grad.sizes()).c_str(),
         static_cast<long>(batch.count));
  Tensor out;
  dispatch_floating("ctc_loss_backward", log_probs.dtype(), [&](auto tag) {
    using E = compute_t<typename decltype(tag)::type>;
    const int wide = sizeof(E) == 8 ? ARGAND_FLOAT64 : ARGAND_FLOAT32;
    const Tensor x = to_dtype(log_probs, wide), g = to_dtype(grad, wide);
    out = zeros(log_probs.sizes(), wide);
    parallel_for(0, batch.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b++) {
        Scratch<E> alpha(batch.input(b) * batch.states(b));
        forward<E>(batch, b, x.data<E>(), alpha);
        const E loss = loss_of<E>(batch, b, alpha);
        if (zero_infinity && loss == -kNever<E>) continue;
        backward<E>(batch, b, x.data<E>(), alpha, loss, g.data<E>()[b], out.data<E>());
      }
    });
  });
  return to_dtype(out, log_probs.dtype());
}

}  // namespace argand::kernels::cpu
