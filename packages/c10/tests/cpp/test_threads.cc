// The thread pool: coverage of ranges, grain, nesting, callers at once, fork.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

// Runs a parallel_for that counts visits; whether every index was visited once and chunks kept the grain.
void check_range(int64_t begin, int64_t end, int64_t grain) {
  const int64_t n = end > begin ? end - begin : 0;
  std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
  std::atomic<int> small_chunks{0}, chunks{0};
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    CHECK(begin <= b && b < e && e <= end);
    chunks++;
    if (e - b < grain && e != end) small_chunks++;
    for (int64_t i = b; i < e; i++) visits[static_cast<size_t>(i - begin)]++;
  });
  for (auto& v : visits) CHECK_EQ(v.load(), 1);
  CHECK_EQ(small_chunks.load(), 0);
  CHECK(chunks <= api->num_threads());
}

void test_ranges() {
  for (int threads : {1, 2, 3, 8, 64}) {
    api->set_num_threads(threads);
    CHECK_EQ(api->num_threads(), threads);
    for (int64_t n : {0, 1, 2, 3, 7, 100, 1023, 1024, 1025, 5000, 100001}) {
      for (int64_t grain : {0, 1, 3, 1000, 1 << 20}) check_range(-5, n - 5, grain);
    }
    check_range(3, 1, 1);
  }
  api->set_num_threads(-4);
  CHECK_EQ(api->num_threads(), 1);
}

void test_chunks_do_not_depend_on_timing() {
  api->set_num_threads(4);
  std::set<std::pair<int64_t, int64_t>> first;
  for (int round = 0; round < 200; round++) {
    std::set<std::pair<int64_t, int64_t>> now;
    std::mutex mutex;
    parallel_for(0, 10007, 16, [&](int64_t b, int64_t e) {
      std::lock_guard<std::mutex> lock(mutex);
      now.emplace(b, e);
    });
    if (round == 0) first = now;
    CHECK(now == first);
  }
  CHECK_EQ(first.size(), 4);
}

void test_concurrency() {  // two chunks that wait for each other: both must be running
  api->set_num_threads(2);
  for (int round = 0; round < 50; round++) {
    if (round % 10 == 9) usleep(2000);  // the worker sleeps by now
    std::atomic<int> arrived{0};
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      arrived++;
      while (arrived < 2) std::this_thread::yield();
    });
    CHECK_EQ(arrived.load(), 2);
  }
}

void test_nested_runs_serially() {
  api->set_num_threads(4);
  std::atomic<int64_t> sum{0};
  parallel_for(0, 8, 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; i++) {
      const auto self = std::this_thread::get_id();
      int calls = 0;
      parallel_for(0, 1000, 1, [&](int64_t b2, int64_t e2) {
        CHECK(std::this_thread::get_id() == self);
        calls++;
        sum += e2 - b2;
      });
      CHECK_EQ(calls, 1);
    }
  });
  CHECK_EQ(sum.load(), 8000);
}

void test_callers_at_once() {
  api->set_num_threads(3);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; c++) {
    callers.emplace_back([c] {
      std::vector<int> data(4096 + static_cast<size_t>(c));
      for (int round = 1; round <= 300; round++) {
        parallel_for(0, static_cast<int64_t>(data.size()), 64, [&](int64_t b, int64_t e) {
          for (int64_t i = b; i < e; i++) data[static_cast<size_t>(i)]++;
        });
        for (int v : data) CHECK_EQ(v, round);
      }
    });
  }
  for (std::thread& t : callers) t.join();
}

void test_changing_threads() {
  for (int round = 0; round < 100; round++) {
    api->set_num_threads(1 + round * 7 % 9);
    check_range(0, 1000 + round, 10);
  }
}

void test_fork() {
  api->set_num_threads(3);
  check_range(0, 100000, 100);  // workers exist
  std::atomic<bool> stop{false};
  std::thread busy([&] {  // at some forks the pool is in use
    while (!stop) check_range(0, 5000, 10);
  });
  for (int round = 0; round < 20; round++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      check_range(0, 100000, 100);
      std::atomic<int> arrived{0};
      parallel_for(0, 2, 1, [&](int64_t, int64_t) {  // new workers take part
        arrived++;
        while (arrived < 2) std::this_thread::yield();
      });
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        check_range(0, 100000, 100);
        _exit(0);
      }
      int status = -1;
      waitpid(grandchild, &status, 0);
      _exit(status == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  stop = true;
  busy.join();
  check_range(0, 100000, 100);
}

void test_signals_go_to_other_threads() {
  api->set_num_threads(2);
  static std::atomic<int> handled{0};
  static std::thread::id main_thread = std::this_thread::get_id();
  signal(SIGUSR1, [](int) {
    if (std::this_thread::get_id() == main_thread) handled++;
  });
  check_range(0, 100000, 100);
  for (int i = 0; i < 20; i++) kill(getpid(), SIGUSR1);
  for (int i = 0; i < 1000 && handled == 0; i++) usleep(1000);
  CHECK(handled > 0);
}

}  // namespace

int main() {
  api = argand_api();
  CHECK(api->num_threads() >= 1);
  RUN(test_ranges);
  RUN(test_chunks_do_not_depend_on_timing);
  RUN(test_concurrency);
  RUN(test_nested_runs_serially);
  RUN(test_callers_at_once);
  RUN(test_changing_threads);
  RUN(test_fork);
  RUN(test_signals_go_to_other_threads);
  return 0;
}
