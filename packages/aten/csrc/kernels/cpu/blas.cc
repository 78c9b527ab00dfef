#include "packages/aten/csrc/kernels/cpu/blas.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "packages/aten/csrc/kernels/cpu/tiers.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::kernels::cpu {
namespace {

std::mutex mutex;
std::string path;
std::atomic<bool> resolved{false};  // table is final
bool available = false;
Blas table;

template <class F>
void find(void* library, const char* name, F& f) {
  f = reinterpret_cast<F>(dlsym(library, name));
  if (!f) fail(ARGAND_RUNTIME_ERROR, "gemm: OpenBLAS library '%s' has no symbol %s; install scipy-openblas64", path.c_str(), name);
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
  // One thread, since the library would else start a pool of its own; and the kernels of our tier (ARGAND_CPU_TIER), whatever OPENBLAS_CORETYPE
  // tells other users of OpenBLAS in this process.
  static const char* const kCores[3] = {"Nehalem", "Haswell", "SkylakeX"};
  const ScopedVariable threads("OPENBLAS_NUM_THREADS", "1");
  const ScopedVariable core("OPENBLAS_CORETYPE", kCores[cpu_tier()]);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(ARGAND_RUNTIME_ERROR, "gemm: cannot load OpenBLAS: %s; reinstall scipy-openblas64", dlerror());
  void (*set_num_threads)(int) = nullptr;
  find(library, "scipy_openblas_set_num_threads64_", set_num_threads);
  find(library, "scipy_cblas_sgemm64_", table.sgemm);
  find(library, "scipy_cblas_dgemm64_", table.dgemm);
  find(library, "scipy_cblas_cgemm64_", table.cgemm);
  find(library, "scipy_cblas_zgemm64_", table.zgemm);
  set_num_threads(1);
  available = true;
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
  return available ? &table : nullptr;
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
