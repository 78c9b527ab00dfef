#define TINY_CONCAT(a, b) a##b
#define TINY_NAME(tier) TINY_CONCAT(tiny_scale_, tier)

extern "C" float TINY_NAME(ARGAND_TIER)(float x) { return 0.1f * x; }
