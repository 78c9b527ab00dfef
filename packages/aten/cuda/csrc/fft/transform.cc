// Fourier transforms on CUDA devices, by cuFFT: dense signals of up to three dimensions, one behind the other.
#include <algorithm>
#include <cmath>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/cuda/csrc/core/plain_key.h"
#include "packages/aten/cuda/csrc/fft/cufft.h"
#include "packages/aten/cuda/csrc/fused.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

namespace fft = argand::cuda::fft;
using builtins::Ints;

constexpr const char* kOp = "fft";  // in errors
constexpr int64_t kMaxRank = 3;     // of cuFFT
constexpr size_t kMaxPlans = 64;    // of a thread: their tables lie in the device's memory

constexpr int64_t kLeastMirrored = 32, kMostMirrored = 1 << 29;

enum Kind : int32_t { kComplex, kFromReal, kToReal };

// All that a plan depends on. No padding: compared and hashed as bytes.
struct Key {
  int64_t sizes[kMaxRank], batch;
  int32_t rank, kind, dtype, device;  // dtype: of the complex numbers
};
static_assert(sizeof(Key) == 48);

struct Plan {
  fft::Handle handle = -1;
  size_t workspace = 0;  // bytes

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (handle >= 0) fft::library().destroy(handle);
  }
};

void make_plan(const Key& key, Plan& plan) {
  const fft::Library& l = fft::library();
  const bool full = key.dtype == ARGAND_COMPLEX128;
  const int32_t complex = full ? fft::kC64F : fft::kC32F, real = full ? fft::kR64F : fft::kR32F;
  long long sizes[kMaxRank], half[kMaxRank], points = 1, half_points = 1;
  for (int i = 0; i < key.rank; i++) {
    sizes[i] = key.sizes[i], half[i] = key.kind != kComplex && i == key.rank - 1 ? sizes[i] / 2 + 1 : sizes[i];
    points *= sizes[i], half_points *= half[i];
  }
  const bool from_real = key.kind == kFromReal, to_real = key.kind == kToReal;
  fft::check_status(kOp, "cufftCreate", l.create(&plan.handle));
  fft::check_status(kOp, "cufftSetAutoAllocation", l.set_auto_allocation(plan.handle, 0));
  fft::check_status(
      kOp, "cufftXtMakePlanMany",
      l.make_plan_many(plan.handle, key.rank, sizes, from_real ? sizes : half, 1, from_real ? points : half_points, from_real ? real : complex,
                       to_real ? sizes : half, 1, to_real ? points : half_points, to_real ? real : complex, key.batch, &plan.workspace, complex));
}

// Plans are a thread's own: stream and workspace are set for each call.
Plan& plan_of(const Key& key) {
  static thread_local argand::cuda::PlanCache<Key, Plan, kMaxPlans> plans;
  return plans.get(key, [&](Plan& plan) { make_plan(key, plan); });
}

IntList part(IntList l, int64_t begin, int64_t end) { return {l.begin() + begin, std::min(end, l.size()) - begin}; }

// The transform over at most three dimensions, without a factor. `last`: the last of them is halved, or was; `sizes` are the result's.
Tensor transform(const Tensor& self, IntList dim, Kind kind, bool forward, const Ints& sizes, int dtype) {
  const bool last = kind != kComplex;
  const Ints strides = builtins::transform_strides(sizes, self.strides(), dim, last);
  const Tensor out = empty_strided(sizes, strides, dtype, self.device());
  if (out.numel() == 0) return out;
  // The dimensions as they lie in the result: first those that stay, then those of a signal.
  const auto place = [&](int64_t d) { return last && d == dim[dim.size() - 1] ? 2 : builtins::contains(dim, d) ? 1 : 0; };
  Ints order = builtins::all_dims(self.dim());
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return std::pair(place(a), -strides[a]) < std::pair(place(b), -strides[b]); });
  Key key{};
  key.rank = static_cast<int32_t>(dim.size()), key.kind = kind, key.device = ARGAND_DEVICE_INDEX(self.device());
  key.dtype = is_complex(dtype) ? dtype : self.dtype();
  key.batch = 1;
  const IntList signal = kind == kToReal ? IntList(sizes) : self.sizes();
  const int64_t outer = self.dim() - key.rank;
  for (int64_t i = 0; i < self.dim(); i++) (i < outer ? key.batch *= signal[order[i]] : key.sizes[i - outer] = signal[order[i]]);
  Tensor in = ops::permute(self, order);
  // cuFFT reads pairs of real numbers, and writes over its input where the result is real.
  const bool aligned = reinterpret_cast<uintptr_t>(in->data) % static_cast<uintptr_t>(item_size(key.dtype)) == 0;
  if (kind == kToReal || !aligned || !in.is_contiguous()) in = ops::clone(in, 0);
  Plan& plan = plan_of(key);
  const fft::Library& l = fft::library();
  Tensor workspace;
  if (plan.workspace) workspace = empty({static_cast<int64_t>(plan.workspace)}, ARGAND_UINT8, self.device());
  fft::check_status(kOp, "cufftSetWorkArea", l.set_work_area(plan.handle, workspace ? workspace->data : nullptr));
  fft::check_status(kOp, "cufftSetStream", l.set_stream(plan.handle, current_stream(self.device())));
  fft::check_status(kOp, "cufftXtExec", l.execute(plan.handle, in->data, out->data, forward ? fft::kForward : fft::kInverse));
  return out;
}

// `x` times the factor of a normalization over so many points: none, 1 / sqrt(n), 1 / n.
Tensor normalized(const Tensor& x, IntList dim, int64_t normalization, IntList sizes) {
  if (normalization == 0) return x;
  double points = 1;
  for (const int64_t d : dim) points *= static_cast<double>(sizes[d]);
  return ops::mul_(x, Scalar(1 / (normalization == 1 ? std::sqrt(points) : points)));
}

// In the strides that the operators' results have, where several transforms followed each other.
Tensor arranged(const Tensor& x, const Tensor& self, IntList dim, bool last) {
  const Ints strides = builtins::transform_strides(x.sizes(), self.strides(), dim, last);
  const Tensor out = empty_strided(x.sizes(), strides, x.dtype(), x.device());
  ops::copy_(out, x);
  return out;
}

// Whether the spectrum of real numbers is its half and the conjugates of that: of dense signals of the last dimensions that are long enough to gain
// by it.
bool mirrors(const Tensor& self, IntList dim) {
  const int64_t rank = dim.size(), n = self.dim() ? self.size(-1) : 0;
  if (rank > kMaxRank || n < kLeastMirrored || n > kMostMirrored || !self.is_contiguous()) return false;
  for (int64_t i = 0; i < rank; i++)
    if (dim[i] != self.dim() - rank + i) return false;
  const Ints strides = builtins::transform_strides(self.sizes(), self.strides(), dim, false);
  return self.numel() / n * cdiv(n, kLeastMirrored) <= std::numeric_limits<int32_t>::max() && IntList(strides) == self.strides();
}

Tensor mirrored(const Tensor& half, const Tensor& self, IntList dim) {
  static Slot slots[2][2];
  const Tensor out = empty(self.sizes(), half.dtype(), self.device()), kept = ops::contiguous(half);
  if (out.numel() == 0) return out;
  const int parts = half.dtype() == ARGAND_COMPLEX128 ? 2 : 1;
  const int64_t n = self.size(-1), words = n * parts, block = words > 512 ? 1024 : 64, tiles = cdiv(words, block), rank = dim.size();
  const auto size = [&](int64_t d) { return static_cast<int32_t>(rank >= d ? self.size(-d) : 1); };
  const Kernel* k = slots[parts - 1][block == 64].get("fourier_mirror;PARTS=%d;BLOCK=%d", parts, static_cast<int>(block));
  launch(k, grid(kOp, out.numel() / n * tiles), address(out), address(kept), size(3), size(2), size(1), static_cast<int32_t>(n / 2 + 1),
         static_cast<int32_t>(tiles));
  return out;
}

Tensor complex_transform(Tensor x, IntList dim, bool forward) {
  for (int64_t begin = 0; begin < dim.size(); begin += kMaxRank)
    x = transform(x, part(dim, begin, begin + kMaxRank), kComplex, forward, x.sizes().vec(), x.dtype());
  return x;
}

}  // namespace

Tensor fft_c2c(const Tensor& self, IntList dim, int64_t normalization, bool forward) {
  const DeviceGuard guard(self);
  const Tensor out = complex_transform(self, dim, forward);
  return normalized(dim.size() > kMaxRank ? arranged(out, self, dim, false) : out, dim, normalization, self.sizes());
}

Tensor fft_r2c(const Tensor& self, IntList dim, int64_t normalization, bool onesided) {
  const int dtype = builtins::complex_dtype(self.dtype());
  if (!onesided && mirrors(self, dim)) return mirrored(fft_r2c(self, dim, normalization, true), self, dim);
  if (!onesided) return fft_c2c(ops::_to_copy(self, dtype), dim, normalization, true);
  const DeviceGuard guard(self);
  Ints sizes = self.sizes().vec();
  sizes[dim[dim.size() - 1]] = sizes[dim[dim.size() - 1]] / 2 + 1;
  const int64_t rest = std::max<int64_t>(dim.size() - kMaxRank, 0);
  Tensor out = transform(self, part(dim, rest, dim.size()), kFromReal, true, sizes, dtype);
  if (rest) out = arranged(complex_transform(out, part(dim, 0, rest), true), self, dim, true);
  return normalized(out, dim, normalization, self.sizes());
}

Tensor fft_c2r(const Tensor& self, IntList dim, int64_t normalization, int64_t last_dim_size) {
  const DeviceGuard guard(self);
  Ints sizes = self.sizes().vec();
  sizes[dim[dim.size() - 1]] = last_dim_size;
  const int64_t rest = std::max<int64_t>(dim.size() - kMaxRank, 0);
  const Tensor x = complex_transform(self, part(dim, 0, rest), false);
  Tensor out = transform(x, part(dim, rest, dim.size()), kToReal, false, sizes, builtins::real_dtype(self.dtype()));
  if (rest) out = arranged(out, self, dim, true);
  return normalized(out, dim, normalization, sizes);
}

}  // namespace argand::kernels::cuda
