// Storages: reference-counted memory of one device.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

// `device` must be resolved. `op` names the operation in errors.
int storage_make(const char* op, ArgandDevice device, size_t nbytes, ArgandStorage** out);

// The error of a tensor's or storage's own record that cannot be had.
int no_memory_for_record(const char* op, size_t nbytes);

int storage_new(ArgandDevice device, size_t nbytes, ArgandStorage** out);
int storage_from_blob(ArgandDevice device, void* data, size_t nbytes, void (*deleter)(void*, void*, size_t), void* context, uint32_t flags,
                      ArgandStorage** out);
void storage_release(ArgandStorage* storage);
int storage_resize(ArgandStorage* storage, size_t nbytes);
size_t owned_block_bytes(const ArgandStorage* storage);     // of the allocator's block that it looks at; 0: foreign memory
bool storage_maps_shared(const ArgandStorage* storage);     // memory that processes share
void storage_release_memory(const ArgandStorage* storage);  // without its record

inline void storage_retain(ArgandStorage* s) { __atomic_fetch_add(&s->refcount, 1, __ATOMIC_RELAXED); }
// Gives one reference back; true when it was the last. A sole owner needs no locked instruction: nobody else can take a reference.
inline bool drop_reference(int32_t* refcount) {
  return __atomic_load_n(refcount, __ATOMIC_ACQUIRE) == 1 || __atomic_sub_fetch(refcount, 1, __ATOMIC_ACQ_REL) == 0;
}
inline void storage_drop(ArgandStorage* s) {
  if (drop_reference(&s->refcount)) storage_release(s);
}

void memory_stats(ArgandDevice device, ArgandMemoryStats* out);
void empty_cache(ArgandDevice device);
void set_cache_limit(ArgandDevice device, uint64_t nbytes);

}  // namespace argand::core
