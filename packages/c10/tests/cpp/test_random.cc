// Philox against the known answers of the authors' Random123 distribution, and generators.
#include <atomic>
#include <thread>
#include <vector>

#include "packages/c10/csrc/random/philox.h"
#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

constexpr ArgandDevice kCpu = ARGAND_DEVICE(ARGAND_CPU, 0);

void check_block(uint64_t seed, uint64_t counter, uint64_t stream, std::initializer_list<uint32_t> expected) {
  const PhiloxBlock block = philox(seed, counter, stream);
  int i = 0;
  for (uint32_t w : expected) CHECK_EQ(block.word[i++], w);
}

void test_known_answers() {
  check_block(0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  check_block(~0ull, ~0ull, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  check_block(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

void test_uniform() {
  CHECK(philox_uniform(0) == 0 && philox_uniform(~0u) == 1 - 0x1p-24f);
  CHECK(philox_uniform64(0, 0) == 0 && philox_uniform64(~0u, ~0u) == 1 - 0x1p-53);
  double sum = 0, squares = 0;
  constexpr int kN = 100000;
  for (int i = 0; i < kN; i++) {
    const double u = philox_uniform(philox(7, static_cast<uint64_t>(i)).word[i % 4]);
    sum += u;
    squares += u * u;
  }
  const double mean = sum / kN, variance = squares / kN - mean * mean;  // 1/2 and 1/12; six standard errors
  CHECK(mean > 0.4945 && mean < 0.5055 && variance > 0.0819 && variance < 0.0848);
}

void test_generators() {
  ArgandGenerator *a = nullptr, *b = nullptr;
  check(api->generator_new(kCpu, &a));
  check(api->generator_new(kCpu, &b));
  CHECK(a != b && a->seed == b->seed && a->offset == 0 && a->refcount == 1);
  CHECK_EQ(api->generator_reserve(a, 10), 0);
  CHECK_EQ(api->generator_reserve(a, 5), 10);
  CHECK_EQ(a->offset, 15);
  a->seed = 3;  // manual_seed
  a->offset = 0;
  CHECK_EQ(api->generator_reserve(a, 1), 0);
  api->generator_release(a);
  api->generator_release(b);
  CHECK_FAILS(api->generator_new(ARGAND_DEVICE(ARGAND_HIP, 0), &a), ARGAND_DEVICE_ERROR, "Generator: got device 'hip'");
}

void test_default_generator() {
  ArgandGenerator* g = api->default_generator(kCpu);
  CHECK(g && g == api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0xff)));
  const uint64_t before = g->offset;
  CHECK_EQ(api->generator_reserve(nullptr, 4), before);
  CHECK_EQ(g->offset, before + 4);
  CHECK(api->default_generator(ARGAND_DEVICE(ARGAND_META, 0)) != g);
  CHECK(!api->default_generator(ARGAND_DEVICE(ARGAND_CUDA, 0)));
}

void test_reserving_from_threads() {  // reservations are disjoint and complete
  ArgandGenerator* g = nullptr;
  check(api->generator_new(kCpu, &g));
  std::vector<std::atomic<int>> taken(4 * 1000 * 3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; i++) {
        const uint64_t first = api->generator_reserve(g, 3);
        for (uint64_t k = 0; k < 3; k++) taken[first + k]++;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (auto& n : taken) CHECK_EQ(n.load(), 1);
  api->generator_release(g);
}

}  // namespace

int main() {
  api = argand_api();
  RUN(test_known_answers);
  RUN(test_uniform);
  RUN(test_generators);
  RUN(test_default_generator);
  RUN(test_reserving_from_threads);
  return 0;
}
