// Size classes of the CPU allocator: multiples of 64 bytes up to 1 KiB, then four steps a power of two; and one of tensors' records.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

inline constexpr size_t kAlignment = 64;         // of every block, bytes
inline constexpr size_t kSmallLimit = 64 << 10;  // blocks up to this size pass through the per-thread caches
inline constexpr int kSmallClasses = 40;
inline constexpr int kTensorClass = kSmallClasses;  // records of tensors, which can be enumerated; they never go back to the system
inline constexpr int kClasses = kSmallClasses + 1;
inline constexpr size_t kMapBytes = size_t{1} << 20;   // from here on blocks are mapped: whole pages of their own; below they are malloc's
inline constexpr size_t kHugeBytes = size_t{4} << 20;  // from here on transparent huge pages are asked for

// nbytes in [1, kSmallLimit].
inline int size_class(size_t nbytes) {
  const size_t n = nbytes - 1;
  if (n < 1024) return static_cast<int>(n >> 6);
  const int shift = 63 - __builtin_clzll(n);
  return 16 + (shift - 10) * 4 + static_cast<int>((n >> (shift - 2)) & 3);
}

constexpr size_t class_bytes(int c) {
  if (c == kTensorClass) return (sizeof(ArgandTensor) + kAlignment - 1) & ~(kAlignment - 1);
  if (c < 16) return static_cast<size_t>(c + 1) << 6;
  const int shift = 10 + (c - 16) / 4, step = (c - 16) % 4;
  return (size_t{1} << shift) + (static_cast<size_t>(step + 1) << (shift - 2));
}

// Block size for a request above kSmallLimit: four steps a power of two up to 1 MiB, then whole 4 KiB pages.
inline size_t large_bytes(size_t nbytes) {
  if (nbytes > (size_t{1} << 20)) return (nbytes + 4095) & ~size_t{4095};
  const size_t step = size_t{1} << (63 - __builtin_clzll(nbytes - 1) - 2);
  return (nbytes + step - 1) & ~(step - 1);
}

}  // namespace argand::core
