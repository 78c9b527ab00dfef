// The part of cuFFT's C interface that is used here, declared from its public documentation (docs.nvidia.com/cuda/cufft,
// "cuFFT API Reference"); the library is opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packages/aten/cuda/csrc/core/dynamic_library.h"

namespace argand::cuda::fft {

enum DataType : int32_t { kR32F = 0, kR64F = 1, kC32F = 4, kC64F = 5 };
enum Direction : int32_t { kForward = -1, kInverse = 1 };

using Handle = int32_t;

// All functions return a status, 0 for success.
struct Library {
  int (*create)(Handle*);
  int (*destroy)(Handle);
  int (*set_auto_allocation)(Handle, int automatic);
  int (*make_plan_many)(Handle, int rank, long long* sizes, long long* in_embed, long long in_stride, long long in_distance, int32_t in_type,
                        long long* out_embed, long long out_stride, long long out_distance, int32_t out_type, long long batch, size_t* workspace,
                        int32_t compute_type);
  int (*set_work_area)(Handle, void*);
  int (*set_stream)(Handle, void*);
  int (*execute)(Handle, void* in, void* out, int direction);
  int (*version)(int*);
};

// Opened at the first call; throws NotImplementedError where there is none.
const Library& library();

// Throws with cuFFT's name for a status that is not 0.
void check_status(const char* op, const char* call, int status);

LibrarySearch& search();

}  // namespace argand::cuda::fft
