// Kernels whose results are positions or counts: the host side of argand_aten_cuda/kernels/search.py.
#include <algorithm>
#include <bit>
#include <limits>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/joining.h"
#include "packages/aten/generated/ops/reduction.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

using namespace places;
using argand::cuda::kernel;
using argand::cuda::launch;

constexpr int64_t kBlock = 4096;

// Waits for the device and reads `n` integers.
void read(const Tensor& t, int64_t at, int64_t n, int64_t* to) {
  check(api->device_interface(ARGAND_CUDA)
            ->copy(to, ARGAND_DEVICE(ARGAND_CPU, 0), t.data<int64_t>() + at, t.device(), static_cast<size_t>(n) * sizeof(int64_t)));
}

// The bits of an element that tell whether it is zero: all but the signs of floats.
int64_t magnitude_bits(int dtype) {
  switch (dtype) {
    case ARGAND_FLOAT16:
    case ARGAND_BFLOAT16:
      return 0x7fff;
    case ARGAND_FLOAT32:
      return 0x7fffffff;
    case ARGAND_FLOAT64:
      return 0x7fffffffffffffff;
    case ARGAND_COMPLEX64:
      return 0x7fffffff7fffffff;
    default:
      return -1;
  }
}

// Of complex128, whose elements no integer holds.
Tensor is_nonzero(const Tensor& self) {
  const Tensor parts = ops::ne(ops::view_as_real(self), Scalar(0));
  return dense(ops::logical_or(ops::select(parts, -1, 0), ops::select(parts, -1, 1)));
}

// A call's launches of nonzero_count and nonzero_write; offsets have 32 bits where they fit.
struct Nonzero {
  Tensor x;
  int64_t keep = magnitude_bits(x.dtype()), blocks = divide_up(x.numel(), kBlock);
  bool wide = x.numel() > std::numeric_limits<int32_t>::max() - kBlock;

  const argand::cuda::Kernel* named(const char* name, const std::string& constants) const {
    const bool aligned = reinterpret_cast<uintptr_t>(x->data) % 16 == 0;
    return kernel(std::string(name) + ";T=" + integer_name(x.itemsize()) + (wide ? ";I=int64" : ";I=int32") + constants +
                  ";BLOCK=4096;ALIGNED=" + flag(aligned));
  }
  template <class F>
  void with_offsets(F&& f) const {
    if (wide)
      f(int64_t{});
    else
      f(int32_t{});
  }
  void count(const Tensor& counts) const {
    with_offsets([&](auto tag) {
      launch(named("nonzero_count", ""), programs("nonzero", blocks), counts->data, x->data, static_cast<decltype(tag)>(x.numel()), keep);
    });
  }
  // The coordinates, from the innermost one on, up to four columns a launch; `out` lies column by column.
  void write(const Tensor& out, const Tensor& sums) const {
    const int32_t width = static_cast<int32_t>(x.dim());
    int64_t each = 1;
    for (int32_t column = width - 1; column >= 0; column -= 4) {
      const int32_t dims = std::min(4, column + 1);
      int64_t n[4] = {1, 1, 1, 1};
      for (int32_t i = 0; i < dims; i++) n[i] = x.size(column - i);
      with_offsets([&](auto tag) {
        using I = decltype(tag);
        launch(named("nonzero_write", ";DIMS=" + std::to_string(dims) + ";WHOLE=" + flag(width <= 4)), programs("nonzero", blocks), out->data,
               x->data, sums->data, static_cast<I>(x.numel()), keep, out.size(0), column, static_cast<I>(each), static_cast<I>(n[0]),
               static_cast<I>(n[1]), static_cast<I>(n[2]), static_cast<I>(n[3]));
      });
      for (int64_t size : n) each *= size;
    }
  }
};

}  // namespace

namespace {

// Where each block's results begin, and behind them how many there are, which is waited for.
std::pair<Tensor, int64_t> begins(const Tensor& counts) {
  const int64_t blocks = counts.numel();
  const Tensor sums = empty({blocks + 1}, ARGAND_INT64, counts.device());
  static const auto* const scan = kernel("exclusive_sums;BLOCK=4096");
  launch(scan, {1}, sums->data, counts->data, static_cast<int32_t>(blocks));
  int64_t total = 0;
  read(sums, blocks, 1, &total);
  return {sums, total};
}

}  // namespace

Tensor nonzero(const Tensor& self) {
  const Below below;
  const Tensor x = self.dtype() == ARGAND_COMPLEX128 ? is_nonzero(self) : dense(self);
  const auto columns = [&](int64_t count) {
    return empty_strided({count, self.dim()}, {1, std::max<int64_t>(count, 1)}, ARGAND_INT64, self.device());
  };
  if (x.numel() == 0) return columns(0);
  const Nonzero call{x};
  const Tensor counts = empty({call.blocks}, ARGAND_INT32, self.device());
  call.count(counts);
  const auto [sums, count] = begins(counts);
  const Tensor out = columns(count);
  if (out.numel()) call.write(out, sums);
  return out;
}

Tensor distinct_neighbours(const Tensor& self) {
  const Below below;
  const Tensor x = dense(self);
  const int64_t n = x.numel();
  if (n == 0) return empty({0}, x.dtype(), x.device());
  const Tensor counts = empty({divide_up(n, kBlock)}, ARGAND_INT32, x.device());
  const argand::cuda::Grid grid = programs("unique", counts.numel());
  const bool wide = n > std::numeric_limits<int32_t>::max() - kBlock;
  const std::string rest = ";T=" + std::string(real_name(x.dtype())) + (wide ? ";I=int64" : ";I=int32") +
                           ";BLOCK=4096;ALIGNED=" + flag(reinterpret_cast<uintptr_t>(x->data) % 16 == 0);
  const auto run = [&](auto size) {
    launch(kernel("distinct_count" + rest), grid, counts->data, x->data, size);
    const auto [sums, count] = begins(counts);
    const Tensor out = empty({count}, x.dtype(), x.device());
    launch(kernel("distinct_write" + rest), grid, out->data, x->data, sums->data, size);
    return out;
  };
  return wide ? run(n) : run(static_cast<int32_t>(n));
}

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right) {
  const Below below;
  check_same_dtype("searchsorted", sorted_sequence, self);
  check_device("searchsorted", "sorted_sequence", sorted_sequence, self);
  if (is_complex(self.dtype())) fail(ARGAND_DTYPE_ERROR, "searchsorted: got dtype %s, expected a real dtype", kDTypeName[self.dtype()]);
  const Tensor sequence = dense(sorted_sequence), values = dense(self);
  const bool shared = sequence.dim() == 1;
  if (!shared && !(sequence.dim() == values.dim() && std::equal(sequence.sizes().begin(), sequence.sizes().end() - 1, values.sizes().begin())))
    fail(ARGAND_SHAPE_ERROR,
         "searchsorted: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, "
         "but we got "
         "boundaries tensor %s and input value tensor %s",
         to_string(sequence.sizes()).c_str(), to_string(values.sizes()).c_str());
  const Tensor out = empty(self.sizes(), out_int32 ? ARGAND_INT32 : ARGAND_INT64, self.device());
  if (out.numel() == 0) return out;
  const int64_t n = size_of(sequence, sequence.dim() - 1), row = shared ? values.numel() : size_of(values, values.dim() - 1);
  const bool wide = n > std::numeric_limits<int32_t>::max();
  const auto* k = kernel("searchsorted;T=" + std::string(real_name(self.dtype())) + ";O=" + kDTypeName[out.dtype()] +
                         (wide ? ";I=int64;RIGHT=" : ";I=int32;RIGHT=") + flag(right) + ";SHARED=" + flag(shared) + ";BLOCK=1024");
  const argand::cuda::Grid grid = programs("searchsorted", divide_up(out.numel(), 1024));
  if (wide)
    launch(k, grid, out->data, sequence->data, values->data, out.numel(), n, row);
  else
    launch(k, grid, out->data, sequence->data, values->data, out.numel(), static_cast<int32_t>(n), row);
  return out;
}

Tensor count_in_bins(const Tensor& self, const Tensor& low, const Tensor& high, int64_t bins) {
  const Below below;
  if (bins <= 0 || low.dtype() != self.dtype() || high.dtype() != self.dtype() || low.numel() != 1 || high.numel() != 1)
    fail(ARGAND_SHAPE_ERROR, "histc: expected bins above 0, and low and high as one element of %s each", kDTypeName[self.dtype()]);
  check_device("histc", "low", low, self);
  check_device("histc", "high", high, self);
  const Tensor x = dense(self), out = zeros({bins}, ARGAND_INT64, self.device());
  const auto* k = kernel("count_in_bins;T=" + std::string(kDTypeName[x.dtype()]) + ";BLOCK=4096;FEW=" + flag(bins <= 256));
  launch(k, programs("histc", std::min<int64_t>(divide_up(x.numel(), kBlock), 1024)), out->data, x->data, low->data, high->data, x.numel(), bins);
  return out;
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const Below below;
  const bool integral = is_integral(self.dtype(), false);
  if (self.dim() != 1 || !integral)
    fail(integral ? ARGAND_RUNTIME_ERROR : ARGAND_NOT_IMPLEMENTED_ERROR,
         "bincount: only 1-d non-negative integral inputs are supported, got %s of shape %s", kDTypeName[self.dtype()],
         to_string(self.sizes()).c_str());
  if (minlength < 0) fail(ARGAND_RUNTIME_ERROR, "bincount: minlength should be >= 0");
  if (weights) {
    check_device("bincount", "weights", weights, self);
    if (!(weights.sizes() == self.sizes())) fail(ARGAND_SHAPE_ERROR, "bincount: weights should be 1-d and have the same length as input");
  }
  const Tensor x = dense(to_dtype(self, ARGAND_INT64));
  int64_t bounds[2] = {0, -1};
  if (x.numel()) {
    const auto [least, greatest] = ops::aminmax(x, std::nullopt, false);  // by one reading
    read(ops::stack({least, greatest}), 0, 2, bounds);
  }
  if (bounds[0] < 0)
    fail(ARGAND_RUNTIME_ERROR, "bincount: only 1-d non-negative integral inputs are supported, got %ld", static_cast<long>(bounds[0]));
  const int64_t n = std::max(minlength, builtins::plus(bounds[1], 1));
  const bool counts = !weights || x.numel() == 0;
  const Tensor out = zeros({n}, counts ? ARGAND_INT64 : ARGAND_FLOAT64, self.device());
  if (x.numel() == 0) return out;
  if (!weights && n <= 256) {
    static const auto* const k = kernel("bincount_small;BLOCK=1024;BINS=256");
    launch(k, programs("bincount", std::min<int64_t>(divide_up(x.numel(), 1024), 1024)), out->data, x->data, x.numel(), static_cast<int32_t>(n));
    return out;
  }
  const Tensor added = weights ? to_dtype(weights, ARGAND_FLOAT64) : ops::full({}, Scalar(1), ARGAND_INT64, self.device());
  Walk w{"bincount", Dims(x.sizes()), {}, Dims(x.strides()), {}, 1, 0, n, 0};
  w.x.push_back(0);
  w.other.push_back(weights ? added.stride(0) : 0);
  put(w, out, added, x, Put::kAdd);
  return weights && weights.dtype() == ARGAND_FLOAT32 ? to_dtype(out, ARGAND_FLOAT32) : out;
}

}  // namespace argand::kernels::cuda
