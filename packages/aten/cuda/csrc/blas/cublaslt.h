// The part of cuBLASLt's C interface that is used here, declared from its public documentation
// (docs.nvidia.com/cuda/cublas, "Using the cuBLASLt API"); the library is opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packages/aten/cuda/csrc/core/dynamic_library.h"

namespace argand::cuda::lt {

enum DataType : int32_t { kR32F = 0, kR64F = 1, kR16F = 2, kC32F = 4, kC64F = 5, kR16BF = 14 };
enum ComputeType : int32_t { kCompute32F = 68, kCompute64F = 70, kCompute32FFastTf32 = 77 };
enum Operation : int32_t { kOpN = 0, kOpT = 1 };
enum DescAttribute : int32_t { kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8 };
enum LayoutAttribute : int32_t { kLayoutBatchCount = 5, kLayoutStridedBatchOffset = 6 };
enum PreferenceAttribute : int32_t {
  kPreferenceWorkspace = 1,
  kPreferenceAlignA = 5,
  kPreferenceAlignB = 6,
  kPreferenceAlignC = 7,
  kPreferenceAlignD = 8
};
enum Epilogue : uint32_t { kEpilogueDefault = 1, kEpilogueBias = 4 };

struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace;  // bytes
  int32_t state;     // 0: can be used
  float waves;
  int32_t reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

using Handle = void*;
using Desc = void*;
using Layout = void*;
using Preference = void*;

// All functions return a status, 0 for success.
struct Library {
  int (*create)(Handle*);
  int (*desc_create)(Desc*, int32_t compute, int32_t scale);
  int (*desc_destroy)(Desc);
  int (*desc_set)(Desc, int32_t attribute, const void* value, size_t bytes);
  int (*layout_create)(Layout*, int32_t type, uint64_t rows, uint64_t cols, int64_t ld);
  int (*layout_destroy)(Layout);
  int (*layout_set)(Layout, int32_t attribute, const void* value, size_t bytes);
  int (*preference_create)(Preference*);
  int (*preference_destroy)(Preference);
  int (*preference_set)(Preference, int32_t attribute, const void* value, size_t bytes);
  int (*heuristic)(Handle, Desc, Layout a, Layout b, Layout c, Layout d, Preference, int requested, HeuristicResult*, int* found);
  int (*matmul)(Handle, Desc, const void* alpha, const void* a, Layout, const void* b, Layout, const void* beta, const void* c, Layout, void* d,
                Layout, const Algorithm*, void* workspace, size_t workspace_bytes, void* stream);
  size_t (*version)();
};

// Opened at the first call; throws where there is none.
const Library& library();

// The handle of a device, made at its first use; the device must be current.
Handle handle(int device);

// Throws with cuBLASLt's name for a status that is not 0.
void check_status(const char* op, const char* call, int status);

LibrarySearch& search();

}  // namespace argand::cuda::lt
