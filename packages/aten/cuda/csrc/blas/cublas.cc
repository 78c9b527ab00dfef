#include "packages/aten/cuda/csrc/blas/cublas.h"

#include <string>

#include "packages/aten/cuda/csrc/blas/cublaslt.h"
#include "packages/aten/cuda/csrc/core/handle_pool.h"

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
  for (int i = 0; i < 4; i++) {
    const std::string of = std::string("cublas") + "SDCZ"[i];
    file.find(l.trsm[i], (of + "trsm_v2").c_str());
    file.find(l.getrf_batched[i], (of + "getrfBatched").c_str());
    file.find(l.getrs_batched[i], (of + "getrsBatched").c_str());
  }
  return l;
}

}  // namespace

const Library& library() {
  static const Library l = load();  // a failure is tried again at the next call
  return l;
}

Handle handle(ArgandDevice device) {
  struct Blas;
  return HandlePool<Blas, Handle>::get(ARGAND_DEVICE_INDEX(device), current_stream(device), [](void* stream) {
    Handle h;
    lt::check_status("cuda", "cublasCreate", library().create(&h));
    lt::check_status("cuda", "cublasSetStream", library().set_stream(h, stream));
    return h;
  });
}

}  // namespace argand::cuda::blas
