#include "packages/aten/csrc/kernels/cpu/copy.h"

#include <algorithm>
#include <cstring>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/copy_shape.h"
#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/csrc/core/number.h"
#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/sweep.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kGrainBytes = 128 << 10;  // a copy that is worth a thread
constexpr int64_t kTile = 256;
constexpr int64_t kFewColumns = 16, kShortRow = 1024;  // elements, and bytes of dense rows; of rows that short, several are copied at once

// One row of the copy: operand 0 is written, operand 1 read.
struct Copy {
  Iteration it;
  int dst_dtype, src_dtype;
  bool streams;

  Copy(IntList sizes, void* dst, IntList dst_strides, int dst_type, const void* src, IntList src_sizes, IntList src_strides, int src_type)
      : dst_dtype(dst_type), src_dtype(src_type) {
    it.set_shape(sizes);
    it.add(dst, sizes, dst_strides, kItemSize[dst_dtype]);
    it.add(const_cast<void*>(src), src_sizes, src_strides, kItemSize[src_dtype]);
    it.sort(nullptr);
    it.coalesce();
    // The dimension along which the source is contiguous next to the innermost: tiles of both are read in whole lines.
    const int size = kItemSize[src_dtype];
    for (int d = 2; d < it.ndim && it.strides[1][0] != size && it.strides[1][1] != size; d++)
      if (it.strides[1][d] == size) it.swap_dims(1, d);
    streams = goes_past_caches(it.numel * kItemSize[dst_dtype]);
  }

  void row(int64_t n, char* const* p) const {
    const int64_t ds = it.strides[0][0], ss = it.strides[1][0];
    const int size = kItemSize[dst_dtype];
    if (streams && dst_dtype == src_dtype && ds == size && ss == size)
      stream_copy(p[0], p[1], static_cast<size_t>(n) * size);
    else if (dst_dtype == src_dtype && ds == size && ss == size)
      copy_row(p[0], p[1], n * size);
    else
      convert(n, dst_dtype, p[0], ds, src_dtype, p[1], ss);
  }

  // Rows [first, first + rows) x columns of a plane whose source runs along dimension 1.
  void tile(char* dst, const char* src, int64_t rows, int64_t columns, char* buffer) const {
    const int size = kItemSize[src_dtype];
    if (dst_dtype == src_dtype && it.strides[0][0] == size) {
      gather_tile(dst, it.strides[0][1], src, it.strides[1][1], it.strides[1][0], rows, columns, size);
      return;
    }
    gather_tile(buffer, size * columns, src, it.strides[1][1], it.strides[1][0], rows, columns, size);
    for (int64_t r = 0; r < rows; r++)
      convert(columns, dst_dtype, dst + r * it.strides[0][1], it.strides[0][0], src_dtype, buffer + r * size * columns, size);
  }
  void rows(int64_t begin, int64_t end, const Iteration& outer) const {
    for_each_row(outer, begin, end, [&](int64_t n, char* const* p) {
      move_rows(n, p[0], outer.strides[0][0], it.strides[0][0], p[1], outer.strides[1][0], it.strides[1][0], it.shape[0], kItemSize[dst_dtype]);
    });
  }
  // Rows of a tile: whole cache lines of the source.
  int64_t tile_rows() const { return std::max(16, 64 / kItemSize[src_dtype]); }

  void tiles(int64_t begin, int64_t end) const {  // (plane, block of tile_rows() rows)
    alignas(64) char buffer[16 * kTile * 16];
    const int64_t columns = it.shape[0], rows = it.shape[1], height = tile_rows(), blocks = (rows + height - 1) / height;
    for (int64_t index = begin; index < end; index++) {
      char* dst = it.data[0];
      const char* src = it.data[1];
      int64_t rest = index / blocks;
      for (int d = 2; d < it.ndim; d++) {
        dst += rest % it.shape[d] * it.strides[0][d];
        src += rest % it.shape[d] * it.strides[1][d];
        rest /= it.shape[d];
      }
      const int64_t first = index % blocks * height, count = std::min(height, rows - first);
      dst += first * it.strides[0][1];
      src += first * it.strides[1][1];
      for (int64_t c = 0; c < columns; c += kTile)
        tile(dst + c * it.strides[0][0], src + c * it.strides[1][0], count, std::min(kTile, columns - c), buffer);
    }
  }

  void run() const { run(Sweep(2 * it.numel * kItemSize[dst_dtype])); }
  void run(const Sweep& sweep) const {
    if (it.numel == 0) return;
    const int size = std::max(kItemSize[dst_dtype], kItemSize[src_dtype]);
    const bool transposed =
        it.ndim >= 2 && it.shape[0] >= 4 && it.shape[1] >= 4 && it.strides[1][1] > 0 && it.strides[1][1] < 64 && it.strides[1][0] > it.strides[1][1];
    if (transposed) {
      const int64_t height = tile_rows(), blocks = (it.shape[1] + height - 1) / height, total = it.numel / (it.shape[0] * it.shape[1]) * blocks;
      const int64_t grain = std::max<int64_t>(1, kGrainBytes / (height * it.shape[0] * size));
      sweep.run(total, grain, 2 * height * it.shape[0] * size, [&](int64_t b, int64_t e) { tiles(b, e); });
      return;
    }
    const int64_t grain = kGrainBytes / size, columns = it.shape[0];
    const bool dense = it.strides[0][0] == size && it.strides[1][0] == size;
    if (dst_dtype == src_dtype && it.ndim >= 2 && (columns <= kFewColumns || (dense && columns * size <= kShortRow)) && it.shape[1] >= kFewColumns) {
      const Iteration outer = it.of_rows();
      sweep.run(outer.numel, grain / columns, 2 * size * columns, [&](int64_t b, int64_t e) { rows(b, e, outer); });
      return;
    }
    auto range = [&](int64_t b, int64_t e) { for_each_row(it, b, e, [&](int64_t n, char* const* p) { row(n, p); }); };
    if (it.numel <= grain)
      range(0, it.numel);
    else
      sweep.run(it.numel, grain, 2 * size, range);
  }
};

void copy_strided(const Tensor& self, const Tensor& src) {
  Copy(self.sizes(), self->data, self.strides(), self.dtype(), src->data, src.sizes(), src.strides(), src.dtype()).run();
}

// The dtype that elements of so many bytes are copied as.
int dtype_of_size(int itemsize) {
  switch (itemsize) {
    case 1:
      return ARGAND_UINT8;
    case 2:
      return ARGAND_INT16;
    case 4:
      return ARGAND_INT32;
    case 8:
      return ARGAND_INT64;
    default:
      return ARGAND_COMPLEX128;
  }
}

// Whether two tensors are the same elements in the same order, so that a copy changes nothing.
bool are_one(const Tensor& a, const Tensor& b) {
  return a.get() == b.get() ||
         (a->storage == b->storage && a->data == b->data && a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides());
}

}  // namespace

void strided_copy(int itemsize, int64_t ndim, const int64_t* sizes, void* dst, const int64_t* dst_strides, const void* src,
                  const int64_t* src_strides) {
  const int dtype = dtype_of_size(itemsize);
  Copy({sizes, ndim}, dst, {dst_strides, ndim}, dtype, src, {sizes, ndim}, {src_strides, ndim}, dtype).run();
}

void copy_(const Tensor& self, const Tensor& src, bool) {
  if (are_one(self, src)) return;
  check_copy_shape(self, src);
  check_writable("copy_", self);
  if (self.is_meta()) return;
  if (src.is_meta()) fail(ARGAND_DEVICE_ERROR, "copy_: got a source on meta, which has no data; expected one on cpu");
  if (partial_overlap(self, src) != Overlap::no) return copy_strided(self, clone(src, std::nullopt));
  copy_strided(self, src);
}

Tensor to_copy(const Tensor& self, int dtype, std::optional<ArgandDevice> device, bool non_blocking, std::optional<int64_t> memory_format) {
  const int type = dtype == ARGAND_DTYPE_NONE ? self.dtype() : dtype;
  const ArgandDevice to = device ? *device : self.device();
  const Tensor out = memory_format ? empty_strided(self.sizes(), builtins::format_strides(self.sizes(), *memory_format), type, to)
                                   : empty_strided(self.sizes(), dense_strides(self.sizes(), self.strides()), type, to);
  if (out.is_meta() || out.numel() == 0) return out;
  if (self.is_meta())
    fail(ARGAND_DEVICE_ERROR, "to: got a tensor on meta, which has no data; expected one on cpu. Make it anew with empty_like(..., device='cpu')");
  if (ARGAND_DEVICE_TYPE(to) != ARGAND_CPU)
    ops::copy_(out, self, non_blocking);  // the other device's
  else if (type == self.dtype() && self.is_contiguous() && out.is_contiguous() && out.numel() * out.itemsize() <= kGrainBytes)
    std::memcpy(out->data, self->data, static_cast<size_t>(out.numel()) * out.itemsize());
  else
    copy_strided(out, self);
  return out;
}

Tensor clone(const Tensor& self, std::optional<int64_t> memory_format) { return to_copy(self, self.dtype(), std::nullopt, false, memory_format); }

// out[2 i] = first[i] and out[2 i + 1] = second[i].
template <class T>
static void interleave(int64_t n, T* out, const T* first, const T* second) {
  typedef T Vector __attribute__((vector_size(16)));
  constexpr int64_t lanes = 16 / sizeof(T);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vector a, b, low, high;
    std::memcpy(&a, first + i, sizeof a);
    std::memcpy(&b, second + i, sizeof b);
    if constexpr (lanes == 4) {
      low = __builtin_shuffle(a, b, Vector{0, 4, 1, 5});
      high = __builtin_shuffle(a, b, Vector{2, 6, 3, 7});
    } else {
      low = __builtin_shuffle(a, b, Vector{0, 2});
      high = __builtin_shuffle(a, b, Vector{1, 3});
    }
    std::memcpy(out + 2 * i, &low, sizeof low);
    std::memcpy(out + 2 * i + lanes, &high, sizeof high);
  }
  for (; i < n; i++) out[2 * i] = first[i], out[2 * i + 1] = second[i];
}

// Two columns of one element each, as the parts of complex numbers are joined; false if they are none.
static bool join_pair(const Tensor& out, const TensorList& tensors, int64_t dim) {
  const int size = static_cast<int>(out.itemsize());
  if (tensors.size() != 2 || (size != 4 && size != 8) || dim != out.dim() - 1 || !out.is_contiguous()) return false;
  for (const Tensor& t : tensors)
    if (t.dtype() != out.dtype() || t.dim() != out.dim() || t.size(dim) != 1 || !t.is_contiguous()) return false;
  const auto run = [&](auto tag) {
    using T = decltype(tag);
    parallel_sweep(out.numel() / 2, kGrainBytes / (2 * size), 4 * size, [&](int64_t begin, int64_t end) {
      interleave(end - begin, out.data<T>() + 2 * begin, tensors[0].data<T>() + begin, tensors[1].data<T>() + begin);
    });
  };
  size == 4 ? run(uint32_t{}) : run(uint64_t{});
  return true;
}

Tensor cat(const TensorList& tensors, int64_t dim) {
  const builtins::Ints sizes = builtins::cat_shape(tensors, dim);
  const int dtype = builtins::cat_dtype(tensors);
  const auto skipped = [](const Tensor& t) { return t.dim() == 1 && t.numel() == 0; };
  const auto shaped = std::find_if_not(tensors.begin(), tensors.end(), skipped);
  if (shaped == tensors.end()) return empty(sizes, dtype, tensors[0].device());
  const int64_t d = builtins::wrap_dim(dim, shaped->dim());
  const int64_t format = builtins::common_format(tensors);
  const Tensor out =
      format == 0 ? empty(sizes, dtype, shaped->device()) : empty_strided(sizes, builtins::format_strides(sizes, format), dtype, shaped->device());
  if (out.is_meta()) return out;
  if (join_pair(out, tensors, d)) return out;
  const int size = kItemSize[dtype];
  const Sweep sweep(2 * out.numel() * size);
  int64_t start = sweep.backward() ? sizes[d] : 0;
  for (size_t k = 0; k < tensors.size(); k++) {
    const Tensor& t = tensors[sweep.backward() ? tensors.size() - 1 - k : k];
    if (skipped(t) || t.numel() == 0) continue;
    if (sweep.backward()) start -= t.size(d);
    Copy copy(t.sizes(), out.data<char>() + start * out.stride(d) * size, out.strides(), dtype, t->data, t.sizes(), t.strides(), t.dtype());
    copy.streams = copy.it.shape[0] >= 1024 && goes_past_caches(out.numel() * size);
    copy.run(sweep);
    if (!sweep.backward()) start += t.size(d);
  }
  return out;
}

// ---- fill -----------------------------------------------------------------------------------------------------------------
namespace {

void fill_row(char* p, int64_t stride, int64_t n, const char* value, int size) {
  bool same_bytes = true;
  for (int i = 1; i < size; i++) same_bytes = same_bytes && value[i] == value[0];
  if (stride == size && same_bytes) {
    std::memset(p, value[0], static_cast<size_t>(n) * size);
    return;
  }
  if (stride != size) {
    for (int64_t i = 0; i < n; i++) std::memcpy(p + i * stride, value, size);
    return;
  }
  char pattern[64];  // sizes divide 64
  for (int i = 0; i < 64; i += size) std::memcpy(pattern + i, value, size);
  const int64_t bytes = n * size;
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) std::memcpy(p + i, pattern, 64);
  std::memcpy(p + i, pattern, static_cast<size_t>(bytes - i));
}

}  // namespace

void fill_(const Tensor& self, const Operand& value) {
  alignas(16) char bytes[16];
  if (value.is_tensor()) {
    const Tensor t = value.tensor();
    if (t.dim() > 0)
      fail(ARGAND_SHAPE_ERROR, "fill_: got a value tensor with %lld dimensions, expected a number or a 0-dimensional tensor",
           static_cast<long long>(t.dim()));
    if (!t.is_meta()) convert(1, self.dtype(), bytes, 16, t.dtype(), t->data, 16);
  } else {
    if (value.raw().tag == ARGAND_TAG_COMPLEX && value.raw().c.im != 0 && !is_complex(self.dtype()) && self.dtype() != ARGAND_BOOL)
      fail(ARGAND_RUNTIME_ERROR, "fill_: got a complex number, which a tensor of dtype %s cannot hold; expected a real one",
           kDTypeName[self.dtype()]);
    if (self.numel() != 1 || !is_half(self.dtype())) check_fits("fill_", self.dtype(), value.raw());
    write_number(bytes, self.dtype(), value.raw());
  }
  if (self.is_meta() || self.numel() == 0) return;
  const int size = self.itemsize();
  Iteration it;
  it.set_shape(self.sizes());
  it.add(self->data, self.sizes(), self.strides(), size);
  it.sort(nullptr);
  it.coalesce();
  auto range = [&](int64_t b, int64_t e) {
    for_each_row(it, b, e, [&](int64_t n, char* const* p) { fill_row(p[0], it.strides[0][0], n, bytes, size); });
  };
  const int64_t grain = kGrainBytes / size;
  if (it.numel <= grain)
    range(0, it.numel);
  else
    parallel_for(0, it.numel, grain, [&](int64_t b, int64_t e) { range(b, e); });
}

void zero_(const Tensor& self) { fill_(self, Operand(0)); }

}  // namespace argand::kernels::cpu
