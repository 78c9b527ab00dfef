// Connectionist temporal classification: the host side of argand_aten_cuda/kernels/ctc.py. What only values tell is checked by the kernels.
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kBlocks[] = {32, 128, 512, 2048};
constexpr int64_t kClasses = 128;  // of a program of the gradient

struct Problem {
  const char* op = "ctc_loss";
  Tensor x, labels, inputs, targets;
  int64_t steps, count, classes, blank, width, block;
  int accumulated;

  Problem(const Tensor& log_probs, const Tensor& target, const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank_)
      : x(aligned_dense(log_probs)), blank(blank_), accumulated(sum_dtype(log_probs.dtype())) {
    float_index(op, x.dtype());
    if (x.dim() != 3) fail(ARGAND_SHAPE_ERROR, "%s: expected log_probs (time, batch, classes), but got %s", op, to_string(x.sizes()).c_str());
    steps = size32(op, x.size(0)), count = size32(op, x.size(1)), classes = size32(op, x.size(2));
    if (blank < 0 || blank >= classes)
      fail(ARGAND_RUNTIME_ERROR, "%s: blank must be in label range, got %ld of %ld classes", op, static_cast<long>(blank),
           static_cast<long>(classes));
    const bool padded = target.dim() == 2;
    if (input_lengths.numel() != count || target_lengths.numel() != count || target.dim() < 1 || target.dim() > 2 ||
        (padded && target.size(0) != count))
      fail(ARGAND_RUNTIME_ERROR,
           "%s: got targets %s, %ld input lengths and %ld target lengths, expected (batch, length) or (all labels) for a batch of %ld", op,
           to_string(target.sizes()).c_str(), static_cast<long>(input_lengths.numel()), static_cast<long>(target_lengths.numel()),
           static_cast<long>(count));
    width = padded ? size32(op, target.size(1)) : -1;
    const int found = block_index(kBlocks, 2 * (padded ? width : target.numel()) + 1);
    if (found < 0) fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for targets this long on device 'cuda'", op);
    block = kBlocks[found];
    labels = on_device(target), inputs = on_device(input_lengths), targets = on_device(target_lengths);
  }
  Tensor on_device(const Tensor& t) const {
    return aligned_dense(t.device() == x.device() ? t : ops::_to_copy(t, ARGAND_INT64, x.device()), ARGAND_INT64);
  }

  const Kernel* named(const char* name, const char* flag, bool value) const {
    const std::string constant = flag ? std::string(";") + flag + (value ? "=True" : "=False") : "";
    return argand::cuda::kernel(std::string(name) + ";T=" + kDTypeName[x.dtype()] + constant + ";BLOCK=" + std::to_string(block));
  }
  Tensor room(int64_t rows) const { return empty_on(x, {count, rows, block}, accumulated); }

  // The losses, and in `alpha` the forward variables where all are kept.
  Tensor forward(const Tensor& alpha, bool keep) const {
    const Tensor losses = empty_on(x, {count}, accumulated);
    if (count)
      launch(named("ctc_forward", "KEEP", keep), grid(op, count), address(losses), address(alpha), address(x), address(labels), address(inputs),
             address(targets), error_record(x), operator_name(op), i32(steps), i32(count), i32(classes), i32(blank), i32(width), labels.numel());
    return losses;
  }
  static int32_t i32(int64_t n) { return static_cast<int32_t>(n); }
};

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank, bool) {
  const places::Below below;
  const Problem p(log_probs, targets, input_lengths, target_lengths, blank);
  return places::to_dtype(p.forward(p.room(2), false), log_probs.dtype());
}

Tensor ctc_loss_backward(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                         const Tensor& target_lengths, int64_t blank, bool zero_infinity) {
  const places::Below below;
  const Problem p(log_probs, targets, input_lengths, target_lengths, blank);
  if (grad.numel() != p.count)
    fail(ARGAND_SHAPE_ERROR, "ctc_loss_backward: got grad of shape %s, expected (%ld)", to_string(grad.sizes()).c_str(), static_cast<long>(p.count));
  const Tensor out = empty_on(p.x, p.x.sizes(), p.x.dtype());
  if (out.numel() == 0) return out;
  const Tensor g = aligned_dense(grad, p.x.dtype()), alpha = p.room(p.steps), turns = p.room(2), losses = p.forward(alpha, true);
  launch(p.named("ctc_occupancy", nullptr, false), grid(p.op, p.count), address(alpha), address(turns), address(losses), address(p.x),
         address(p.labels), address(p.inputs), address(p.targets), p.i32(p.steps), p.i32(p.count), p.i32(p.classes), p.i32(p.blank), p.i32(p.width),
         p.labels.numel());
  const int64_t tiles = cdiv(p.classes, kClasses);
  const Kernel* k = argand::cuda::kernel(std::string("ctc_gradient;T=") + kDTypeName[p.x.dtype()] + (zero_infinity ? ";ZERO=True" : ";ZERO=False") +
                                         ";BS=32;BC=" + std::to_string(kClasses));
  launch(k, grid(p.op, p.steps * p.count * tiles), address(out), address(g), address(alpha), address(losses), address(p.x), address(p.labels),
         address(p.inputs), address(p.targets), p.i32(p.steps), p.i32(p.count), p.i32(p.classes), p.i32(p.blank), p.i32(p.width), p.labels.numel(),
         p.i32(tiles), p.i32(p.block));
  return out;
}

}  // namespace argand::kernels::cuda
