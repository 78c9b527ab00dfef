// softmax, log_softmax and their gradients over any dim (argand_aten_cuda/kernels/softmax.py).
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cuda {
namespace {

constexpr int kBlocks[] = {8, 16, 32, 64, 128, 256, 1024, 2048, 4096, 8192};
constexpr int kTile = 2048;  // elements of a program that takes several short rows
constexpr int kFours = 256;  // elements of the longest rows that are said to be aligned to four
constexpr int kColumnRows = 16, kColumns = 64;

// A dim of a dense tensor as three nested loops: outer x n x inner.
struct Loops {
  int64_t outer;
  int32_t n, inner;
  Loops(const char* op, const Tensor& t, int64_t dim) {
    const int64_t d = wrap_dim(op, dim, t.dim());
    outer = elements_in(t.sizes(), 0, t.dim() ? d : 0);
    n = size32(op, t.dim() ? t.size(d) : 1);
    inner = size32(op, elements_in(t.sizes(), d + 1, t.dim()));
  }
};

// Launches `name`_{forward,backward} in the variant for the loops; `pointers` are its tensors.
template <class... Pointers>
void run(const char* op, const char* name, Slot (&slots)[3][16], int dtype, bool log, const Loops& l, Pointers... pointers) {
  if (l.outer * l.n * l.inner == 0) return;
  const int block = block_index(kBlocks, l.n);
  const bool fours = l.inner == 1 && l.n <= kFours && l.n % 4 == 0;
  const int whole = alignment(l.inner == 1 ? l.n : l.inner), align = whole == 1 && fours ? 4 : whole;
  Slot* slot = slots[align == 16 ? 1 : align == 4 ? 2 : 0];
  if (l.inner > 1) {
    const Kernel* k =
        slot[0].get("%s_columns;T=%s;LOG=%d;BLOCK_N=%d;BLOCK_I=%d;ALIGN=%d", name, kDTypeName[dtype], log, kColumnRows, kColumns, align);
    launch(k, grid(op, l.outer * cdiv(l.inner, kColumns)), pointers..., l.n, l.inner / align);
  } else if (block < 0) {
    const int most = dtype == ARGAND_FLOAT32 ? 16384 : 8192;
    launch(slot[1].get("%s_long;T=%s;LOG=%d;BLOCK=%d;ALIGN=%d", name, kDTypeName[dtype], log, most, align), grid(op, l.outer), pointers...,
           l.n / align);
  } else {
    const int each = kBlocks[block] < 1024 ? kTile / kBlocks[block] : 1;
    const Kernel* k = slot[2 + block].get("%s;T=%s;LOG=%d;BLOCK=%d;ROWS=%d;ALIGN=%d", name, kDTypeName[dtype], log, kBlocks[block], each, align);
    launch(k, grid(op, cdiv(l.outer, each)), pointers..., size32(op, l.outer), l.n / align);
  }
}

Tensor forward(const char* op, const Tensor& self, int64_t dim, int dtype, bool log) {
  static Slot slots[kFloats][2][3][16];
  const Tensor x = aligned_dense(self, dtype == ARGAND_DTYPE_NONE ? self.dtype() : dtype);
  const int index = float_index(op, x.dtype());
  const Loops loops(op, x, dim);
  const Tensor out = empty_on(x, x.sizes(), x.dtype());
  run(op, "softmax_forward", slots[index][log], x.dtype(), log, loops, address(x), address(out));
  return out;
}

Tensor backward(const char* op, const Tensor& grad, const Tensor& output, int64_t dim, int input_dtype, bool log) {
  static Slot slots[kFloats][2][3][16];
  if (grad.dtype() != output.dtype() || !(grad.sizes() == output.sizes()))
    fail(ARGAND_SHAPE_ERROR, "%s: got grad of shape %s (%s) and output of shape %s (%s), expected equal ones", op, to_string(grad.sizes()).c_str(),
         kDTypeName[grad.dtype()], to_string(output.sizes()).c_str(), kDTypeName[output.dtype()]);
  const Tensor g = aligned_dense(grad), y = aligned_dense(output);
  const int index = float_index(op, y.dtype());
  const Loops loops(op, y, dim);
  const Tensor out = empty_on(y, y.sizes(), y.dtype());
  run(op, "softmax_backward", slots[index][log], y.dtype(), log, loops, address(g), address(y), address(out));
  return out.dtype() == input_dtype ? out : ops::_to_copy(out, input_dtype);
}

}  // namespace

Tensor softmax(const Tensor& self, int64_t dim, int dtype) { return forward("softmax", self, dim, dtype, false); }
Tensor log_softmax(const Tensor& self, int64_t dim, int dtype) { return forward("log_softmax", self, dim, dtype, true); }
Tensor softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, int input_dtype) {
  return backward("softmax_backward", grad_output, output, dim, input_dtype, false);
}
Tensor log_softmax_backward(const Tensor& grad_output, const Tensor& output, int64_t dim, int input_dtype) {
  return backward("log_softmax_backward", grad_output, output, dim, input_dtype, true);
}

}  // namespace argand::kernels::cuda
