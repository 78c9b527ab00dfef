#include "packages/aten/csrc/kernels/cpu/scan_driver.h"

#include <algorithm>
#include <cstring>

#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand {
namespace {

constexpr int64_t kGrain = 8192;
constexpr int64_t kColumns = 512;  // neighbouring rows that are scanned together

// The kernel of elements of `dtype`; uint16 and uint32 have none of their own, and are scanned as uint64.
const ScanKernel& require_kernel(const ScanOp& op, int dtype) {
  const ScanKernel* table = op.kernels[api->cpu_tier()];
  const int held = is_wide_unsigned(dtype) ? ARGAND_UINT64 : dtype;
  for (int i = 0; i < op.n_kernels; i++)
    if (table[i].in_dtype == held) return table[i];
  std::string known;
  for (int i = 0; i < op.n_kernels; i++) known += (i ? ", " : "") + std::string(kDTypeName[static_cast<int>(table[i].in_dtype)]);
  fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for dtype %s; expected one of %s", op.name, kDTypeName[dtype], known.c_str());
}

void run_scan(const ScanKernel& kernel, const Tensor& in, const Tensor& out, int64_t d) {
  const int64_t n = in.size(d), in_step = in.stride(d) * in.itemsize(), out_step = out.stride(d) * out.itemsize();
  Dims sizes, in_strides, out_strides;
  for (int64_t i = 0; i < in.dim(); i++) {
    if (i == d) continue;
    sizes.push_back(in.size(i));
    in_strides.push_back(in.stride(i));
    out_strides.push_back(out.stride(i));
  }
  Iteration it;  // the other dimensions
  it.set_shape(sizes);
  it.add(out->data, sizes, out_strides, out.itemsize());
  it.add(in->data, sizes, in_strides, in.itemsize());
  it.sort(nullptr);
  it.coalesce();
  const int64_t columns = it.shape[0], out_stride = it.strides[0][0], in_stride = it.strides[1][0];
  const int acc_size = kItemSize[static_cast<int>(kernel.acc_dtype)];
  const bool together = columns >= 8 && in_stride < in_step;  // a row's elements are further apart than its neighbours'
  auto scan_rows = [&](int64_t count, char* const* p) {
    alignas(64) char acc[kColumns * 16];
    if (!together) {
      for (int64_t i = 0; i < count; i++) {
        kernel.init(acc);
        kernel.row(n, p[0] + i * out_stride, out_step, p[1] + i * in_stride, in_step, acc);
      }
      return;
    }
    for (int64_t first = 0; first < count; first += kColumns) {
      const int64_t m = std::min(kColumns, count - first);
      kernel.init(acc);
      for (int64_t i = 1; i < m; i++) std::memcpy(acc + i * acc_size, acc, acc_size);
      for (int64_t i = 0; i < n; i++)
        kernel.step(m, p[0] + first * out_stride + i * out_step, out_stride, p[1] + first * in_stride + i * in_step, in_stride, acc);
    }
  };
  auto range = [&](int64_t begin, int64_t end) { for_each_row(it, begin, end, scan_rows); };
  if (it.numel * n <= kGrain)
    range(0, it.numel);
  else
    parallel_for(0, it.numel, std::max<int64_t>(together ? 16 : 1, kGrain / n), range);
}

}  // namespace

Tensor scan(const ScanOp& op, const Tensor& self, int64_t dim, int dtype, const Tensor& out) {
  const int64_t d = wrap_dim(op.name, dim, self.dim());
  const int from = dtype != ARGAND_DTYPE_NONE ? dtype : self.dtype();
  if (dtype == ARGAND_BOOL) fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for dtype bool; accumulate in an integer dtype", op.name);
  const ScanKernel& kernel = require_kernel(op, from);
  const Tensor input = kernel.in_dtype != self.dtype() ? kernels::cpu::to_copy(self, kernel.in_dtype, std::nullopt, false, std::nullopt) : self;
  if (out && !(out.sizes() == self.sizes())) check(api->tensor_resize(out.get(), static_cast<int32_t>(self.dim()), self.sizes().ptr));
  if (out) check_writable(op.name, out);
  const bool direct = out && out.dtype() == kernel.out_dtype && (out.get() == input.get() || partial_overlap(out, input) == Overlap::no);
  const Tensor result = direct ? out : empty(self.sizes(), kernel.out_dtype, self.device());
  if (!self.is_meta() && self.numel() > 0) {
    if (self.dim() == 0)
      run_scan(kernel, view_of(input, {1}, {1}, input->offset), view_of(result, {1}, {1}, result->offset), 0);
    else
      run_scan(kernel, input, result, d);
  }
  if (out && !direct) {
    kernels::cpu::copy_(out, result, false);
    return out;
  }
  const int result_dtype = dtype != ARGAND_DTYPE_NONE ? dtype : kernel.out_dtype == kernel.in_dtype ? from : kernel.out_dtype;
  return out || result.dtype() == result_dtype ? result : kernels::cpu::to_copy(result, result_dtype, std::nullopt, false, std::nullopt);
}

}  // namespace argand
