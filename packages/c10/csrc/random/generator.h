// Random generators: a Philox seed and the next free counter.
#pragma once

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

int generator_new(ArgandDevice device, ArgandGenerator** out);
ArgandGenerator* default_generator(ArgandDevice device);
// The same for a device that is known to exist; a backend calls it when its device is first used, so that whoever keeps the
// states of all generators keeps this one too.
ArgandGenerator* opened_generator(ArgandDevice device);
uint64_t generator_reserve(ArgandGenerator* generator, uint64_t counters);
void generator_release(ArgandGenerator* generator);

}  // namespace argand::core

// For the Python binding, which links this library: the default generators that exist so far, of all devices; how many.
extern "C" size_t argand_default_generators(ArgandGenerator** out, size_t capacity);
