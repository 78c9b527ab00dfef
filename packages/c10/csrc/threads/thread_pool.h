// The process's one pool of threads. Work is cut into chunks that depend only on the range, the grain and the number of
// threads; the caller and whichever workers are awake take them in order.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

void parallel_for(int64_t begin, int64_t end, int64_t grain, ArgandRangeFn fn, void* context);
int num_threads();
void set_num_threads(int n);

}  // namespace argand::core
