// A stand-in for cuDNN's graph interface where there is no GPU: it computes float32 and float64 convolutions, from descriptors alone,
// on host memory. Configurations: engine 0 refuses to make a plan, 1 uses tensor cores, 2 is not deterministic, 3 has no notes.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kBadParam = 2000, kNotSupported = 3000;
constexpr int64_t kWorkspace = 256;

struct Descriptor {
  int kind = 0;
  bool final = false;
  int engine = -1;
  std::map<int, std::vector<char>> attributes;

  template <class T>
  std::vector<T> list(int attribute) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), found->second.size());
    return values;
  }
  template <class T>
  T one(int attribute) const {
    const std::vector<T> values = list<T>(attribute);
    return values.size() == 1 ? values[0] : T();
  }
};

size_t size_of(int type) {
  switch (type) {
    case 0:
    case 3:
    case 5:
    case 6:
    case 15:
      return 8;  // handle, int64, double, pointer, descriptor
    case 1:
    case 4:
    case 7:
    case 8:
    case 11:
      return 4;  // data type, float, mode, heuristic mode, note
    default:
      return 0;
  }
}

// The engine of the last plan that ran, for tests; in the handle's place of the version.
int g_last_engine = -1;

struct Tensor {
  std::vector<int64_t> sizes, strides;
  int type;
  char* data;
  double get(int64_t i) const { return type == 0 ? reinterpret_cast<float*>(data)[i] : reinterpret_cast<double*>(data)[i]; }
  void set(int64_t i, double v) const {
    if (type == 0)
      reinterpret_cast<float*>(data)[i] = static_cast<float>(v);
    else
      reinterpret_cast<double*>(data)[i] = v;
  }
};

bool tensor_of(const Descriptor* d, const Descriptor* pack, Tensor& out) {
  if (!d || d->kind != 17 || !d->final || d->one<int64_t>(900) != 16) return false;
  out = {d->list<int64_t>(902), d->list<int64_t>(903), d->one<int32_t>(901), nullptr};
  const auto ids = pack->list<int64_t>(1000);
  const auto pointers = pack->list<char*>(1001);
  for (size_t i = 0; i < ids.size(); i++)
    if (ids[i] == d->one<int64_t>(906)) out.data = pointers[i];
  return out.data && (out.sizes.size() == 4 || out.sizes.size() == 5) && out.strides.size() == out.sizes.size() && (out.type == 0 || out.type == 1);
}

// The index after `at` in a box of `sizes`; false past the last.
bool advance(std::vector<int64_t>& at, const std::vector<int64_t>& sizes) {
  for (size_t i = at.size(); i-- > 0;) {
    if (++at[i] < sizes[i]) return true;
    at[i] = 0;
  }
  return false;
}

// Calls f(x index, w index, y index) for every product of the convolution.
template <class F>
void for_each_product(const Descriptor& c, const Tensor& x, const Tensor& w, const Tensor& y, F&& f) {
  const auto pad = c.list<int64_t>(105), stride = c.list<int64_t>(103), dilation = c.list<int64_t>(102);
  const int64_t per_group = w.sizes[1], groups = x.sizes[1] / per_group, out_per_group = w.sizes[0] / groups;
  std::vector<int64_t> to(y.sizes.size(), 0);  // batch, out channel, place
  do {
    const std::vector<int64_t> taps(w.sizes.begin() + 1, w.sizes.end());
    std::vector<int64_t> tap(taps.size(), 0);  // in channel, tap
    do {
      const int64_t channel = to[1] / out_per_group * per_group + tap[0];
      int64_t from = to[0] * x.strides[0] + channel * x.strides[1], weight = to[1] * w.strides[0] + tap[0] * w.strides[1];
      int64_t result = to[0] * y.strides[0] + to[1] * y.strides[1];
      bool inside = true;
      for (size_t i = 0; i + 2 < to.size(); i++) {
        const int64_t r = to[i + 2] * stride[i] - pad[i] + tap[i + 1] * dilation[i];
        inside = inside && r >= 0 && r < x.sizes[i + 2];
        from += r * x.strides[i + 2];
        weight += tap[i + 1] * w.strides[i + 2];
        result += to[i + 2] * y.strides[i + 2];
      }
      if (inside) f(from, weight, result);
    } while (advance(tap, taps));
  } while (advance(to, y.sizes));
}

void clear(const Tensor& t) {
  for (int64_t i = 0; i < t.sizes[0] * t.strides[0]; i++) t.set(i, 0);
}

}  // namespace

EXPORT int cudnnCreate(void** handle) {
  static int one;
  *handle = &one;
  return 0;
}
EXPORT int cudnnSetStream(void*, void*) { return 0; }
EXPORT size_t cudnnGetVersion() { return static_cast<size_t>(90000 + g_last_engine + 1); }
EXPORT const char* cudnnGetErrorString(int status) { return status == kNotSupported ? "NOT_SUPPORTED" : "BAD_PARAM"; }
EXPORT int cudnnBackendCreateDescriptor(int kind, Descriptor** out) {
  *out = new Descriptor;
  (*out)->kind = kind;
  return 0;
}
EXPORT int cudnnBackendDestroyDescriptor(Descriptor* d) {
  delete d;
  return 0;
}
EXPORT int cudnnBackendSetAttribute(Descriptor* d, int attribute, int type, int64_t count, const void* values) {
  if (d->final || !size_of(type) || (type == 15 && count != 1)) return kBadParam;
  Descriptor* copy = nullptr;  // what a descriptor is made of may be destroyed after it
  if (type == 15) {
    copy = new Descriptor(**static_cast<Descriptor* const*>(values));
    values = &copy;
  }
  const char* bytes = static_cast<const char*>(values);
  d->attributes[attribute].assign(bytes, bytes + size_of(type) * static_cast<size_t>(count));
  return 0;
}
EXPORT int cudnnBackendFinalize(Descriptor* d) {
  if (d->kind == 5) {  // a plan
    const Descriptor* config = d->one<Descriptor*>(401);
    if (!config || !d->one<void*>(400)) return kBadParam;
    if (config->engine == 0) return kNotSupported;
    d->engine = config->engine;
    d->attributes[801] = config->attributes.at(801);
  }
  d->final = true;
  return 0;
}
EXPORT int cudnnBackendGetAttribute(Descriptor* d, int attribute, int type, int64_t capacity, int64_t* count, void* values) {
  if (d->kind == 4 && attribute == 202) {  // the heuristics' results; the fallback mode has one
    const Descriptor* graph = d->one<Descriptor*>(201);
    const bool fallback = d->one<int32_t>(200) == 2;
    *count = fallback ? 1 : 4;
    if (capacity < *count || type != 15 || !graph || !graph->final) return kBadParam;
    for (int64_t i = 0; i < *count; i++) {
      Descriptor* config = static_cast<Descriptor**>(values)[i];
      config->engine = fallback ? 3 : static_cast<int>(i);
      config->attributes[801] = graph->attributes.at(801);
      config->final = true;
    }
    return 0;
  }
  if (d->kind == 3 && attribute == 300) {
    *count = 1;
    static_cast<Descriptor**>(values)[0]->engine = d->engine;
    return 0;
  }
  if (d->kind == 2 && attribute == 1303) {
    *count = d->engine == 3 || d->engine == 0 ? 0 : 1;
    if (*count) static_cast<int32_t*>(values)[0] = d->engine == 1 ? 0 : 4;
    return 0;
  }
  if (d->kind == 5 && attribute == 402) {
    *count = 1;
    static_cast<int64_t*>(values)[0] = kWorkspace;
    return 0;
  }
  return kBadParam;
}
EXPORT int cudnnBackendExecute(void*, Descriptor* plan, Descriptor* pack) {
  if (!plan->final || !pack->final || !pack->one<void*>(1003)) return kBadParam;
  const Descriptor* operation = plan->one<Descriptor*>(801);
  const int first = operation->kind == 10 ? 700 : operation->kind == 12 ? 706 : 712;
  const Descriptor* convolution = operation->one<Descriptor*>(first + 2);
  Tensor w, x, y;
  if (!convolution || (convolution->one<int64_t>(106) != 2 && convolution->one<int64_t>(106) != 3) || convolution->one<int32_t>(101) != 1)
    return kBadParam;
  if (!tensor_of(operation->one<Descriptor*>(first + 3), pack, w) || !tensor_of(operation->one<Descriptor*>(first + 4), pack, x) ||
      !tensor_of(operation->one<Descriptor*>(first + 5), pack, y))
    return kBadParam;
  if (convolution->one<int32_t>(100) != w.type) return kBadParam;
  const Tensor& result = operation->kind == 10 ? y : operation->kind == 12 ? x : w;
  clear(result);
  for_each_product(*convolution, x, w, y, [&](int64_t i, int64_t j, int64_t k) {
    if (operation->kind == 10) y.set(k, y.get(k) + x.get(i) * w.get(j));
    if (operation->kind == 12) x.set(i, x.get(i) + y.get(k) * w.get(j));
    if (operation->kind == 11) w.set(j, w.get(j) + x.get(i) * y.get(k));
  });
  g_last_engine = plan->engine;
  return 0;
}
