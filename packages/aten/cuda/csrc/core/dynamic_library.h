// A shared library that is opened at its first use, from where NVIDIA's wheels have it or where the loader finds it.
#pragma once

#include <dlfcn.h>

#include <string>
#include <vector>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::cuda {

// Where a library may be, best first: paths, then names for the loader's own search. Python sets it before the first use.
struct LibrarySearch {
  const char* name;    // in errors: "cuBLASLt"
  const char* remedy;  // what to install
  std::vector<std::string> candidates;
  ArgandErrorKind missing = ARGAND_RUNTIME_ERROR;  // NOT_IMPLEMENTED: the operator then runs on the CPU
};

class DynamicLibrary {
 public:
  // Throws the search's error with what was tried and the remedy.
  explicit DynamicLibrary(const LibrarySearch& search) : name_(search.name) {
    std::string tried;
    for (const std::string& candidate : search.candidates) {
      handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      const char* why = dlerror();
      tried += "\n  " + candidate + ": " + (why ? why : "unknown error");
    }
    fail(search.missing, "cuda: %s is not installed, or cannot be loaded; %s. Tried:%.1500s", search.name, search.remedy, tried.c_str());
  }

  template <class F>
  void find(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(dlsym(handle_, symbol));
    if (!function) fail(ARGAND_RUNTIME_ERROR, "cuda: %s has no function %s; install a newer one", name_, symbol);
  }

 private:
  const char* name_;
  void* handle_ = nullptr;  // never closed: handles and kernels live as long as the process
};

}  // namespace argand::cuda
