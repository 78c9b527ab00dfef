// A stand-in for cuFFT where there is no GPU: it sums, from plans alone, on host memory. A plan or call that the library would refuse, or that it
// would compute wrongly, is refused with INVALID_VALUE.
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalid = 4;
constexpr size_t kWorkspace = 256;
constexpr int kR32F = 0, kR64F = 1, kC32F = 4, kC64F = 5;
using Number = std::complex<double>;

struct Side {
  std::vector<long long> embed;
  long long distance;
  int type;
};
struct Plan {
  std::vector<long long> sizes;
  Side in, out;
  long long batch = 0;
  bool automatic = true;
  void *workspace = nullptr, *stream = nullptr;
};
std::map<int, Plan> plans;
int next_plan = 1;

bool is_real(int type) { return type == kR32F || type == kR64F; }

Number load(const void* data, long long i, int type) {
  switch (type) {
    case kR32F:
      return static_cast<const float*>(data)[i];
    case kR64F:
      return static_cast<const double*>(data)[i];
    case kC32F:
      return static_cast<const std::complex<float>*>(data)[i];
    default:
      return static_cast<const Number*>(data)[i];
  }
}
void store(void* data, long long i, int type, Number v) {
  if (type == kR32F) static_cast<float*>(data)[i] = static_cast<float>(v.real());
  if (type == kR64F) static_cast<double*>(data)[i] = v.real();
  if (type == kC32F) static_cast<std::complex<float>*>(data)[i] = std::complex<float>(v);
  if (type == kC64F) static_cast<Number*>(data)[i] = v;
}

// The index of a point of `sizes` among elements that lie in `embed`.
long long place(const std::vector<long long>& at, const std::vector<long long>& embed) {
  long long i = 0;
  for (size_t d = 0; d < at.size(); d++) i = i * embed[d] + at[d];
  return i;
}
bool advance(std::vector<long long>& at, const std::vector<long long>& sizes) {
  for (size_t d = sizes.size(); d-- > 0;) {
    if (++at[d] < sizes[d]) return true;
    at[d] = 0;
  }
  return false;
}

// A point of the spectrum of which the last dimension's second half is the first's, conjugate and backwards.
Number mirrored(const void* data, long long offset, const Plan& p, std::vector<long long> at) {
  const bool beyond = at.back() >= p.in.embed.back();
  if (beyond)
    for (size_t d = 0; d < at.size(); d++) at[d] = (p.sizes[d] - at[d]) % p.sizes[d];
  const Number v = load(data, offset + place(at, p.in.embed), p.in.type);
  return beyond ? std::conj(v) : v;
}

}  // namespace

EXPORT int cufftCreate(int* plan) {
  *plan = next_plan++;
  plans[*plan];
  return 0;
}
EXPORT int cufftDestroy(int plan) { return plans.erase(plan) ? 0 : 1; }
EXPORT int cufftSetAutoAllocation(int plan, int automatic) {
  plans.at(plan).automatic = automatic != 0;
  return 0;
}
EXPORT int cufftGetVersion(int* version) {
  *version = 12000;
  return 0;
}
EXPORT int cufftSetWorkArea(int plan, void* area) {
  plans.at(plan).workspace = area;
  return 0;
}
EXPORT int cufftSetStream(int plan, void* stream) {
  plans.at(plan).stream = stream;
  return 0;
}

EXPORT int cufftXtMakePlanMany(int plan, int rank, long long* n, long long* in_embed, long long in_stride, long long in_distance, int in_type,
                               long long* out_embed, long long out_stride, long long out_distance, int out_type, long long batch, size_t* workspace,
                               int compute) {
  if (rank < 1 || rank > 3 || batch < 1 || in_stride != 1 || out_stride != 1 || (compute != kC32F && compute != kC64F)) return kInvalid;
  const int real = compute == kC32F ? kR32F : kR64F;
  if ((in_type != compute && in_type != real) || (out_type != compute && out_type != real) || (in_type == real && out_type == real)) return kInvalid;
  Plan& p = plans.at(plan);
  p.sizes.assign(n, n + rank);
  p.in = {{in_embed, in_embed + rank}, in_distance, in_type};
  p.out = {{out_embed, out_embed + rank}, out_distance, out_type};
  p.batch = batch;
  for (const Side* side : {&p.in, &p.out}) {
    long long dense = 1;
    for (int d = 0; d < rank; d++) {
      const bool half = d == rank - 1 && !is_real(side->type) && in_type != out_type;
      if (side->embed[d] != (half ? n[d] / 2 + 1 : n[d])) return kInvalid;
      dense *= side->embed[d];
    }
    if (side->distance != dense) return kInvalid;
  }
  *workspace = kWorkspace;
  return 0;
}

EXPORT int cufftXtExec(int plan, void* in, void* out, int direction) {
  const Plan& p = plans.at(plan);
  const size_t item = p.in.type == kC64F || p.out.type == kC64F ? 16 : 8;
  if (p.automatic || !p.workspace || in == out || reinterpret_cast<uintptr_t>(in) % item || reinterpret_cast<uintptr_t>(out) % item) return kInvalid;
  if ((is_real(p.in.type) && direction != -1) || (is_real(p.out.type) && direction != 1) || (direction != 1 && direction != -1)) return kInvalid;
  for (long long b = 0; b < p.batch; b++) {
    std::vector<long long> k(p.sizes.size(), 0);
    std::vector<Number> results;
    do {
      Number sum = 0;
      std::vector<long long> x(p.sizes.size(), 0);
      do {
        double turns = 0;
        for (size_t d = 0; d < x.size(); d++) turns += static_cast<double>(k[d] * x[d] % p.sizes[d]) / static_cast<double>(p.sizes[d]);
        sum += mirrored(in, b * p.in.distance, p, x) * std::polar(1.0, direction * 2 * M_PI * turns);
      } while (advance(x, p.sizes));
      results.push_back(sum);
    } while (advance(k, p.out.embed));
    for (size_t i = 0; i < results.size(); i++) store(out, b * p.out.distance + static_cast<long long>(i), p.out.type, results[i]);
  }
  // As the library may: what it read is gone.
  if (is_real(p.out.type))
    for (long long i = 0; i < p.batch * p.in.distance; i++) store(in, i, p.in.type, NAN);
  return 0;
}
