// Kernels by name, and their launch on the current stream of the current device.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::cuda {

inline constexpr int kMaxDevices = 16;

// A specialization's code on one device.
struct Code {
  void* function;
  uint32_t threads, shared;  // of a block; shared memory in bytes
};

// A specialization of a Triton kernel: valid for ever, for every device. Its code is loaded at the first launch on a device.
struct Kernel {
  std::string name;
  mutable std::atomic<const Code*> code[kMaxDevices] = {};
};

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

// The specialization of that name ("softmax_forward;T=bfloat16;BLOCK=1024"). Callers on hot paths keep the pointer.
const Kernel* kernel(std::string_view name);

// Its code on the current device: from the wheel's archive, the disk cache, or compiled now. Throws where it cannot be compiled.
const Code& load(const Kernel* kernel, int device);

// Launches with ready parameters (pointers to values), the two scratch pointers included.
void launch_parameters(const Kernel* kernel, Grid grid, void** parameters);

// Launches with the arguments of the parameters that are no constants, in order: addresses as `const void*` (or any pointer), int32_t,
// int64_t, float, double, exactly as the signature has them. An empty grid launches nothing.
template <class... A>
inline void launch(const Kernel* kernel, Grid grid, const A&... arguments) {
  static_assert(((std::is_pointer_v<A> || std::is_same_v<A, int32_t> || std::is_same_v<A, int64_t> || std::is_same_v<A, uint32_t> ||
                  std::is_same_v<A, uint64_t> || std::is_same_v<A, float> || std::is_same_v<A, double>)&&...),
                "launch: parameters are pointers, 32- and 64-bit integers, float and double");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const void* scratch[2] = {nullptr, nullptr};
  void* parameters[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., &scratch[0], &scratch[1]};
  launch_parameters(kernel, grid, parameters);
}

// Compiles a specialization for an architecture ("sm_90"): a status, and on success the code object and its description, to be freed by
// free_array. Set by the Python side.
using Compile = int (*)(const char* name, const char* architecture, void** image, size_t* nbytes, uint32_t* threads, uint32_t* shared);
void set_compiler(Compile compile);

// The archive of code objects for an architecture; read when it is first needed.
void set_archive(const char* architecture, const char* path);

}  // namespace argand::cuda
