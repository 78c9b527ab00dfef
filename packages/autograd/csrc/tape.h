// The AUTOGRAD kernel: one for every operator.
#pragma once

#include "packages/autograd/csrc/derivative.h"
#include "packages/autograd/csrc/node.h"

namespace argand::autograd {

// Installs the fallback for operators without a record and the kernels of `detach`. Call once, with the operators registered.
void install_tape();

// What the key AUTOGRAD does with a call; keys above it that are set are asked below the tape.
int record(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);

// The node of results whose derivative is not implemented: backward through it names `op`, which lives forever.
NodeRef not_implemented(const char* op, std::vector<Edge> edges, const std::vector<Tensor>& results);

}  // namespace argand::autograd
