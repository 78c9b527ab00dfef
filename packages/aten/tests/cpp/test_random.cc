// Random kernels: words against philox.h, formulas against the C library, the same bits in every tier and for any number of threads.
#include "packages/aten/csrc/kernels/cpu/random_draw.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/tests/cpp/check.h"
#include "packages/c10/csrc/random/philox.h"

namespace argand::kernels::cpu {
namespace baseline {
extern const RandomDraw random_draw;
}
namespace avx2 {
extern const RandomDraw random_draw;
}
namespace avx512 {
extern const RandomDraw random_draw;
}
}  // namespace argand::kernels::cpu

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

void reseed(uint64_t seed) {
  ArgandGenerator* g = api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0));
  g->seed = seed;
  g->offset = 0;
}

void tiers() {
  const cpu::RandomDraw* tables[] = {&cpu::baseline::random_draw, &cpu::avx2::random_draw, &cpu::avx512::random_draw};
  const uint64_t seed = 0x0123456789abcdef;
  for (uint64_t counter : {uint64_t{0}, uint64_t{0xfffffff3}, uint64_t{0x123fffffff0}}) {  // carries into the upper half
    std::vector<float> first;
    for (int tier = 0; tier <= api->cpu_tier(); tier++) {
      alignas(64) uint32_t words[cpu::kDrawWords];
      alignas(64) float out[4][cpu::kDrawWords];
      uint8_t mask[cpu::kDrawWords];
      const long n = cpu::kDrawWords;
      tables[tier]->words(n, seed, counter, words);
      for (long i = 0; i < n; i++) CHECK(words[i] == philox(seed, counter + i / 4).word[i % 4], "tier %d, word %ld", tier, i);
      tables[tier]->uniform(n, out[0], words, -2, 5, 3);
      tables[tier]->normal(n, out[1], words, 1, 3);
      tables[tier]->exponential(n, out[2], words, -0.5f);
      tables[tier]->dropout(n, out[3], mask, out[1], words, 0x40000000u, 2);
      std::vector<float> all(out[0], out[0] + 4 * n);
      if (tier == 0) first = all;
      CHECK(std::memcmp(first.data(), all.data(), all.size() * 4) == 0, "tier %d differs from tier 0", tier);
      for (long i = 0; i < n; i++) {
        CHECK(out[0][i] == -2 + 5 * philox_uniform(words[i]));
        const double u = ((words[i & ~1L] >> 8) + 1.0) * 0x1p-24, v = philox_uniform(words[i | 1]);
        const double z = std::sqrt(-2 * std::log(u)) * (i % 2 ? std::sin(2 * M_PI * v) : std::cos(2 * M_PI * v));
        CHECK(std::fabs(out[1][i] - (1 + 3 * z)) < 1e-5, "normal %ld: %g, expected %g", i, out[1][i], 1 + 3 * z);
        const double e = -0.5 * std::log(std::min((words[i] >> 8) + 1.0, 0x1p24 - 1) * 0x1p-24);
        CHECK(std::fabs(out[2][i] - e) <= 1e-6 * e, "exponential %ld: %g, expected %g", i, out[2][i], e);
        CHECK(mask[i] == (words[i] >= 0x40000000u) && out[3][i] == (mask[i] ? 2 * out[1][i] : 0 * out[1][i]));
      }
    }
  }
}

// The ends of ranges: 1 is no uniform number, 0 no exponential one, whatever they are rounded to.
void ends() {
  alignas(64) uint32_t words[cpu::kDrawWords];
  alignas(64) float out[cpu::kDrawWords];
  std::memset(words, 0xff, sizeof words);
  cpu::random_draw().uniform(cpu::kDrawWords, out, words, 3, 1, 4);  // 3 + (1 - 2^-24) rounds to 4
  CHECK(out[0] == 3);
  cpu::random_draw().exponential(cpu::kDrawWords, out, words, -1);
  CHECK(out[0] > 0);
  for (int dtype : {ARGAND_BFLOAT16, ARGAND_FLOAT16}) {
    reseed(7);
    const Tensor u = empty({100000}, dtype);
    cpu::uniform_(u, 0, 1, nullptr);
    double greatest = 0;
    for (int64_t i = 0; i < u.numel(); i++) greatest = std::max(greatest, at(u, i));
    CHECK(greatest == (dtype == ARGAND_FLOAT16 ? 1 - 0x1p-11 : 1 - 0x1p-8), "dtype %d: %.9g", dtype, greatest);
  }
}

// An element depends on the seed and its position alone: not on threads, length, strides or dtype.
void positions() {
  for (int64_t n : {1, 3, 64, 1000, 1025, 300001}) {
    const Tensor one = empty({n}, ARGAND_FLOAT32), three = empty({n}, ARGAND_FLOAT32), strided = sliced(empty({n, 2}, ARGAND_FLOAT32), 0, 2),
                 half = empty({n}, ARGAND_BFLOAT16);
    reseed(7);
    api->set_num_threads(1);
    cpu::normal_(one, 0, 1, nullptr);
    reseed(7);
    api->set_num_threads(3);
    cpu::normal_(three, 0, 1, nullptr);
    CHECK(std::memcmp(one->data, three->data, n * 4) == 0);
    reseed(7);
    cpu::normal_(strided, 0, 1, nullptr);
    reseed(7);
    cpu::normal_(half, 0, 1, nullptr);
    for (int64_t i = 0; i < n; i++) CHECK(at(strided, i) == at(one, i) && at(half, i) == rounded(at(one, i), ARGAND_BFLOAT16));
    const ArgandGenerator* g = api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0));
    CHECK(g->offset == static_cast<uint64_t>((n + 3) / 4));
    reseed(7);
    cpu::uniform_(three, 0, 1, nullptr);
    for (int64_t i = 0; i < n; i++) CHECK(at(three, i) == philox_uniform(philox(7, i / 4).word[i % 4]));
    const Tensor wide = empty({n}, ARGAND_FLOAT64);
    reseed(7);
    cpu::uniform_(wide, 0, 1, nullptr);
    for (int64_t i = 0; i < n; i++) {
      const PhiloxBlock b = philox(7, i / 2);
      CHECK(at(wide, i) == philox_uniform64(b.word[i % 2 * 2], b.word[i % 2 * 2 + 1]));
    }
  }
}

void distributions() {
  reseed(1);
  const int64_t n = 1 << 20;
  for (int dtype : {ARGAND_FLOAT32, ARGAND_FLOAT64}) {
    const Tensor x = empty({n}, dtype);
    cpu::normal_(x, 2, 3, nullptr);
    double mean = 0, square = 0, cube = 0, pairs = 0;
    for (int64_t i = 0; i < n; i++) mean += at(x, i) / n;
    for (int64_t i = 0; i < n; i++) {
      const double d = at(x, i) - mean;
      square += d * d / n, cube += d * d * d / n, pairs += d * (at(x, i ^ 1) - mean) / n;
    }
    CHECK(std::fabs(mean - 2) < 0.02 && std::fabs(square - 9) < 0.1 && std::fabs(cube) < 0.5 && std::fabs(pairs) < 0.05, "normal: %g %g %g %g", mean,
          square, cube, pairs);
    cpu::exponential_(x, 4, nullptr);
    mean = 0;
    for (int64_t i = 0; i < n; i++) mean += at(x, i) / n;
    CHECK(std::fabs(mean - 0.25) < 0.002);
    cpu::bernoulli_(x, 0.3, nullptr);
    mean = 0;
    for (int64_t i = 0; i < n; i++) mean += at(x, i) / n;
    CHECK(std::fabs(mean - 0.3) < 0.003);
    const auto [y, mask] = cpu::native_dropout(x, 0.25, true);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
      kept += at(mask, i) != 0;
      CHECK(at(y, i) == (at(mask, i) != 0 ? rounded(at(x, i) / 0.75, dtype) : 0));
    }
    CHECK(std::fabs(static_cast<double>(kept) / n - 0.75) < 0.003);
  }
  const auto [none, none_mask] = cpu::native_dropout(random_tensor({100}, ARGAND_FLOAT32), 1, true);
  for (int64_t i = 0; i < 100; i++) CHECK(at(none, i) == 0 && at(none_mask, i) == 0);
  const Tensor p = cpu::randperm(1000, nullptr, ARGAND_DTYPE_NONE, std::nullopt, false);
  std::vector<int> seen(1000);
  for (int64_t i = 0; i < 1000; i++) CHECK(seen[static_cast<size_t>(at(p, i))]++ == 0);
  const Tensor k = empty({60000}, ARGAND_INT64);
  cpu::random_(k, -2, 4, nullptr);
  std::vector<int> counts(6);
  for (int64_t i = 0; i < k.numel(); i++) counts[static_cast<size_t>(at(k, i) + 2)]++;
  for (int c : counts) CHECK(std::abs(c - 10000) < 500);
  const Tensor w = random_tensor({4}, ARGAND_FLOAT32, 0, 0);
  put(w, 1, 1), put(w, 3, 3);
  const Tensor drawn = cpu::multinomial(w, 40000, true, nullptr);
  int64_t threes = 0;
  for (int64_t i = 0; i < drawn.numel(); i++) {
    CHECK(at(drawn, i) == 1 || at(drawn, i) == 3);
    threes += at(drawn, i) == 3;
  }
  CHECK(std::abs(threes - 30000) < 600);
  CHECK_THROWS("0 <= p <= 1", cpu::native_dropout(w, 1.5, true));
  CHECK_THROWS("std >= 0", cpu::normal_(w, 0, -1, nullptr));
  CHECK_THROWS("from=4", cpu::random_(k, 4, 4, nullptr));
}
}  // namespace

int main() {
  argand::api = argand_api();
  RUN(tiers);
  RUN(ends);
  RUN(positions);
  RUN(distributions);
  return 0;
}
