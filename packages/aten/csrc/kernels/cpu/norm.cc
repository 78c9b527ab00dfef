// Layer, RMS and group normalisation with their gradients. Statistics are float32 (float64 for float64 inputs).
#include "packages/aten/csrc/kernels/cpu/norm.h"

#include <cmath>
#include <limits>

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/csrc/kernels/sweep.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

int statistics_dtype(int dtype) { return dtype == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32; }

// A weight in the compute type, dense; NULL when undefined.
class Weight {
 public:
  Weight(const char* op, const Tensor& w, int64_t n, int dtype) {
    if (!w) return;
    if (w.numel() != n)
      fail(ARGAND_SHAPE_ERROR, "%s: got a weight or bias of shape %s, expected %ld elements", op, to_string(w.sizes()).c_str(), static_cast<long>(n));
    hold_ = to_dtype(w, statistics_dtype(dtype));
  }
  template <class E>
  const E* data() const {
    return hold_ ? hold_.data<E>() : nullptr;
  }

 private:
  Tensor hold_;
};

// 1 / sqrt(variance + eps); NaN where squares are too large for the dtype of the statistics.
template <class E>
E reciprocal_deviation(E mean, E variance, double eps) {
  static const E kLargest = std::sqrt(std::numeric_limits<E>::max());
  return std::isinf(variance) || std::abs(mean) > kLargest ? std::numeric_limits<E>::quiet_NaN() : 1 / std::sqrt(variance + static_cast<E>(eps));
}

// Trailing dims that are normalised: rows x n.
struct Rows {
  int64_t rows, n;
  Rows(const char* op, const Tensor& x, IntList normalized_shape) {
    const int64_t lead = x.dim() - normalized_shape.n;
    const bool fits = normalized_shape.n > 0 && lead >= 0 && IntList(x->sizes + lead, normalized_shape.n) == normalized_shape;
    if (!fits)
      fail(ARGAND_SHAPE_ERROR, "%s: Given normalized_shape=%s, expected input with shape [*, %s, but got input of size %s", op,
           to_string(normalized_shape).c_str(), to_string(normalized_shape).c_str() + 1, to_string(x.sizes()).c_str());
    n = product(normalized_shape);
    rows = product(x.sizes(), 0, lead);
  }
};

Tensor statistics(const Tensor& x, IntList normalized_shape) {
  Dims sizes(x.sizes());
  for (int64_t i = sizes.n - normalized_shape.n; i < sizes.n; i++) sizes[i] = 1;
  return empty(sizes, statistics_dtype(x.dtype()));
}

// Row chunks for sums over rows: fixed by the shape alone, so that results do not depend on the number of threads.
int64_t chunks_of(int64_t rows, int64_t n) {
  const int64_t by_work = rows * n / 32768;
  return by_work < 1 ? 1 : by_work < 16 ? (by_work < rows ? by_work : rows) : (rows < 16 ? rows : 16);
}

// out[j] = sum over chunks of partial[chunk][j], stored as `dtype`.
template <class E>
Tensor reduce_chunks(const E* partial, int64_t chunks, int64_t n, IntList sizes, int dtype) {
  Tensor sum = empty(sizes, sizeof(E) == sizeof(double) ? ARGAND_FLOAT64 : ARGAND_FLOAT32);  // E, not what `dtype` would be summed in
  E* out = sum.data<E>();
  for (int64_t j = 0; j < n; j++) {
    E s = 0;
    for (int64_t c = 0; c < chunks; c++) s += partial[c * n + j];
    out[j] = s;
  }
  return to_dtype(sum, dtype);
}

// Gradients of layer norm (mean defined) and RMS norm: input, weight, bias by mask.
std::tuple<Tensor, Tensor, Tensor> rows_backward(const char* op, const Tensor& grad, const Tensor& input, IntList shape, const Tensor& mean,
                                                 const Tensor& rstd, const Tensor& weight, int bias_dtype, bool want_x, bool want_w, bool want_b) {
  check_same_dtype(op, grad, input);
  const Tensor dy = contiguous(grad), x = contiguous(input);
  const Rows s(op, x, shape);
  Tensor dx, dw, db;
  if (want_x) dx = empty(x.sizes(), x.dtype());
  dispatch_floating(op, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const auto loops = norm_loops<T>();
    const Weight w(op, weight, s.n, x.dtype());
    const Tensor hold_mean = mean ? contiguous(mean) : Tensor(), hold_rstd = contiguous(rstd);
    const E* m = hold_mean ? hold_mean.data<E>() : nullptr;
    const E* r = hold_rstd.data<E>();
    const int64_t chunks = chunks_of(s.rows, s.n), per = chunks ? (s.rows + chunks - 1) / chunks : 0;
    Scratch<E> partial_w(want_w ? chunks * s.n : 0), partial_b(want_b ? chunks * s.n : 0);
    if (want_w) std::memset(partial_w.get(), 0, sizeof(E) * static_cast<size_t>(chunks * s.n));
    if (want_b) std::memset(partial_b.get(), 0, sizeof(E) * static_cast<size_t>(chunks * s.n));
    parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++)
        for (int64_t i = c * per; i < s.rows && i < (c + 1) * per; i++)
          loops.row_backward(s.n, dy.data<T>() + i * s.n, x.data<T>() + i * s.n, m ? m[i] : E(0), r[i], w.template data<E>(), m != nullptr,
                             want_x ? dx.data<T>() + i * s.n : nullptr, want_w ? partial_w + c * s.n : nullptr,
                             want_b ? partial_b + c * s.n : nullptr);
    });
    if (want_w) dw = reduce_chunks<E>(partial_w, chunks, s.n, shape, weight ? weight.dtype() : x.dtype());
    if (want_b) db = reduce_chunks<E>(partial_b, chunks, s.n, shape, bias_dtype);
  });
  return {dx, dw, db};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, const Tensor& bias,
                                                     double eps) {
  const Tensor x = contiguous(input);
  const Rows s("layer_norm", x, normalized_shape);
  Tensor out = empty(x.sizes(), x.dtype()), mean = statistics(x, normalized_shape), rstd = statistics(x, normalized_shape);
  dispatch_floating("layer_norm", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const auto loops = norm_loops<T>();
    const Weight w("layer_norm", weight, s.n, x.dtype()), b("layer_norm", bias, s.n, x.dtype());
    parallel_sweep(s.rows, row_grain(s.n), 2 * s.n * x.itemsize(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T* row = x.data<T>() + i * s.n;
        const E m = loops.sum(s.n, row) / static_cast<E>(s.n);
        const E r = reciprocal_deviation(m, loops.squares(s.n, row, m) / static_cast<E>(s.n), eps);
        loops.apply(s.n, row, out.data<T>() + i * s.n, m, r, w.template data<E>(), b.template data<E>());
        mean.data<E>()[i] = m;
        rstd.data<E>()[i] = r;
      }
    });
  });
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntList normalized_shape,
                                                              const Tensor& mean, const Tensor& rstd, const Tensor& weight, const Tensor& bias,
                                                              IntList output_mask) {
  return rows_backward("layer_norm_backward", grad_out, input, normalized_shape, mean, rstd, weight, bias ? bias.dtype() : input.dtype(),
                       output_mask[0] != 0, output_mask[1] != 0, output_mask[2] != 0);
}

std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, double eps) {
  const Tensor x = contiguous(input);
  const Rows s("rms_norm", x, normalized_shape);
  Tensor out = empty(x.sizes(), x.dtype()), rrms = statistics(x, normalized_shape);
  dispatch_floating("rms_norm", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const auto loops = norm_loops<T>();
    const Weight w("rms_norm", weight, s.n, x.dtype());
    parallel_sweep(s.rows, row_grain(s.n), 2 * s.n * x.itemsize(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T* row = x.data<T>() + i * s.n;
        const E r = 1 / std::sqrt(loops.squares(s.n, row, E(0)) / static_cast<E>(s.n) + static_cast<E>(eps));
        loops.apply(s.n, row, out.data<T>() + i * s.n, E(0), r, w.template data<E>(), nullptr);
        rrms.data<E>()[i] = r;
      }
    });
  });
  return {out, rrms};
}

std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input, IntList normalized_shape, const Tensor& rrms,
                                                   const Tensor& weight, IntList output_mask) {
  auto [dx, dw, db] = rows_backward("rms_norm_backward", grad_out, input, normalized_shape, Tensor(), rrms, weight, input.dtype(),
                                    output_mask[0] != 0, output_mask[1] != 0, false);
  return {dx, dw};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t N, int64_t C, int64_t HxW,
                                                     int64_t group, double eps) {
  if (group <= 0 || C % group)
    fail(ARGAND_SHAPE_ERROR,
         "group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape %s and num_groups=%ld",
         to_string(input.sizes()).c_str(), static_cast<long>(group));
  const Tensor x = contiguous(input);
  Tensor out = empty(x.sizes(), x.dtype());
  Tensor mean = empty({N, group}, statistics_dtype(x.dtype())), rstd = empty({N, group}, statistics_dtype(x.dtype()));
  const int64_t per = C / group, n = per * HxW;
  dispatch_floating("group_norm", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const auto loops = norm_loops<T>();
    const Weight hold_w("group_norm", weight, C, x.dtype()), hold_b("group_norm", bias, C, x.dtype());
    const E *w = hold_w.template data<E>(), *b = hold_b.template data<E>();
    parallel_for(0, N * group, row_grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T* row = x.data<T>() + i * n;
        T* to = out.data<T>() + i * n;
        const E m = loops.sum(n, row) / static_cast<E>(n);
        const E r = 1 / std::sqrt(loops.squares(n, row, m) / static_cast<E>(n) + static_cast<E>(eps));
        mean.data<E>()[i] = m;
        rstd.data<E>()[i] = r;
        for (int64_t k = 0; k < per; k++) {
          const int64_t c = i % group * per + k;
          loops.apply_scalar(HxW, row + k * HxW, to + k * HxW, m, w ? r * w[c] : r, b ? b[c] : E(0));
        }
      }
    });
  });
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                                              const Tensor& weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
                                                              IntList output_mask) {
  check_same_dtype("group_norm_backward", grad_out, input);
  const Tensor dy = contiguous(grad_out), x = contiguous(input), hold_mean = contiguous(mean), hold_rstd = contiguous(rstd);
  const int64_t per = C / group, n = per * HxW;
  Tensor dx, dw, db;
  if (output_mask[0]) dx = empty(x.sizes(), x.dtype());
  dispatch_floating("group_norm_backward", x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const auto loops = norm_loops<T>();
    const Weight hold_w("group_norm_backward", weight, C, x.dtype());
    const E *w = hold_w.template data<E>(), *m = hold_mean.data<E>(), *r = hold_rstd.data<E>();
    Scratch<E> sum_g(N * C), sum_gx(N * C);  // per sample and channel: dy, and dy * xhat
    parallel_for(0, N * group, row_grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T *g = dy.data<T>() + i * n, *row = x.data<T>() + i * n;
        E s1 = 0, s2 = 0;
        for (int64_t k = 0; k < per; k++) {
          const int64_t at = i * per + k;
          loops.sums(HxW, g + k * HxW, row + k * HxW, m[i], sum_g + at, sum_gx + at);
          sum_gx[at] *= r[i];
          const E wc = w ? w[at % C] : E(1);
          s1 += wc * sum_g[at];
          s2 += wc * sum_gx[at];
        }
        if (!dx) continue;
        const E count = static_cast<E>(n);
        for (int64_t k = 0; k < per; k++)
          loops.combine(HxW, g + k * HxW, row + k * HxW, dx.data<T>() + i * n + k * HxW, m[i], r[i] * (w ? w[(i * per + k) % C] : E(1)),
                        -r[i] * r[i] * s2 / count, -r[i] * s1 / count);
      }
    });
    const int weight_dtype = weight ? weight.dtype() : x.dtype();
    if (output_mask[1]) dw = reduce_chunks<E>(sum_gx, N, C, {C}, weight_dtype);
    if (output_mask[2]) db = reduce_chunks<E>(sum_g, N, C, {C}, weight_dtype);
  });
  return {dx, dw, db};
}

}  // namespace argand::kernels::cpu
