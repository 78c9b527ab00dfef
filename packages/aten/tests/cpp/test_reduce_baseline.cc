// The reduction cases in the baseline tier.
// Standard headers come first: newer compilers refuse to mix their inline functions with another target.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#define ARGAND_TIER baseline
#define ARGAND_TIER_BASELINE 1
#define ARGAND_TEST_TIER 0
#pragma GCC push_options
#pragma GCC target("sse4.2")
#include "packages/aten/tests/cpp/reduce_cases.h"
#pragma GCC pop_options
