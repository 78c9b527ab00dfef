// Runs a test program's tests once in every instruction tier that this processor has, each in a process of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "packages/aten/tests/cpp/check.h"

// Declares the generated loops of an operator, for TIERS.
#define GENERATED(Kernel, name)         \
  namespace argand::simd {              \
  namespace baseline::generated {       \
  extern const Kernel name##_kernels[]; \
  }                                     \
  namespace avx2::generated {           \
  extern const Kernel name##_kernels[]; \
  }                                     \
  namespace avx512::generated {         \
  extern const Kernel name##_kernels[]; \
  }                                     \
  }
#define TIERS(name) {simd::baseline::generated::name##_kernels, simd::avx2::generated::name##_kernels, simd::avx512::generated::name##_kernels}

namespace testing {

inline int run_in_every_tier(void (*tests)()) {
  for (const char* tier : {"0", "1", "2"}) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      setenv("ARGAND_CPU_TIER", tier, 1);
      argand::api = argand_api();
      const int real = argand::api->cpu_tier();
      if (real == atoi(tier)) {
        printf("tier %d\n", real);
        tests();
      }
      fflush(stdout);
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
      fprintf(stderr, "tier %s failed\n", tier);
      return 1;
    }
  }
  return 0;
}

inline double tolerance(int dtype) {
  return dtype == ARGAND_FLOAT64 ? 1e-11 : dtype == ARGAND_FLOAT32 ? 2e-5 : dtype == ARGAND_FLOAT16 ? 2e-3 : 1.6e-2;
}

inline void check_close(const char* what, double got, double want, int dtype, double scale = 1) {
  const bool ok = std::isnan(want)   ? std::isnan(got)
                  : std::isinf(want) ? got == want
                                     : std::fabs(got - want) <= tolerance(dtype) * (scale + std::fabs(want));
  CHECK(ok, "%s: got %.9g, expected %.9g (%s)", what, got, want, argand::kDTypeName[dtype]);
}

// Normal-looking values in (-2, 2), rounded to the dtype.
inline Tensor real_tensor(IntList sizes, int dtype) {
  Tensor t = argand::empty(sizes, dtype);
  for (int64_t i = 0; i < t.numel(); i++) put(t, i, random_real(-2, 2));
  return t;
}
inline Tensor index_tensor(IntList sizes, int64_t low, int64_t high) {  // [low, high)
  Tensor t = argand::empty(sizes, ARGAND_INT64);
  for (int64_t i = 0; i < t.numel(); i++) put(t, i, static_cast<double>(low + random_below(high - low)));
  return t;
}
inline constexpr int kFloating[] = {ARGAND_FLOAT32, ARGAND_FLOAT64, ARGAND_BFLOAT16, ARGAND_FLOAT16};

}  // namespace testing
