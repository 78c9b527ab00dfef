// Shared memory where mapping a file fails.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "packages/c10/csrc/abi/shared_memory.h"
#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {
enum class Fault { kNone, kRefused, kTakenAway } fault = Fault::kNone;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInterposes = false;
#else
constexpr bool kInterposes = true;
// In place of the system's: the kernel may take away what a mapping was to lie over before it fails.
extern "C" void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) noexcept {
  if (fault != Fault::kNone && (flags & MAP_FIXED) && descriptor >= 0) {
    if (fault == Fault::kTakenAway) munmap(address, length);
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, descriptor, offset));
}
#endif

namespace {

void test_memory_is_as_before_where_it_could_not_be_mapped(Fault kind) {
  constexpr int64_t kNumel = 1 << 20;
  Tensor t = empty({kNumel}, ARGAND_FLOAT32);
  for (int64_t i = 0; i < kNumel; i++) t.data<float>()[i] = static_cast<float>(i);
  const void* address = t->data;
  const ArgandSharedMemory* shared = argand_shared_memory();
  fault = kind;
  CHECK_FAILS(shared->storage_share(t->storage, 0), ARGAND_OUT_OF_MEMORY_ERROR, "share_memory_: could not get");
  fault = Fault::kNone;
  CHECK(t->data == address && shared->storage_descriptor(t->storage) < 0);
  for (int64_t i = 0; i < kNumel; i++) CHECK(t.data<float>()[i] == static_cast<float>(i));
  CHECK_EQ(shared->storage_share(t->storage, 0), 0);  // and can be shared later
  CHECK(t->data == address && t.data<float>()[kNumel - 1] == kNumel - 1);
}

}  // namespace

int main() {
  api = argand_api();
  if (kInterposes) {
    test_memory_is_as_before_where_it_could_not_be_mapped(Fault::kRefused);
    test_memory_is_as_before_where_it_could_not_be_mapped(Fault::kTakenAway);
  }
  return 0;
}
