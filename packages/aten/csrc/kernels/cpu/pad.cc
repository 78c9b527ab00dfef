// Padding by reflection, by repeating the border, or circularly: what lies inside is copied by rows, the ends element by element.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"

namespace argand::kernels::cpu {
namespace {

// A padded dimension: its elements, those of the result, and where each of these comes from; [first, last) of the result are what lies inside.
struct Axis {
  int64_t n = 1, made = 1, low = 0, first = 0, last = 1;
  std::vector<int64_t> from{0};

  Axis() = default;
  Axis(int64_t n_, int64_t low_, int64_t high, std::string_view mode)
      : n(n_), made(n_ + low_ + high), low(low_), first(std::max<int64_t>(low_, 0)), last(std::min(made, low_ + n_)) {
    from.clear();
    for (int64_t i = -low; i < made - low; i++)
      from.push_back(mode == "reflect" ? n - 1 - std::abs(n - 1 - std::abs(i)) : mode == "circular" ? (i + n) % n : std::clamp<int64_t>(i, 0, n - 1));
  }
};

// Rows are often too short for a call of memcpy.
void copy_short(char* to, const char* from, int64_t bytes) {
  if (bytes < 16 || bytes > 512) return static_cast<void>(std::memcpy(to, from, static_cast<size_t>(bytes)));
  for (int64_t i = 0; i + 16 <= bytes; i += 16) std::memcpy(to + i, from + i, 16);
  std::memcpy(to + bytes - 16, from + bytes - 16, 16);
}

// A row of pixels of `size` bytes each; kSize is that, or 0 where it is none of an element's.
template <int kSize>
void pad_row(const Axis& axis, int64_t size, const char* from, char* to) {
  const auto ends = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const char* source = from + axis.from[static_cast<size_t>(i)] * size;
      if constexpr (kSize > 0)
        std::memcpy(to + i * kSize, source, kSize);
      else
        copy_short(to + i * size, source, size);
    }
  };
  ends(0, axis.first);
  copy_short(to + axis.first * size, from + (axis.first - axis.low) * size, (axis.last - axis.first) * size);
  ends(axis.last, axis.made);
}

}  // namespace

Tensor pad_border(const Tensor& self, IntList pad, std::string_view mode) {
  const int64_t padded = pad.size() / 2, format = builtins::suggested_format(self.sizes(), self.strides());
  Axis axes[3];
  Dims sizes(self.sizes());
  for (int64_t i = 0; i < padded; i++) {
    const int64_t d = self.dim() - 1 - i;
    axes[i] = Axis(self.size(d), pad[2 * i], pad[2 * i + 1], mode);
    sizes[d] = axes[i].made;
  }
  const bool last = format && !builtins::has_format(self.sizes(), self.strides(), format);
  const Tensor x = last ? clone(self, format) : format ? self : contiguous(self);
  const Tensor out = argand::empty_strided(sizes, builtins::format_strides(sizes, format), x.dtype());
  const int64_t size = x.itemsize() * (format ? x.size(1) : 1), row = axes[0].n * size, made = axes[0].made * size;
  const auto pad_rows = size == 4 ? pad_row<4> : size == 2 ? pad_row<2> : size == 8 ? pad_row<8> : size == 1 ? pad_row<1> : pad_row<0>;
  const int64_t rows = out.numel() * x.itemsize() / made, plane = axes[1].made, volume = plane * axes[2].made;
  parallel_for(0, rows, row_grain(made), [&](int64_t begin, int64_t end) {
    int64_t y = begin % plane, z = begin % volume / plane, image = begin / volume;
    for (int64_t r = begin; r < end; r++) {
      const int64_t layer = image * axes[2].n + axes[2].from[static_cast<size_t>(z)], line = layer * axes[1].n + axes[1].from[static_cast<size_t>(y)];
      pad_rows(axes[0], size, x.data<char>() + line * row, out.data<char>() + r * made);
      if (++y < plane) continue;
      y = 0;
      if (++z == axes[2].made) z = 0, image++;
    }
  });
  return out;
}

}  // namespace argand::kernels::cpu
