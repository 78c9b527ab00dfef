#include "packages/aten/csrc/kernels/cpu/blas.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "packages/aten/csrc/kernels/cpu/tiers.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cpu {
namespace {

std::mutex mutex;
std::string path;
std::atomic<bool> resolved{false};  // table is final
void* library = nullptr;
Blas table;

void* find(const char* op, const char* name, void* opened) {
  const std::string symbol = std::string("scipy_") + name + "64_";
  void* const f = dlsym(opened, symbol.c_str());
  if (!f) fail(ARGAND_RUNTIME_ERROR, "%s: OpenBLAS library '%s' has no symbol %s; install scipy-openblas64", op, path.c_str(), symbol.c_str());
  return f;
}
constexpr size_t kLibraryBytes = size_t{160} << 20;  // of address space: the library, those it needs, its first work buffer
constexpr size_t kBufferBytes = size_t{64} << 20;    // two work buffers: routines of LAPACK call others

std::atomic<int> running{0}, most_running{0};

void require_memory(const char* op, size_t bytes) {
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    fail(ARGAND_OUT_OF_MEMORY_ERROR, "%s: could not reserve %zu MiB for OpenBLAS and its work memory; free memory, or raise the process's limit", op,
         bytes >> 20);
  munmap(p, bytes);
}

template <class F>
void find(void* opened, const char* name, F& f) {
  f = reinterpret_cast<F>(find("gemm", name, opened));
}

// Sets an environment variable for a scope: the library reads its settings once, while it is loaded.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old, was_set_ = true;
    setenv(name, value, 1);
  }
  ~ScopedVariable() {
    if (was_set_)
      setenv(name_, old_.c_str(), 1);
    else
      unsetenv(name_);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::string old_;
  bool was_set_ = false;
};

void load() {
  require_memory("gemm", kLibraryBytes);
  // One thread, since the library would else start a pool of its own; and the kernels of our tier (ARGAND_CPU_TIER), whatever OPENBLAS_CORETYPE
  // tells other users of OpenBLAS in this process.
  static const char* const kCores[3] = {"Nehalem", "Haswell", "SkylakeX"};
  const ScopedVariable threads("OPENBLAS_NUM_THREADS", "1");
  const ScopedVariable core("OPENBLAS_CORETYPE", kCores[cpu_tier()]);
  // OpenBLAS 0.3.34 gives Haswell's kernels deeper blocks than their buffers on the stack hold, where it finds AVX-512 and 1 MiB of second-level
  // cache.
  std::optional<ScopedVariable> cache;
  if (cpu_tier() == 1 && __builtin_cpu_supports("avx512f")) cache.emplace("OPENBLAS_L2_SIZE", "512");
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) fail(ARGAND_RUNTIME_ERROR, "gemm: cannot load OpenBLAS: %s; reinstall scipy-openblas64", dlerror());
  void (*set_num_threads)(int) = nullptr;
  find(opened, "openblas_set_num_threads", set_num_threads);
  find(opened, "cblas_sgemm", table.sgemm);
  find(opened, "cblas_dgemm", table.dgemm);
  find(opened, "cblas_cgemm", table.cgemm);
  find(opened, "cblas_zgemm", table.zgemm);
  set_num_threads(1);
  library = opened;
}

}  // namespace

const Blas* blas() {
  if (!resolved.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex);
    if (!resolved.load(std::memory_order_relaxed)) {
      if (!path.empty()) load();
      resolved.store(true, std::memory_order_release);
    }
  }
  return library ? &table : nullptr;
}

BlasCall::BlasCall(const char* op) {
  const int now = running.fetch_add(1, std::memory_order_relaxed) + 1;
  int most = most_running.load(std::memory_order_relaxed);
  if (now <= most) return;
  try {
    require_memory(op, kBufferBytes);
  } catch (...) {
    running.fetch_sub(1, std::memory_order_relaxed);
    throw;
  }
  while (most < now && !most_running.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

BlasCall::~BlasCall() { running.fetch_sub(1, std::memory_order_relaxed); }

void* blas_function(const char* op, const char* name) {
  if (!blas()) fail(ARGAND_RUNTIME_ERROR, "%s: there is no LAPACK: OpenBLAS was not found; install scipy-openblas64", op);
  return find(op, name, library);
}

}  // namespace argand::kernels::cpu

int argand_aten_set_blas(const char* new_path) {
  using namespace argand::kernels::cpu;
  return argand::guarded([&] {
    std::lock_guard lock(mutex);
    if (resolved && path != new_path)
      argand::fail(ARGAND_RUNTIME_ERROR, "set_blas: got '%s', but matrix products already run with '%s'; call it before the first one", new_path,
                   path.empty() ? "built-in kernels" : path.c_str());
    path = new_path;
  });
}
