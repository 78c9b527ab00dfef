#ifndef TOOLS_BUILD_TESTDATA_TINY_H_
#define TOOLS_BUILD_TESTDATA_TINY_H_

extern "C" {
// Twice x. Exported by the shared library.
__attribute__((visibility("default"))) int tiny_twice(int x);
// Number of instruction tiers that were compiled and give 0.1f * x alike.
__attribute__((visibility("default"))) int tiny_tiers(float x);
}

#endif
