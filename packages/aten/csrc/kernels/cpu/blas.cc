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
void* library = nullptr;
Blas table;

void* find(const char* op, const char* name, void* opened) {
  const std::string symbol = std::string("scipy_") + name + "64_";
  void* const f = dlsym(opened, symbol.c_str());
  if (!f) fail(ARGAND_RUNTIME_ERROR, "%s: OpenBLAS library '%s' has no symbol %s; install scipy-openblas64", op, path.c_str(), symbol.c_str());
  return f;
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
  // One thread, since the library would else start a pool of its own; and the kernels of our tier (ARGAND_CPU_TIER), whatever OPENBLAS_CORETYPE
  // tells other users of OpenBLAS in this process.
  static const char* const kCores[3] = {"Nehalem", "Haswell", "SkylakeX"};
  const ScopedVariable threads("OPENBLAS_NUM_THREADS", "1");
  const ScopedVariable core("OPENBLAS_CORETYPE", kCores[cpu_tier()]);
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
