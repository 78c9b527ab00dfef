// Batch normalisation over every dim but 1. Inputs are seen as [batch, channel, space].
#include "packages/aten/csrc/kernels/cpu/norm.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kShortSpace = 16;  // shorter runs per channel are made long by a transposed copy

int statistics_dtype(int dtype) { return dtype == ARGAND_FLOAT64 ? ARGAND_FLOAT64 : ARGAND_FLOAT32; }

// Dense data as `pieces` runs of `length` elements per channel.
struct Channels {
  Tensor data;
  int64_t channels, pieces, length, piece_stride, channel_stride;

  explicit Channels(const Tensor& t) {
    if (t.dim() < 2) fail(ARGAND_SHAPE_ERROR, "batch_norm: expected input of at least 2 dimensions, got %d", static_cast<int>(t.dim()));
    const int64_t batch = t.size(0), space = product(t.sizes(), 2, t.dim());
    channels = t.size(1);
    if (space >= kShortSpace || batch == 1) {
      data = contiguous(t);
      pieces = batch, length = space, piece_stride = channels * space, channel_stride = space;
    } else {  // [channel, batch, space]
      Dims sizes(t.sizes()), strides(t.strides());
      std::swap(sizes[0], sizes[1]);
      std::swap(strides[0], strides[1]);
      data = empty(sizes, t.dtype());
      strided_copy(t.itemsize(), sizes.n, sizes.d, data->data, data->strides, t->data, strides.d);
      pieces = 1, length = batch * space, piece_stride = 0, channel_stride = length;
    }
  }
  bool transposed() const { return pieces == 1 && piece_stride == 0; }
  int64_t count() const { return pieces * length; }
  template <class T>
  T* at(int64_t channel, int64_t piece) const {
    return data.data<T>() + channel * channel_stride + piece * piece_stride;
  }
  // A result with this layout, and its way back to the layout of `like`.
  Tensor empty_result() const { return empty(data.sizes(), data.dtype()); }
  Tensor restore(const Tensor& result, const Tensor& like) const {
    if (!transposed()) return result;
    Tensor out = empty(like.sizes(), like.dtype());
    Dims strides(result.strides());
    std::swap(strides[0], strides[1]);
    strided_copy(out.itemsize(), out.dim(), out->sizes, out->data, out->strides, result->data, strides.d);
    return out;
  }
};

template <class E>
const E* values(const Tensor& t) {
  return t ? t.data<E>() : nullptr;
}

Tensor statistics_of(const char* argument, const Tensor& t, int64_t channels, int dtype) {
  if (!t) return t;
  if (t.numel() != channels)
    fail(ARGAND_SHAPE_ERROR, "batch_norm: %s should contain %ld elements, but got shape %s", argument, static_cast<long>(channels),
         to_string(t.sizes()).c_str());
  return to_dtype(t, statistics_dtype(dtype));
}

// running = (1 - momentum) * running + momentum * batch
template <class E>
void update_running(const Tensor& running, const E* batch, double momentum, double factor) {
  if (!running) return;
  const Tensor old = to_dtype(running, sizeof(E) == 8 ? ARGAND_FLOAT64 : ARGAND_FLOAT32);
  Tensor fresh = empty(old.sizes(), old.dtype());
  for (int64_t c = 0; c < old.numel(); c++) fresh.data<E>()[c] = static_cast<E>((1 - momentum) * old.data<E>()[c] + momentum * factor * batch[c]);
  store_into(running, to_dtype(fresh, running.dtype()));
  running.bump_version();
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                                     const Tensor& running_var, bool training, double momentum, double eps) {
  if (input.dim() < 2)
    fail(ARGAND_SHAPE_ERROR, "batch_norm: Expected at least 2 dimensions for input tensor but received shape %s", to_string(input.sizes()).c_str());
  if (!training && (!running_mean || !running_var))
    fail(ARGAND_RUNTIME_ERROR, "batch_norm: expected running_mean and running_var to be defined when training=False");
  const Channels x(input);
  const int64_t channels = x.channels, count = x.count();
  const Tensor w = statistics_of("weight", weight, channels, input.dtype()), b = statistics_of("bias", bias, channels, input.dtype());
  const Tensor old_mean = statistics_of("running_mean", running_mean, channels, input.dtype()),
               old_var = statistics_of("running_var", running_var, channels, input.dtype());
  const int stat = statistics_dtype(input.dtype());
  Tensor out = x.empty_result(), mean = empty({channels}, stat), rstd = empty({channels}, stat), variance = empty({channels}, stat);
  dispatch_floating("batch_norm", input.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const auto loops = norm_loops<T>();
    const E *pw = values<E>(w), *pb = values<E>(b);
    parallel_for(0, channels, row_grain(count), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++) {
        E m, v;
        if (training) {
          double sum = 0, squares = 0;
          for (int64_t i = 0; i < x.pieces; i++) sum += loops.sum(x.length, x.template at<T>(c, i));
          m = static_cast<E>(sum / static_cast<double>(count));
          for (int64_t i = 0; i < x.pieces; i++) squares += loops.squares(x.length, x.template at<T>(c, i), m);
          v = static_cast<E>(squares / static_cast<double>(count));
        } else {
          m = old_mean.data<E>()[c];
          v = old_var.data<E>()[c];
        }
        const E r = 1 / std::sqrt(v + static_cast<E>(eps));
        for (int64_t i = 0; i < x.pieces; i++)
          loops.apply_scalar(x.length, x.template at<T>(c, i), out.data<T>() + c * x.channel_stride + i * x.piece_stride, m, pw ? r * pw[c] : r,
                             pb ? pb[c] : E(0));
        mean.data<E>()[c] = m;
        rstd.data<E>()[c] = r;
        variance.data<E>()[c] = v;
      }
    });
    if (training && count > 0) {
      update_running<E>(running_mean, mean.data<E>(), momentum, 1);
      update_running<E>(running_var, variance.data<E>(), momentum,
                        count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : std::numeric_limits<double>::quiet_NaN());
    }
  });
  if (!training) mean = empty({0}, stat), rstd = empty({0}, stat);
  return {x.restore(out, input), mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> native_batch_norm_functional(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                                                                const Tensor& running_mean, const Tensor& running_var, bool training,
                                                                                double momentum, double eps) {
  const int stat = statistics_dtype(input.dtype());
  const Tensor mean = clone(to_dtype(running_mean, stat), std::nullopt), var = clone(to_dtype(running_var, stat), std::nullopt);
  auto [out, save_mean, save_rstd] = native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
  return {out, save_mean, save_rstd, mean, var};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& weight,
                                                              const Tensor& running_mean, const Tensor& running_var, const Tensor& save_mean,
                                                              const Tensor& save_invstd, bool train, double eps, IntList output_mask) {
  check_same_dtype("batch_norm_backward", grad_out, input);
  const Channels x(input), dy(grad_out);
  const int64_t channels = x.channels, count = x.count();
  const int dtype = input.dtype(), stat = statistics_dtype(dtype);
  const Tensor w = statistics_of("weight", weight, channels, dtype);
  const Tensor mean = statistics_of(train ? "save_mean" : "running_mean", train ? save_mean : running_mean, channels, dtype);
  const Tensor spread = statistics_of(train ? "save_invstd" : "running_var", train ? save_invstd : running_var, channels, dtype);
  if (!mean || !spread) fail(ARGAND_RUNTIME_ERROR, "batch_norm_backward: expected statistics of the batch (train=True) or running statistics");
  Tensor dx, dw = empty({channels}, stat), db = empty({channels}, stat);
  if (output_mask[0]) dx = x.empty_result();
  dispatch_floating("batch_norm_backward", dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using E = compute_t<T>;
    const auto loops = norm_loops<T>();
    const E* pw = values<E>(w);
    parallel_for(0, channels, row_grain(count), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++) {
        const E m = mean.data<E>()[c], r = train ? spread.data<E>()[c] : 1 / std::sqrt(spread.data<E>()[c] + static_cast<E>(eps));
        double s1 = 0, s2 = 0;
        for (int64_t i = 0; i < x.pieces; i++) {
          E a, b;
          loops.sums(x.length, dy.template at<T>(c, i), x.template at<T>(c, i), m, &a, &b);
          s1 += a;
          s2 += b;
        }
        if (count > 0) s2 *= r;  // of an empty batch r is NaN, the sums are 0
        db.data<E>()[c] = static_cast<E>(s1);
        dw.data<E>()[c] = static_cast<E>(s2);
        if (!dx) continue;
        const E a = pw ? r * pw[c] : r, n = static_cast<E>(count);
        const E on_x = train ? -a * r * static_cast<E>(s2) / n : E(0), shift = train ? -a * static_cast<E>(s1) / n : E(0);
        for (int64_t i = 0; i < x.pieces; i++)
          loops.combine(x.length, dy.template at<T>(c, i), x.template at<T>(c, i), dx.data<T>() + c * x.channel_stride + i * x.piece_stride, m, a,
                        on_x, shift);
      }
    });
  });
  const int weight_dtype = weight ? weight.dtype() : dtype;
  return {dx ? x.restore(dx, input) : dx, output_mask[1] ? to_dtype(dw, weight_dtype) : Tensor(),
          output_mask[2] ? to_dtype(db, weight_dtype) : Tensor()};
}

}  // namespace argand::kernels::cpu
