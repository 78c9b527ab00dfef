// The CUDA driver library, loaded at run time: the types and functions of it that are used here, and its errors.
// Names and numbers are the driver API's (docs.nvidia.com/cuda/cuda-driver-api); no header of CUDA is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packages/c10/csrc/core/errors.h"

namespace argand::core::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphNode = struct CUgraphNode_st*;

enum : CUresult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidContext = 201,
  kEccUncorrectable = 214,
  kNvlinkUncorrectable = 220,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
};

enum : int {  // CUdevice_attribute
  kMaxThreadsPerBlock = 1,
  kSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kClockRate = 13,
  kMultiprocessorCount = 16,
  kIntegrated = 18,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kMemoryClockRate = 36,
  kMemoryBusWidth = 37,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kPciDomainId = 50,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kSharedMemoryPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kSharedMemoryPerBlockOptin = 97,
};
enum : int { kFuncMaxThreads = 0, kFuncSharedBytes = 1, kFuncLocalBytes = 3, kFuncRegisters = 4, kFuncMaxDynamicShared = 8 };  // CUfunction_attribute
enum : unsigned { kStreamNonBlocking = 1, kEventBlocking = 1, kEventNoTiming = 2, kEventInterprocess = 4, kHostPortable = 1 };
enum : int { kPointerMemoryType = 2, kMemoryTypeHost = 1 };
enum : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };

#define ARGAND_CUDA_FUNCTIONS(F)                                                                                                                  \
  F(cuInit, cuInit, (unsigned))                                                                                                                   \
  F(cuDriverGetVersion, cuDriverGetVersion, (int*))                                                                                               \
  F(cuGetErrorName, cuGetErrorName, (CUresult, const char**))                                                                                     \
  F(cuGetErrorString, cuGetErrorString, (CUresult, const char**))                                                                                 \
  F(cuDeviceGetCount, cuDeviceGetCount, (int*))                                                                                                   \
  F(cuDeviceGet, cuDeviceGet, (CUdevice*, int))                                                                                                   \
  F(cuDeviceGetName, cuDeviceGetName, (char*, int, CUdevice))                                                                                     \
  F(cuDeviceGetAttribute, cuDeviceGetAttribute, (int*, int, CUdevice))                                                                            \
  F(cuDeviceGetUuid, cuDeviceGetUuid, (uint8_t*, CUdevice))                                                                                       \
  F(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t*, CUdevice))                                                                                   \
  F(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int*, CUdevice, CUdevice))                                                                     \
  F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                                                                   \
  F(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext))                                                                                                \
  F(cuCtxSynchronize, cuCtxSynchronize, ())                                                                                                       \
  F(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, (CUcontext, unsigned))                                                                          \
  F(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int*, int*))                                                                       \
  F(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr*, size_t))                                                                                            \
  F(cuMemFree, cuMemFree_v2, (CUdeviceptr))                                                                                                       \
  F(cuMemGetInfo, cuMemGetInfo_v2, (size_t*, size_t*))                                                                                            \
  F(cuMemHostAlloc, cuMemHostAlloc, (void**, size_t, unsigned))                                                                                   \
  F(cuMemFreeHost, cuMemFreeHost, (void*))                                                                                                        \
  F(cuPointerGetAttribute, cuPointerGetAttribute, (void*, int, CUdeviceptr))                                                                      \
  F(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void*, size_t, CUstream))                                                        \
  F(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void*, CUdeviceptr, size_t, CUstream))                                                              \
  F(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                                        \
  F(cuMemcpyPeerAsync, cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))                                     \
  F(cuMemsetD8Async, cuMemsetD8Async, (CUdeviceptr, uint8_t, size_t, CUstream))                                                                   \
  F(cuMemsetD32Async, cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))                                                                \
  F(cuStreamCreateWithPriority, cuStreamCreateWithPriority, (CUstream*, unsigned, int))                                                           \
  F(cuStreamSynchronize, cuStreamSynchronize, (CUstream))                                                                                         \
  F(cuStreamQuery, cuStreamQuery, (CUstream))                                                                                                     \
  F(cuStreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                                                          \
  F(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, int))                                                                               \
  F(cuStreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph*))                                                                                 \
  F(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo, (CUstream, int*, uint64_t*))                                                                  \
  F(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int*))                                                                 \
  F(cuEventCreate, cuEventCreate, (CUevent*, unsigned))                                                                                           \
  F(cuEventRecord, cuEventRecord, (CUevent, CUstream))                                                                                            \
  F(cuEventQuery, cuEventQuery, (CUevent))                                                                                                        \
  F(cuEventSynchronize, cuEventSynchronize, (CUevent))                                                                                            \
  F(cuEventElapsedTime, cuEventElapsedTime, (float*, CUevent, CUevent))                                                                           \
  F(cuEventDestroy, cuEventDestroy_v2, (CUevent))                                                                                                 \
  F(cuModuleLoadData, cuModuleLoadData, (CUmodule*, const void*))                                                                                 \
  F(cuModuleUnload, cuModuleUnload, (CUmodule))                                                                                                   \
  F(cuModuleGetFunction, cuModuleGetFunction, (CUfunction*, CUmodule, const char*))                                                               \
  F(cuFuncSetAttribute, cuFuncSetAttribute, (CUfunction, int, int))                                                                               \
  F(cuFuncGetAttribute, cuFuncGetAttribute, (int*, int, CUfunction))                                                                              \
  F(cuLaunchKernel, cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**)) \
  F(cuGraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec*, CUgraph, unsigned long long))                                                 \
  F(cuGraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                                                                                        \
  F(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec))                                                                                        \
  F(cuGraphDestroy, cuGraphDestroy, (CUgraph))

struct Driver {
#define ARGAND_CUDA_POINTER(name, symbol, types) CUresult(*name) types = nullptr;
  ARGAND_CUDA_FUNCTIONS(ARGAND_CUDA_POINTER)
#undef ARGAND_CUDA_POINTER
  int device_count = 0;
  std::string problem;  // why there is no device; empty: there is one
};

// Loads the library at the first call: ARGAND_CUDA_DRIVER (a path), else libcuda.so.1. Usable exactly if `problem` is empty.
const Driver& driver();

}  // namespace argand::core::cuda
