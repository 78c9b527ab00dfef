#include "packages/c10/csrc/core/storage.h"

#include <atomic>
#include <cstring>

#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/device/device.h"
#include "packages/c10/csrc/memory/cpu_allocator.h"

namespace argand::core {
namespace {

// Bytes that storages of a device other than the CPU hold; the CPU's allocator counts its own.
struct DeviceCounters {
  std::atomic<uint64_t> allocated{0}, peak{0}, allocations{0};
};
DeviceCounters g_counters[ARGAND_NUM_BACKENDS];

void count_device(ArgandDeviceType type, uint64_t nbytes) {
  DeviceCounters& c = g_counters[type];
  c.allocations.fetch_add(1, std::memory_order_relaxed);
  const uint64_t now = c.allocated.fetch_add(nbytes, std::memory_order_relaxed) + nbytes;
  uint64_t peak = c.peak.load(std::memory_order_relaxed);
  while (now > peak && !c.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

int out_of_memory(const char* op, ArgandDevice device, size_t nbytes) {
  ArgandMemoryStats stats;
  memory_stats(device, &stats);
  return error(ARGAND_OUT_OF_MEMORY_ERROR,
               "%s: could not allocate %zu bytes (%s) on device '%s'; in use %s, cached %s; use smaller tensors, or free some and call "
               "empty_cache()",
               op, nbytes, bytes_text(nbytes).c_str(), device_text(device).c_str(), bytes_text(stats.allocated_bytes).c_str(),
               bytes_text(stats.cached_bytes).c_str());
}

// The thread's error in the name of `op`.
int prefix_error(const char* op) {
  int kind = ARGAND_OK;
  const std::string message = last_error(&kind);
  return error(static_cast<ArgandErrorKind>(kind), "%s: %s", op, message.c_str());
}

// Memory of a device; NULL without error for 0 bytes and on meta.
int allocate(const char* op, ArgandDevice device, size_t nbytes, void** out) {
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(device);
  *out = nullptr;
  if (type == ARGAND_CPU) {
    if (nbytes && !(*out = cpu_allocate(nbytes))) return out_of_memory(op, device, nbytes);
    return 0;
  }
  const ArgandDeviceInterface* interface = device_interface(type);
  const bool counts_itself = interface->memory_stats != nullptr;
  if (nbytes && type != ARGAND_META && !(*out = interface->allocate(ARGAND_DEVICE_INDEX(device), nbytes)))
    return counts_itself ? prefix_error(op) : out_of_memory(op, device, nbytes);
  if (!counts_itself) count_device(type, nbytes);
  return 0;
}

void deallocate(ArgandDevice device, void* data, size_t nbytes) {
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(device);
  if (type == ARGAND_CPU) {
    if (nbytes) cpu_free(data, nbytes);
    return;
  }
  const ArgandDeviceInterface* interface = device_interface(type);
  if (data) interface->deallocate(data, ARGAND_DEVICE_INDEX(device), nbytes);
  if (!interface->memory_stats) g_counters[type].allocated.fetch_sub(nbytes, std::memory_order_relaxed);
}

// A storage of ours keeps the size of its block in `context`: shrinking lowers nbytes alone.
inline size_t block_bytes(const ArgandStorage* s) { return reinterpret_cast<size_t>(s->context); }
inline bool owns_block(const ArgandStorage* s) { return !s->deleter && (s->flags & ARGAND_STORAGE_RESIZABLE); }

}  // namespace

int no_memory_for_record(const char* op, size_t nbytes) {
  return error(ARGAND_OUT_OF_MEMORY_ERROR, "%s: could not allocate %zu bytes for a tensor's record; free some tensors and call empty_cache()", op,
               nbytes);
}

int storage_make(const char* op, ArgandDevice device, size_t nbytes, ArgandStorage** out) {
  void* data;
  if (int status = allocate(op, device, nbytes, &data)) return status;
  auto* s = static_cast<ArgandStorage*>(record_allocate(sizeof(ArgandStorage)));
  if (__builtin_expect(!s, 0)) {
    deallocate(device, data, nbytes);
    return no_memory_for_record(op, sizeof(ArgandStorage));
  }
  *s = ArgandStorage{1, device, data, nbytes, 0, ARGAND_STORAGE_RESIZABLE, nullptr, reinterpret_cast<void*>(nbytes)};
  *out = s;
  return 0;
}

int storage_new(ArgandDevice device, size_t nbytes, ArgandStorage** out) {
  if (int status = resolve_device("empty", device, &device)) return status;
  return storage_make("empty", device, nbytes, out);
}

int storage_from_blob(ArgandDevice device, void* data, size_t nbytes, void (*deleter)(void*, void*, size_t), void* context, uint32_t flags,
                      ArgandStorage** out) {
  if (int status = resolve_device("from_blob", device, &device)) return status;
  if (!data && nbytes && ARGAND_DEVICE_TYPE(device) != ARGAND_META)
    return error(ARGAND_VALUE_ERROR, "from_blob: got a null pointer for %zu bytes; expected the address of the data", nbytes);
  auto* s = static_cast<ArgandStorage*>(record_allocate(sizeof(ArgandStorage)));
  if (!s) return no_memory_for_record("from_blob", sizeof(ArgandStorage));
  *s = ArgandStorage{1, device, data, nbytes, 0, flags & ~ARGAND_STORAGE_RESIZABLE, deleter, context};
  *out = s;
  return 0;
}

size_t owned_block_bytes(const ArgandStorage* s) { return owns_block(s) ? block_bytes(s) : 0; }

void storage_release_memory(const ArgandStorage* s) {
  if (owns_block(s))
    deallocate(s->device, s->data, block_bytes(s));
  else if (s->deleter)
    s->deleter(s->data, s->context, s->nbytes);
}

void storage_release(ArgandStorage* s) {
  storage_release_memory(s);
  record_free(s, sizeof *s);
}

// Tensors hold addresses into the block, so a block that others may look at never moves.
int storage_resize(ArgandStorage* s, size_t nbytes) {
  if (storage_maps_shared(s))
    return error(
        ARGAND_RUNTIME_ERROR,
        "resize: got a storage of %zu bytes that processes share, which keeps its size and cannot become %zu bytes; clone() the tensor first",
        s->nbytes, nbytes);
  if (!owns_block(s))
    return error(ARGAND_RUNTIME_ERROR,
                 "resize: got a storage of %zu bytes of foreign memory (for example a NumPy array), which cannot become %zu bytes; clone() the "
                 "tensor first",
                 s->nbytes, nbytes);
  const size_t block = block_bytes(s);
  if (nbytes <= block) {
    s->nbytes = nbytes;
    return 0;
  }
  const int32_t owners = __atomic_load_n(&s->refcount, __ATOMIC_RELAXED);
  if (block && owners > 1)
    return error(ARGAND_RUNTIME_ERROR,
                 "resize: got a storage of %zu bytes that %d tensors or storage handles share, which cannot grow to %zu bytes; clone() the tensor "
                 "first",
                 s->nbytes, owners, nbytes);
  void* data;
  if (int status = allocate("resize", s->device, nbytes, &data)) return status;
  if (s->data && s->nbytes) {
    if (int status = device_interface(ARGAND_DEVICE_TYPE(s->device))->copy(data, s->device, s->data, s->device, s->nbytes)) {
      deallocate(s->device, data, nbytes);
      return status;
    }
  }
  deallocate(s->device, s->data, block);
  s->data = data;
  s->nbytes = nbytes;
  s->context = reinterpret_cast<void*>(nbytes);
  return 0;
}

void memory_stats(ArgandDevice device, ArgandMemoryStats* out) {
  const unsigned type = static_cast<unsigned>(ARGAND_DEVICE_TYPE(device));
  if (type == ARGAND_CPU) return cpu_memory_stats(out);
  *out = ArgandMemoryStats{};
  if (type >= ARGAND_NUM_BACKENDS) return;
  const ArgandDeviceInterface* interface = device_interface(ARGAND_DEVICE_TYPE(device));
  if (interface && interface->memory_stats) {
    ArgandAllocatorStats stats;
    if (resolve_device("memory_stats", device, &device) || interface->memory_stats(ARGAND_DEVICE_INDEX(device), &stats)) return;
    const ArgandCounter &bytes = stats.counters[ARGAND_COUNT_ALLOCATED_BYTES][0], &blocks = stats.counters[ARGAND_COUNT_ALLOCATION][0];
    out->allocated_bytes = static_cast<uint64_t>(bytes.current);
    out->peak_allocated_bytes = static_cast<uint64_t>(bytes.peak);
    out->cached_bytes = static_cast<uint64_t>(stats.counters[ARGAND_COUNT_RESERVED_BYTES][0].current - bytes.current);
    out->allocations = static_cast<uint64_t>(blocks.allocated);
    out->cache_hits = static_cast<uint64_t>(blocks.allocated - stats.num_device_alloc);
    out->limit_bytes = static_cast<uint64_t>(stats.limit_bytes);
    return;
  }
  out->allocated_bytes = g_counters[type].allocated.load(std::memory_order_relaxed);
  out->peak_allocated_bytes = g_counters[type].peak.load(std::memory_order_relaxed);
  out->allocations = g_counters[type].allocations.load(std::memory_order_relaxed);
}

void empty_cache(ArgandDevice device) {
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(device);
  if (type == ARGAND_CPU) return cpu_empty_cache();
  const ArgandDeviceInterface* interface = device_interface(type);
  if (interface && interface->empty_cache && !resolve_device("empty_cache", device, &device)) interface->empty_cache(ARGAND_DEVICE_INDEX(device));
}

void set_cache_limit(ArgandDevice device, uint64_t nbytes) {
  if (ARGAND_DEVICE_TYPE(device) == ARGAND_CPU) cpu_set_cache_limit(nbytes);
}

}  // namespace argand::core
