// Storages whose memory other processes map, too.
#include "packages/c10/csrc/abi/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/core/storage.h"
#include "packages/c10/csrc/core/tensor_impl.h"
#include "packages/c10/csrc/device/device.h"
#include "packages/c10/csrc/memory/cpu_allocator.h"

namespace argand::core {
namespace {

// What a shared storage keeps in `context`.
struct Mapping {
  int descriptor;  // -1: closed
  size_t length;   // mapped bytes: whole pages, at least one
  size_t block;    // bytes of the allocator's block that is mapped over; 0: the mapping has an address of its own
};

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
size_t whole_pages(size_t nbytes) { return ((nbytes ? nbytes : 1) + page_bytes() - 1) & ~(page_bytes() - 1); }

int system_error(const char* op, size_t nbytes, int code) {
  if (code == EMFILE || code == ENFILE)
    return error(ARGAND_RUNTIME_ERROR,
                 "%s: no file descriptor is left for %s of shared memory; raise the limit (ulimit -n), or share fewer storages, such as one of which "
                 "tensors are views",
                 op, bytes_text(nbytes).c_str());
  return error(ARGAND_OUT_OF_MEMORY_ERROR, "%s: could not get %zu bytes (%s) of shared memory: %s; share smaller tensors, or free some", op, nbytes,
               bytes_text(nbytes).c_str(), strerror(code));
}

void release_shared(void* data, void* context, size_t) {
  auto* mapping = static_cast<Mapping*>(context);
  if (!mapping->block) {
    munmap(data, mapping->length);
  } else if (mmap(data, mapping->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
    if (mapping->length >= kHugeBytes) madvise(data, mapping->length, MADV_HUGEPAGE);
    cpu_free(data, mapping->block);  // private again; a block that could not be made so is never used again
  }
  if (mapping->descriptor >= 0) close(mapping->descriptor);
  delete mapping;
}

// A mapping that failed may have taken away what it was to lie over: memory of this process again, with what the file holds.
void restore(void* address, size_t length, int descriptor) {
  if (!msync(address, length, MS_ASYNC)) return;  // it is still there
  if (mmap(address, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) return;
  for (size_t done = 0; done < length;) {
    const ssize_t n = pread(descriptor, static_cast<char*>(address) + done, length - done, static_cast<off_t>(done));
    if (n <= 0 && !(n < 0 && errno == EINTR)) return;
    if (n > 0) done += static_cast<size_t>(n);
  }
}

// Takes the descriptor, also when it fails; what lies at `address` is then as before.
int map_file(const char* op, int descriptor, size_t nbytes, void* address, size_t block, void** data, Mapping** out) {
  auto* mapping = new (std::nothrow) Mapping{descriptor, whole_pages(nbytes), block};
  const int fixed = address ? MAP_FIXED : 0;
  *data = mapping ? mmap(address, mapping->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | fixed, descriptor, 0) : MAP_FAILED;
  if (*data == MAP_FAILED) {
    const int code = mapping ? errno : ENOMEM;
    if (mapping && address) restore(address, mapping->length, descriptor);
    delete mapping;
    close(descriptor);
    return system_error(op, nbytes, code);
  }
  *out = mapping;
  return 0;
}

// A file of `length` bytes: what lies at `data`, then zeros.
int make_file(const char* op, size_t length, const void* data, size_t nbytes, int* out) {
  const auto pages = static_cast<size_t>(sysconf(_SC_PHYS_PAGES));
  const int descriptor = length / page_bytes() > pages ? (errno = ENOMEM, -1) : memfd_create("argand", MFD_CLOEXEC);
  if (descriptor < 0) return system_error(op, length, errno);
  int code = ftruncate(descriptor, static_cast<off_t>(length)) ? errno : 0;
  for (size_t done = 0; !code && done < nbytes;) {
    const ssize_t n = pwrite(descriptor, static_cast<const char*>(data) + done, nbytes - done, static_cast<off_t>(done));
    if (n > 0)
      done += static_cast<size_t>(n);
    else if (n == 0 || errno != EINTR)
      code = n ? errno : ENOSPC;
  }
  if (code) {
    close(descriptor);
    return system_error(op, length, code);
  }
  *out = descriptor;
  return 0;
}

int storage_open(int descriptor, size_t nbytes, int keep, ArgandStorage** out) {
  void* data = nullptr;
  Mapping* mapping = nullptr;
  if (int status = map_file("shared memory", descriptor, nbytes, nullptr, 0, &data, &mapping)) return status;
  if (!keep) {
    close(descriptor);
    mapping->descriptor = -1;
  }
  const int status = storage_from_blob(ARGAND_DEVICE(ARGAND_CPU, 0), data, nbytes, release_shared, mapping, 0, out);
  if (status) release_shared(data, mapping, nbytes);
  return status;
}

int storage_new_shared(size_t nbytes, ArgandStorage** out) {
  int descriptor = -1;
  if (int status = make_file("shared memory", whole_pages(nbytes), nullptr, 0, &descriptor)) return status;
  return storage_open(descriptor, nbytes, 1, out);
}

int storage_descriptor(const ArgandStorage* s) { return s->deleter == release_shared ? static_cast<const Mapping*>(s->context)->descriptor : -1; }

// How many tensors hold the storage; with `moved`, they turn to its new address.
struct Owners {
  ArgandStorage* storage;
  int32_t count;
  bool moved;
};
void visit_owner(ArgandTensor* t, void* context) {
  auto* owners = static_cast<Owners*>(context);
  if (__atomic_load_n(&t->storage, __ATOMIC_RELAXED) != owners->storage) return;
  owners->count++;
  if (owners->moved) tensor_set_data(t);
}

// Whether all of the storage's memory can become that of a file where it is.
bool stays(const ArgandStorage* s) {
  const size_t block = owned_block_bytes(s);
  return !kBypassCache && block > kSmallLimit && large_bytes(block) >= kMapBytes;
}

int32_t storage_keepers(ArgandStorage* s, int32_t handles) {
  if (storage_descriptor(s) >= 0 || stays(s)) return 0;
  Owners owners{s, 0, false};
  visit_tensors(visit_owner, &owners);
  const int32_t others = __atomic_load_n(&s->refcount, __ATOMIC_RELAXED) - owners.count - handles;
  return others > 0 ? others : 0;
}

int storage_share(ArgandStorage* s, int32_t handles) {
  if (ARGAND_DEVICE_TYPE(s->device) != ARGAND_CPU)
    return error(ARGAND_DEVICE_ERROR, "share_memory_: got memory of device '%s', expected the CPU's; call cpu() first",
                 device_text(s->device).c_str());
  if (storage_descriptor(s) >= 0) return 0;
  if (const int32_t others = storage_keepers(s, handles))
    return error(ARGAND_RUNTIME_ERROR,
                 "share_memory_: got a storage of %zu bytes whose address %d others keep (NumPy arrays, other libraries, slices of it), expected "
                 "tensors alone, as it has to move; delete those, or share a clone()",
                 s->nbytes, others);
  const size_t block = stays(s) ? owned_block_bytes(s) : 0;
  const size_t length = whole_pages(block ? block : s->nbytes);
  int descriptor = -1;
  void* data = nullptr;
  Mapping* mapping = nullptr;
  if (int status = make_file("share_memory_", length, s->data, s->nbytes, &descriptor)) return status;
  if (int status = map_file("share_memory_", descriptor, length, block ? s->data : nullptr, block, &data, &mapping)) return status;
  const ArgandStorage former = *s;
  s->data = data;
  s->deleter = release_shared;
  s->context = mapping;
  s->flags = 0;
  if (!block) {
    Owners owners{s, 0, true};
    visit_tensors(visit_owner, &owners);
    storage_release_memory(&former);
  }
  return 0;
}

constexpr ArgandSharedMemory kSharedMemory = {storage_new_shared, storage_open, storage_share, storage_keepers, storage_descriptor};

}  // namespace

bool storage_maps_shared(const ArgandStorage* s) { return s->deleter == release_shared; }

}  // namespace argand::core

extern "C" __attribute__((visibility("default"))) const ArgandSharedMemory* argand_shared_memory(void) { return &argand::core::kSharedMemory; }
