#include "packages/aten/cuda/csrc/solver/cusolver.h"

#include <string>

#include "packages/aten/cuda/csrc/core/handle_pool.h"

namespace argand::cuda::solver {

LibrarySearch& search() {
  static LibrarySearch where{"cuSOLVER", "pip install nvidia-cusolver", {"libcusolver.so.12", "libcusolver.so.11"}, ARGAND_NOT_IMPLEMENTED_ERROR};
  return where;
}

namespace {

Library load() {
  const DynamicLibrary file(search());
  Library l{};
  file.find(l.create, "cusolverDnCreate");
  file.find(l.set_stream, "cusolverDnSetStream");
  file.find(l.params_create, "cusolverDnCreateParams");
  file.find(l.jacobi_create, "cusolverDnCreateGesvdjInfo");
  file.find(l.property, "cusolverGetProperty");
  file.find(l.getrf_size, "cusolverDnXgetrf_bufferSize");
  file.find(l.getrf, "cusolverDnXgetrf");
  file.find(l.getrs, "cusolverDnXgetrs");
  file.find(l.potrf_size, "cusolverDnXpotrf_bufferSize");
  file.find(l.potrf, "cusolverDnXpotrf");
  file.find(l.geqrf_size, "cusolverDnXgeqrf_bufferSize");
  file.find(l.geqrf, "cusolverDnXgeqrf");
  file.find(l.syevd_size, "cusolverDnXsyevd_bufferSize");
  file.find(l.syevd, "cusolverDnXsyevd");
  for (int i = 0; i < 4; i++) {
    const std::string of = std::string("cusolverDn") + "SDCZ"[i], orthogonal = i < 2 ? "or" : "un";  // unitary where numbers are complex
    Typed& t = l.typed[i];
    file.find(t.orgqr_size, (of + orthogonal + "gqr_bufferSize").c_str());
    file.find(t.orgqr, (of + orthogonal + "gqr").c_str());
    file.find(t.ormqr_size, (of + orthogonal + "mqr_bufferSize").c_str());
    file.find(t.ormqr, (of + orthogonal + "mqr").c_str());
    file.find(t.gesvdj_size, (of + "gesvdj_bufferSize").c_str());
    file.find(t.gesvdj, (of + "gesvdj").c_str());
  }
  return l;
}

const char* status_name(int status) {
  switch (status) {
    case 1:
      return "NOT_INITIALIZED";
    case 2:
      return "ALLOC_FAILED";
    case 3:
      return "INVALID_VALUE";
    case 4:
      return "ARCH_MISMATCH";
    case 6:
      return "EXECUTION_FAILED";
    case 7:
      return "INTERNAL_ERROR";
    case 9:
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

Session session(ArgandDevice device) {
  struct Solver;
  return HandlePool<Solver, Session>::get(ARGAND_DEVICE_INDEX(device), current_stream(device), [](void* stream) {
    const Library& l = library();
    Session s;
    check_status("cuda", "cusolverDnCreate", l.create(&s.handle));
    check_status("cuda", "cusolverDnSetStream", l.set_stream(s.handle, stream));
    check_status("cuda", "cusolverDnCreateParams", l.params_create(&s.params));
    check_status("cuda", "cusolverDnCreateGesvdjInfo", l.jacobi_create(&s.jacobi));
    return s;
  });
}

void check_status(const char* op, const char* call, int status) {
  if (__builtin_expect(status != 0, 0))
    fail(status == 2 ? ARGAND_OUT_OF_MEMORY_ERROR : ARGAND_RUNTIME_ERROR, "%s: %s failed with CUSOLVER_STATUS_%s (%d)", op, call, status_name(status),
         status);
}

}  // namespace argand::cuda::solver
