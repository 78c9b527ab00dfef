#include "packages/c10/csrc/memory/cpu_allocator.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "packages/c10/csrc/core/config.h"

namespace argand::core {

std::atomic<uint32_t> g_cache_epoch{1};
__thread ThreadCache* t_cache __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kBypassLimit = size_t{1} << 39;  // AddressSanitizer's malloc ends the program not far above
constexpr size_t kSlabRecords = 320;              // records of tensors that are allocated at once

__thread bool t_exited __attribute__((tls_model("initial-exec"))) = false;

void* system_allocate(size_t size) {
  if (size < kMapBytes || kBypassCache) {
    if (kBypassCache && size > kBypassLimit) return nullptr;
    void* p = nullptr;
    return posix_memalign(&p, kAlignment, size) == 0 ? p : nullptr;
  }
  const size_t slack = size >= kHugeBytes ? kHugePage : 0;
  size_t length = 0;
  if (__builtin_add_overflow(size, slack, &length)) return nullptr;
  void* map = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  if (!slack) return map;
  // Trim to a huge-page boundary, so that the whole block can be huge pages.
  char* begin = static_cast<char*>(map);
  char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(begin) + kHugePage - 1) & ~(kHugePage - 1));
  if (aligned != begin) munmap(begin, static_cast<size_t>(aligned - begin));
  char* end = aligned + size;
  if (end != begin + length) munmap(end, static_cast<size_t>(begin + length - end));
  madvise(aligned, size, MADV_HUGEPAGE);
  return aligned;
}

void system_free(void* p, size_t size) {
  if (size < kMapBytes || kBypassCache)
    free(p);
  else
    munmap(p, size);
}

// A large block. Mapped ones (of kMapBytes and more) are split for smaller requests, and merge with free neighbours; others are malloc's.
struct Block {
  size_t size;
  uint64_t stamp;  // when it was freed, its key in Central::by_age; 0 in use
};
using Blocks = std::map<char*, Block>;

// Runs note(), which adds to a list; false: there is no memory for that, so that what was to be noted cannot be kept.
template <class Note>
bool noted(Note&& note) {
  try {
    note();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// What a free block adds to the bytes that can be given back.
constexpr size_t counted_bytes(int c) { return c == kTensorClass ? 0 : class_bytes(c); }

// What threads share, under one mutex. Never destroyed: threads may outlive static destructors.
struct Central {
  std::mutex mutex;
  std::vector<ThreadCache*> threads;
  std::vector<void*> small[kClasses];
  std::vector<char*> slabs;                    // of kSlabRecords records of tensors each, zeros at first
  size_t carved = 0;                           // records of the last slab that were given out
  std::set<void*> bypassed;                    // records of tensors, where nothing is cached
  Blocks large;                                // every large block, in use or free, by address
  std::set<std::pair<size_t, char*>> by_size;  // the free ones
  std::map<uint64_t, char*> by_age;
  uint64_t clock = 0;
  uint64_t limit = config().cpu_cache_limit;
  uint64_t small_cached = 0, large_cached = 0;  // bytes
  int64_t allocated = 0, peak = 0;              // bytes, without the threads' deltas
  int64_t highest = 0;                          // of `allocated` since the cache was emptied
  uint64_t slack = 0;                           // bytes that may be held above `highest`
  uint64_t allocations = 0, misses = 0;         // without the threads' counters
  pthread_key_t exit_key;

  Central();
  uint64_t cached() const { return small_cached + large_cached; }
  void note_peak(int64_t extra) {
    if (allocated + extra > peak) peak = allocated + extra;
    if (allocated + extra > highest) highest = allocated + extra;
  }
  void flush_counters(ThreadCache* tc) {
    note_peak(tc->high);
    allocated += tc->delta;
    allocations += tc->allocations;
    tc->delta = 0;
    tc->high = 0;
    tc->allocations = 0;
  }
  void count(int64_t change, uint64_t n) {
    if (t_cache) flush_counters(t_cache);
    allocated += change;
    allocations += n;
    note_peak(0);
  }
  void give_small(int c, void* p) {
    const bool stays = c == kTensorClass;
    if (!stays && cached() + class_bytes(c) > limit)
      system_free(p, class_bytes(c));
    else if (noted([&] { small[c].push_back(p); }))
      small_cached += counted_bytes(c);
    else if (!stays)
      system_free(p, class_bytes(c));
  }
  // Gives the newest blocks of a class back until `keep` remain.
  void drain(ThreadCache* tc, int c, int keep) {
    int n = tc->count[c];
    while (n > keep) give_small(c, tc->slots[c][--n]);
    tc->count[c] = static_cast<uint16_t>(n);
  }
  // A block that cannot be noted goes back to the system.
  void mark_free(Blocks::iterator it, uint64_t stamp) {
    const std::pair key{it->second.size, it->first};
    if (!noted([&] { by_size.insert(key); }) || !noted([&] { by_age.emplace(stamp, it->first); })) {
      by_size.erase(key);
      system_free(it->first, it->second.size);
      large.erase(it);
      return;
    }
    it->second.stamp = stamp;
    large_cached += it->second.size;
  }
  void mark_used(Blocks::iterator it) {
    by_size.erase({it->second.size, it->first});
    by_age.erase(it->second.stamp);
    large_cached -= it->second.size;
    it->second.stamp = 0;
  }
  void* carve_record() {
    if (slabs.empty() || carved == kSlabRecords) {
      constexpr size_t size = kSlabRecords * class_bytes(kTensorClass);
      void* slab = system_allocate(size);
      if (!slab || !noted([&] { slabs.push_back(static_cast<char*>(slab)); })) {
        if (slab) system_free(slab, size);
        return nullptr;
      }
      std::memset(slab, 0, size);
      carved = 0;
    }
    return slabs.back() + carved++ * class_bytes(kTensorClass);
  }
  void* take_large(size_t size);
  void keep_large(Blocks::iterator it);
  void make_room(size_t size);
  // Gives the block that was idle longest back, or as much of its end as is too much.
  void shrink_oldest(uint64_t excess) {
    const auto it = large.find(by_age.begin()->second);
    const auto [size, stamp] = it->second;
    const uint64_t cut = (excess + kHugePage - 1) & ~(kHugePage - 1);
    mark_used(it);
    if (cut + kMapBytes <= size) {
      munmap(it->first + size - cut, cut);
      it->second.size = size - cut;
      mark_free(it, stamp);
    } else {
      system_free(it->first, size);
      large.erase(it);
    }
  }
  void trim(uint64_t target) {
    while (cached() > target && !by_age.empty()) shrink_oldest(cached() - target);
    for (int c = kSmallClasses - 1; c >= 0 && cached() > target; c--) {
      while (!small[c].empty() && cached() > target) {
        system_free(small[c].back(), class_bytes(c));
        small[c].pop_back();
        small_cached -= class_bytes(c);
      }
    }
  }
};

Central& central() {
  static Central* c = new Central;
  return *c;
}

void thread_exit(void* cache) {
  auto* tc = static_cast<ThreadCache*>(cache);
  Central& c = central();
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    c.flush_counters(tc);
    for (int k = 0; k < kClasses; k++) c.drain(tc, k, 0);
    for (auto& t : c.threads) {
      if (t == tc) {
        t = c.threads.back();
        c.threads.pop_back();
        break;
      }
    }
  }
  t_cache = nullptr;
  t_exited = true;
  delete tc;
}

void before_fork() { central().mutex.lock(); }
void after_fork_in_parent() { central().mutex.unlock(); }
// Other threads do not exist in the child; their caches stay unused, since they may have been in the middle of a change.
void after_fork_in_child() {
  Central& c = central();
  for (ThreadCache* tc : c.threads) {
    if (tc != t_cache) c.allocated += tc->delta, c.allocations += tc->allocations;
  }
  c.threads.clear();
  if (t_cache) c.threads.push_back(t_cache);
  c.mutex.unlock();
}

Central::Central() {
  pthread_key_create(&exit_key, thread_exit);
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

// The calling thread's cache, up to date with the epoch; NULL while the thread is exiting, nothing is to be cached, or memory is exhausted.
// Called with the mutex held.
ThreadCache* current_cache(Central& c) {
  ThreadCache* tc = t_cache;
  if (!tc) {
    if (t_exited) return nullptr;
    tc = new (std::nothrow) ThreadCache;
    if (!tc || !noted([&] { c.threads.push_back(tc); })) {
      delete tc;
      return nullptr;
    }
    pthread_setspecific(c.exit_key, tc);
    t_cache = tc;
  }
  const uint32_t epoch = g_cache_epoch.load(std::memory_order_relaxed);
  if (tc->epoch != epoch) {
    for (int k = 0; k < kSmallClasses; k++) c.drain(tc, k, 0);
    if (c.limit > 0) tc->epoch = epoch;  // with a limit of 0 the cache stays out of date, so nothing enters it
  }
  return tc;
}

}  // namespace

void* small_allocate_slow(int k) {
  Central& c = central();
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    ThreadCache* tc = current_cache(c);
    auto& shared = c.small[k];
    void* p = nullptr;
    if (!shared.empty()) {
      p = shared.back();
      shared.pop_back();
      c.small_cached -= counted_bytes(k);
      if (tc && c.limit > 0) {
        int n = tc->count[k];
        for (; n < kSlotLimits.of[k] / 2 && !shared.empty(); shared.pop_back(), c.small_cached -= counted_bytes(k)) tc->slots[k][n++] = shared.back();
        tc->count[k] = static_cast<uint16_t>(n);
      }
      return p;
    }
    c.misses++;
  }
  const auto fresh = [&] {
    if (k != kTensorClass) return system_allocate(class_bytes(k));
    std::lock_guard<std::mutex> lock(c.mutex);
    return c.carve_record();
  };
  void* p = fresh();
  if (p) return p;
  cpu_empty_cache();
  return fresh();
}

void small_free_slow(int k, void* p) {
  Central& c = central();
  std::lock_guard<std::mutex> lock(c.mutex);
  ThreadCache* tc = current_cache(c);
  if (!tc || c.limit == 0) {
    c.give_small(k, p);
    return;
  }
  if (tc->count[k] >= kSlotLimits.of[k]) c.drain(tc, k, kSlotLimits.of[k] / 2);
  const int n = tc->count[k];
  tc->slots[k][n] = p;
  tc->count[k] = static_cast<uint16_t>(n + 1);
}

void* bypass_allocate(size_t nbytes) { return system_allocate(nbytes); }
void bypass_free(void* p) { free(p); }

void* tensor_allocate_bypass() {
  void* t = bypass_allocate(sizeof(ArgandTensor));
  if (!t) return nullptr;
  std::memset(t, 0, sizeof(ArgandTensor));
  Central& c = central();
  std::lock_guard<std::mutex> lock(c.mutex);
  if (noted([&] { c.bypassed.insert(t); })) return t;
  bypass_free(t);
  return nullptr;
}
void tensor_free_bypass(ArgandTensor* t) {
  Central& c = central();
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    c.bypassed.erase(t);
  }
  bypass_free(t);
}

void visit_tensors(void (*visit)(ArgandTensor* t, void* context), void* context) {
  Central& c = central();
  std::lock_guard<std::mutex> lock(c.mutex);
  for (char* slab : c.slabs) {
    const size_t n = slab == c.slabs.back() ? c.carved : kSlabRecords;
    for (size_t i = 0; i < n; i++) visit(reinterpret_cast<ArgandTensor*>(slab + i * class_bytes(kTensorClass)), context);
  }
  for (void* t : c.bypassed) visit(static_cast<ArgandTensor*>(t), context);
}

void count_slow(int64_t change, uint64_t allocations) {
  Central& c = central();
  std::lock_guard<std::mutex> lock(c.mutex);
  current_cache(c);
  c.count(change, allocations);
}

// ---- large blocks ----------------------------------------------------------------------------------------------------
// The smallest free block of at most 12.5% and less than kMapBytes more, else the beginning of the smallest mapped one that leaves a mapped block.
void* Central::take_large(size_t size) {
  auto found = by_size.lower_bound({size, nullptr});
  if (found == by_size.end()) return nullptr;
  const size_t rest = found->first - size;
  const bool split = rest >= kMapBytes || rest > size / 8;
  if (split) {
    if (size < kMapBytes || (found = by_size.lower_bound({size + kMapBytes, nullptr})) == by_size.end()) return nullptr;
  }
  const auto it = large.find(found->second);
  const auto [whole, stamp] = it->second;
  mark_used(it);
  Blocks::iterator end;
  if (split && noted([&] { end = large.emplace_hint(std::next(it), it->first + size, Block{whole - size, 0}); })) {
    it->second.size = size;
    mark_free(end, stamp);
  }
  return it->first;
}

// Before `size` new bytes are mapped: idle blocks go back as far as the memory held would exceed the most ever in use, so that the cache costs time
// at most, not memory. A program that misses again and again, since its free blocks have other sizes, is allowed more each time, until they stay.
void Central::make_room(size_t size) {
  const uint64_t in_use = static_cast<uint64_t>(std::max<int64_t>(allocated, 0)) + size;
  const uint64_t most = std::max(in_use, static_cast<uint64_t>(std::max<int64_t>(highest, 0))) + slack;
  const uint64_t before = cached();
  if (in_use + before <= most) return;
  trim(most - in_use);
  slack += (before - cached()) / 8;
}

void Central::keep_large(Blocks::iterator it) {
  const auto joins = [](Blocks::iterator low, Blocks::iterator high) {
    return low->first + low->second.size == high->first && low->second.size >= kMapBytes && high->second.size >= kMapBytes;
  };
  if (const auto next = std::next(it); next != large.end() && next->second.stamp && joins(it, next)) {
    mark_used(next);
    it->second.size += next->second.size;
    large.erase(next);
  }
  if (it != large.begin()) {
    if (const auto previous = std::prev(it); previous->second.stamp && joins(previous, it)) {
      mark_used(previous);
      previous->second.size += it->second.size;
      large.erase(it);
      it = previous;
    }
  }
  mark_free(it, ++clock);
  if (cached() > limit) trim(limit);
}

void* large_allocate(size_t nbytes) {
  if (nbytes > static_cast<size_t>(INT64_MAX)) return nullptr;
  const size_t size = kBypassCache ? nbytes : large_bytes(nbytes);
  Central& c = central();
  void* p = nullptr;
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    p = c.take_large(size);
    if (p) {
      c.count(static_cast<int64_t>(nbytes), 1);
    } else {
      c.misses++;
      if (size >= kMapBytes) c.make_room(size);
    }
  }
  if (p) return p;
  p = system_allocate(size);
  if (!p) {
    cpu_empty_cache();
    p = system_allocate(size);
  }
  if (!p) return nullptr;
  std::lock_guard<std::mutex> lock(c.mutex);
  if (!noted([&] { c.large.emplace(static_cast<char*>(p), Block{size, 0}); })) {
    system_free(p, size);
    return nullptr;
  }
  c.count(static_cast<int64_t>(nbytes), 1);
  return p;
}

void large_free(void* data, size_t nbytes) {
  Central& c = central();
  std::lock_guard<std::mutex> lock(c.mutex);
  c.count(-static_cast<int64_t>(nbytes), 0);
  const auto found = c.large.find(static_cast<char*>(data));
  const size_t size = found->second.size;
  if (kBypassCache || size > c.limit) {
    c.large.erase(found);
    system_free(data, size);
  } else {
    c.keep_large(found);
  }
}

void cpu_memory_stats(ArgandMemoryStats* out) {
  Central& c = central();
  std::lock_guard<std::mutex> lock(c.mutex);
  int64_t delta = 0, high = 0;
  uint64_t in_threads = 0, allocations = c.allocations;
  for (ThreadCache* tc : c.threads) {
    delta += tc->delta;
    high += tc->high;
    allocations += tc->allocations;
    for (int k = 0; k < kSmallClasses; k++) in_threads += tc->count[k] * counted_bytes(k);
  }
  c.note_peak(high);
  const int64_t in_use = c.allocated + delta;
  *out = ArgandMemoryStats{};
  out->allocated_bytes = in_use > 0 ? static_cast<uint64_t>(in_use) : 0;
  out->peak_allocated_bytes = static_cast<uint64_t>(c.peak > 0 ? c.peak : 0);
  out->cached_bytes = c.cached() + in_threads;
  out->allocations = allocations;
  out->cache_hits = !kBypassCache && allocations > c.misses ? allocations - c.misses : 0;
  out->limit_bytes = c.limit;
}

void cpu_empty_cache() {
  Central& c = central();
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    if (++g_cache_epoch == 0) ++g_cache_epoch;
    current_cache(c);  // this thread's at once, the others' at their next call
    c.trim(0);
    c.highest = c.allocated;
    c.slack = 0;
  }
  malloc_trim(0);
}

void cpu_set_cache_limit(uint64_t nbytes) {
  Central& c = central();
  std::lock_guard<std::mutex> lock(c.mutex);
  c.limit = nbytes;
  if (++g_cache_epoch == 0) ++g_cache_epoch;
  current_cache(c);
  c.trim(nbytes);
}

}  // namespace argand::core
