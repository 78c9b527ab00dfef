#include "packages/c10/csrc/core/config.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace argand::core {
namespace {

// A non-negative integer with an optional K, M or G suffix; a malformed one is reported once and ignored.
bool read_number(const char* name, uint64_t* out) {
  const char* text = getenv(name);
  if (!text || !*text) return false;
  char* end = nullptr;
  const unsigned long long value = strtoull(text, &end, 10);
  int shift = 0;
  if (*end == 'K' || *end == 'k') shift = 10;
  if (*end == 'M' || *end == 'm') shift = 20;
  if (*end == 'G' || *end == 'g') shift = 30;
  if (end == text || *text == '-' || end[shift ? 1 : 0] != '\0') {
    fprintf(stderr, "argand: environment variable %s: got '%s', expected a non-negative integer; using the default\n", name, text);
    return false;
  }
  *out = static_cast<uint64_t>(value) << shift;
  return true;
}

// Processors that a container's quota pays for, rounded up; more threads than that would be throttled. 0: no quota.
int quota_processors() {
  FILE* file = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (!file) return 0;
  long long quota = 0, period = 0;
  const bool limited = fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0;  // "max 100000": no number
  fclose(file);
  return limited ? static_cast<int>((quota + period - 1) / period) : 0;
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0;
  const int n = known ? CPU_COUNT(&set) : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int quota = quota_processors();
  return n < 1 ? 1 : quota > 0 && quota < n ? quota : n;
}

uint64_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : uint64_t{4} << 30;
}

int processor_tier() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return 2;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 0;
#else
  return 0;
#endif
}

Config read_config() {
  Config c{usable_processors(), physical_memory() / 4, processor_tier()};
  uint64_t value = 0;
  if (read_number("ARGAND_NUM_THREADS", &value) && value > 0) c.num_threads = static_cast<int>(value < 1024 ? value : 1024);
  if (read_number("ARGAND_CPU_CACHE_LIMIT", &value)) c.cpu_cache_limit = value;
  if (read_number("ARGAND_CPU_TIER", &value)) {
    if (value > static_cast<uint64_t>(c.cpu_tier))
      fprintf(stderr, "argand: environment variable ARGAND_CPU_TIER: got %llu, but this processor has tier %d; using %d\n",
              static_cast<unsigned long long>(value), c.cpu_tier, c.cpu_tier);
    else
      c.cpu_tier = static_cast<int>(value);
  }
  return c;
}

}  // namespace

const Config& config() {
  static const Config c = read_config();
  return c;
}

}  // namespace argand::core
