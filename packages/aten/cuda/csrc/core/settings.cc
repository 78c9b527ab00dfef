#include "packages/aten/cuda/csrc/core/settings.h"

namespace argand::cuda {

Settings& settings() {
  static Settings s;
  return s;
}

}  // namespace argand::cuda
