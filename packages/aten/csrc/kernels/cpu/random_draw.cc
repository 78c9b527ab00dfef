#include "packages/aten/csrc/kernels/cpu/random_draw.h"

#include "packages/aten/csrc/kernels/cpu/tiers.h"

namespace argand::kernels::cpu {

ARGAND_DECLARE_TIERS(RandomDraw, random_draw)

const RandomDraw& random_draw() { return pick_random_draw(); }

}  // namespace argand::kernels::cpu
