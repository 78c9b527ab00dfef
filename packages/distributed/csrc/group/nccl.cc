#include "packages/distributed/csrc/group/nccl.h"

#include <dlfcn.h>

#include <mutex>

#include "packages/distributed/csrc/store/error.h"

namespace argand::distributed::nccl {

const Library& open(const std::vector<std::string>& candidates) {
  static std::mutex mutex;
  static Library library;
  static bool opened = false;
  std::lock_guard lock(mutex);
  if (opened) return library;
  std::string tried;
  for (const auto& path : candidates) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      tried += std::string("\n  ") + ::dlerror();
      continue;
    }
    Library found{};
    const char* missing = nullptr;
#define ARGAND_SYMBOL(name)                                                    \
  found.name = reinterpret_cast<decltype(found.name)>(::dlsym(handle, #name)); \
  if (!found.name) missing = #name;
    ARGAND_SYMBOL(ncclGetVersion)
    ARGAND_SYMBOL(ncclGetUniqueId)
    ARGAND_SYMBOL(ncclCommInitRank)
    ARGAND_SYMBOL(ncclCommDestroy)
    ARGAND_SYMBOL(ncclCommAbort)
    ARGAND_SYMBOL(ncclCommGetAsyncError)
    ARGAND_SYMBOL(ncclGetErrorString)
    ARGAND_SYMBOL(ncclAllReduce)
    ARGAND_SYMBOL(ncclReduce)
    ARGAND_SYMBOL(ncclBroadcast)
    ARGAND_SYMBOL(ncclAllGather)
    ARGAND_SYMBOL(ncclReduceScatter)
    ARGAND_SYMBOL(ncclSend)
    ARGAND_SYMBOL(ncclRecv)
    ARGAND_SYMBOL(ncclGroupStart)
    ARGAND_SYMBOL(ncclGroupEnd)
#undef ARGAND_SYMBOL
    if (missing) {
      tried += "\n  " + path + ": has no " + missing;
      continue;
    }
    library = found;
    opened = true;
    return library;
  }
  throw DistError(
      DistErrorKind::kBackend,
      "nccl: the library could not be opened; install NVIDIA's wheel (nvidia-nccl-cu13), or name the file in ARGAND_NCCL_LIBRARY" + tried);
}

}  // namespace argand::distributed::nccl
