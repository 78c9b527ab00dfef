// The caching CPU allocator: classes, reuse, limit, statistics, threads, fork.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "packages/c10/csrc/memory/cpu_allocator.h"
#include "packages/c10/tests/cpp/check.h"

using namespace argand;
using namespace argand::core;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;  // blocks go back to malloc at once
#else
constexpr bool kCaching = true;
#endif

ArgandMemoryStats stats() {
  ArgandMemoryStats s;
  cpu_memory_stats(&s);
  return s;
}

void test_size_classes() {
  int last = 0;
  for (size_t n = 1; n <= kSmallLimit; n++) {
    const int c = size_class(n);
    CHECK(c == last || c == last + 1);
    CHECK(class_bytes(c) >= n && class_bytes(c) % kAlignment == 0);
    CHECK(c == 0 || class_bytes(c - 1) < n);
    last = c;
  }
  CHECK_EQ(last, kSmallClasses - 1);
  for (size_t n : {kSmallLimit + 1, size_t{100000}, size_t{1} << 20, (size_t{1} << 20) + 1, size_t{123456789}}) {
    CHECK(large_bytes(n) >= n && large_bytes(n) - n <= n / 4);
    CHECK_EQ(large_bytes(large_bytes(n)), large_bytes(n));
  }
}

void test_sizes_and_alignment() {
  for (size_t n : {1, 63, 64, 65, 1000, 1025, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1, 4 << 20, (4 << 20) + 17, 9 << 20}) {
    char* p = static_cast<char*>(cpu_allocate(n));
    CHECK(p && reinterpret_cast<uintptr_t>(p) % kAlignment == 0);
    memset(p, 0xab, n);
    cpu_free(p, n);
  }
  cpu_empty_cache();
}

void test_reuse() {
  if (!kCaching) return;
  for (size_t n : {100, 5000, 100000, 3 << 20, 32 << 20}) {
    void* p = cpu_allocate(n);
    cpu_free(p, n);
    const uint64_t hits = stats().cache_hits;
    void* q = cpu_allocate(n);
    CHECK(p == q);
    CHECK_EQ(stats().cache_hits, hits + 1);
    cpu_free(q, n);
  }
}

// A free mapped block serves smaller requests, and is whole again when they are freed.
void test_split_and_merge() {
  if (!kCaching) return;
  cpu_empty_cache();
  char* p = static_cast<char*>(cpu_allocate(40 << 20));
  cpu_free(p, 40 << 20);
  const uint64_t misses = stats().allocations - stats().cache_hits;
  const auto hits_only = [&] { return stats().allocations - stats().cache_hits == misses; };
  char* a = static_cast<char*>(cpu_allocate(20 << 20));
  char* b = static_cast<char*>(cpu_allocate(10 << 20));
  char* c = static_cast<char*>(cpu_allocate((10 << 20) - 100000));
  CHECK(a == p && b == p + (20 << 20) && c == p + (30 << 20));
  CHECK(hits_only());
  CHECK_EQ(stats().cached_bytes, 0);
  memset(a, 1, 20 << 20);
  cpu_free(a, 20 << 20);
  memset(c, 3, (10 << 20) - 100000);
  cpu_free(c, (10 << 20) - 100000);
  memset(b, 2, 10 << 20);
  cpu_free(b, 10 << 20);
  CHECK_EQ(stats().cached_bytes, 40 << 20);
  char* whole = static_cast<char*>(cpu_allocate(40 << 20));
  CHECK(whole == p && hits_only());
  cpu_free(whole, 40 << 20);
  // Malloc's blocks are not cut from mapped ones.
  void* small = cpu_allocate(100000);
  CHECK(!hits_only());
  cpu_free(small, 100000);
  // Giving a part back leaves the rest whole and usable.
  const uint64_t limit = stats().limit_bytes;
  cpu_set_cache_limit(25 << 20);
  CHECK(stats().cached_bytes <= 25 << 20 && stats().cached_bytes > 20 << 20);
  char* rest = static_cast<char*>(cpu_allocate(20 << 20));
  CHECK(rest == p);
  memset(rest, 4, 20 << 20);
  cpu_free(rest, 20 << 20);
  cpu_set_cache_limit(limit);
}

// Idle blocks make room for what is mapped anew, so that no more is held than was in use, until misses repeat.
void test_held_memory() {
  if (!kCaching) return;
  cpu_empty_cache();
  const uint64_t in_use = stats().allocated_bytes;
  void* a = cpu_allocate(20 << 20);
  void* b = cpu_allocate(20 << 20);
  void* gap = cpu_allocate(4 << 20);
  cpu_free(a, 20 << 20);
  void* c = cpu_allocate(30 << 20);
  const ArgandMemoryStats held = stats();
  CHECK(held.allocated_bytes + held.cached_bytes <= in_use + (54 << 20) + (1 << 20));
  cpu_free(c, 30 << 20);
  cpu_free(b, 20 << 20);
  cpu_free(gap, 4 << 20);
  // 40 MB of which only 24 adjoin: without slack each round would map anew for ever.
  const auto round = [] {
    const uint64_t misses = stats().allocations - stats().cache_hits;
    void* x = cpu_allocate(16 << 20);
    void* y = cpu_allocate(8 << 20);
    void* z = cpu_allocate(16 << 20);
    cpu_free(x, 16 << 20);
    cpu_free(z, 16 << 20);
    void* w = cpu_allocate(32 << 20);
    cpu_free(w, 32 << 20);
    cpu_free(y, 8 << 20);
    return stats().allocations - stats().cache_hits - misses;
  };
  cpu_empty_cache();
  uint64_t misses = 1;
  for (int i = 0; i < 64 && misses; i++) misses = round();
  CHECK_EQ(misses, 0);
  cpu_empty_cache();
}

// Blocks of random sizes do not overlap, and all memory is accounted for.
void test_many_blocks() {
  cpu_empty_cache();
  struct Entry {
    unsigned char* p;
    size_t n;
    unsigned char mark;
  };
  std::vector<Entry> blocks;
  uint64_t state = 1;
  for (int i = 0; i < 3000; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const auto r = static_cast<uint32_t>(state >> 33);
    if (blocks.size() < 8 || (r % 2 && blocks.size() < 24)) {
      const size_t n = 70000 + r / 2 % (r % 5 ? 3 << 20 : 12 << 20);
      Entry e{static_cast<unsigned char*>(cpu_allocate(n)), n, static_cast<unsigned char>(r >> 8)};
      CHECK(e.p);
      e.p[0] = e.p[n / 2] = e.p[n - 1] = e.mark;
      blocks.push_back(e);
    } else {
      std::swap(blocks[r / 2 % blocks.size()], blocks.back());
      const Entry e = blocks.back();
      blocks.pop_back();
      CHECK(e.p[0] == e.mark && e.p[e.n / 2] == e.mark && e.p[e.n - 1] == e.mark);
      cpu_free(e.p, e.n);
    }
  }
  for (const Entry& e : blocks) {
    CHECK(e.p[0] == e.mark && e.p[e.n / 2] == e.mark && e.p[e.n - 1] == e.mark);
    cpu_free(e.p, e.n);
  }
  cpu_empty_cache();
  CHECK_EQ(stats().cached_bytes, 0);
}

void test_stats() {
  cpu_empty_cache();
  const ArgandMemoryStats before = stats();
  CHECK_EQ(before.cached_bytes, 0);
  void* a = cpu_allocate(1000);
  void* b = cpu_allocate(10 << 20);
  const ArgandMemoryStats during = stats();
  CHECK_EQ(during.allocated_bytes - before.allocated_bytes, 1000 + (10 << 20));
  CHECK_EQ(during.allocations - before.allocations, 2);
  CHECK(during.peak_allocated_bytes >= during.allocated_bytes);
  cpu_free(a, 1000);
  cpu_free(b, 10 << 20);
  const ArgandMemoryStats after = stats();
  CHECK_EQ(after.allocated_bytes, before.allocated_bytes);
  CHECK_EQ(after.cached_bytes, kCaching ? 1024 + (10 << 20) : 0);
  // A short-lived small peak is seen too.
  const uint64_t peak = after.peak_allocated_bytes;
  std::vector<void*> blocks(static_cast<size_t>(peak / 60000 + 2));
  for (void*& p : blocks) p = cpu_allocate(60000);
  for (void* p : blocks) cpu_free(p, 60000);
  CHECK_EQ(stats().peak_allocated_bytes, after.allocated_bytes + blocks.size() * 60000);
  cpu_empty_cache();
  CHECK_EQ(stats().cached_bytes, 0);
}

void test_limit() {
  if (!kCaching) return;
  const uint64_t limit = stats().limit_bytes;
  CHECK(limit > 0);
  cpu_empty_cache();
  cpu_set_cache_limit(64 << 20);
  CHECK_EQ(stats().limit_bytes, 64 << 20);
  void* old_block = cpu_allocate(30 << 20);
  void* block = cpu_allocate(20 << 20);
  void* third = cpu_allocate(25 << 20);
  cpu_free(old_block, 30 << 20);
  cpu_free(block, 20 << 20);
  CHECK_EQ(stats().cached_bytes, 50 << 20);
  cpu_free(third, 25 << 20);  // what was idle longest makes room
  CHECK(stats().cached_bytes <= 64 << 20 && stats().cached_bytes >= 45 << 20);
  const uint64_t cached = stats().cached_bytes;
  void* big = cpu_allocate(100 << 20);
  cpu_free(big, 100 << 20);  // larger than the limit: never kept
  CHECK(stats().cached_bytes <= cached);

  cpu_set_cache_limit(0);
  CHECK_EQ(stats().cached_bytes, 0);
  for (size_t n : {100, 100000, 5 << 20}) cpu_free(cpu_allocate(n), n);
  CHECK_EQ(stats().cached_bytes, 0);
  cpu_set_cache_limit(limit);
  cpu_free(cpu_allocate(100), 100);
  CHECK(stats().cached_bytes > 0);
}

void test_exhaustion() {
  CHECK(cpu_allocate(size_t{1} << 55) == nullptr);
  CHECK(cpu_allocate(SIZE_MAX) == nullptr);
  CHECK(cpu_allocate(SIZE_MAX - 4095) == nullptr);
  void* p = cpu_allocate(100);
  CHECK(p);
  cpu_free(p, 100);
}

// Every thread fills blocks with its mark and checks them before it frees them; a third of the blocks is freed by another thread.
void test_threads() {
  const uint64_t in_use = stats().allocated_bytes;
  constexpr int kThreads = 4;
  struct Entry {
    unsigned char* p;
    size_t n;
    unsigned char mark;
  };
  std::vector<Entry> handed[kThreads];
  const auto body = [&](int id) {
    uint64_t state = static_cast<uint64_t>(id) * 7919 + 17;
    std::vector<Entry> mine;
    for (int i = 0; i < 20000; i++) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const auto r = static_cast<uint32_t>(state >> 33);
      if (r % 2 || mine.empty()) {
        const size_t n = r % 97 == 0 ? 70000 + r % 100000 : 1 + r % 3000;
        Entry e{static_cast<unsigned char*>(cpu_allocate(n)), n, static_cast<unsigned char>(r)};
        CHECK(e.p);
        e.p[0] = e.p[n / 2] = e.p[n - 1] = e.mark;
        mine.push_back(e);
      } else {
        std::swap(mine[r / 2 % mine.size()], mine.back());
        const Entry e = mine.back();
        mine.pop_back();
        CHECK(e.p[0] == e.mark && e.p[e.n / 2] == e.mark && e.p[e.n - 1] == e.mark);
        if (r % 3 == 0)
          handed[id].push_back(e);
        else
          cpu_free(e.p, e.n);
      }
      if (r % 5000 == 0) cpu_empty_cache();
    }
    for (const Entry& e : mine) cpu_free(e.p, e.n);
  };
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; id++) threads.emplace_back(body, id);
  for (std::thread& t : threads) t.join();
  for (int id = 0; id < kThreads; id++) {
    for (const Entry& e : handed[id]) {
      CHECK(e.p[0] == e.mark && e.p[e.n / 2] == e.mark && e.p[e.n - 1] == e.mark);
      cpu_free(e.p, e.n);
    }
  }
  CHECK_EQ(stats().allocated_bytes, in_use);
  cpu_empty_cache();
  CHECK_EQ(stats().cached_bytes, 0);
}

// A thread-local destructor that frees after the thread's cache is gone.
void test_thread_exit() {
  const uint64_t in_use = stats().allocated_bytes;
  std::thread([] {
    static thread_local struct Holder {
      void* small = cpu_allocate(256);
      void* large = cpu_allocate(1 << 20);
      ~Holder() { cpu_free(small, 256), cpu_free(large, 1 << 20); }
    } holder;
    CHECK(holder.small && holder.large);
  }).join();
  CHECK_EQ(stats().allocated_bytes, in_use);
}

// Builds with AddressSanitizer must see a read of a freed block: the child ends with its report.
void test_use_after_free_is_found() {
  if (kCaching) return;
  for (size_t n : {100, 100000, 5 << 20}) {
    const pid_t child = fork();
    if (child == 0) {
      close(STDERR_FILENO);
      auto* p = static_cast<volatile char*>(cpu_allocate(n));
      p[1] = 1;
      cpu_free(const_cast<char*>(p), n);
      const char read = p[1];
      _exit(read == 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status != 0);
  }
}

void test_fork() {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; i++) blocks.push_back(cpu_allocate(512));
  bool stop = false;
  std::thread busy([&] {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) cpu_free(cpu_allocate(200000), 200000);
  });
  for (int round = 0; round < 20; round++) {
    const pid_t child = fork();
    if (child == 0) {
      for (void* p : blocks) cpu_free(p, 512);
      for (size_t n : {100, 100000, 5 << 20}) cpu_free(cpu_allocate(n), n);
      cpu_empty_cache();
      _exit(stats().cached_bytes == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  busy.join();
  for (void* p : blocks) cpu_free(p, 512);
}

}  // namespace

int main() {
  api = argand_api();
  RUN(test_size_classes);
  RUN(test_sizes_and_alignment);
  RUN(test_reuse);
  RUN(test_split_and_merge);
  RUN(test_held_memory);
  RUN(test_many_blocks);
  RUN(test_stats);
  RUN(test_limit);
  RUN(test_exhaustion);
  RUN(test_threads);
  RUN(test_thread_exit);
  RUN(test_use_after_free_is_found);
  RUN(test_fork);
  return 0;
}
