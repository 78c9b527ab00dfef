// Pooling of the last two dimensions: the host side of argand_aten_cuda/kernels/pool.py.
#include <cmath>
#include <limits>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/dtype_checks.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

using namespace places;
using argand::cuda::kernel;
using argand::cuda::launch;

constexpr int64_t kBlock = 256;

int32_t size32(const char* op, int64_t n) {
  if (n > std::numeric_limits<int32_t>::max())
    fail(ARGAND_RUNTIME_ERROR, "%s: got a plane of %lld elements, expected fewer than 2^31", op, static_cast<long long>(n));
  return static_cast<int32_t>(n);
}

// Windows over planes of h x w that give planes of oh x ow.
struct Windows {
  int32_t h, w, oh, ow, kernel[2], stride[2], padding[2];

  Windows(const char* op, IntList in, IntList out)
      : h(size32(op, in[in.n - 2])),
        w(size32(op, in[in.n - 1])),
        oh(size32(op, out[out.n - 2])),
        ow(size32(op, out[out.n - 1])),
        kernel{},
        stride{1, 1},
        padding{} {
    size32(op, in[in.n - 2] * in[in.n - 1]);
    size32(op, out[out.n - 2] * out[out.n - 1]);
  }
  void set(IntList k, IntList s, IntList p) {
    for (int i = 0; i < 2; i++) {
      kernel[i] = static_cast<int32_t>(k[i]);
      stride[i] = static_cast<int32_t>(s.size() ? s[i] : k[i]);
      padding[i] = static_cast<int32_t>(p[i]);
    }
  }
  // Adaptive windows differ in size: at most so large.
  void set_adaptive() {
    kernel[0] = h / (oh > 0 ? oh : 1) + 2;
    kernel[1] = w / (ow > 0 ? ow : 1) + 2;
  }
};

struct Mean {
  bool adaptive, padded;
  int32_t divisor;  // 0: the window's size
  std::string text(const char* function, int dtype, bool wide) const {
    return std::string(function) + ";T=" + kDTypeName[dtype] + (wide ? ";I=int64" : ";I=int32") + ";ADAPTIVE=" + flag(adaptive) +
           ";PADDED=" + flag(padded) + ";BLOCK=256";
  }
};

bool is_wide(int64_t total, int64_t other) { return std::max(total, other) > std::numeric_limits<int32_t>::max() - kBlock; }

void check_floating(const char* op, const Tensor& t) {
  if (!is_floating(t.dtype()))
    fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a floating dtype; convert with .to(torch.float32)", op, kDTypeName[t.dtype()]);
}

// f with the total as int32_t or int64_t.
template <class F>
void with_total(int64_t total, bool wide, F&& f) {
  if (wide)
    f(total);
  else
    f(static_cast<int32_t>(total));
}

Tensor average(const char* op, const Tensor& self, IntList sizes, const Windows& g, const Mean& mean) {
  const Below below;
  check_floating(op, self);
  const Tensor x = dense(self), out = empty(sizes, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  const bool wide = is_wide(out.numel(), x.numel());
  const auto* k = kernel(mean.text("avg_pool2d", self.dtype(), wide));
  with_total(out.numel(), wide, [&](auto total) {
    launch(k, programs(op, divide_up(out.numel(), kBlock)), out->data, x->data, total, g.h, g.w, g.oh, g.ow, g.kernel[0], g.kernel[1], g.stride[0],
           g.stride[1], g.padding[0], g.padding[1], mean.divisor);
  });
  return self.is_contiguous() ? out : ops::_in_format_of(out, self);
}

Tensor average_backward(const char* op, const Tensor& grad_output, IntList input_size, const Windows& g, const Mean& mean) {
  const Below below;
  check_floating(op, grad_output);
  const Tensor grad = dense(grad_output), out = empty(input_size, grad.dtype(), grad.device());
  if (out.numel() == 0) return out;
  int32_t reach[2];  // how many windows hold an element, at most
  for (int i = 0; i < 2; i++) {
    const int32_t in = i ? g.w : g.h, o = i ? g.ow : g.oh;
    reach[i] = mean.adaptive ? (in > 0 ? o / in : 0) + 2 : static_cast<int32_t>(divide_up(g.kernel[i], g.stride[i])) + 1;
  }
  const bool wide = is_wide(out.numel(), grad.numel());
  const auto* k = kernel(mean.text("avg_pool2d_backward", grad.dtype(), wide));
  with_total(out.numel(), wide, [&](auto total) {
    launch(k, programs(op, divide_up(out.numel(), kBlock)), out->data, grad->data, total, g.h, g.w, g.oh, g.ow, g.kernel[0], g.kernel[1], g.stride[0],
           g.stride[1], g.padding[0], g.padding[1], reach[0], reach[1], mean.divisor);
  });
  return out;
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                                                   bool ceil_mode) {
  const Below below;
  check_not_bool("max_pool2d", self.dtype());
  if (is_complex(self.dtype())) fail(ARGAND_DTYPE_ERROR, "max_pool2d: got dtype %s, expected a real dtype", kDTypeName[self.dtype()]);
  const builtins::Ints sizes = builtins::pool2d_shape(self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  const Tensor x = dense(self), out = empty(sizes, self.dtype(), self.device()), indices = empty(sizes, ARGAND_INT64, self.device());
  if (out.numel() == 0) return {out, indices};
  Windows g("max_pool2d", x.sizes(), sizes);
  g.set(kernel_size, stride, padding);
  const bool wide = is_wide(out.numel(), x.numel());
  const auto* k = kernel("max_pool2d;T=" + std::string(real_name(self.dtype())) + (wide ? ";I=int64" : ";I=int32") + ";BLOCK=256");
  with_total(out.numel(), wide, [&](auto total) {
    launch(k, programs("max_pool2d", divide_up(out.numel(), kBlock)), out->data, indices->data, x->data, total, g.h, g.w, g.oh, g.ow, g.kernel[0],
           g.kernel[1], g.stride[0], g.stride[1], g.padding[0], g.padding[1], static_cast<int32_t>(dilation[0]), static_cast<int32_t>(dilation[1]));
  });
  return {out, indices};
}

std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, IntList output_size) {
  const Below below;
  if (is_complex(self.dtype())) fail(ARGAND_DTYPE_ERROR, "adaptive_max_pool2d: got dtype %s, expected a real dtype", kDTypeName[self.dtype()]);
  builtins::Ints sizes(self.sizes().begin(), self.sizes().end() - 2);
  sizes.insert(sizes.end(), output_size.begin(), output_size.end());
  const Tensor x = dense(self), out = empty(sizes, self.dtype(), self.device()), indices = empty(sizes, ARGAND_INT64, self.device());
  if (out.numel() == 0) return {out, indices};
  Windows g("adaptive_max_pool2d", x.sizes(), sizes);
  g.set_adaptive();
  const bool wide = is_wide(out.numel(), x.numel());
  const auto* k = kernel("adaptive_max_pool2d;T=" + std::string(real_name(self.dtype())) + (wide ? ";I=int64" : ";I=int32") + ";BLOCK=256");
  with_total(out.numel(), wide, [&](auto total) {
    launch(k, programs("adaptive_max_pool2d", divide_up(out.numel(), kBlock)), out->data, indices->data, x->data, total, g.h, g.w, g.oh, g.ow,
           g.kernel[0], g.kernel[1]);
  });
  return {out, indices};
}

// Windows that overlap meet in one element: its sum is taken in float32 for 16-bit floats (int32 for narrow integers), in no fixed order.
Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, IntList input_size, const Tensor& indices) {
  const Below below;
  const int dtype = grad_output.dtype();
  const int sum = dtype == ARGAND_FLOAT16 || dtype == ARGAND_BFLOAT16 ? ARGAND_FLOAT32 : adds_atomically(dtype) ? dtype : ARGAND_INT32;
  const int64_t planes = product(input_size, 0, input_size.n - 2), plane = input_size[input_size.n - 2] * input_size[input_size.n - 1];
  const Tensor out = zeros({planes, plane}, sum, grad_output.device());
  if (grad_output.numel() != 0 && out.numel() != 0) {
    const Tensor grad = to_dtype(dense(grad_output), sum), at = dense(indices);
    const int64_t n = grad.numel() / planes, sizes[] = {planes, n}, strides[] = {n, 1}, to[] = {plane, 0};
    const Dims rows(IntList(strides, 2));
    Walk w{"max_pool2d_backward", Dims(IntList(sizes, 2)), Dims(IntList(to, 2)), rows, rows, 1, 0, plane, 1};
    w.skips_bad = true;  // windows that see padding alone have the index -1
    put(w, out, grad, at, Put::kAdd);
  }
  return ops::reshape(to_dtype(out, dtype), input_size);
}

Tensor avg_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  if (divisor_override && *divisor_override == 0) fail(ARGAND_RUNTIME_ERROR, "avg_pool2d: divisor must be not zero");
  const builtins::Ints sizes = builtins::pool2d_shape(self.sizes(), kernel_size, stride, padding, {1, 1}, ceil_mode);
  Windows g("avg_pool2d", self.sizes(), sizes);
  g.set(kernel_size, stride, padding);
  const bool whole = self.dtype() == ARGAND_INT64;  // sums below 2^53 are exact, and what is left of a quotient is cut off
  const Tensor x = whole ? ops::_to_copy(self, ARGAND_FLOAT64) : self;
  const Tensor mean = average("avg_pool2d", x, sizes, g, {false, count_include_pad, static_cast<int32_t>(divisor_override.value_or(0))});
  return whole ? ops::_to_copy(mean, ARGAND_INT64) : mean;
}

Tensor avg_pool2d_backward(const Tensor& grad_output, IntList input_size, IntList kernel_size, IntList stride, IntList padding, bool,
                           bool count_include_pad, std::optional<int64_t> divisor_override) {
  Windows g("avg_pool2d_backward", input_size, grad_output.sizes());
  g.set(kernel_size, stride, padding);
  return average_backward("avg_pool2d_backward", grad_output, input_size, g,
                          {false, count_include_pad, static_cast<int32_t>(divisor_override.value_or(0))});
}

Tensor adaptive_avg_pool2d(const Tensor& self, IntList output_size) {
  builtins::Ints sizes(self.sizes().begin(), self.sizes().end() - 2);
  sizes.insert(sizes.end(), output_size.begin(), output_size.end());
  if (self.numel() == 0) return ops::full(sizes, Scalar(NAN), self.dtype(), self.device());  // the mean of nothing
  Windows g("adaptive_avg_pool2d", self.sizes(), sizes);
  g.set_adaptive();
  return average("adaptive_avg_pool2d", self, sizes, g, {true, false, 0});
}

Tensor adaptive_avg_pool2d_backward(const Tensor& grad_output, IntList input_size) {
  Windows g("adaptive_avg_pool2d_backward", input_size, grad_output.sizes());
  return average_backward("adaptive_avg_pool2d_backward", grad_output, input_size, g, {true, false, 0});
}

}  // namespace argand::kernels::cuda
