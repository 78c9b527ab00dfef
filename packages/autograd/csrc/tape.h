// The AUTOGRAD kernel: one for every operator.
#pragma once

#include "packages/autograd/csrc/derivative.h"

namespace argand::autograd {

// Installs the fallback for operators without a record and the kernels of `detach`. Call once, with the operators registered.
void install_tape();

}  // namespace argand::autograd
