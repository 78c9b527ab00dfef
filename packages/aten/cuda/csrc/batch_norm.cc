// Batch normalisation over every dim but 1 (argand_aten_cuda/kernels/batch_norm.py). Inputs are seen as [batch, channel, space].
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kTile = 1024, kFewChannels = 1, kManyChannels = 32, kFinish = 16;
constexpr int64_t kShortSpace = 64;  // a shorter run of a channel is read across channels
constexpr int64_t kPrograms = 1056;  // that sums are cut into, about: eight for each multiprocessor of an H200

int64_t channels_of(const Tensor& x) {
  if (x.dim() < 2) fail(ARGAND_SHAPE_ERROR, "batch_norm: expected input of at least 2 dimensions, got %d", static_cast<int>(x.dim()));
  return x.size(1);
}

struct Channels {
  int64_t channels, space, count;  // count: elements of a channel
  int columns;                     // channels of a tile
  int64_t splits, each;            // the parts of a channel's sums
  explicit Channels(const Tensor& x) : channels(channels_of(x)), space(elements_in(x.sizes(), 2, x.dim())), count(x.size(0) * space) {
    columns = space < kShortSpace && channels > 1 ? kManyChannels : kFewChannels;
    const int64_t rows = kTile / columns, most = std::max<int64_t>(1, kPrograms / cdiv(std::max<int64_t>(channels, 1), columns));
    each = std::max(rows, cdiv(cdiv(count, most), rows) * rows);
    splits = std::max<int64_t>(1, cdiv(count, each));
    size32("batch_norm", count), size32("batch_norm", channels * space);
  }
  Grid sums() const { return grid("batch_norm", cdiv(channels, columns), splits); }
  Grid finish() const { return grid("batch_norm", cdiv(channels, kFinish)); }
  int32_t c() const { return static_cast<int32_t>(channels); }
  int32_t s() const { return static_cast<int32_t>(space); }
  int32_t n() const { return static_cast<int32_t>(count); }
};

Tensor channel_vector(const char* argument, const Tensor& t, int64_t channels, int dtype) {
  if (t && t.numel() != channels)
    fail(ARGAND_SHAPE_ERROR, "batch_norm: %s should contain %lld elements, but got shape %s", argument, static_cast<long long>(channels),
         to_string(t.sizes()).c_str());
  return aligned_dense(t, dtype);
}
int weights_dtype(int dtype, const Tensor& a, const Tensor& b) {
  return (!a || a.dtype() == dtype) && (!b || b.dtype() == dtype) ? dtype : sum_dtype(dtype);
}
bool wide(const Tensor& x) { return x.numel() > std::numeric_limits<int32_t>::max() - kTile; }

// Passes numel in the width that the kernel's "I" has.
template <class... Before, class... After>
void launch_elements(const Kernel* k, const Tensor& x, std::tuple<Before...> before, After... after) {
  const Grid g = grid("batch_norm", cdiv(x.numel(), kTile));
  std::apply([&](auto... b) { wide(x) ? launch(k, g, b..., x.numel(), after...) : launch(k, g, b..., static_cast<int32_t>(x.numel()), after...); },
             before);
}

// The batch's mean and reciprocal standard deviation; running statistics (of one dtype, or undefined) move towards the batch's.
void batch_statistics(const Tensor& x, const Channels& s, const Tensor& mean, const Tensor& rstd, const Tensor& running_mean,
                      const Tensor& running_var, double momentum, double eps) {
  static Slot sums[kFloats][2], finish[kFloats][kFloats][4];
  const int dtype = x.dtype(), stat = mean.dtype(), index = float_index("batch_norm", dtype), many = s.columns > 1;
  const Tensor partial = empty_on(x, {2, s.splits, s.channels}, stat);
  const Kernel* k =
      sums[index][many].get("batch_norm_sums;T=%s;A=%s;BLOCK_E=%d;BLOCK_C=%d", kDTypeName[dtype], kDTypeName[stat], kTile / s.columns, s.columns);
  launch(k, s.sums(), address(x), address(partial), s.n(), s.c(), s.s(), static_cast<int32_t>(s.each));
  const int running = (running_mean ? 1 : 0) | (running_var ? 2 : 0), r = running_mean  ? running_mean.dtype()
                                                                          : running_var ? running_var.dtype()
                                                                                        : ARGAND_FLOAT32;
  k = finish[float_index("batch_norm", stat)][float_index("batch_norm", r)][running].get(
      "batch_norm_statistics;A=%s;R=%s;RUNNING=%d;BLOCK_S=%d;BLOCK_C=%d", kDTypeName[stat], kDTypeName[r], running, kFinish, kFinish);
  launch(k, s.finish(), address(partial), address(mean), address(rstd), address(running_mean), address(running_var), static_cast<int32_t>(s.splits),
         s.n(), s.c(), static_cast<int32_t>(s.each), momentum, eps);
}

// The tensor itself where kernels can write to it, else a copy to be copied back.
Tensor writable(const Tensor& running, int dtype) {
  return running ? channel_vector("running statistics", running, running.numel(), dtype) : running;
}
void write_back(const Tensor& running, const Tensor& written) {
  if (!running) return;
  if (written.get() == running.get())
    running.bump_version();
  else
    ops::copy_(running, written);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                                     const Tensor& running_var, bool training, double momentum, double eps) {
  static Slot slots[kFloats][2][2][2][2][2];
  if (input.dim() < 2)
    fail(ARGAND_SHAPE_ERROR, "batch_norm: Expected at least 2 dimensions for input tensor but received shape %s", to_string(input.sizes()).c_str());
  if (!training && (!running_mean || !running_var))
    fail(ARGAND_RUNTIME_ERROR, "batch_norm: expected running_mean and running_var to be defined when training=False");
  const Tensor x = aligned_dense(input);
  const Channels s(x);
  const int dtype = x.dtype(), stat = sum_dtype(dtype), weights = weights_dtype(dtype, weight, bias);
  const Tensor w = channel_vector("weight", weight, s.channels, weights), b = channel_vector("bias", bias, s.channels, weights);
  const Tensor out = empty_on(x, x.sizes(), dtype);
  for (const Tensor* t : {&running_mean, &running_var})
    if (*t) channel_vector(t == &running_mean ? "running_mean" : "running_var", *t, s.channels, t->dtype());
  Tensor mean = empty_on(x, {s.channels}, stat), spread = mean;
  if (training) {
    spread = empty_on(x, {s.channels}, stat);
    const int running = running_mean ? running_mean.dtype() : running_var ? running_var.dtype() : stat;
    const bool count = s.count > 0;
    const Tensor m = count ? writable(running_mean, running) : Tensor(), v = count ? writable(running_var, running) : Tensor();
    batch_statistics(x, s, mean, spread, m, v, momentum, eps);
    if (count) write_back(running_mean, m), write_back(running_var, v);
  } else {
    mean = aligned_dense(running_mean, stat), spread = aligned_dense(running_var, stat);
  }
  const Kernel* k = slots[float_index("batch_norm", dtype)][weights != dtype][wide(x)][training][w.defined()][b.defined()].get(
      "batch_norm_apply;T=%s;A=%s;W=%s;I=%s;TRAINING=%d;HAS_W=%d;HAS_B=%d;BLOCK=%d", kDTypeName[dtype], kDTypeName[stat], kDTypeName[weights],
      wide(x) ? "i64" : "i32", training, w.defined(), b.defined(), kTile);
  launch_elements(k, x, std::make_tuple(address(x), address(mean), address(spread), address(w), address(b), address(out)), s.c(), s.s(), eps);
  if (!training) mean = empty_on(x, {0}, stat), spread = empty_on(x, {0}, stat);
  return {out, mean, spread};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> native_batch_norm_functional(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                                                                const Tensor& running_mean, const Tensor& running_var, bool training,
                                                                                double momentum, double eps) {
  const int stat = sum_dtype(input.dtype());
  const Tensor mean = ops::_to_copy(running_mean, stat), var = ops::_to_copy(running_var, stat);
  auto [out, save_mean, save_rstd] = native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
  return {out, save_mean, save_rstd, mean, var};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& weight,
                                                              const Tensor& running_mean, const Tensor& running_var, const Tensor& save_mean,
                                                              const Tensor& save_invstd, bool train, double eps, IntList output_mask) {
  static Slot sums[kFloats][2], finish[kFloats][kFloats][2], slots[kFloats][2][2][2][2];
  if (grad_out.dtype() != input.dtype())
    fail(ARGAND_DTYPE_ERROR, "batch_norm_backward: got dtypes %s and %s, expected the same", kDTypeName[grad_out.dtype()], kDTypeName[input.dtype()]);
  const Tensor x = aligned_dense(input), dy = aligned_dense(grad_out);
  const Channels s(x);
  const int dtype = x.dtype(), stat = sum_dtype(dtype), index = float_index("batch_norm_backward", dtype),
            weights = weights_dtype(dtype, weight, Tensor());
  const Tensor mean = channel_vector("mean", train ? save_mean : running_mean, s.channels, stat),
               spread = channel_vector("variance", train ? save_invstd : running_var, s.channels, stat);
  if (!mean || !spread) fail(ARGAND_RUNTIME_ERROR, "batch_norm_backward: expected statistics of the batch (train=True) or running statistics");
  const Tensor w = channel_vector("weight", weight, s.channels, weights);
  const int weight_dtype = weight ? weight.dtype() : dtype;
  const Tensor dw = empty_on(x, {s.channels}, weight_dtype), db = empty_on(x, {s.channels}, weight_dtype);
  const Tensor partial = empty_on(x, {2, s.splits, s.channels}, stat), totals = empty_on(x, {2, s.channels}, stat);
  const Kernel* k = sums[index][s.columns > 1].get("batch_norm_backward_sums;T=%s;A=%s;BLOCK_E=%d;BLOCK_C=%d", kDTypeName[dtype], kDTypeName[stat],
                                                   kTile / s.columns, s.columns);
  launch(k, s.sums(), address(dy), address(x), address(mean), address(partial), s.n(), s.c(), s.s(), static_cast<int32_t>(s.each));
  k = finish[float_index("batch_norm_backward", stat)][float_index("batch_norm_backward", weight_dtype)][train].get(
      "batch_norm_backward_statistics;A=%s;W=%s;TRAINING=%d;BLOCK_S=%d;BLOCK_C=%d", kDTypeName[stat], kDTypeName[weight_dtype], train, kFinish,
      kFinish);
  launch(k, s.finish(), address(partial), address(spread), address(dw), address(db), address(totals), static_cast<int32_t>(s.splits), s.c(), eps);
  Tensor dx;
  if (output_mask[0]) {
    dx = empty_on(x, x.sizes(), dtype);
    k = slots[index][weights != dtype][wide(x)][train][w.defined()].get("batch_norm_backward;T=%s;A=%s;W=%s;I=%s;TRAINING=%d;HAS_W=%d;BLOCK=%d",
                                                                        kDTypeName[dtype], kDTypeName[stat], kDTypeName[weights],
                                                                        wide(x) ? "i64" : "i32", train, w.defined(), kTile);
    launch_elements(k, x, std::make_tuple(address(dy), address(x), address(mean), address(spread), address(w), address(totals), address(dx)), s.c(),
                    s.s(), s.n(), eps);
  }
  return {dx, output_mask[1] ? dw : Tensor(), output_mask[2] ? db : Tensor()};
}

}  // namespace argand::kernels::cuda
