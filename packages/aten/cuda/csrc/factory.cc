// Ranges, triangles, joined and padded tensors.
#include <algorithm>
#include <cmath>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/linspace_dtype.h"
#include "packages/aten/cuda/csrc/specialization.h"
#include "packages/aten/cuda/csrc/strided_copy.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/joining.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cuda {
namespace {

constexpr int64_t kBlock = 1024;

Tensor cuda_vector(int64_t n, int dtype, std::optional<ArgandDevice> device) {
  return empty({n}, dtype, device.value_or(ARGAND_DEVICE(ARGAND_CUDA, 0xff)));
}

// A range kernel writes real numbers; complex ranges are made of their real part.
template <class F>
Tensor range(const Tensor& out, const char* kernel_name, F run) {
  if (out.numel() == 0) return out;
  const DeviceGuard guard(out);
  const Tensor real = is_complex(out.dtype()) ? empty(out.sizes(), ARGAND_FLOAT64, out.device()) : out;
  const bool to_bool = real.dtype() == ARGAND_BOOL;
  Specialization s(kernel_name);
  s.type("T", to_bool ? ARGAND_UINT8 : real.dtype()).constant("BLOCK", kBlock).flag("TO_BOOL", to_bool);
  run(kernel(s.text()), grid_of(divide_up(real.numel(), kBlock)), real);
  if (real.get() != out.get()) copy_strided(out, real);
  return out;
}

// Integers are made of integers.
double range_end(const Scalar& value, int dtype) { return is_integral(dtype, true) ? std::trunc(value.to_double()) : value.to_double(); }

Tensor float_range(const Tensor& out, double first, double last, double step, int64_t middle) {
  return range(out, "float_range", [&](const Kernel* k, Grid grid, const Tensor& real) {
    launch(k, grid, static_cast<const void*>(real->data), real.numel(), first, last, step, middle);
  });
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, int dtype, std::optional<ArgandDevice> device, bool) {
  if (dtype != ARGAND_UINT64 && builtins::arange_dtype(start, end, step) == ARGAND_INT64)
    for (const Scalar& s : {start, end, step}) check_fits("arange", ARGAND_INT64, value(s));
  const int type = dtype == ARGAND_DTYPE_NONE ? builtins::arange_dtype(start, end, step) : dtype;
  const Tensor out = cuda_vector(builtins::arange_length(start, end, step), type, device);
  if (!is_integral(type, true) || start.is_floating() || step.is_floating())
    return float_range(out, range_end(start, type), 0, range_end(step, type), out.numel());
  return range(out, "integer_range", [&](const Kernel* k, Grid grid, const Tensor& real) {
    launch(k, grid, static_cast<const void*>(real->data), real.numel(), start.to_int(), step.to_int());
  });
}

// Both halves count from their own end, so that the last element is exactly `end`.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, int dtype, std::optional<ArgandDevice> device, bool) {
  const int type = linspace_dtype(start, end, dtype);
  const auto line = [&](double a, double b, int of) {
    return float_range(cuda_vector(steps, of, device), a, b, steps > 1 ? (b - a) / static_cast<double>(steps - 1) : 0, (steps + 1) / 2);
  };
  if (!is_complex(type)) return line(range_end(start, type), range_end(end, type), type);
  const int part = builtins::real_dtype(type);
  return ops::complex(line(start.re, end.re, part), line(start.im, end.im, part));
}

namespace {

Tensor triangle(const char* name, const Tensor& self, int64_t diagonal, bool lower) {
  if (self.dim() < 2) fail(ARGAND_RUNTIME_ERROR, "%s: input tensor must have at least 2 dimensions, got %s", name, to_string(self.sizes()).c_str());
  const Tensor out = empty(self.sizes(), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  const DeviceGuard guard(self);
  const Tensor input = dense(self);
  constexpr int64_t kWide = 128, kHigh = 32;
  const int parts = self.itemsize() == 16 ? 2 : 1, unit = self.itemsize() / parts;
  const int64_t columns = self.size(-1) * parts, height = self.size(-2), matrices = self.numel() / (self.size(-1) * height);
  if (columns >= int64_t{1} << 31 || height >= int64_t{1} << 31)
    fail(ARGAND_RUNTIME_ERROR, "%s: got matrices of shape [%lld, %lld], expected sizes below 2^31", name, static_cast<long long>(height),
         static_cast<long long>(self.size(-1)));
  const int64_t tiles_x = divide_up(columns, kWide), tiles_y = divide_up(height, kHigh);
  const bool aligned = columns % 16 == 0 && reinterpret_cast<uintptr_t>(input->data) % 16 == 0;
  Specialization s("triangle");
  s.type("T", integer_of_size(unit))
      .constant("BX", kWide)
      .constant("BY", kHigh)
      .flag("LOWER", lower)
      .constant("PARTS", parts)
      .flag("ALIGNED", aligned);
  launch(kernel(s.text()), grid_of(tiles_x * tiles_y * matrices), static_cast<const void*>(input->data), static_cast<const void*>(out->data),
         static_cast<int32_t>(height), static_cast<int32_t>(columns), diagonal, static_cast<int32_t>(tiles_x), static_cast<int32_t>(tiles_y));
  return out;
}

}  // namespace

Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, bool lower, std::optional<ArgandDevice> device) {
  offset = std::clamp(offset, -row - 1, col);
  const auto split = [&](int64_t i) { return std::clamp<int64_t>(i + offset + (lower ? 1 : 0), 0, col); };
  int64_t n = 0;
  for (int64_t i = 0; i < row; i++) n += lower ? split(i) : col - split(i);
  const Tensor out = empty({2, n}, ARGAND_INT64, device.value_or(ARGAND_DEVICE(ARGAND_CUDA, 0xff)));
  if (n == 0) return out;
  const DeviceGuard guard(out);
  constexpr int64_t kWide = 512, kHigh = 8;
  const int64_t tiles_x = divide_up(col, kWide);
  Specialization s("triangle_indices");
  s.constant("BX", kWide).constant("BY", kHigh).flag("LOWER", lower);
  launch(kernel(s.text()), grid_of(tiles_x * divide_up(row, kHigh)), static_cast<const void*>(out->data), n, row, col, offset,
         static_cast<int32_t>(tiles_x));
  return out;
}

Tensor tril(const Tensor& self, int64_t diagonal) { return triangle("tril", self, diagonal, true); }
Tensor triu(const Tensor& self, int64_t diagonal) { return triangle("triu", self, diagonal, false); }

namespace {

constexpr int kInputs = 16;           // of one launch of `join`
constexpr int64_t kInterleaved = 16;  // elements of a row that are copied input by input

// Dense inputs of out's dtype, side by side in the rows of `out`; lengths in elements of `unit` bytes.
struct Joined {
  const char* data;
  int64_t n;
};

void join_rows(const std::vector<Joined>& inputs, char* out, int64_t first, int64_t rows, int64_t row, int unit) {
  for (size_t begin = 0; begin < inputs.size(); begin += kInputs) {
    const void* data[kInputs];
    int64_t n[kInputs], widest = 1, total = 0;
    const int count = static_cast<int>(std::min<size_t>(kInputs, inputs.size() - begin));
    bool aligned = reinterpret_cast<uintptr_t>(out) % 16 == 0 && row * unit % 16 == 0 && first * unit % 16 == 0;
    for (int j = 0; j < kInputs; j++) {
      data[j] = j < count ? inputs[begin + j].data : out;
      n[j] = j < count ? inputs[begin + j].n : 0;
      widest = std::max(widest, n[j]);
      total += n[j];
      aligned = aligned && reinterpret_cast<uintptr_t>(data[j]) % 16 == 0 && n[j] * unit % 16 == 0;
    }
    const int64_t wide = widest >= 512 ? 1024 : widest > 64 ? 128 : 16, high = 4096 / wide, tiles_x = divide_up(widest, wide);
    Specialization s("join");
    s.type("T", integer_of_size(unit)).constant("BX", wide).constant("BY", high).flag("ALIGNED", aligned);
    launch(kernel(s.text()), grid_of(tiles_x * divide_up(rows, high), count), static_cast<const void*>(out), data[0], data[1], data[2], data[3],
           data[4], data[5], data[6], data[7], data[8], data[9], data[10], data[11], data[12], data[13], data[14], data[15], n[0], n[1], n[2], n[3],
           n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15], first, rows, row, static_cast<int32_t>(tiles_x));
    first += total;
  }
}

bool is_skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

// Checks the tensors' shapes against `shaped`; the shape of the result.
Dims joined_shape(const TensorList& tensors, const Tensor& shaped, int64_t d) {
  Dims sizes(shaped.sizes());
  sizes[d] = 0;
  for (size_t k = 0; k < tensors.size(); k++) {
    const Tensor& t = tensors[k];
    if (is_skipped(t)) continue;
    if (t.device() != shaped.device())
      fail(ARGAND_DEVICE_ERROR, "cat: got tensors on different devices, expected all on one; move tensor number %zu with .to(device)", k);
    bool fits = t.dim() == shaped.dim();
    for (int64_t i = 0; fits && i < t.dim(); i++) fits = i == d || t.size(i) == sizes[i];
    if (!fits)
      fail(ARGAND_SHAPE_ERROR,
           "cat: Sizes of tensors must match except in dimension %lld. Expected shape %s but got %s for tensor number %zu in the list.",
           static_cast<long long>(d), to_string(shaped.sizes()).c_str(), to_string(t.sizes()).c_str(), k);
    sizes[d] += t.size(d);
  }
  return sizes;
}

}  // namespace

Tensor cat(const TensorList& tensors, int64_t dim) {
  if (tensors.empty()) fail(ARGAND_VALUE_ERROR, "cat: expected a non-empty list of Tensors");
  const auto shaped = std::find_if_not(tensors.begin(), tensors.end(), is_skipped);
  const int dtype = builtins::cat_dtype(tensors);
  if (shaped == tensors.end()) return empty(tensors[0].sizes(), dtype, tensors[0].device());
  if (shaped->dim() == 0) fail(ARGAND_RUNTIME_ERROR, "cat: zero-dimensional tensor (at position 0) cannot be concatenated");
  const int64_t d = builtins::wrap_dim(dim, shaped->dim());
  const auto sizes = joined_shape(tensors, *shaped, d);
  const int64_t format = builtins::common_format(tensors);
  const Tensor out = empty_strided(sizes, builtins::format_strides(sizes, format), dtype, shaped->device());
  if (out.numel() == 0) return out;
  const DeviceGuard guard(out);
  const int64_t row = out.stride(d) * out.size(d), rows = out.numel() / row;
  const int unit = std::min(out.itemsize(), 8), parts = out.itemsize() / unit;
  const bool interleaved = row <= kInterleaved && rows > 4096;  // tiles of `join` would be mostly empty
  std::vector<Joined> run;                                      // dense inputs that follow one another
  int64_t start = 0, run_start = 0;
  auto flush = [&] {
    if (!run.empty()) join_rows(run, out.data<char>(), run_start * parts, rows, row * parts, unit);
    run.clear();
  };
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    const int64_t n = t.size(d) * out.stride(d);
    if (format == 0 && t.dtype() == dtype && t.is_contiguous() && !interleaved) {
      if (run.empty()) run_start = start;
      run.push_back({t.data<const char>(), n * parts});
    } else {
      flush();
      copy_place(Place(out.data<char>() + start * out.itemsize(), dtype, t.sizes(), out.strides()), Place(t));
    }
    start += n;
  }
  flush();
  return out;
}

// Dense tensors that 32 bits count; what else there is, and what is wrong, goes by indices.
Tensor border_pad(const Tensor& self, IntList pad, std::string_view mode) {
  const int64_t padded = pad.size() / 2, ndim = self.dim();
  const bool mirror = mode == "reflect";
  int32_t size[3] = {1, 1, 1}, made[3] = {1, 1, 1}, before[3] = {0, 0, 0};
  bool fits =
      self.is_contiguous() && self.numel() > 0 && padded <= std::min<int64_t>(ndim, 3) && self.itemsize() <= 8 && (mirror || mode == "replicate");
  Dims sizes(self.sizes());
  int64_t total = fits ? self.numel() : 0;
  for (int64_t i = 0; fits && i < padded; i++) {
    const int64_t d = ndim - 1 - i, n = self.size(d), low = pad[2 * i], high = pad[2 * i + 1], most = int64_t{1} << 30;
    fits = n < most && low < (mirror ? n : most) && high < (mirror ? n : most) && low > -n && high > -n && n + low + high > 0;
    if (!fits) break;
    sizes[d] = n + low + high;
    total = total / n * sizes[d];
    fits = total < most;
    size[i] = static_cast<int32_t>(n), made[i] = static_cast<int32_t>(sizes[d]), before[i] = static_cast<int32_t>(low);
  }
  if (!fits || self.numel() >= int64_t{1} << 30) return ops::_indexed_pad(self, pad, mode);
  const DeviceGuard guard(self);
  const Tensor out = empty(sizes, self.dtype(), self.device());
  Specialization s("pad_border");
  s.type("T", integer_of_size(self.itemsize())).flag("MIRROR", mirror).constant("BLOCK", kBlock);
  launch(kernel(s.text()), grid_of(divide_up(total, kBlock)), static_cast<const void*>(out->data), static_cast<const void*>(self->data),
         static_cast<int32_t>(total), made[0], made[1], made[2], size[0], size[1], size[2], before[0], before[1], before[2]);
  return out;
}

}  // namespace argand::kernels::cuda
