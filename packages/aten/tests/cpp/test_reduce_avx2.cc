// The reduction cases in the avx2 tier.
// Standard headers come first: newer compilers refuse to mix their inline functions with another target.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#define ARGAND_TIER avx2
#define ARGAND_TIER_AVX2 1
#define ARGAND_TEST_TIER 1
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#include "packages/aten/tests/cpp/reduce_cases.h"
#pragma GCC pop_options
