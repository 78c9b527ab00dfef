// The reduction cases in the avx512 tier.
// Standard headers come first: newer compilers refuse to mix their inline functions with another target.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#define ARGAND_TIER avx512
#define ARGAND_TIER_AVX512 1
#define ARGAND_TEST_TIER 2
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")
#include "packages/aten/tests/cpp/reduce_cases.h"
#pragma GCC pop_options
