#include "packages/quant/csrc/gemm/product.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "packages/quant/csrc/quantize/parameters.h"

namespace argand::quant {

const GemmKernels& gemm_kernels() {
  // The highest tier multiplies by VNNI, which the first processors with AVX-512 lack.
  static const bool has_vnni = __builtin_cpu_supports("avx512vnni");
  const int tier = api->cpu_tier();
  return tier == 2 && has_vnni ? tier_avx512::gemm_kernels : tier >= 1 ? tier_avx2::gemm_kernels : tier_baseline::gemm_kernels;
}

// ---- tiles over threads ------------------------------------------------------------------------------------------------
namespace {

constexpr int kOutSize[kNumOutKinds] = {1, 1, 4, 2};
constexpr int kOtherSize[kNumOtherKinds] = {0, 1, 1, 4};
constexpr int64_t kGrain = 1 << 19;  // products that are worth another thread

const uint8_t* row_at(const Rows& rows, int64_t r) {
  const int64_t outer = r / rows.inner;
  return rows.data + r % rows.inner * rows.strides[0] + outer % rows.middle * rows.strides[1] + outer / rows.middle * rows.strides[2];
}

Finish at(const Product& p, int64_t row, int64_t column) {
  Finish f = p.finish;
  const int64_t offset = row * f.out_stride + column;
  f.column_term += column;
  f.factor += column;
  f.bias += column;
  if (f.row_term) f.row_term += row;
  if (f.other) f.other = static_cast<const char*>(f.other) + offset * kOtherSize[p.other_kind];
  f.out = static_cast<char*>(f.out) + offset * kOutSize[p.out_kind];
  return f;
}

void run_block(const Product& p, const GemmKernels& kernels, int64_t begin, int64_t end, int64_t column) {
  alignas(64) int32_t sums[kMaxRows * kTileColumns];
  const int64_t steps = static_cast<int64_t>(p.taps.size()) * p.depth + 1;
  const int64_t columns = std::min<int64_t>(p.n_columns - column, kernels.panels * kPanel);
  Tile tile;
  tile.taps = p.taps.data();
  tile.n_taps = static_cast<int64_t>(p.taps.size());
  tile.depth = p.depth;
  tile.panel_stride = steps * kPanelStep;
  tile.panels = p.panels + column / kPanel * tile.panel_stride;
  tile.n_panels = static_cast<int>((columns + kPanel - 1) / kPanel);
  tile.sums = sums;
  const auto finish = kernels.finish[p.other_kind][p.out_kind];
  for (int64_t row = begin; row < end; row += kernels.rows) {
    tile.n_rows = static_cast<int>(std::min<int64_t>(end - row, kernels.rows));
    for (int r = 0; r < tile.n_rows; r++) tile.rows[r] = row_at(p.rows, row + r);
    kernels.tile(tile);
    finish(sums, tile.n_rows, static_cast<int>(columns), at(p, row, column));
  }
}

}  // namespace

void run(const Product& p) {
  if (p.n_rows == 0 || p.n_columns == 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const int64_t width = kernels.panels * kPanel, groups = (p.n_columns + width - 1) / width;
  const int64_t tiles = (p.n_rows + kernels.rows - 1) / kernels.rows;
  // Columns first: a group's panels stay in the second cache while all rows pass.
  const int64_t wanted = (4 * api->num_threads() + groups - 1) / groups;
  const int64_t blocks = std::clamp<int64_t>(wanted, 1, tiles), rows = (tiles + blocks - 1) / blocks * kernels.rows;
  const int64_t products = rows * width * static_cast<int64_t>(p.taps.size()) * std::max<int64_t>(p.depth, 1) * kStep;
  parallel_for(0, groups * blocks, std::max<int64_t>(1, kGrain / products), [&](int64_t b, int64_t e) {
    for (int64_t unit = b; unit < e; unit++) {
      const int64_t begin = unit % blocks * rows;
      run_block(p, kernels, begin, std::min(begin + rows, p.n_rows), unit / blocks * width);
    }
  });
}

namespace {

// [panels][taps][16], from panels of steps of four taps.
std::vector<int32_t> widened(const Product& p) {
  const auto n_taps = static_cast<int64_t>(p.taps.size());
  const int64_t steps = (n_taps + kStep - 1) / kStep + 1, panels = (p.n_columns + kPanel - 1) / kPanel;
  std::vector<int32_t> weights(panels * n_taps * kPanel);
  for (int64_t panel = 0; panel < panels; panel++)
    for (int64_t t = 0; t < n_taps; t++) {
      const int8_t* from = p.panels + (panel * steps + t / kStep) * kPanelStep + t % kStep;
      for (int c = 0; c < kPanel; c++) weights[(panel * n_taps + t) * kPanel + c] = from[c * kStep];
    }
  return weights;
}

}  // namespace

void run_depthwise(const Product& p) {
  if (p.n_rows == 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const auto n_taps = static_cast<int64_t>(p.taps.size());
  const std::vector<int32_t> weights = widened(p);
  const auto finish = kernels.finish[p.other_kind][p.out_kind];
  const int64_t lines = p.n_rows / p.rows.inner;
  parallel_for(0, lines, std::max<int64_t>(1, kGrain / (n_taps * p.n_columns * p.rows.inner * kStep)), [&](int64_t b, int64_t e) {
    alignas(64) int32_t sums[kDepthwiseRows * kTileColumns];
    for (int64_t line = b; line < e; line++)
      for (int64_t x = 0; x < p.rows.inner; x += kDepthwiseRows) {
        const int64_t row = line * p.rows.inner + x;
        const uint8_t* from = row_at(p.rows, row);
        const int n = static_cast<int>(std::min<int64_t>(kDepthwiseRows, p.rows.inner - x));
        for (int64_t column = 0; column < p.n_columns; column += kTileColumns) {
          const int columns = static_cast<int>(std::min<int64_t>(kTileColumns, p.n_columns - column));
          for (int c = 0; c < columns; c += kPanel)
            kernels.depthwise(from + column + c, p.rows.strides[0], n, p.taps.data(), n_taps, weights.data() + (column + c) * n_taps, sums + c);
          finish(sums, n, columns, at(p, row, column));
        }
      }
  });
}

// ---- from arguments to results -----------------------------------------------------------------------------------------
Activation activation_of(const char* op, const Tensor& t, double scale, int64_t zero_point) {
  if (t.dtype() != ARGAND_UINT8 && t.dtype() != ARGAND_INT8)
    fail(ARGAND_DTYPE_ERROR, "%s: got an input of %s, expected uint8 or int8", op, kDTypeName[t.dtype()]);
  const bool flip = t.dtype() == ARGAND_INT8;
  const int64_t low = flip ? -128 : 0;
  if (zero_point < low || zero_point > low + 255)
    fail(ARGAND_VALUE_ERROR, "%s: got zero point %lld, expected one in the range of %s", op, static_cast<long long>(zero_point),
         kDTypeName[t.dtype()]);
  return {checked_scale(op, scale), static_cast<int32_t>(zero_point) + (flip ? 128 : 0), flip};
}

Columns::Columns(const char* op, const Activation& input, const Tensor& scales, const Tensor& bias, int64_t n) : term_(n), factor_(n), bias_(n) {
  if ((scales.numel() != n && scales.numel() != 1) || (bias && bias.numel() != n))
    fail(ARGAND_SHAPE_ERROR, "%s: got %lld scales of the weight and a bias of %lld, expected %lld of each", op,
         static_cast<long long>(scales.numel()), static_cast<long long>(bias ? bias.numel() : n), static_cast<long long>(n));
  const Tensor s = as_float32(scales), b = bias ? as_float32(bias) : Tensor();
  for (int64_t i = 0; i < n; i++) factor_[i] = input.scale * s.data<float>()[scales.numel() == 1 ? 0 : i];
  if (b) std::copy_n(b.data<float>(), n, bias_.begin());
}

void Columns::subtract_zero_point(const int8_t* panels, int64_t steps, int64_t first, int64_t n, int32_t zero_point) {
  for (int64_t i = 0; i < n; i++) {
    int32_t sum;
    std::memcpy(&sum, panels + (i / kPanel * steps + steps - 1) * kPanelStep + i % kPanel * 4, 4);
    term_[first + i] = static_cast<int32_t>(static_cast<uint32_t>(sum) * static_cast<uint32_t>(zero_point));
  }
}

namespace {

int out_kind(const char* op, int dtype) {
  switch (dtype) {
    case ARGAND_UINT8:
      return kOutUInt8;
    case ARGAND_INT8:
      return kOutInt8;
    case ARGAND_FLOAT32:
      return kOutFloat32;
    case ARGAND_BFLOAT16:
      return kOutBFloat16;
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got output_dtype %s, expected uint8, int8, float32 or bfloat16", op, kDTypeName[dtype]);
  }
}

int other_kind(const char* op, const Tensor& other) {
  if (!other) return kNoOther;
  switch (other.dtype()) {
    case ARGAND_UINT8:
      return kOtherUInt8;
    case ARGAND_INT8:
      return kOtherInt8;
    case ARGAND_FLOAT32:
      return kOtherFloat32;
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got %s as the other summand, expected uint8, int8 or float32", op, kDTypeName[other.dtype()]);
  }
}

float floor_of(const char* op, std::string_view post_op) {
  if (post_op == "relu") return 0.0f;
  if (post_op != "none")
    fail(ARGAND_VALUE_ERROR, "%s: got post_op '%.*s', expected 'none' or 'relu'", op, static_cast<int>(post_op.size()), post_op.data());
  return -std::numeric_limits<float>::infinity();
}

}  // namespace

void Columns::finish(const char* op, const Outcome& outcome, int64_t first, Product& product, void* out, int64_t out_stride) const {
  Finish& f = product.finish;
  f = {};
  product.out_kind = out_kind(op, outcome.dtype);
  product.other_kind = other_kind(op, outcome.other);
  f.column_term = term_.data() + first;
  f.factor = factor_.data() + first;
  f.bias = bias_.data() + first;
  if (outcome.other) {
    f.other = outcome.other.data<const char>() + first * outcome.other.itemsize();
    const bool is_real = outcome.other.dtype() == ARGAND_FLOAT32;
    f.other_scale = is_real ? 1.0f : checked_scale(op, outcome.other_scale);
    f.other_zero_point = is_real ? 0.0f : static_cast<float>(checked_zero_point(op, outcome.other_zero_point));
  }
  f.floor = floor_of(op, outcome.post_op);
  if (product.out_kind == kOutUInt8 || product.out_kind == kOutInt8) {
    checked_scale(op, outcome.scale);
    f.inverse = static_cast<float>(1.0 / outcome.scale);
    f.zero_point = static_cast<float>(checked_zero_point(op, outcome.zero_point));
    f.low = product.out_kind == kOutInt8 ? -128.0f : 0.0f;
    f.high = f.low + 255.0f;
  }
  f.out = static_cast<char*>(out) + first * kOutSize[product.out_kind];
  f.out_stride = out_stride;
}

}  // namespace argand::quant
