// The fast paths of the CPU allocator: a thread's own free blocks and counters, inline for tensors and storages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "packages/c10/csrc/memory/size_class.h"

namespace argand::core {

// With AddressSanitizer every block comes from and goes back to malloc, so that use after free is still found.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kBypassCache = true;
#else
inline constexpr bool kBypassCache = false;
#endif

inline constexpr int kSlots = 32;                       // most blocks of one class in a thread's cache
inline constexpr size_t kThreadClassBytes = 128 << 10;  // and about as many bytes of one class
inline constexpr int64_t kFlushBytes = 1 << 20;         // a thread's change of bytes in use that it may keep to itself

struct SlotLimits {
  uint16_t of[kClasses];
  constexpr SlotLimits() : of() {
    for (int c = 0; c < kClasses; c++) {
      const size_t n = kThreadClassBytes / class_bytes(c);
      of[c] = static_cast<uint16_t>(n < 4 ? 4 : n > kSlots ? kSlots : n);
    }
  }
};
inline constexpr SlotLimits kSlotLimits;

// A value that its thread alone writes and others may read at any time.
template <class T>
class Owned {
 public:
  operator T() const { return value_.load(std::memory_order_relaxed); }
  void operator=(T v) { value_.store(v, std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{0};
};

struct ThreadCache {
  uint32_t epoch = 0;    // the cache is in use while it equals g_cache_epoch
  Owned<int64_t> delta;  // bytes in use not yet counted centrally
  Owned<int64_t> high;   // highest delta since the last flush
  Owned<uint64_t> allocations;
  Owned<uint16_t> count[kClasses];
  void* slots[kClasses][kSlots];
};

extern std::atomic<uint32_t> g_cache_epoch;  // raised to make every thread give its blocks back; never 0
extern __thread ThreadCache* t_cache __attribute__((tls_model("initial-exec")));

void* small_allocate_slow(int c);
void small_free_slow(int c, void* p);
void* bypass_allocate(size_t nbytes);
void bypass_free(void* p);
void count_slow(int64_t change, uint64_t allocations);

// A block of a class; NULL when memory is exhausted.
__attribute__((always_inline)) inline void* class_allocate(int c) {
  ThreadCache* tc = t_cache;
  if (__builtin_expect(tc && tc->epoch == g_cache_epoch.load(std::memory_order_relaxed), 1)) {
    const uint16_t n = tc->count[c];
    if (__builtin_expect(n > 0, 1)) {
      tc->count[c] = static_cast<uint16_t>(n - 1);
      return tc->slots[c][n - 1];
    }
  }
  return small_allocate_slow(c);
}

__attribute__((always_inline)) inline void class_free(int c, void* p) {
  ThreadCache* tc = t_cache;
  if (__builtin_expect(tc && tc->epoch == g_cache_epoch.load(std::memory_order_relaxed), 1)) {
    const uint16_t n = tc->count[c];
    if (__builtin_expect(n < kSlotLimits.of[c], 1)) {
      tc->slots[c][n] = p;
      tc->count[c] = static_cast<uint16_t>(n + 1);
      return;
    }
  }
  small_free_slow(c, p);
}

// nbytes in [1, kSmallLimit]; NULL when memory is exhausted.
inline void* small_allocate(size_t nbytes) { return kBypassCache ? bypass_allocate(nbytes) : class_allocate(size_class(nbytes)); }
inline void small_free(void* p, size_t nbytes) { return kBypassCache ? bypass_free(p) : class_free(size_class(nbytes), p); }

// Adds to the statistics.
inline void count_small(int64_t change, uint64_t allocations) {
  ThreadCache* tc = t_cache;
  if (__builtin_expect(!tc, 0)) return count_slow(change, allocations);
  const int64_t delta = tc->delta + change;
  tc->delta = delta;
  if (delta > tc->high) tc->high = delta;
  tc->allocations = tc->allocations + allocations;
  if (__builtin_expect(delta > kFlushBytes || delta < -kFlushBytes, 0)) count_slow(0, 0);
}

}  // namespace argand::core
