#include "packages/c10/csrc/random/generator.h"

#include <sys/random.h>
#include <time.h>

#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/device/device.h"

namespace argand::core {
namespace {

constexpr uint64_t kDefaultSeed = 67280421310721ull;  // of a generator that nobody seeded
constexpr int kMaxIndex = 64;

uint64_t entropy() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) return seed;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000007u ^ static_cast<uint64_t>(now.tv_nsec) << 32;
}

ArgandGenerator* make(ArgandDevice device, uint64_t seed) { return new ArgandGenerator{1, device, seed, 0, nullptr, nullptr, nullptr}; }

ArgandGenerator* g_default[ARGAND_NUM_BACKENDS][kMaxIndex];

}  // namespace

int generator_new(ArgandDevice device, ArgandGenerator** out) {
  if (int status = resolve_device("Generator", device, &device)) return status;
  *out = make(device, kDefaultSeed);
  return 0;
}

ArgandGenerator* default_generator(ArgandDevice device) {
  if (resolve_device("default_generator", device, &device)) return nullptr;
  const int index = ARGAND_DEVICE_INDEX(device);
  if (index >= kMaxIndex) {
    error(ARGAND_DEVICE_ERROR, "default_generator: got device index %d, expected one below %d", index, kMaxIndex);
    return nullptr;
  }
  return opened_generator(device);
}

ArgandGenerator* opened_generator(ArgandDevice device) {
  ArgandGenerator** slot = &g_default[ARGAND_DEVICE_TYPE(device)][ARGAND_DEVICE_INDEX(device)];
  ArgandGenerator* g = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (g) return g;
  // Devices start with the CPU's seed: a program seeds them all at once, also those it uses later.
  const ArgandGenerator* cpu = __atomic_load_n(&g_default[ARGAND_CPU][0], __ATOMIC_ACQUIRE);
  ArgandGenerator* made = make(device, cpu ? cpu->seed : entropy());
  if (__atomic_compare_exchange_n(slot, &g, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
  delete made;
  return g;
}

uint64_t generator_reserve(ArgandGenerator* generator, uint64_t counters) {
  if (!generator) generator = default_generator(ARGAND_DEVICE(ARGAND_CPU, 0));
  return __atomic_fetch_add(&generator->offset, counters, __ATOMIC_RELAXED);
}

void generator_release(ArgandGenerator* generator) { delete generator; }

}  // namespace argand::core

extern "C" __attribute__((visibility("default"))) size_t argand_default_generators(ArgandGenerator** out, size_t capacity) {
  size_t n = 0;
  for (auto& type : argand::core::g_default) {
    for (ArgandGenerator*& slot : type) {
      ArgandGenerator* g = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
      if (g && n < capacity) out[n++] = g;
    }
  }
  return n;
}
