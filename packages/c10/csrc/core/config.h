// The environment variables that c10's C++ core reads, once, at first use.
#pragma once

#include <cstdint>

namespace argand::core {

struct Config {
  int num_threads;           // ARGAND_NUM_THREADS: size of the thread pool; default: processors this process may use
  uint64_t cpu_cache_limit;  // ARGAND_CPU_CACHE_LIMIT: bytes the CPU allocator keeps for reuse (K, M, G suffix); default: RAM / 4
  int cpu_tier;              // ARGAND_CPU_TIER: 0 baseline, 1 AVX2+FMA, 2 AVX-512; default and upper bound: what the processor has
};

const Config& config();

}  // namespace argand::core
