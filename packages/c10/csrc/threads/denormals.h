// Whether the calling thread counts numbers too small for a normal form as zero, operands and results: a mode of its floating-point unit.
#pragma once

#include <cstdint>

namespace argand::core {

#if defined(__x86_64__)
constexpr uint32_t kFlushDenormals = 0x8040;  // of MXCSR: results (FTZ), operands (DAZ)
inline uint32_t float_control() { return __builtin_ia32_stmxcsr(); }
inline void set_float_control(uint32_t bits) { __builtin_ia32_ldmxcsr(bits); }
#elif defined(__aarch64__)
constexpr uint32_t kFlushDenormals = 1u << 24;  // of FPCR: FZ
inline uint32_t float_control() {
  uint64_t bits;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return static_cast<uint32_t>(bits);
}
inline void set_float_control(uint32_t bits) { asm volatile("msr fpcr, %0" : : "r"(static_cast<uint64_t>(bits))); }
#else
constexpr uint32_t kFlushDenormals = 0;  // no such mode
inline uint32_t float_control() { return 0; }
inline void set_float_control(uint32_t) {}
#endif

inline bool flushes_denormals() { return float_control() & kFlushDenormals; }

inline void set_flush_denormals(bool on) {
  const uint32_t bits = float_control();
  set_float_control(on ? bits | kFlushDenormals : bits & ~kFlushDenormals);
}

}  // namespace argand::core
