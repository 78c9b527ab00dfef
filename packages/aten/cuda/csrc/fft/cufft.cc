#include "packages/aten/cuda/csrc/fft/cufft.h"

namespace argand::cuda::fft {

LibrarySearch& search() {
  static LibrarySearch where{"cuFFT", "pip install nvidia-cufft", {"libcufft.so.12", "libcufft.so.11"}, ARGAND_NOT_IMPLEMENTED_ERROR};
  return where;
}

namespace {

Library load() {
  const DynamicLibrary file(search());
  Library l{};
  file.find(l.create, "cufftCreate");
  file.find(l.destroy, "cufftDestroy");
  file.find(l.set_auto_allocation, "cufftSetAutoAllocation");
  file.find(l.make_plan_many, "cufftXtMakePlanMany");
  file.find(l.set_work_area, "cufftSetWorkArea");
  file.find(l.set_stream, "cufftSetStream");
  file.find(l.execute, "cufftXtExec");
  file.find(l.version, "cufftGetVersion");
  return l;
}

const char* status_name(int status) {
  switch (status) {
    case 1:
      return "INVALID_PLAN";
    case 2:
      return "ALLOC_FAILED";
    case 4:
      return "INVALID_VALUE";
    case 5:
      return "INTERNAL_ERROR";
    case 6:
      return "EXEC_FAILED";
    case 7:
      return "SETUP_FAILED";
    case 8:
      return "INVALID_SIZE";
    default:
      return "unknown status";
  }
}

}  // namespace

const Library& library() {
  static const Library l = load();  // a failure is tried again at the next call
  return l;
}

void check_status(const char* op, const char* call, int status) {
  if (__builtin_expect(status != 0, 0))
    fail(status == 2 ? ARGAND_OUT_OF_MEMORY_ERROR : ARGAND_RUNTIME_ERROR, "%s: %s failed with CUFFT_%s (%d)", op, call, status_name(status), status);
}

}  // namespace argand::cuda::fft
