#include <cstdio>

#include "tools/build/testdata/tiny/csrc/tiny.h"

int main() {
  if (tiny_twice(21) != 42 || tiny_tiers(3.0f) < 1) {
    std::fprintf(stderr, "tiny: got %d and %d tiers\n", tiny_twice(21), tiny_tiers(3.0f));
    return 1;
  }
  return 0;
}
