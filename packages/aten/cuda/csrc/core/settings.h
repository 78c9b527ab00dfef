// What programs choose for NVIDIA's libraries (argand.backends).
#pragma once

#include <atomic>

namespace argand::cuda {

struct Settings {
  std::atomic<bool> matmul_tf32{false};  // float32 products may round their operands to 10 bits of mantissa
  std::atomic<bool> conv_tf32{true};
  std::atomic<bool> conv_benchmark{false};  // measure the candidates of each new convolution instead of trusting the heuristics
  std::atomic<bool> conv_deterministic{false};
};

Settings& settings();

}  // namespace argand::cuda
