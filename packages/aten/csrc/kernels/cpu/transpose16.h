// Sixteen vectors of sixteen 32-bit lanes, transposed in registers. Only for functions with ARGAND_AVX512, called where cpu_tier() is 2.
#pragma once

#include <cstdint>

#define ARGAND_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace argand::kernels::cpu {

using Lanes16 = uint32_t __attribute__((vector_size(64)));

template <int kStep>
ARGAND_AVX512 __attribute__((always_inline)) inline void exchange_lanes(Lanes16 (&x)[16], const Lanes16& low, const Lanes16& high) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {
    if (i & kStep) continue;
    const Lanes16 u = x[i], v = x[i + kStep];
    x[i] = __builtin_shuffle(u, v, low);
    x[i + kStep] = __builtin_shuffle(u, v, high);
  }
}

// x[i] lane j <-> x[j] lane i.
ARGAND_AVX512 __attribute__((always_inline)) inline void transpose16(Lanes16 (&x)[16]) {
  exchange_lanes<8>(x, Lanes16{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23},
                    Lanes16{8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31});
  exchange_lanes<4>(x, Lanes16{0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27},
                    Lanes16{4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31});
  exchange_lanes<2>(x, Lanes16{0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29},
                    Lanes16{2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31});
  exchange_lanes<1>(x, Lanes16{0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30},
                    Lanes16{1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31});
}

}  // namespace argand::kernels::cpu
