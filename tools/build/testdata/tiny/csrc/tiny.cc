#include "tools/build/testdata/tiny/csrc/tiny.h"

extern "C" {
float tiny_scale_baseline(float x);
float tiny_scale_avx2(float x);
float tiny_scale_avx512(float x);

int tiny_twice(int x) { return 2 * x; }

int tiny_tiers(float x) {
  float expected = tiny_scale_baseline(x);
  int count = 1;
  if (__builtin_cpu_supports("avx2") && tiny_scale_avx2(x) == expected) ++count;
  if (__builtin_cpu_supports("avx512f") && tiny_scale_avx512(x) == expected) ++count;
  return count;
}
}
