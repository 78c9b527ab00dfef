// The caching allocator on the driver's stand-in: reuse, split and merge, use on several streams, shortage, limits, statistics, threads.
#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "packages/c10/tests/cpp/fake_cuda.h"

using namespace argand;
using fake::cuda;

namespace {

constexpr size_t kMiB = size_t{1} << 20;
void* take(size_t n, int32_t index = 0) {
  void* p = cuda->allocate(index, n);
  CHECK(p);
  return p;
}
void give(void* p, int32_t index = 0) { cuda->deallocate(p, index, 0); }
char* at(void* p, size_t offset) { return static_cast<char*>(p) + offset; }
void start_empty() {
  check(cuda->empty_cache(0));
  check(cuda->memory_reset(0, 0));
  check(cuda->memory_reset(0, 1));
  CHECK_EQ(fake::used(0), fake::current(ARGAND_COUNT_RESERVED_BYTES));
}

void test_small_blocks_share_a_segment() {
  start_empty();
  void *a = take(1), *b = take(513), *c = take(kMiB);
  CHECK(b == at(a, 512) && c == at(b, 1024));
  CHECK_EQ(fake::used(0), 2 * kMiB);
  CHECK_EQ(fake::current(ARGAND_COUNT_ALLOCATED_BYTES), 512 + 1024 + kMiB);
  CHECK_EQ(fake::current(ARGAND_COUNT_REQUESTED_BYTES), 1 + 513 + kMiB);
  CHECK_EQ(fake::current(ARGAND_COUNT_INACTIVE_SPLIT), 1);
  give(b);
  CHECK(take(600) == b);  // the best fit, not the large rest
  give(b);
  give(a);
  CHECK(take(1536) == a);  // merged
  give(a);
  give(c);
  CHECK_EQ(fake::current(ARGAND_COUNT_INACTIVE_SPLIT), 0);
  CHECK_EQ(fake::current(ARGAND_COUNT_ACTIVE), 0);
  void* d = take(2 * kMiB);  // more than a small request: a segment of another kind
  CHECK_EQ(fake::current(ARGAND_COUNT_SEGMENT), 2);
  give(d);
}

void test_large_blocks() {
  start_empty();
  const size_t before = fake::used(0);
  void* a = take(3 * kMiB);  // from a segment of 20 MiB
  CHECK_EQ(fake::used(0) - before, 20 * kMiB);
  void* b = take(16 * kMiB);
  CHECK(b == at(a, 3 * kMiB));
  void* c = take(21 * kMiB + 5);
  CHECK_EQ(fake::used(0) - before, 42 * kMiB);
  give(a);
  give(b);
  CHECK(take(19 * kMiB) == a);
  give(a);
  give(c);
  // A rest of at most 1 MiB stays with its block.
  CHECK(take(21 * kMiB + kMiB / 2) == c);
  CHECK_EQ(fake::current(ARGAND_COUNT_ALLOCATED_BYTES), 22 * kMiB);
  give(c);
}

void test_streams_have_blocks_of_their_own() {
  void *s = nullptr, *t = nullptr;
  check(cuda->stream_new(0, 0, &s));
  check(cuda->stream_new(0, 0, &t));
  CHECK(s != t);
  void* a = take(4096);
  give(a);
  check(cuda->stream_set(0, s));
  void* b = take(4096);
  CHECK(b != a);
  give(b);
  CHECK(take(4096) == b);
  check(cuda->stream_set(0, nullptr));
  CHECK(take(4096) == a);
  give(a);
  give(b);  // freed while another stream is current: still a block of `s`
  CHECK(take(4096) == a);
  give(a);
}

// A block that another stream uses is not handed out before that stream is through.
void test_record_stream() {
  void* s = nullptr;
  check(cuda->stream_new(0, 0, &s));
  fake::lazy(true);
  void* a = take(4096);
  check(cuda->stream_set(0, s));
  check(cuda->fill_bytes(a, 0, 1, 4096));
  check(cuda->record_stream(a, 0, s));
  check(cuda->stream_set(0, nullptr));
  give(a);
  CHECK_EQ(fake::current(ARGAND_COUNT_ACTIVE) - fake::current(ARGAND_COUNT_ALLOCATION), 1);
  void* b = take(4096);
  CHECK(b != a);
  check(cuda->stream_synchronize(0, s));
  void* c = take(4096);
  CHECK(c == a);
  give(b);
  give(c);
  check(cuda->record_stream(&s, 0, s));  // memory of another owner: nothing to do
  fake::lazy(false);
}

void test_shortage() {
  start_empty();
  fake::control("fakeCapacity", fake::used(0) + 100 * kMiB);
  void* a = take(60 * kMiB);
  give(a);
  void* b = take(80 * kMiB);  // does not fit beside the cached block, which is given back
  CHECK_EQ(fake::stats().num_alloc_retries, 1);
  CHECK_EQ(fake::stats().num_ooms, 0);
  CHECK(!cuda->allocate(0, 40 * kMiB));
  CHECK_FAILS(api->set_error(ARGAND_OUT_OF_MEMORY_ERROR, api->last_error(nullptr)), ARGAND_OUT_OF_MEMORY_ERROR, "Tried to allocate 40.00 MiB");
  const std::string text = api->last_error(nullptr);
  for (const char* part : {"'cuda:0'", "in total", "20.00 MiB free", "80.00 MiB allocated", "reserved but unallocated", "empty_cache"})
    CHECK(text.find(part) != std::string::npos);
  CHECK_EQ(fake::stats().num_ooms, 1);
  give(b);
  give(take(40 * kMiB));  // out of memory is no end
  ArgandTensor* out = nullptr;
  const int64_t huge[] = {int64_t{1} << 40};
  CHECK_FAILS(api->tensor_empty(1, huge, ARGAND_FLOAT32, ARGAND_DEVICE(ARGAND_CUDA, 0), &out), ARGAND_OUT_OF_MEMORY_ERROR,
              "empty: CUDA out of memory");
  // A block that waits for another stream is worth waiting for.
  check(cuda->empty_cache(0));
  void* s = nullptr;
  check(cuda->stream_new(0, 0, &s));
  fake::lazy(true);
  void* c = take(90 * kMiB);
  check(cuda->stream_set(0, s));
  check(cuda->fill_bytes(c, 0, 1, 64));
  check(cuda->stream_set(0, nullptr));
  check(cuda->record_stream(c, 0, s));
  give(c);
  CHECK(take(90 * kMiB) == c);
  give(c);
  fake::lazy(false);
  fake::control("fakeCapacity", size_t{4} << 30);
}

void test_limit() {
  start_empty();
  check(cuda->memory_limit(0, 0.01));  // of 4 GiB
  CHECK(!cuda->allocate(0, 50 * kMiB));
  CHECK(std::string(api->last_error(nullptr)).find("limit of this process 40.96 MiB") != std::string::npos);
  give(take(30 * kMiB));
  check(cuda->memory_limit(0, 1.0));
  give(take(50 * kMiB));
}

void test_statistics() {
  start_empty();
  const int64_t base = fake::current(ARGAND_COUNT_ALLOCATED_BYTES);
  void *a = take(1000), *b = take(5 * kMiB);
  give(a);
  ArgandAllocatorStats s = fake::stats();
  CHECK_EQ(s.counters[ARGAND_COUNT_ALLOCATED_BYTES][0].current, base + 5 * kMiB);
  CHECK_EQ(s.counters[ARGAND_COUNT_ALLOCATED_BYTES][0].peak, base + 5 * kMiB + 1024);
  CHECK_EQ(s.counters[ARGAND_COUNT_ALLOCATED_BYTES][1].current, 0);
  CHECK_EQ(s.counters[ARGAND_COUNT_ALLOCATED_BYTES][1].freed, 1024);
  CHECK_EQ(s.counters[ARGAND_COUNT_ALLOCATION][2].allocated, 1);
  check(cuda->memory_reset(0, 0));
  CHECK_EQ(fake::stats().counters[ARGAND_COUNT_ALLOCATED_BYTES][0].peak, base + 5 * kMiB);
  ArgandMemoryStats common;
  api->memory_stats(ARGAND_DEVICE(ARGAND_CUDA, 0), &common);
  CHECK_EQ(common.allocated_bytes, base + 5 * kMiB);
  ArgandMemoryBlock* blocks = nullptr;
  size_t n = 0;
  check(cuda->memory_snapshot(0, &blocks, &n));
  uint64_t in_use = 0, total = 0;
  for (size_t i = 0; i < n; i++) {
    total += blocks[i].size;
    if (blocks[i].state == 1) in_use += blocks[i].size;
  }
  api->free_array(blocks);
  CHECK_EQ(in_use, base + 5 * kMiB);
  CHECK_EQ(total, fake::current(ARGAND_COUNT_RESERVED_BYTES));
  give(b);
}

// Random requests: blocks never overlap, and everything merges back at the end.
void test_random() {
  start_empty();
  const int64_t base = fake::current(ARGAND_COUNT_ALLOCATED_BYTES);
  std::mt19937 random(7);
  std::vector<std::pair<char*, size_t>> held;
  for (int i = 0; i < 20000; i++) {
    if (held.size() > 200 || (!held.empty() && random() % 2)) {
      const size_t k = random() % held.size();
      const auto [p, n] = held[k];
      CHECK(p[0] == static_cast<char>(n) && p[n - 1] == static_cast<char>(n));
      give(p);
      held[k] = held.back();
      held.pop_back();
    } else {
      const size_t n = 1 + random() % (random() % 4 ? 5000 : 3 * kMiB);
      char* p = static_cast<char*>(take(n));
      p[0] = p[n - 1] = static_cast<char>(n);
      held.emplace_back(p, n);
    }
  }
  for (const auto& [p, n] : held) give(p);
  CHECK_EQ(fake::current(ARGAND_COUNT_ALLOCATED_BYTES), base);
  check(cuda->empty_cache(0));
  CHECK_EQ(fake::used(0), fake::current(ARGAND_COUNT_RESERVED_BYTES));
  CHECK_EQ(fake::used(0), 0);
}

void test_threads() {
  start_empty();
  const int64_t base = fake::current(ARGAND_COUNT_ALLOCATED_BYTES);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; k++) {
    threads.emplace_back([k] {
      void* s = nullptr;
      check(cuda->set_device(0));
      check(cuda->stream_new(0, 0, &s));
      check(cuda->stream_set(0, s));
      std::vector<void*> held;
      std::mt19937 random(static_cast<unsigned>(k));
      for (int i = 0; i < 3000; i++) {
        held.push_back(take(1 + random() % 100000));
        if (i % 3 == 0) check(cuda->record_stream(held.back(), 0, nullptr));
        if (held.size() > 20) {
          std::swap(held[random() % held.size()], held.back());
          give(held.back());
          held.pop_back();
        }
      }
      for (void* p : held) give(p);
    });
  }
  for (std::thread& t : threads) t.join();
  check(cuda->empty_cache(0));
  CHECK_EQ(fake::current(ARGAND_COUNT_ALLOCATED_BYTES), base);
  CHECK_EQ(fake::current(ARGAND_COUNT_ACTIVE_BYTES), base);
}

void test_second_device() {
  const size_t before = fake::used(0);
  void* p = take(100, 1);
  CHECK(fake::used(0) == before && fake::used(1) == 2 * kMiB);
  int32_t current = -1;
  check(cuda->get_device(&current));
  CHECK_EQ(current, 0);
  give(p, 1);
  check(cuda->empty_cache(1));
  CHECK_EQ(fake::used(1), 0);
}

}  // namespace

int main() {
  fake::start();
  RUN(test_small_blocks_share_a_segment);
  RUN(test_large_blocks);
  RUN(test_streams_have_blocks_of_their_own);
  RUN(test_record_stream);
  RUN(test_shortage);
  RUN(test_limit);
  RUN(test_statistics);
  RUN(test_random);
  RUN(test_threads);
  RUN(test_second_device);
  return 0;
}
