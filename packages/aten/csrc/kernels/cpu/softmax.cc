// softmax, log_softmax and their gradients over any dim.
#include "packages/aten/csrc/kernels/cpu/softmax.h"

#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/csrc/kernels/sweep.h"
#include "packages/aten/generated/kernels.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kColumnBlock = 256;

const SoftmaxLoops& loops_of(const char* op, int dtype) {
  const SoftmaxKernels& k = pick_softmax_kernels();
  switch (dtype) {
    case ARGAND_FLOAT32:
      return k.f32;
    case ARGAND_FLOAT64:
      return k.f64;
    case ARGAND_BFLOAT16:
      return k.bf16;
    case ARGAND_FLOAT16:
      return k.f16;
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a floating dtype; pass dtype=torch.float32", op, kDTypeName[dtype]);
  }
}

// Runs by_rows(first row, rows) or by_columns(outer slice, begin, end) in parallel.
template <class Rows, class Columns>
void split(const DimSplit& s, Rows&& by_rows, Columns&& by_columns) {
  if (s.outer * s.n * s.inner == 0) return;
  const int64_t row_bytes = 2 * s.n * 4;
  if (s.inner == 1) return parallel_sweep(s.outer, row_grain(s.n), row_bytes, by_rows);
  const int64_t blocks = (s.inner + kColumnBlock - 1) / kColumnBlock;
  parallel_for(0, s.outer * blocks, row_grain(s.n * (s.inner < kColumnBlock ? s.inner : kColumnBlock)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t j = i % blocks * kColumnBlock;
      by_columns(i / blocks, j, j + kColumnBlock < s.inner ? j + kColumnBlock : s.inner);
    }
  });
}

Tensor forward(const char* op, const Tensor& self, int64_t dim, int dtype, bool log) {
  const Tensor x = dtype == ARGAND_DTYPE_NONE ? contiguous(self) : to_dtype(self, dtype);
  const DimSplit s(x, wrap_dim(op, dim, x.dim()));
  const SoftmaxLoops& loops = loops_of(op, x.dtype());
  Tensor out = empty(x.sizes(), x.dtype());
  const int64_t size = x.itemsize();
  const char* in = x.data<char>();
  char* to = out.data<char>();
  split(
      s,
      [&](int64_t begin, int64_t end) {
        if (size != 2) return loops.rows(end - begin, s.n, in + begin * s.n * size, to + begin * s.n * size, nullptr, log);
        Scratch<float> scratch(s.n);
        loops.rows(end - begin, s.n, in + begin * s.n * size, to + begin * s.n * size, scratch.get(), log);
      },
      [&](int64_t i, int64_t begin, int64_t end) {
        const int64_t at = i * s.n * s.inner * size;
        loops.columns(s.n, s.inner, begin, end, in + at, to + at, log);
      });
  return out;
}

Tensor backward(const char* op, const Tensor& grad, const Tensor& output, int64_t dim, bool log) {
  check_same_dtype(op, grad, output);
  if (!(grad.sizes() == output.sizes()))
    fail(ARGAND_SHAPE_ERROR, "%s: got grad of shape %s and output of shape %s, expected equal shapes", op, to_string(grad.sizes()).c_str(),
         to_string(output.sizes()).c_str());
  const Tensor g = contiguous(grad), y = contiguous(output);
  const SoftmaxLoops& loops = loops_of(op, y.dtype());
  const DimSplit s(y, wrap_dim(op, dim, y.dim()));
  Tensor out = empty(y.sizes(), y.dtype());
  const int64_t size = y.itemsize();
  const char *pg = g.data<char>(), *py = y.data<char>();
  char* to = out.data<char>();
  split(
      s,
      [&](int64_t begin, int64_t end) {
        const int64_t at = begin * s.n * size;
        loops.rows_backward(end - begin, s.n, pg + at, py + at, to + at, log);
      },
      [&](int64_t i, int64_t begin, int64_t end) {
        const int64_t at = i * s.n * s.inner * size;
        loops.columns_backward(s.n, s.inner, begin, end, pg + at, py + at, to + at, log);
      });
  return out;
}

}  // namespace

Tensor softmax(const Tensor& self, int64_t dim, int dtype) { return forward("softmax", self, dim, dtype, false); }
Tensor log_softmax(const Tensor& self, int64_t dim, int dtype) { return forward("log_softmax", self, dim, dtype, true); }
Tensor softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, int input_dtype) {
  return to_dtype(backward("softmax_backward", grad_output, output, dim, false), input_dtype);
}
Tensor log_softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, int input_dtype) {
  return to_dtype(backward("log_softmax_backward", grad_output, output, dim, true), input_dtype);
}

}  // namespace argand::kernels::cpu
