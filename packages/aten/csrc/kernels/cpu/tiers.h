// Hand-written kernels with vector code come in pairs: <name>.cc (checks, shapes, parallel split; compiled once) and <name>.kernels.cc
// (inner loops on raw pointers; compiled once per instruction tier). The latter exports one constant table per tier.
// Tiered files use no inline function shared with other tiers, so that the linker can never pick a copy made for a newer processor.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define ARGAND_TIER_NS avx512
#define ARGAND_TIER_LEVEL 2
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define ARGAND_TIER_NS avx2
#define ARGAND_TIER_LEVEL 1
#else
#define ARGAND_TIER_NS baseline
#define ARGAND_TIER_LEVEL 0
#endif

namespace argand::kernels::cpu {

// The tier chosen at start: 0 baseline, 1 AVX2, 2 AVX-512 (util.cc).
int cpu_tier();

// Storage formats of 16-bit floats; arithmetic is in float.
struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};

}  // namespace argand::kernels::cpu

// Declares the three tables `name` of type Type and an accessor `pick_<name>()`.
#define ARGAND_DECLARE_TIERS(Type, name)                                       \
  namespace baseline {                                                         \
  extern const Type name;                                                      \
  }                                                                            \
  namespace avx2 {                                                             \
  extern const Type name;                                                      \
  }                                                                            \
  namespace avx512 {                                                           \
  extern const Type name;                                                      \
  }                                                                            \
  static inline const Type& pick_##name() {                                    \
    const int tier = cpu_tier();                                               \
    return tier == 2 ? avx512::name : tier == 1 ? avx2::name : baseline::name; \
  }
