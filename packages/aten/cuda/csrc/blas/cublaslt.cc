#include "packages/aten/cuda/csrc/blas/cublaslt.h"

#include <mutex>

#include "packages/aten/cuda/csrc/core/device_slot.h"

namespace argand::cuda::lt {

LibrarySearch& search() {
  static LibrarySearch where{"cuBLASLt", "pip install nvidia-cublas", {"libcublasLt.so.13", "libcublasLt.so.12"}};
  return where;
}

namespace {

Library load() {
  const DynamicLibrary file(search());
  Library l{};
  file.find(l.create, "cublasLtCreate");
  file.find(l.desc_create, "cublasLtMatmulDescCreate");
  file.find(l.desc_destroy, "cublasLtMatmulDescDestroy");
  file.find(l.desc_set, "cublasLtMatmulDescSetAttribute");
  file.find(l.layout_create, "cublasLtMatrixLayoutCreate");
  file.find(l.layout_destroy, "cublasLtMatrixLayoutDestroy");
  file.find(l.layout_set, "cublasLtMatrixLayoutSetAttribute");
  file.find(l.preference_create, "cublasLtMatmulPreferenceCreate");
  file.find(l.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  file.find(l.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  file.find(l.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  file.find(l.matmul, "cublasLtMatmul");
  file.find(l.version, "cublasLtGetVersion");
  return l;
}

const char* status_name(int status) {
  switch (status) {
    case 1:
      return "NOT_INITIALIZED";
    case 3:
      return "ALLOC_FAILED";
    case 7:
      return "INVALID_VALUE";
    case 8:
      return "ARCH_MISMATCH";
    case 11:
      return "MAPPING_ERROR";
    case 13:
      return "EXECUTION_FAILED";
    case 14:
      return "INTERNAL_ERROR";
    case 15:
      return "NOT_SUPPORTED";
    default:
      return "unknown status";
  }
}

}  // namespace

const Library& library() {
  static const Library l = load();  // a failure is tried again at the next call
  return l;
}

Handle handle(int device) {
  static std::mutex mutex;
  static Handle handles[kMaxDevices];
  const size_t slot = device_slot("cuda", device);
  Handle found = __atomic_load_n(&handles[slot], __ATOMIC_ACQUIRE);
  if (found) return found;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!handles[slot]) {
    check_status("cuda", "cublasLtCreate", library().create(&found));
    __atomic_store_n(&handles[slot], found, __ATOMIC_RELEASE);
  }
  return handles[slot];
}

void check_status(const char* op, const char* call, int status) {
  if (__builtin_expect(status != 0, 0))
    fail(status == 3 ? ARGAND_OUT_OF_MEMORY_ERROR : ARGAND_RUNTIME_ERROR, "%s: %s failed with CUBLAS_STATUS_%s (%d)", op, call, status_name(status),
         status);
}

}  // namespace argand::cuda::lt
