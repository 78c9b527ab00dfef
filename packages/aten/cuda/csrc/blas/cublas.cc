#include "packages/aten/cuda/csrc/blas/cublas.h"

#include <array>
#include <string>

#include "packages/aten/cuda/csrc/blas/cublaslt.h"
#include "packages/aten/cuda/csrc/core/device_slot.h"

namespace argand::cuda::blas {

LibrarySearch& search() {
  static LibrarySearch where{"cuBLAS", "pip install nvidia-cublas", {"libcublas.so.13", "libcublas.so.12"}, ARGAND_NOT_IMPLEMENTED_ERROR};
  return where;
}

namespace {

Library load() {
  const DynamicLibrary file(search());
  Library l{};
  file.find(l.create, "cublasCreate_v2");
  file.find(l.set_stream, "cublasSetStream_v2");
  file.find(l.property, "cublasGetProperty");
  for (int i = 0; i < 4; i++) file.find(l.trsm[i], (std::string("cublas") + "SDCZ"[i] + "trsm_v2").c_str());
  return l;
}

}  // namespace

const Library& library() {
  static const Library l = load();  // a failure is tried again at the next call
  return l;
}

Handle handle(int device) {
  static thread_local std::array<Handle, kDeviceSlots> handles;  // never destroyed: the device may be gone by then
  Handle& h = handles[device_slot("cuda", device)];
  if (!h) lt::check_status("cuda", "cublasCreate", library().create(&h));
  return h;
}

}  // namespace argand::cuda::blas
