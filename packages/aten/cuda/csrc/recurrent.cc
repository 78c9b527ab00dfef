// Recurrent layers: all steps by one kernel (argand_aten_cuda/kernels/recurrent.py) where the weight is small, else step by step.
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/network.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

enum Mode { kLstm, kGru, kTanh, kRelu, kModes };

// Every program reads the weight in every step; with larger ones, products that share the reads take less time (measured on an H200).
constexpr int64_t kMostReads = int64_t{1} << 26;  // elements
constexpr int kBlocks[] = {64, 128, 256};

void check_steps(const char* op, const Tensor& input) {
  if (input->ndim != 3 || input.size(0) == 0)
    fail(ARGAND_SHAPE_ERROR, "%s: expected input of shape (steps, batch, gates * hidden) with at least one step, but got %s", op,
         to_string(input.sizes()).c_str());
}

struct Layer {
  const char* op;
  Mode mode;
  const Tensor &input, &hidden, &cell, &weight, &bias;
  bool reverse;

  int64_t steps() const { return input.size(0); }
  int64_t batch() const { return input.size(1); }
  int64_t size() const { return hidden.size(1); }
  int64_t gates() const { return mode == kLstm ? 4 : mode == kGru ? 3 : 1; }

  bool takes(const Tensor& t, int64_t rows, int64_t columns) const {
    return t->ndim == 2 && t.size(0) == rows && t.size(1) == columns && t.dtype() == input.dtype() && t.device() == input.device();
  }
  bool is_fused() const {
    check_steps(op, input);
    if (!is_floating(input.dtype()) || hidden->ndim != 2 || size() == 0 || block_index(kBlocks, size()) < 0) return false;
    const int64_t count = weight.numel(), rows = gates() * size();
    return batch() * count <= kMostReads && input.size(2) == rows && takes(hidden, batch(), size()) && takes(weight, rows, size()) &&
           (!cell || takes(cell, batch(), size())) &&
           (!bias || (bias->ndim == 1 && bias.size(0) == rows && bias.dtype() == input.dtype() && bias.device() == input.device()));
  }

  // Fills `out`, and the cells and gates where they are defined.
  void run(const Tensor& out, const Tensor& cells, const Tensor& sums) const {
    static Slot slots[kFloats][kModes][2][3][2];
    if (out.numel() == 0) return;
    const Tensor x = aligned_dense(input), h = aligned_dense(hidden), c = aligned_dense(cell), w = aligned_dense(weight), b = aligned_dense(bias);
    const int block = block_index(kBlocks, size()), aligned = size() % 16 == 0;
    const int depth = mode >= kTanh && kBlocks[block] == 128 ? 64 : 32;
    const Kernel* k = slots[float_index(op, x.dtype())][mode][bool(b)][block][aligned].get(
        "recurrent_layer;T=%s;MODE=%d;BIAS=%s;BLOCK=%d;DEPTH=%d;ALIGNED=%s", kDTypeName[x.dtype()], mode, b ? "True" : "False", kBlocks[block], depth,
        aligned ? "True" : "False");
    const int32_t count = size32(op, steps());
    launch(k, grid(op, batch()), address(out), address(cells), address(sums), address(x), address(h), address(c), address(w), address(b), count,
           size32(op, batch()), size32(op, size()), reverse ? count - 1 : 0, reverse ? -1 : 1);
  }
  Tensor states() const { return empty_on(input, {steps(), batch(), size()}, input.dtype()); }
  Tensor sums() const { return empty_on(input, input.sizes(), input.dtype()); }
  Tensor no_sums() const { return empty_on(input, {0, input.size(1), input.size(2)}, input.dtype()); }
};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm_layer(const Tensor& input, const Tensor& hidden, const Tensor& cell, const Tensor& weight, bool reverse,
                                              bool keep) {
  const Tensor none;
  const Layer layer{"lstm_layer", kLstm, input, hidden, cell, weight, none, reverse};
  if (!layer.is_fused()) return ops::_lstm_by_steps(input, hidden, cell, weight, reverse, keep);
  const Tensor out = layer.states(), cells = layer.states(), sums = layer.sums();
  layer.run(out, cells, sums);
  if (keep) return {out, cells, sums};
  const int64_t last = reverse ? 0 : layer.steps() - 1;
  return {out, ops::clone(ops::slice(cells, 0, last, last + 1, 1)), layer.no_sums()};
}

std::tuple<Tensor, Tensor> gru_layer(const Tensor& input, const Tensor& hidden, const Tensor& weight, const Tensor& bias, bool reverse, bool keep) {
  const Tensor none;
  const Layer layer{"gru_layer", kGru, input, hidden, none, weight, bias, reverse};
  if (!layer.is_fused()) return ops::_gru_by_steps(input, hidden, weight, bias, reverse, keep);
  const Tensor out = layer.states(), sums = layer.sums();
  layer.run(out, none, sums);
  return {out, keep ? sums : layer.no_sums()};
}

Tensor rnn_layer(const Tensor& input, const Tensor& hidden, const Tensor& weight, bool relu, bool reverse) {
  const Tensor none;
  const Layer layer{"rnn_layer", relu ? kRelu : kTanh, input, hidden, none, weight, none, reverse};
  if (!layer.is_fused()) return ops::_rnn_by_steps(input, hidden, weight, relu, reverse);
  const Tensor out = layer.states();
  layer.run(out, none, none);
  return out;
}

}  // namespace argand::kernels::cuda
