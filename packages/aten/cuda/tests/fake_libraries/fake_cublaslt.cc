// A stand-in for cuBLASLt where there is no GPU: it computes, from descriptions alone, on host memory, in column-major order.
// A description that the library would refuse is refused with INVALID_VALUE. float64 products with a bias have no algorithm.
#include <cstdint>
#include <cstring>
#include <initializer_list>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalid = 7, kNotSupported = 15;
constexpr uint64_t kToken = 0xa160;  // of algorithms that this library gave out
constexpr size_t kWorkspace = 4096;

struct Layout {
  int type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Desc {
  int compute, scale;
  int32_t trans[2] = {0, 0};
  uint32_t epilogue = 1;
  const void* bias = nullptr;
};
struct Preference {
  size_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
struct Result {
  uint64_t algorithm[8];
  size_t workspace;
  int32_t state;
  float waves;
  int32_t reserved[4];
};

size_t item(int type) { return type == 0 ? 4 : type == 1 ? 8 : 2; }

double load(const void* data, int64_t i, int type) {
  if (type == 0) return static_cast<const float*>(data)[i];
  if (type == 1) return static_cast<const double*>(data)[i];
  const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16;  // bfloat16
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
void store(void* data, int64_t i, int type, double value) {
  if (type == 0) static_cast<float*>(data)[i] = static_cast<float>(value);
  if (type == 1) static_cast<double*>(data)[i] = value;
  if (type == 14) {
    const float f = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

// What the real library checks: op(A) is m x k, op(B) k x n, C and D m x n, equal types and batches, columns that do not overlap.
bool fits(const Desc& d, const Layout& a, const Layout& b, const Layout& c, const Layout& out) {
  const uint64_t m = d.trans[0] ? a.cols : a.rows, k = d.trans[0] ? a.rows : a.cols, n = d.trans[1] ? b.rows : b.cols;
  if (k != (d.trans[1] ? b.cols : b.rows) || c.rows != m || c.cols != n || out.rows != m || out.cols != n) return false;
  for (const Layout* l : {&a, &b, &c, &out})
    if (l->type != a.type || l->batch != a.batch || l->ld < static_cast<int64_t>(l->rows)) return false;
  const bool full = a.type == 1;
  return d.compute == (full ? 70 : 68) && d.scale == (full ? 1 : 0);
}

}  // namespace

EXPORT int cublasLtCreate(void** handle) {
  static int one;
  *handle = &one;
  return 0;
}
EXPORT size_t cublasLtGetVersion() { return 130000; }
EXPORT int cublasLtMatmulDescCreate(Desc** desc, int compute, int scale) {
  *desc = new Desc{compute, scale};
  return 0;
}
EXPORT int cublasLtMatmulDescDestroy(Desc* desc) {
  delete desc;
  return 0;
}
EXPORT int cublasLtMatmulDescSetAttribute(Desc* desc, int attribute, const void* value, size_t bytes) {
  void* const places[] = {nullptr, nullptr, nullptr, &desc->trans[0], &desc->trans[1], nullptr, nullptr, &desc->epilogue, &desc->bias};
  if (attribute < 3 || attribute > 8 || !places[attribute] || bytes != (attribute == 8 ? 8u : 4u)) return kInvalid;
  std::memcpy(places[attribute], value, bytes);
  return 0;
}
EXPORT int cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = new Layout{type, rows, cols, ld};
  return 0;
}
EXPORT int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return 0;
}
EXPORT int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value, size_t bytes) {
  if (attribute == 5 && bytes == 4)
    std::memcpy(&layout->batch, value, 4);
  else if (attribute == 6 && bytes == 8)
    std::memcpy(&layout->stride, value, 8);
  else
    return kInvalid;
  return 0;
}
EXPORT int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return 0;
}
EXPORT int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return 0;
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value, size_t bytes) {
  if (attribute == 1 && bytes == 8)
    std::memcpy(&preference->workspace, value, 8);
  else if (attribute >= 5 && attribute <= 8 && bytes == 4)
    std::memcpy(&preference->alignment[attribute - 5], value, 4);
  else
    return kInvalid;
  return 0;
}
EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, Desc* desc, Layout* a, Layout* b, Layout* c, Layout* d, Preference* preference, int requested,
                                          Result* results, int* found) {
  *found = 0;
  if (!fits(*desc, *a, *b, *c, *d)) return kInvalid;
  if (requested < 1 || preference->workspace < kWorkspace) return kInvalid;
  if (a->type == 1 && desc->epilogue == 4) return kNotSupported;
  results[0] = Result{{kToken, desc->epilogue}, kWorkspace, 0, 1.0f, {}};
  *found = 1;
  return 0;
}
EXPORT int cublasLtMatmul(void*, Desc* desc, const void* alpha, const void* a, Layout* al, const void* b, Layout* bl, const void* beta, const void* c,
                          Layout* cl, void* d, Layout* dl, const uint64_t* algorithm, void* workspace, size_t workspace_bytes, void*) {
  if (!fits(*desc, *al, *bl, *cl, *dl) || algorithm[0] != kToken || algorithm[1] != desc->epilogue || !workspace || workspace_bytes < kWorkspace)
    return kInvalid;
  if ((desc->epilogue == 4) != (desc->bias != nullptr)) return kInvalid;
  const int type = al->type;
  const double x = load(alpha, 0, type == 1), y = load(beta, 0, type == 1);
  const int64_t k = static_cast<int64_t>(desc->trans[0] ? al->rows : al->cols);
  const auto at = [&](const void* p, const Layout& l, int64_t batch) {
    return static_cast<const char*>(p) + batch * l.stride * static_cast<int64_t>(item(type));
  };
  for (int64_t batch = 0; batch < dl->batch; batch++)
    for (int64_t j = 0; j < static_cast<int64_t>(dl->cols); j++)
      for (int64_t i = 0; i < static_cast<int64_t>(dl->rows); i++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
          sum += load(at(a, *al, batch), desc->trans[0] ? i * al->ld + p : p * al->ld + i, type) *
                 load(at(b, *bl, batch), desc->trans[1] ? p * bl->ld + j : j * bl->ld + p, type);
        double value = x * sum + (y != 0 ? y * load(at(c, *cl, batch), j * cl->ld + i, type) : 0);
        if (desc->bias) value += load(desc->bias, i, type);
        store(const_cast<char*>(at(d, *dl, batch)), j * dl->ld + i, type, value);
      }
  return 0;
}
