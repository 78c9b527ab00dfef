// Random numbers on Philox (docs/notes/random.md): the numbers of the CPU's kernels for the same seed and offset.
#include <cmath>

#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/csrc/core/random_bounds.h"
#include "packages/aten/cuda/csrc/specialization.h"
#include "packages/aten/cuda/csrc/strided_copy.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

constexpr int64_t kBlock = 1024;                                        // elements of a program
constexpr int64_t kDropoutBlock = 2048;                                 // of native_dropout
constexpr int64_t kMostKeys = (int64_t{1} << 31) - (int64_t{1} << 15);  // of randperm, which are sorted

// Counters for n elements of a tensor's device.
struct Stream {
  int64_t seed, first, state;  // state: address of a captured graph's {seed, added to first}, 0 outside of graphs

  Stream(const char* op, const Tensor& t, ArgandGenerator* g, int64_t n, int64_t per_counter) {
    if (!g) g = api->default_generator(t.device());
    if (!g) check(ARGAND_DEVICE_ERROR);
    if (ARGAND_DEVICE_TYPE(g->device) != ARGAND_DEVICE_TYPE(t.device()))
      fail(ARGAND_RUNTIME_ERROR,
           "%s: got a generator of another device than the tensor's, expected one on cuda; make it by Generator(device=tensor.device)", op);
    seed = static_cast<int64_t>(g->seed);
    first = static_cast<int64_t>(api->generator_reserve(g, static_cast<uint64_t>(divide_up(n, per_counter))));
    state = static_cast<int64_t>(reinterpret_cast<uintptr_t>(g->graph_state));
  }
};

bool is_ready(const Tensor& t) { return t.is_contiguous() && reinterpret_cast<uintptr_t>(t->data) % 16 == 0; }
Tensor ready(const Tensor& t) {
  if (is_ready(t)) return t;
  const Tensor out = empty(t.sizes(), t.dtype(), t.device());
  copy_strided(out, t);
  return out;
}

void check_floating(const char* op, const Tensor& t) {
  if (!is_floating(t.dtype()))
    fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a floating dtype; convert with .to(torch.float32)", op, kDTypeName[t.dtype()]);
}
void check_real(const char* op, const Tensor& t) {
  if (is_complex(t.dtype())) fail(ARGAND_DTYPE_ERROR, "%s: got dtype %s, expected a real dtype", op, kDTypeName[t.dtype()]);
}
void check_probability(const char* op, double p) {
  if (!(p >= 0 && p <= 1)) fail(ARGAND_RUNTIME_ERROR, "%s: got p=%g, expected 0 <= p <= 1", op, p);
}

int element_type(int dtype) { return dtype == ARGAND_BOOL ? ARGAND_UINT8 : dtype; }

// Fills self, through a dense tensor where it is not one: run(specialization's start, dense target).
template <class Run>
void fill(const char* op, const char* kernel_name, const Tensor& self, Run run) {
  check_writable(op, self);
  if (self.numel() == 0) return;
  const DeviceGuard guard(self);
  const Tensor out = is_ready(self) ? self : empty(self.sizes(), self.dtype(), self.device());
  Specialization s(kernel_name);
  s.type("T", element_type(self.dtype())).constant("BLOCK", kBlock);
  run(s, out);
  if (out.get() != self.get()) copy_strided(self, out);
}

// One of the kernels (out, n, seed, first, state, parameters...) on floating-point numbers.
template <class... A>
void fill_floating(const char* op, const char* kernel_name, const Tensor& self, ArgandGenerator* g, A... parameters) {
  check_floating(op, self);
  const Stream stream(op, self, g, self.numel(), self.dtype() == ARGAND_FLOAT64 ? 2 : 4);
  fill(op, kernel_name, self, [&](const Specialization& s, const Tensor& out) {
    launch(kernel(s.text()), grid_of(divide_up(out.numel(), kBlock)), out->data, out.numel(), stream.seed, stream.first, stream.state, parameters...);
  });
}

}  // namespace

void uniform_(const Tensor& self, double from, double to, ArgandGenerator* g) {
  if (is_complex(self.dtype())) return uniform_(ops::view_as_real(self), from, to, g);
  check_uniform_bounds("uniform_", self.dtype(), from, to);
  fill_floating("uniform_", "uniform_fill", self, g, from, to - from, to);
}

void normal_(const Tensor& self, double mean, double std, ArgandGenerator* g) {
  if (!(std >= 0)) fail(ARGAND_RUNTIME_ERROR, "normal_: expects std >= 0.0, but found std %g", std);
  if (is_complex(self.dtype())) return normal_(ops::view_as_real(self), mean, std / std::sqrt(2.0), g);  // of variance std^2 in all
  fill_floating("normal_", "normal_fill", self, g, mean, std);
}

void exponential_(const Tensor& self, double lambd, ArgandGenerator* g) {
  if (!(lambd > 0)) fail(ARGAND_RUNTIME_ERROR, "exponential_: expects lambda > 0.0, but found lambda=%g", lambd);
  fill_floating("exponential_", "exponential_fill", self, g, lambd, -1 / lambd);
}

void bernoulli_(const Tensor& self, double p, ArgandGenerator* g) {
  check_probability("bernoulli_", p);
  check_real("bernoulli_", self);
  const Stream stream("bernoulli_", self, g, self.numel(), 4);
  fill("bernoulli_", "bernoulli_fill", self, [&](const Specialization& s, const Tensor& out) {
    launch(kernel(s.text()), grid_of(divide_up(out.numel(), kBlock)), out->data, out.numel(), stream.seed, stream.first, stream.state, p);
  });
}

// Probabilities outside of [0, 1] count as the nearer end, and NaN as 0: looking for them would wait for the device.
Tensor bernoulli(const Tensor& self, ArgandGenerator* g) {
  check_floating("bernoulli", self);
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  const Stream stream("bernoulli", self, g, self.numel(), 4);
  fill("bernoulli", "bernoulli_each", out, [&](const Specialization& s, const Tensor& target) {
    const Tensor p = ready(self);
    launch(kernel(s.text()), grid_of(divide_up(target.numel(), kBlock)), target->data, p->data, target.numel(), stream.seed, stream.first,
           stream.state);
  });
  return out;
}

void random_(const Tensor& self, int64_t from, int64_t to, ArgandGenerator* g) {
  check_random_bounds("random_", self.dtype(), from, to);
  const Stream stream("random_", self, g, self.numel(), 2);
  const auto span = static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
  fill("random_", "integer_fill", self, [&](Specialization s, const Tensor& out) {
    s.flag("TO_BOOL", self.dtype() == ARGAND_BOOL);
    launch(kernel(s.text()), grid_of(divide_up(out.numel(), kBlock)), out->data, out.numel(), stream.seed, stream.first, stream.state, from, span);
  });
}

// The order of 32-bit keys, of which equal ones are shuffled: draw i is the key of number i, and its lower word the choice at place i.
Tensor randperm(int64_t n, ArgandGenerator* g, int dtype, std::optional<ArgandDevice> device, bool) {
  if (n < 0) fail(ARGAND_RUNTIME_ERROR, "randperm: n must be non-negative, got %lld", static_cast<long long>(n));
  const int type = dtype == ARGAND_DTYPE_NONE ? static_cast<int>(ARGAND_INT64) : dtype;
  if (n > 0) check_random_bounds("randperm", type, 0, n);
  if (n > kMostKeys)
    fail(ARGAND_RUNTIME_ERROR, "randperm: got n=%lld, expected less than 2^31 - 2^15 on a CUDA device; make it on the cpu",
         static_cast<long long>(n));
  const Tensor keys = empty({n}, ARGAND_INT32, device.value_or(ARGAND_DEVICE(ARGAND_CUDA, 0xff)));
  const Stream stream("randperm", keys, g, n, 2);
  if (n == 0) return empty({n}, type, keys.device());
  const DeviceGuard guard(keys);
  fill("randperm", "integer_fill", keys, [&](Specialization s, const Tensor& out) {
    s.flag("TO_BOOL", false);
    launch(kernel(s.text()), grid_of(divide_up(n, kBlock)), out->data, n, stream.seed, stream.first, stream.state, -(int64_t{1} << 31),
           int64_t{1} << 32);
  });
  const auto [sorted, order] = ops::sort(keys, 0);
  static const auto* const shuffle = kernel("shuffle_equal;BLOCK=256");
  launch(shuffle, grid_of(divide_up(n, 256)), order->data, sorted->data, n, stream.seed, stream.first, stream.state);
  return type == ARGAND_INT64 ? order : ops::_to_copy(order, type);
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, bool train) {
  check_probability("native_dropout", p);
  check_floating("native_dropout", input);
  const Dims strides = dense_strides(input.sizes(), input.strides());
  const Tensor out = empty_strided(input.sizes(), strides, input.dtype(), input.device());
  const Tensor mask = empty_strided(input.sizes(), strides, ARGAND_BOOL, input.device());
  if (!train) {
    copy_(out, input, false);
    fill_(mask, Operand(true));
    return {out, mask};
  }
  const Stream stream("native_dropout", input, nullptr, input.numel(), 4);
  if (input.numel() == 0) return {out, mask};
  const DeviceGuard guard(input);
  const Tensor in = ready(input);
  const Tensor rows = out.is_contiguous() ? out : empty(input.sizes(), input.dtype(), input.device());
  const Tensor mask_rows = mask.is_contiguous() ? mask : empty(input.sizes(), ARGAND_BOOL, input.device());
  const auto threshold = static_cast<int64_t>(p * 0x1p32);  // dropped below
  const double scale = p == 1.0 ? 0.0 : 1.0 / (1.0 - p);
  Specialization s("dropout_forward");
  s.type("T", input.dtype()).constant("BLOCK", kDropoutBlock);
  launch(kernel(s.text()), grid_of(divide_up(in.numel(), kDropoutBlock)), in->data, rows->data, mask_rows->data, in.numel(), stream.seed,
         stream.first, stream.state, threshold, scale);
  if (rows.get() != out.get()) copy_(out, rows, false);
  if (mask_rows.get() != mask.get()) copy_(mask, mask_rows, false);
  return {out, mask};
}

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, ArgandGenerator* g) {
  if (self.dim() != 1 && self.dim() != 2)
    fail(ARGAND_RUNTIME_ERROR, "multinomial: prob_dist must be 1 or 2 dim, got %lld", static_cast<long long>(self.dim()));
  const int64_t n = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  if (samples <= 0) fail(ARGAND_RUNTIME_ERROR, "multinomial: cannot sample n_sample <= 0 samples");
  if (!replacement && samples > n) fail(ARGAND_RUNTIME_ERROR, "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  if (n == 0 || n >= int64_t{1} << 31 || samples >= int64_t{1} << 31)
    fail(ARGAND_RUNTIME_ERROR, "multinomial: got %lld probabilities and %lld samples, expected 1 to 2^31 - 1 of each", static_cast<long long>(n),
         static_cast<long long>(samples));
  check_floating("multinomial", self);
  Dims sizes(self.sizes());
  sizes[sizes.n - 1] = samples;
  const Tensor out = empty(sizes, ARGAND_INT64, self.device());
  const Stream stream("multinomial", self, g, rows * samples, 2);
  if (rows == 0) return out;
  const DeviceGuard guard(self);
  const Tensor weights = dense(self), work = empty({rows, n}, ARGAND_FLOAT64, self.device()), flag = empty({1}, ARGAND_INT32, self.device());
  zero_(flag);
  const auto count = static_cast<int32_t>(n), drawn = static_cast<int32_t>(samples);
  if (replacement || samples == 1) {
    Specialization sums("cumulate_weights");
    sums.type("T", self.dtype()).constant("BLOCK", 2048);
    launch(kernel(sums.text()), grid_of(rows), weights->data, work->data, flag->data, count);
    launch(kernel("draw_with_replacement;BLOCK=256"), grid_of(divide_up(samples, 256), rows), work->data, out->data, stream.seed, stream.first,
           stream.state, count, drawn);
  } else {
    Specialization s("draw_without_replacement");
    s.type("T", self.dtype()).constant("BLOCK", 2048);
    launch(kernel(s.text()), grid_of(rows), weights->data, work->data, out->data, flag->data, stream.seed, stream.first, stream.state, count, drawn);
  }
  int32_t state = 0;
  check(device_interface(self.device())->copy(&state, ARGAND_DEVICE(ARGAND_CPU, 0), flag->data, self.device(), sizeof state));
  if (state == 1) fail(ARGAND_RUNTIME_ERROR, "multinomial: probability tensor contains either `inf`, `nan` or element < 0");
  if (state == 2) fail(ARGAND_RUNTIME_ERROR, "multinomial: invalid multinomial distribution (sum of probabilities <= 0, or too few nonzero ones)");
  return out;
}

namespace {

constexpr int64_t kSampled = 256;  // elements of a program that draws until it accepts

Specialization sampler(const char* name, int dtype) {
  Specialization s(name);
  s.type("T", dtype).constant("BLOCK", kSampled);
  return s;
}

}  // namespace

Tensor _standard_gamma(const Tensor& self, ArgandGenerator* g) {
  check_floating("_standard_gamma", self);
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  const Stream stream("_standard_gamma", self, g, self.numel(), 1);
  if (self.numel() == 0) return out;
  const DeviceGuard guard(self);
  const Tensor shapes = ready(self);
  // Never 0, whose logarithm and gradient are of no use.
  const double least = self.dtype() == ARGAND_FLOAT64 ? 2.2250738585072014e-308 : self.dtype() == ARGAND_FLOAT16 ? 0x1p-14 : 1.1754943508222875e-38;
  launch(kernel(sampler("sample_gamma", self.dtype()).text()), grid_of(divide_up(out.numel(), kSampled)), shapes->data, out->data, out.numel(),
         stream.seed, stream.first, stream.state, least);
  return out;
}

Tensor poisson(const Tensor& self, ArgandGenerator* g) {
  check_floating("poisson", self);
  const Tensor out = empty(self.sizes(), self.dtype(), self.device()), flag = empty({1}, ARGAND_INT32, self.device());
  const Stream stream("poisson", self, g, self.numel(), 1);
  if (self.numel() == 0) return out;
  const DeviceGuard guard(self);
  const Tensor rates = ready(self);
  zero_(flag);
  launch(kernel(sampler("sample_poisson", self.dtype()).text()), grid_of(divide_up(out.numel(), kSampled)), rates->data, out->data, flag->data,
         out.numel(), stream.seed, stream.first, stream.state);
  int32_t is_bad = 0;
  check(device_interface(self.device())->copy(&is_bad, ARGAND_DEVICE(ARGAND_CPU, 0), flag->data, self.device(), sizeof is_bad));
  if (is_bad) fail(ARGAND_RUNTIME_ERROR, "poisson: got a rate below 0 or NaN, expected rates >= 0");
  return out;
}

// The fills as functions.
Tensor uniform_functional(const Tensor& self, double from, double to, ArgandGenerator* g) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  uniform_(out, from, to, g);
  return out;
}

Tensor normal_functional(const Tensor& self, double mean, double std, ArgandGenerator* g) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  normal_(out, mean, std, g);
  return out;
}

Tensor exponential_functional(const Tensor& self, double lambd, ArgandGenerator* g) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  exponential_(out, lambd, g);
  return out;
}

Tensor bernoulli_functional(const Tensor& self, double p, ArgandGenerator* g) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  bernoulli_(out, p, g);
  return out;
}

Tensor random_functional(const Tensor& self, int64_t from, int64_t to, ArgandGenerator* g) {
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  random_(out, from, to, g);
  return out;
}

}  // namespace argand::kernels::cuda
