// The caching CPU allocator. Blocks are 64-byte aligned; freed blocks are kept up to a limit and reused.
// Small blocks (<= 64 KiB) pass through a per-thread cache without a lock; larger ones through one table with best fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packages/c10/csrc/abi/argand.h"
#include "packages/c10/csrc/memory/thread_cache.h"

namespace argand::core {

void* large_allocate(size_t nbytes);
void large_free(void* data, size_t nbytes);

// Tensor data. nbytes > 0; free takes the nbytes of the allocation. NULL: memory is exhausted (the cache was emptied first).
inline void* cpu_allocate(size_t nbytes) {
  if (nbytes > kSmallLimit) return large_allocate(nbytes);
  void* p = small_allocate(nbytes);
  if (__builtin_expect(p != nullptr, 1)) count_small(static_cast<int64_t>(nbytes), 1);
  return p;
}
inline void cpu_free(void* data, size_t nbytes) {
  if (nbytes > kSmallLimit) return large_free(data, nbytes);
  small_free(data, nbytes);
  count_small(-static_cast<int64_t>(nbytes), 0);
}

// The core's own records (tensors, storages): same caches, not in the statistics. nbytes in [1, kSmallLimit]; NULL as above.
inline void* record_allocate(size_t nbytes) { return small_allocate(nbytes); }
inline void record_free(void* record, size_t nbytes) { small_free(record, nbytes); }

// Records of tensors. One that is given back has no storage (NULL), so that those in use are known among all that visit_tensors() shows.
void* tensor_allocate_bypass();
void tensor_free_bypass(ArgandTensor* t);
inline ArgandTensor* tensor_allocate() { return static_cast<ArgandTensor*>(kBypassCache ? tensor_allocate_bypass() : class_allocate(kTensorClass)); }
inline void tensor_free(ArgandTensor* t) {
  __atomic_store_n(&t->storage, static_cast<ArgandStorage*>(nullptr), __ATOMIC_RELAXED);
  return kBypassCache ? tensor_free_bypass(t) : class_free(kTensorClass, t);
}
// `visit` must not allocate tensors.
void visit_tensors(void (*visit)(ArgandTensor* t, void* context), void* context);

void cpu_memory_stats(ArgandMemoryStats* out);
void cpu_empty_cache();
void cpu_set_cache_limit(uint64_t nbytes);

}  // namespace argand::core
