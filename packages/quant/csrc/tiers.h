// Tiered sources: compiled once an instruction tier, each in a namespace of its own.
#pragma once

// Declares the three tables `name` of type Type.
#define ARGAND_TIER_TABLES(Type, name) \
  namespace tier_baseline {            \
  extern const Type name;              \
  }                                    \
  namespace tier_avx2 {                \
  extern const Type name;              \
  }                                    \
  namespace tier_avx512 {              \
  extern const Type name;              \
  }
