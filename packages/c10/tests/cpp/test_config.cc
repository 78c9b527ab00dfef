// Environment variables: each case in a child of its own, since they are read once.
#include <sys/wait.h>
#include <unistd.h>

#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

// Runs body() in a child with the variable set; whether it returned true.
template <class Body>
bool with(const char* name, const char* text, Body&& body) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv(name, text, 1);
    close(STDERR_FILENO);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

uint64_t cache_limit() {
  ArgandMemoryStats stats;
  api->memory_stats(ARGAND_DEVICE(ARGAND_CPU, 0), &stats);
  return stats.limit_bytes;
}

void test_num_threads() {
  CHECK(with("ARGAND_NUM_THREADS", "3", [] { return api->num_threads() == 3; }));
  CHECK(with("ARGAND_NUM_THREADS", "999999", [] { return api->num_threads() == 1024; }));
  for (const char* text : {"", "0", "-2", "two", "2x", "2 "})  // no number of threads: the default
    CHECK(with("ARGAND_NUM_THREADS", text, [] { return api->num_threads() >= 1 && api->num_threads() <= sysconf(_SC_NPROCESSORS_CONF); }));
}

void test_cache_limit() {
  CHECK(with("ARGAND_CPU_CACHE_LIMIT", "0", [] { return cache_limit() == 0; }));
  CHECK(with("ARGAND_CPU_CACHE_LIMIT", "12345", [] { return cache_limit() == 12345; }));
  CHECK(with("ARGAND_CPU_CACHE_LIMIT", "3K", [] { return cache_limit() == 3 << 10; }));
  CHECK(with("ARGAND_CPU_CACHE_LIMIT", "3m", [] { return cache_limit() == 3 << 20; }));
  CHECK(with("ARGAND_CPU_CACHE_LIMIT", "2G", [] { return cache_limit() == uint64_t{2} << 30; }));
  const auto is_default = [] {
    return cache_limit() == static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 4;
  };
  for (const char* text : {"", "3T", "3Gi", "-1", "G"}) CHECK(with("ARGAND_CPU_CACHE_LIMIT", text, is_default));
}

void test_tier() {
  int tier = 0;
  while (tier < 2 && with("ARGAND_CPU_TIER", std::to_string(tier + 1).c_str(), [tier] { return api->cpu_tier() == tier + 1; })) tier++;
  CHECK(with("ARGAND_CPU_TIER", "", [tier] { return api->cpu_tier() == tier; }));
  CHECK(with("ARGAND_CPU_TIER", "0", [] { return api->cpu_tier() == 0; }));
  CHECK(with("ARGAND_CPU_TIER", "9", [tier] { return api->cpu_tier() == tier; }));  // more than the processor has
}

}  // namespace

int main() {
  api = argand_api();
  RUN(test_num_threads);
  RUN(test_cache_limit);
  RUN(test_tier);
  return 0;
}
