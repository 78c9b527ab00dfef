// The caching CPU allocator. Blocks are 64-byte aligned; freed blocks are kept up to a limit and reused.
// Small blocks (<= 64 KiB) pass through a per-thread cache without a lock; larger ones through one table with best fit.
// With AddressSanitizer every block comes from and goes back to malloc, so that use after free is still found.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "packages/c10/csrc/abi/argand.h"
#include "packages/c10/csrc/memory/size_class.h"

namespace argand::core {

// Tensor data. nbytes > 0; free takes the nbytes of the allocation. NULL: memory is exhausted (the cache was emptied first).
void* cpu_allocate(size_t nbytes);
void cpu_free(void* data, size_t nbytes);

// The core's own records (tensors, storages): same caches, not in the statistics. nbytes in [1, kSmallLimit]; aborts when exhausted.
void* record_allocate(size_t nbytes);
void record_free(void* record, size_t nbytes);

void cpu_memory_stats(ArgandMemoryStats* out);
void cpu_empty_cache();
void cpu_set_cache_limit(uint64_t nbytes);

}  // namespace argand::core
