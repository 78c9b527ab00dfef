// Kernels by name, and their launch on the current stream of the current device.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <type_traits>

#include "packages/c10/csrc/abi/devices.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace argand::cuda {

// A specialization's code on one device.
struct Code {
  void* function;
  uint32_t threads, shared;  // of a block; shared memory in bytes
};

// A specialization of a Triton kernel: valid for ever, on every device. Its code is loaded at the first launch on a device.
struct Kernel {
  std::string name;
  mutable std::atomic<const Code*> code[kMaxDevices] = {};
};

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

// The specialization of that name ("softmax_forward;T=bfloat16;BLOCK=1024"). Callers on hot paths keep the pointer.
const Kernel* kernel(std::string_view name);

// Its code on a device: from the wheel's archive, from the disk cache, or compiled now. Throws where it cannot be had.
const Code& load(const Kernel* kernel, int device);

// Launches with ready parameters (addresses of values), the two scratch pointers included. Throws on failure.
void launch_parameters(const Kernel* kernel, Grid grid, void** parameters);

// Launches with the arguments of the parameters that are no constants, in order: pointers, int32_t, int64_t, float, double, exactly as
// the kernel's signature has them. An empty grid launches nothing.
template <class... A>
inline void launch(const Kernel* kernel, Grid grid, const A&... arguments) {
  static_assert(((std::is_pointer_v<A> || std::is_same_v<A, int32_t> || std::is_same_v<A, uint32_t> || std::is_same_v<A, int64_t> ||
                  std::is_same_v<A, uint64_t> || std::is_same_v<A, float> || std::is_same_v<A, double>) &&
                 ...),
                "launch: parameters are pointers, 32- and 64-bit integers, float and double");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const void* scratch = nullptr;
  void* parameters[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., &scratch, &scratch};
  launch_parameters(kernel, grid, parameters);
}

// Where code comes from: fills in the code object (allocated by alloc_array), its entry's name and launch facts, for an architecture as
// major * 10 + minor. Returns a status.
struct Image {
  void* data;
  size_t nbytes;
  char entry[256];
  uint32_t threads, shared;
};
using Provider = int (*)(const char* name, int architecture, Image* out);
void set_provider(Provider provider);

}  // namespace argand::cuda
