// Weights as the micro-kernels read them, and packed weights that are kept.
#include <map>
#include <mutex>

#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"
#include "packages/quant/csrc/gemm/product.h"
#include "packages/quant/generated/kernels.h"

namespace argand {
namespace quant {

void pack_panels(const uint8_t* weight, int64_t columns, int64_t k, int64_t column_stride, int64_t k_stride, uint8_t flip, int8_t* panels) {
  const int64_t steps = (k + kStep - 1) / kStep + 1, n_panels = (columns + kPanel - 1) / kPanel;
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / (steps * kPanelStep));
  parallel_for(0, n_panels, grain, [&](int64_t b, int64_t e) {
    for (int64_t panel = b; panel < e; panel++) {
      int8_t* to = panels + panel * steps * kPanelStep;
      std::memset(to, 0, steps * kPanelStep);
      for (int64_t c = 0; c < std::min<int64_t>(kPanel, columns - panel * kPanel); c++) {
        const uint8_t* from = weight + (panel * kPanel + c) * column_stride;
        int32_t sum = 0;
        for (int64_t i = 0; i < k; i++) {
          const auto byte = static_cast<int8_t>(from[i * k_stride] ^ flip);
          to[i / kStep * kPanelStep + c * kStep + i % kStep] = byte;
          sum += byte;
        }
        std::memcpy(to + (steps - 1) * kPanelStep + c * 4, &sum, 4);
      }
    }
  });
}

namespace {

// Packed weights by what they were made from. An entry holds the weight, so that its address is not another's; it goes when the entry is all
// that holds it, at the next packing.
struct Packed {
  Tensor weight;
  uint32_t version;
  Tensor panels;

  bool is_of(const Tensor& t) const { return version == t.version() && weight.sizes() == t.sizes() && weight.strides() == t.strides(); }
};
struct Key {
  const ArgandStorage* storage;
  int64_t offset, groups;
  auto operator<=>(const Key&) const = default;
};

class PackedWeights {
 public:
  template <class Pack>
  Tensor get(const Tensor& weight, int64_t groups, const Pack& pack) {
    const Key key = {weight->storage, weight->offset, groups};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = entries_.find(key);
      if (found != entries_.end() && found->second.is_of(weight)) return found->second.panels;
    }
    Packed made = {alias(weight), weight.version(), pack()};
    const Tensor panels = made.panels;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(entries_, [](const auto& entry) { return __atomic_load_n(&entry.second.weight->storage->refcount, __ATOMIC_RELAXED) == 1; });
    entries_.insert_or_assign(key, std::move(made));
    return panels;
  }

 private:
  // Holds the storage, not the tensor.
  static Tensor alias(const Tensor& t) {
    ArgandTensor* out = nullptr;
    check(api->tensor_alias(t.get(), &out));
    return Tensor::steal(out);
  }

  std::mutex mutex_;
  std::map<Key, Packed> entries_;
};

PackedWeights& packed_weights() {
  static auto* const weights = new PackedWeights;  // outlives other static objects
  return *weights;
}

void check_int8(const char* op, const Tensor& weight) {
  if (weight.dtype() != ARGAND_INT8) fail(ARGAND_DTYPE_ERROR, "%s: got a weight of %s, expected int8", op, kDTypeName[weight.dtype()]);
}

Tensor empty_panels(int64_t panels, int64_t steps) { return empty({panels, steps, kPanel, kStep}, ARGAND_INT8); }

}  // namespace
}  // namespace quant

namespace kernels::cpu {

using namespace quant;

Tensor qlinear_prepack(const Tensor& weight) {
  check_int8("qlinear_prepack", weight);
  return packed_weights().get(weight, 0, [&] {
    const int64_t columns = weight.size(0), k = weight.size(1);
    if (k > kMaxProducts)
      fail(ARGAND_SHAPE_ERROR, "qlinear_prepack: got k = %lld, expected at most %lld", static_cast<long long>(k),
           static_cast<long long>(kMaxProducts));
    const Tensor panels = empty_panels((columns + kPanel - 1) / kPanel, (k + kStep - 1) / kStep + 1);
    pack_panels(weight.data<uint8_t>(), columns, k, weight.stride(0), weight.stride(1), 0, panels.data<int8_t>());
    return panels;
  });
}

Tensor qconv2d_prepack(const Tensor& weight, int64_t groups) {
  check_int8("qconv2d_prepack", weight);
  return packed_weights().get(weight, groups, [&] {
    const int64_t columns = weight.size(0) / groups, channels = weight.size(1), taps = weight.size(2) * weight.size(3);
    const bool is_depthwise = channels == 1 && columns == 1 && groups > 1;
    const int64_t padded = is_depthwise ? 1 : round_up(channels, kStep);
    if (taps * padded > kMaxProducts)
      fail(ARGAND_SHAPE_ERROR, "qconv2d_prepack: got %lld products for a result, expected at most %lld", static_cast<long long>(taps * padded),
           static_cast<long long>(kMaxProducts));
    // [columns, height, width, padded channels]
    const Tensor rows = ops::zeros({weight.size(0), taps * padded}, ARGAND_INT8);
    const Tensor dense = ops::contiguous(weight);
    for (int64_t o = 0; o < weight.size(0); o++)
      for (int64_t c = 0; c < channels; c++)
        for (int64_t t = 0; t < taps; t++) rows.data<int8_t>()[(o * taps + t) * padded + c] = dense.data<int8_t>()[(o * channels + c) * taps + t];
    const int64_t parts = is_depthwise ? 1 : groups, size = weight.size(0) / parts, k = taps * padded;
    const int64_t n_panels = (size + kPanel - 1) / kPanel, steps = (k + kStep - 1) / kStep + 1;
    const Tensor panels = empty_panels(parts * n_panels, steps);
    for (int64_t g = 0; g < parts; g++)
      pack_panels(rows.data<uint8_t>() + g * size * k, size, k, k, 1, 0, panels.data<int8_t>() + g * n_panels * steps * kPanelStep);
    return panels;
  });
}

}  // namespace kernels::cpu
}  // namespace argand
