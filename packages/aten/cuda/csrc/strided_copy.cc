#include "packages/aten/cuda/csrc/strided_copy.h"

#include <algorithm>

#include "packages/aten/csrc/core/iteration.h"
#include "packages/aten/cuda/csrc/specialization.h"

namespace argand::kernels::cuda {
namespace {

constexpr int64_t kBlock = 2048;         // elements of a program of copy_flat
constexpr int64_t kStridedBlock = 1024;  // of copy_strided
constexpr int64_t kTile = 4096;          // of copy_tile
constexpr int64_t kInt32 = int64_t{1} << 31;

enum ToBool { kConvert, kNonzero, kOrNonzero };

// One launch: dimensions sorted so that dimension 0 is dst's innermost, and merged; strides in elements.
struct Move {
  Iteration it;
  int dst_dtype, src_dtype;
  bool fills = false;
  int64_t value = 0;  // where it fills
  ToBool to_bool = kConvert;

  int64_t dst(int d) const { return d < it.ndim ? it.strides[0][d] : 0; }
  int64_t src(int d) const { return d < it.ndim ? it.strides[1][d] : 0; }
  int64_t size(int d) const { return d < it.ndim ? it.shape[d] : 1; }
  const void* dst_data() const { return it.data[0]; }
  const void* src_data() const { return it.data[1]; }

  Specialization named(const char* kernel) const {
    Specialization s(kernel);
    s.type("T", dst_dtype).type("S", src_dtype);
    return s;
  }
  void finish(Specialization& s) const { s.flag("FILL", fills).constant("TO_BOOL", to_bool); }

  void flat() const {
    const bool aligned = (reinterpret_cast<uintptr_t>(dst_data()) | reinterpret_cast<uintptr_t>(src_data())) % 16 == 0;
    Specialization s = named("copy_flat");
    finish(s.constant("BLOCK", kBlock).flag("ALIGNED", aligned));
    launch(kernel(s.text()), grid_of(divide_up(it.numel, kBlock)), dst_data(), src_data(), value, it.numel);
  }

  // The farthest offset of either side, from its pointer.
  int64_t reach() const {
    int64_t dst_reach = 0, src_reach = 0;
    for (int d = 0; d < it.ndim; d++) {
      dst_reach += std::abs(dst(d)) * (size(d) - 1);
      src_reach += std::abs(src(d)) * (size(d) - 1);
    }
    return std::max({dst_reach, src_reach, it.numel + kStridedBlock});
  }

  void strided() const {
    const int last = it.ndim - 1;
    if (last > 5) return each_outer([](const Move& m) { m.strided(); });
    auto inner = [&](int64_t value, int d) { return d < last ? value : 0; };
    Specialization s = named("copy_strided");
    finish(s.constant("BLOCK", kStridedBlock).constant("INNER", last).flag("WIDE", reach() >= kInt32));
    launch(kernel(s.text()), grid_of(divide_up(it.numel, kStridedBlock)), dst_data(), src_data(), value, it.numel, size(0), size(1), size(2), size(3),
           size(4), inner(dst(0), 0), inner(dst(1), 1), inner(dst(2), 2), inner(dst(3), 3), inner(dst(4), 4), dst(last), inner(src(0), 0),
           inner(src(1), 1), inner(src(2), 2), inner(src(3), 3), inner(src(4), 4), src(last));
  }

  // The same for each index of the outermost dimension.
  template <class F>
  void each_outer(F f) const {
    Move part = *this;
    const int last = --part.it.ndim;
    part.it.numel /= size(last);
    for (int64_t i = 0; i < size(last); i++) {
      f(part);
      part.it.data[0] += dst(last) * kItemSize[dst_dtype];
      part.it.data[1] += src(last) * kItemSize[src_dtype];
    }
  }

  // Makes dimension d the second one: the other side of the plane that tiles cover.
  void set_plane(int d) {
    std::swap(it.shape[1], it.shape[d]);
    for (int k = 0; k < 2; k++) std::swap(it.strides[k][1], it.strides[k][d]);
  }
  // The plane is a transpose if src runs along another dimension than dst; else it takes in the longest dimension.
  bool choose_plane() {
    if (it.ndim < 2) return false;
    if (dst(0) == 1 && src(0) != 1 && !fills)
      for (int d = 1; d < it.ndim; d++)
        if (src(d) == 1) {
          set_plane(d);
          return true;
        }
    int longest = 1;
    for (int d = 2; d < it.ndim; d++)
      if (size(d) > size(longest)) longest = d;
    set_plane(longest);
    return false;
  }

  bool is_aligned(bool transposed) const {
    auto multiple = [](const void* p, int64_t of) { return reinterpret_cast<uintptr_t>(p) % of == 0; };
    const int64_t to = 16 / kItemSize[dst_dtype], from = 16 / kItemSize[src_dtype];
    bool fits = multiple(dst_data(), 16) && multiple(src_data(), 16) && size(0) % 16 == 0 && (!transposed || size(1) % 16 == 0);
    for (int d = 1; d < 5; d++) fits = fits && dst(d) % to == 0 && ((transposed && d == 1) || src(d) % from == 0);
    return fits && (!transposed || src(0) % from == 0);
  }

  void tiled() {
    const bool transposed = choose_plane();
    if (dst(0) != 1 || (!transposed && !fills && src(0) != 1)) return strided();
    const int64_t x = size(0), y = size(1);
    const int64_t wide = transposed ? (x <= 16 ? 16 : y <= 16 ? 256 : 64) : (x >= 512 ? 1024 : x > 64 ? 128 : 16);
    const int64_t high = kTile / wide, tiles_x = divide_up(x, wide), tiles_y = divide_up(y, high);
    bool far = false;
    for (int d = 0; d < it.ndim; d++) far = far || size(d) >= kInt32;
    if (far || x * y * 4 < tiles_x * wide * tiles_y * high) return strided();
    if (it.ndim > 5) return each_outer([](Move m) { m.tiled(); });
    const int64_t span = std::max(wide, std::abs(src(0)) * wide) + std::max(std::abs(dst(1)), std::abs(src(1))) * high;
    Specialization s = named("copy_tile");
    s.constant("BX", wide).constant("BY", high).constant("UNIT", transposed ? 2 : 1).flag("ALIGNED", is_aligned(transposed));
    finish(s.flag("WIDE", span >= kInt32));
    auto i32 = [](int64_t v) { return static_cast<int32_t>(v); };
    launch(kernel(s.text()), grid_of(tiles_x * tiles_y * size(2) * size(3) * size(4)), dst_data(), src_data(), value, i32(x), i32(y), dst(1), src(0),
           src(1), i32(size(2)), dst(2), src(2), i32(size(3)), dst(3), src(3), dst(4), src(4), i32(tiles_x), i32(tiles_y));
  }

  void run() {
    if (it.numel == 0) return;
    it.sort(nullptr);
    it.coalesce();
    if (it.ndim == 1 && (it.numel == 1 || (dst(0) == 1 && (fills || src(0) == 1)))) return flat();
    tiled();
  }
};

Move make(const Place& dst, const Place& src, ToBool to_bool) {
  Move move;
  move.dst_dtype = dst.dtype;
  move.src_dtype = src.dtype;
  move.to_bool = to_bool;
  move.it.set_shape(dst.sizes);
  move.it.add(dst.data, dst.sizes, dst.strides, 1);
  move.it.add(src.data, src.sizes, src.strides, 1);
  return move;
}

// Both parts of complex numbers, as a last dimension.
Place parts_of(const Place& p) {
  Place parts = p;
  parts.dtype = p.dtype == ARGAND_COMPLEX64 ? ARGAND_FLOAT32 : ARGAND_FLOAT64;
  for (int64_t d = 0; d < parts.strides.n; d++) parts.strides[d] *= 2;
  parts.sizes.push_back(2);
  parts.strides.push_back(1);
  return parts;
}
// One of them.
Place part_of(const Place& p, int which) {
  Place part = parts_of(p);
  part.data += which * kItemSize[part.dtype];
  part.sizes.n--;
  part.strides.n--;
  return part;
}

bool is_one_run(const Move& m) { return m.it.ndim == 1 && m.it.strides[0][0] == 1 && m.it.strides[1][0] == 1; }

void copy_real(Place dst, Place src, ToBool to_bool) {
  if (dst.dtype == src.dtype) dst.dtype = src.dtype = integer_of_size(kItemSize[dst.dtype]);  // the bits
  if (dst.dtype == ARGAND_BOOL && to_bool == kConvert) to_bool = kNonzero;
  if (dst.dtype == ARGAND_BOOL) dst.dtype = ARGAND_UINT8;
  if (src.dtype == ARGAND_BOOL) src.dtype = ARGAND_UINT8;
  Move move = make(dst, src, to_bool);
  if (move.it.numel == 0) return;
  if (dst.dtype == src.dtype && to_bool == kConvert) {
    move.it.sort(nullptr);
    move.it.coalesce();
    if (is_one_run(move)) {
      int32_t index = 0;
      const ArgandDeviceInterface* device = api->device_interface(ARGAND_CUDA);
      check(device->get_device(&index));
      const ArgandDevice here = ARGAND_DEVICE(ARGAND_CUDA, index);
      return check(device->copy(dst.data, here, src.data, here, static_cast<size_t>(move.it.numel) * kItemSize[dst.dtype]));
    }
  }
  move.run();
}

}  // namespace

void copy_place(const Place& dst, const Place& src) {
  const bool to_complex = is_complex(dst.dtype), from_complex = is_complex(src.dtype);
  if (dst.dtype == ARGAND_COMPLEX64 && src.dtype == ARGAND_COMPLEX64) {  // moved as one number of 8 bytes
    Place to = dst, from = src;
    to.dtype = from.dtype = ARGAND_INT64;
    return copy_real(to, from, kConvert);
  }
  if (to_complex && from_complex) return copy_real(parts_of(dst), parts_of(src), kConvert);
  if (to_complex) {
    const double zero = 0;
    fill_place(part_of(dst, 1), &zero);
    return copy_real(part_of(dst, 0), src, kConvert);
  }
  copy_real(dst, from_complex ? part_of(src, 0) : src, kConvert);
  if (from_complex && dst.dtype == ARGAND_BOOL) copy_real(dst, part_of(src, 1), kOrNonzero);
}

void fill_place(const Place& dst, const void* value) {
  const int size = kItemSize[dst.dtype];
  if (size == 16) {
    const char* bytes = static_cast<const char*>(value);
    for (int which = 0; which < 2; which++) fill_place(part_of(dst, which), bytes + 8 * which);
    return;
  }
  Place to = dst;
  to.dtype = integer_of_size(size);
  Move move = make(to, to, kConvert);
  move.fills = true;
  std::memcpy(&move.value, value, static_cast<size_t>(size));
  move.run();
}

void copy_strided(const Tensor& self, const Tensor& src) {
  if (self.numel() > 0) copy_place(Place(self), Place(src));
}

Tensor dense(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor out = empty(t.sizes(), t.dtype(), t.device());
  copy_strided(out, t);
  return out;
}

}  // namespace argand::kernels::cuda
