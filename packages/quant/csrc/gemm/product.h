// A product of integers over threads: tiles of rows and columns, then results.
#pragma once

#include <string_view>
#include <vector>

#include "packages/c10/csrc/abi/tensor.h"
#include "packages/quant/csrc/gemm/gemm.h"

namespace argand::quant {

constexpr int64_t kMaxProducts = 65793;  // of extreme integers, whose sum fits 32 bits

// Row r of a product lies at data + (r % inner) * strides[0] + (r / inner % middle) * strides[1] + (r / inner / middle) * strides[2].
struct Rows {
  const uint8_t* data;
  int64_t inner, middle, strides[3];
};

struct Product {
  Rows rows;
  int64_t n_rows, n_columns;
  std::vector<int64_t> taps;
  int64_t depth;
  const int8_t* panels;
  Finish finish;
  int other_kind, out_kind;
};

void run(const Product& product);
// Each column has bytes of its own, at `data` + column of each row; a step of a panel holds four taps.
void run_depthwise(const Product& product);

// What results are made from, as the operators' arguments say.
struct Outcome {
  double scale = 1;
  int64_t zero_point = 0;
  int dtype;
  Tensor other;
  double other_scale = 1;
  int64_t other_zero_point = 0;
  std::string_view post_op = "none";
};

// uint8 values as they are, int8 values with 128 added, the zero point too.
struct Activation {
  float scale;
  int32_t zero_point;
  bool flip;
};
Activation activation_of(const char* op, const Tensor& t, double scale, int64_t zero_point);

// The arrays that Finish points into.
class Columns {
 public:
  // `scales` of the columns, or of them all; `bias` may be undefined.
  Columns(const char* op, const Activation& input, const Tensor& scales, const Tensor& bias, int64_t n);
  // The columns' part of the sums that the input's zero point makes, from packed panels of `steps` steps (the last holds the columns' sums).
  void subtract_zero_point(const int8_t* panels, int64_t steps, int64_t first, int64_t n, int32_t zero_point);
  // Completes `product` for its columns, the first of which is `first` here; `out` is where its first result goes.
  void finish(const char* op, const Outcome& outcome, int64_t first, Product& product, void* out, int64_t out_stride) const;

 private:
  std::vector<int32_t> term_;
  std::vector<float> factor_, bias_;
};

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// [columns, k] int8, any strides, into panels of round_up(k, 4) / 4 + 1 steps; adds `flip` (0 or 0x80, by exclusive or) to each byte first.
void pack_panels(const uint8_t* weight, int64_t columns, int64_t k, int64_t column_stride, int64_t k_stride, uint8_t flip, int8_t* panels);

}  // namespace argand::quant
