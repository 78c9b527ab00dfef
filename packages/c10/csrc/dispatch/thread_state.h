// The thread's dispatch state; initial-exec TLS, so that reading it is one instruction.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

extern __thread ArgandThreadState t_state __attribute__((tls_model("initial-exec")));

inline ArgandThreadState* thread_state() { return &t_state; }

}  // namespace argand::core
