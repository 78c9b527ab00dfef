// Integer matrix products: micro-kernels on packed weights, one table a tier.
//
// Packed weights are panels of 16 columns: `steps` times [16 columns][4 consecutive k] int8, then the 16 columns' sums as int32. Columns
// and k beyond the end are zeros. The format is the same for every tier, so that packed weights may be kept in files.
#pragma once

#include <cstdint>

#include "packages/quant/csrc/tiers.h"

namespace argand::quant {

constexpr int kPanel = 16;      // columns of a panel
constexpr int kStep = 4;        // k of a step
constexpr int kPanelStep = 64;  // bytes of a step of a panel
constexpr int kMaxRows = 6;     // of a tile
constexpr int kMaxPanels = 4;   // of a tile
constexpr int kTileColumns = kMaxPanels * kPanel;
constexpr int kDepthwiseRows = 8;  // at most, of a call of `depthwise`

// sums[r][c] = sum over k of row r's bytes (unsigned) times column c's (signed), modulo 2^32.
struct Tile {
  const uint8_t* rows[kMaxRows];  // the first byte of each row
  const int64_t* taps;            // a row is read at each of these offsets,
  int64_t n_taps, depth;          // `depth` steps of 4 bytes
  const int8_t* panels;
  int64_t panel_stride;  // bytes
  int n_rows, n_panels;
  int32_t* sums;  // [n_rows][kTileColumns]
};

enum OutKind { kOutUInt8 = 0, kOutInt8, kOutFloat32, kOutBFloat16, kNumOutKinds };
enum OtherKind { kNoOther = 0, kOtherUInt8, kOtherInt8, kOtherFloat32, kNumOtherKinds };

// From sums to results; the arithmetic is that of registry/integer.yaml. Arrays of columns begin at the first column.
struct Finish {
  const int32_t* column_term;  // subtracted from the sums
  const float* factor;         // of columns
  const float* bias;           // of columns
  const int32_t* row_term;     // of rows, subtracted from the sums; may be NULL
  const void* other;           // added, of other_kind; rows as far apart as the result's
  float other_scale, other_zero_point;
  float floor;  // 0 for relu, else -infinity
  float inverse, zero_point, low, high;
  void* out;
  int64_t out_stride;  // elements from row to row
};

struct GemmKernels {
  int rows;    // of a whole tile
  int panels;  // of a whole tile
  void (*tile)(const Tile& tile);
  void (*finish[kNumOtherKinds][kNumOutKinds])(const int32_t* sums, int rows, int columns, const Finish& f);
  // sums[r][c] of 16 columns, each with bytes of its own: the sum over taps of row[r * stride + taps[t] + c] * weights[t][c]. Weights are
  // numbers of 8 bits, widened.
  void (*depthwise)(const uint8_t* row, int64_t stride, int n_rows, const int64_t* taps, int64_t n_taps, const int32_t* weights, int32_t* sums);
  // Rows of bytes with 128 added modulo 256 (from int8 to uint8) if `flip`, and their sums.
  int32_t (*copy_row)(int64_t n, const uint8_t* from, uint8_t* to, int flip);
  // out[i] = the greatest of rows[..][i], as uint8 and as int8; the least number of the type without rows.
  void (*largest[2])(int64_t n, const uint8_t* const* rows, int64_t n_rows, uint8_t* out);
  // to[c][r] = from[r][c], by exclusive or with `mask`; strides in bytes from row to row of each.
  void (*transpose)(int64_t rows, int64_t columns, const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride, uint8_t mask);
};

ARGAND_TIER_TABLES(GemmKernels, gemm_kernels)

const GemmKernels& gemm_kernels();  // of the processor's tier

}  // namespace argand::quant
