// Tiered sources: compiled once an instruction tier, each in a namespace of its own.
#pragma once

#define ARGAND_JOIN(a, b) a##b
#define ARGAND_NAMESPACE(tier) ARGAND_JOIN(tier_, tier)

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
