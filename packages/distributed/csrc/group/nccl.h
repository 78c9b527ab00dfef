// The part of NCCL's interface that is used, declared from its public documentation; the library is opened at run time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace argand::distributed::nccl {

struct UniqueId {
  char internal[128];
};
using Comm = struct OpaqueComm*;
using Stream = void*;  // cudaStream_t, which is the driver's CUstream
enum Result : int { kSuccess = 0, kInProgress = 7 };
enum DataType : int { kInt8 = 0, kUint8 = 1, kInt32 = 2, kInt64 = 4, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9 };
enum RedOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

struct Library {
  int (*ncclGetVersion)(int* version);
  int (*ncclGetUniqueId)(UniqueId* id);
  int (*ncclCommInitRank)(Comm* comm, int n, UniqueId id, int rank);
  int (*ncclCommDestroy)(Comm comm);
  int (*ncclCommAbort)(Comm comm);
  int (*ncclCommGetAsyncError)(Comm comm, int* result);
  const char* (*ncclGetErrorString)(int result);
  int (*ncclAllReduce)(const void* send, void* receive, size_t n, int dtype, int op, Comm comm, Stream stream);
  int (*ncclReduce)(const void* send, void* receive, size_t n, int dtype, int op, int root, Comm comm, Stream stream);
  int (*ncclBroadcast)(const void* send, void* receive, size_t n, int dtype, int root, Comm comm, Stream stream);
  int (*ncclAllGather)(const void* send, void* receive, size_t n, int dtype, Comm comm, Stream stream);
  int (*ncclReduceScatter)(const void* send, void* receive, size_t n, int dtype, int op, Comm comm, Stream stream);
  int (*ncclSend)(const void* send, size_t n, int dtype, int peer, Comm comm, Stream stream);
  int (*ncclRecv)(void* receive, size_t n, int dtype, int peer, Comm comm, Stream stream);
  int (*ncclGroupStart)();
  int (*ncclGroupEnd)();
};

// Opens the first of these files that can be opened, once; throws DistError with what was tried.
const Library& open(const std::vector<std::string>& candidates);

}  // namespace argand::distributed::nccl
