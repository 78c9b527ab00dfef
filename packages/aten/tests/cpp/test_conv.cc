// Convolution and its gradients against direct sums: strides, dilation, groups, padding, one to three dimensions, thread counts.
#include "packages/aten/generated/kernels.h"
#include "packages/aten/tests/cpp/every_tier.h"

namespace {
using namespace argand;
using namespace testing;
namespace cpu = argand::kernels::cpu;

struct Case {
  int64_t n, in, h, w, out, kh, kw, sh, sw, ph, pw, dh, dw, groups;
  int64_t d = 1, kd = 1, sd = 1, pd = 0, dd = 1;
};

constexpr Case kCases[] = {
    {2, 3, 8, 8, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {2, 4, 6, 5, 4, 3, 2, 2, 1, 0, 1, 1, 2, 2},
    {1, 8, 9, 11, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1},
    {3, 6, 10, 10, 6, 3, 3, 1, 1, 1, 1, 1, 1, 6},
    {2, 6, 13, 9, 12, 5, 3, 2, 3, 2, 1, 1, 2, 6},
    {2, 16, 7, 7, 12, 1, 1, 1, 1, 0, 0, 1, 1, 1},
    {2, 8, 5, 5, 8, 1, 1, 1, 1, 0, 0, 1, 1, 2},
    {2, 6, 9, 9, 5, 1, 1, 2, 2, 0, 0, 1, 1, 1},
    {4, 1, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {1, 3, 23, 20, 8, 7, 7, 2, 2, 3, 3, 1, 1, 1},
    {2, 3, 5, 5, 4, 2, 2, 3, 3, 0, 0, 1, 1, 1},
    {2, 3, 6, 7, 2, 1, 1, 3, 2, 1, 2, 1, 1, 1},
    {1, 20, 12, 30, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {7, 2, 4, 4, 3, 3, 3, 1, 1, 2, 2, 1, 1, 1},
    {2, 5, 6, 6, 5, 3, 3, 1, 1, 4, 4, 3, 3, 1},
    {1, 2, 3, 150, 3, 1, 9, 1, 1, 0, 4, 1, 1, 1},
    {1, 40, 6, 6, 50, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {2, 2, 1, 1, 3, 3, 3, 3, 3, 1, 1, 1, 1, 1},
    {1, 2, 2, 5, 3, 5, 3, 4, 2, 2, 3, 1, 2, 1},
    // Taps that read padding alone for some rows, for all of them; strided; a slice of channels after the other; planes of a kernel's columns.
    {1, 4, 28, 24, 17, 3, 3, 1, 1, 12, 12, 12, 12, 1},
    {1, 3, 20, 20, 16, 3, 3, 1, 1, 36, 36, 36, 36, 1},
    {2, 4, 30, 31, 16, 3, 3, 2, 2, 18, 18, 18, 18, 1},
    {1, 420, 28, 28, 9, 2, 3, 1, 1, 2, 2, 2, 2, 1},
    {2, 3, 14, 13, 18, 2, 5, 1, 1, 1, 2, 1, 1, 1},
    // A channel a group: small planes, long rows, rows of padding alone, one pixel, planes in bands.
    {2, 20, 7, 7, 20, 7, 7, 1, 1, 3, 3, 1, 1, 20},
    {1, 33, 9, 40, 33, 3, 5, 2, 1, 1, 0, 2, 1, 33},
    {2, 9, 3, 6, 9, 3, 3, 1, 1, 5, 4, 1, 1, 9},
    {1, 17, 1, 1, 17, 3, 3, 1, 1, 1, 1, 1, 1, 17},
    {3, 16, 6, 5, 16, 2, 2, 2, 3, 0, 1, 1, 2, 16},
    {1, 8, 130, 120, 8, 3, 3, 1, 1, 1, 1, 1, 1, 8},
    // Small images that are gone through as one, the last fewer; strided and dilated, with strided gradients, 1x1.
    {13, 33, 2, 3, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {20, 9, 6, 6, 96, 3, 3, 2, 1, 1, 1, 1, 2, 1},
    {20, 96, 5, 5, 9, 3, 3, 2, 2, 1, 1, 1, 1, 1},
    {9, 50, 2, 2, 40, 1, 1, 1, 1, 0, 0, 1, 1, 1},
    {150, 20, 4, 4, 40, 2, 3, 1, 1, 0, 1, 1, 1, 1},
    // Few pixels in short rows, whose weight's gradient goes through all of an image at once; rows that are longer than what it takes together.
    {5, 7, 6, 5, 70, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {3, 20, 14, 14, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1},
    {2, 2, 1, 300, 520, 1, 4, 1, 2, 0, 1, 1, 1, 1},
    // Kernels as large as the input; as large in a group.
    {7, 19, 4, 3, 33, 4, 3, 2, 1, 0, 0, 1, 1, 1},
    {3, 6, 4, 4, 8, 4, 4, 1, 1, 0, 0, 1, 1, 2},
    {5, 9, 1, 1, 6, 1, 1, 1, 1, 0, 0, 1, 1, 1},
    // Lanes that are images: full groups and a last one that is smaller, pixels without taps, strided, dilated, one row.
    {37, 18, 4, 4, 21, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {16, 24, 4, 3, 24, 3, 3, 1, 1, 2, 2, 1, 1, 1},
    {70, 40, 6, 7, 17, 4, 4, 2, 2, 1, 1, 1, 1, 1},
    {33, 20, 1, 9, 30, 1, 5, 1, 2, 0, 4, 1, 2, 1},
    {20, 130, 3, 3, 12, 3, 3, 1, 1, 3, 3, 2, 2, 1},
};

constexpr Case kVolumes[] = {
    {2, 3, 6, 5, 9, 3, 2, 1, 1, 1, 0, 1, 1, 1, 5, 3, 1, 1, 1},
    {1, 4, 7, 6, 8, 3, 3, 2, 2, 1, 1, 1, 1, 2, 6, 3, 2, 1, 1},
    {2, 6, 5, 5, 6, 2, 3, 1, 2, 0, 1, 1, 1, 6, 4, 2, 3, 2, 1},
    {1, 2, 6, 6, 3, 3, 3, 1, 1, 2, 2, 2, 2, 1, 5, 3, 2, 4, 3},
    {3, 5, 3, 4, 7, 1, 1, 1, 1, 0, 0, 1, 1, 1, 3, 1, 1, 0, 1},
    {1, 5, 4, 4, 4, 1, 1, 2, 2, 0, 0, 1, 1, 1, 5, 1, 2, 0, 1},
    {19, 20, 3, 2, 24, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 3, 1, 1, 1},
    {1, 2, 24, 26, 16, 3, 3, 1, 1, 12, 12, 12, 12, 1, 3, 3, 1, 2, 2},
    {1, 2, 3, 3, 4, 2, 2, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 2, 1},
    // Layers that are gone through as one image: dilated in depth and in groups, strided across it, with more padding than taps reach, in segments.
    {2, 20, 4, 4, 70, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 3, 1, 1, 1},
    {2, 40, 3, 5, 66, 3, 2, 1, 1, 1, 0, 1, 1, 2, 5, 2, 1, 2, 2},
    {2, 33, 6, 6, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1, 4, 3, 1, 0, 1},
    {1, 40, 2, 2, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 3, 2, 1, 3, 1},
    {1, 24, 4, 2, 34, 3, 3, 1, 1, 1, 1, 1, 1, 1, 16, 5, 1, 2, 1},
};

// Calls f(output index, input index, weight index) for every product of the convolution.
template <class F>
void for_products(const Case& c, int64_t od, int64_t oh, int64_t ow, F f) {
  const int64_t in = c.in / c.groups, out = c.out / c.groups;
  for (int64_t at = 0; at < c.n * c.out * od * oh * ow; at++) {
    const int64_t x = at % ow, y = at / ow % oh, z = at / ow / oh % od, o = at / ow / oh / od % c.out, n = at / ow / oh / od / c.out;
    for (int64_t q = 0; q < in; q++)
      for (int64_t t = 0; t < c.kd; t++)
        for (int64_t i = 0; i < c.kh; i++)
          for (int64_t j = 0; j < c.kw; j++) {
            const int64_t p = z * c.sd - c.pd + t * c.dd, r = y * c.sh - c.ph + i * c.dh, s = x * c.sw - c.pw + j * c.dw;
            if (p < 0 || p >= c.d || r < 0 || r >= c.h || s < 0 || s >= c.w) continue;
            f(at, (((n * c.in + o / out * in + q) * c.d + p) * c.h + r) * c.w + s, (((o * in + q) * c.kd + t) * c.kh + i) * c.kw + j);
          }
  }
}

void check_all(const char* what, const Tensor& got, const std::vector<double>& want) {
  CHECK(got.numel() == static_cast<int64_t>(want.size()));
  double scale = 1;
  for (double v : want) scale = std::max(scale, std::fabs(v));
  for (int64_t i = 0; i < got.numel(); i++) check_close(what, at(got, i), want[static_cast<size_t>(i)], got.dtype(), scale);
}

std::vector<double> zeros(int64_t n) { return std::vector<double>(static_cast<size_t>(n)); }

// The last `dims` of three numbers, after `front`.
std::vector<int64_t> last(int dims, std::vector<int64_t> numbers, std::vector<int64_t> front = {}) {
  front.insert(front.end(), numbers.end() - dims, numbers.end());
  return front;
}

void run_case(const Case& c, int dtype, int threads, int dims) {
  api->set_num_threads(threads);
  const Tensor x = real_tensor(last(dims, {c.d, c.h, c.w}, {c.n, c.in}), dtype),
               w = real_tensor(last(dims, {c.kd, c.kh, c.kw}, {c.out, c.in / c.groups}), dtype), b = real_tensor({c.out}, dtype);
  const std::vector<int64_t> stride = last(dims, {c.sd, c.sh, c.sw}), padding = last(dims, {c.pd, c.ph, c.pw}),
                             dilation = last(dims, {c.dd, c.dh, c.dw});
  const Tensor y = cpu::convolution(x, w, b, stride, padding, dilation, c.groups);
  const int64_t od = dims > 2 ? y.size(2) : 1, oh = dims > 1 ? y.size(-2) : 1, ow = y.size(-1);
  const Tensor g = real_tensor(y.sizes(), dtype);
  auto out = zeros(y.numel()), dx = zeros(x.numel()), dw = zeros(w.numel()), db = zeros(c.out);
  for (int64_t i = 0; i < y.numel(); i++) {
    out[static_cast<size_t>(i)] = at(b, i / (od * oh * ow) % c.out);
    db[static_cast<size_t>(i / (od * oh * ow) % c.out)] += at(g, i);
  }
  std::vector<double> vx = zeros(x.numel()), vw = zeros(w.numel()), vg = zeros(g.numel());
  for (int64_t i = 0; i < x.numel(); i++) vx[static_cast<size_t>(i)] = at(x, i);
  for (int64_t i = 0; i < w.numel(); i++) vw[static_cast<size_t>(i)] = at(w, i);
  for (int64_t i = 0; i < g.numel(); i++) vg[static_cast<size_t>(i)] = at(g, i);
  for_products(c, od, oh, ow, [&](int64_t o, int64_t i, int64_t k) {
    const size_t a = static_cast<size_t>(o), d = static_cast<size_t>(i), e = static_cast<size_t>(k);
    out[a] += vx[d] * vw[e];
    dx[d] += vg[a] * vw[e];
    dw[e] += vg[a] * vx[d];
  });
  check_all("convolution", y, out);
  const auto [gx, gw, gb] = cpu::convolution_backward(g, x, w, stride, padding, dilation, c.groups, {1, 1, 1});
  check_all("gradient of input", gx, dx);
  check_all("gradient of weight", gw, dw);
  check_all("gradient of bias", gb, db);
}

void cases() {
  for (const Case& c : kCases)
    for (int dtype : kFloating)
      for (int threads : {1, 3}) run_case(c, dtype, threads, 2);
  for (const Case& c : kVolumes)
    for (int dtype : {ARGAND_FLOAT32, ARGAND_BFLOAT16})
      for (int threads : {1, 3}) run_case(c, dtype, threads, 3);
  api->set_num_threads(2);
}

void one_dimension() {
  run_case({5, 3, 1, 17, 7, 1, 5, 1, 2, 0, 3, 1, 2, 1}, ARGAND_FLOAT32, 2, 1);
  run_case({2, 4, 1, 20, 4, 1, 3, 1, 3, 0, 0, 1, 1, 2}, ARGAND_FLOAT64, 2, 1);
  run_case({3, 40, 1, 77, 40, 1, 31, 1, 1, 0, 15, 1, 1, 40}, ARGAND_FLOAT32, 2, 1);
  // Kernels whose last taps begin a row later than the first.
  run_case({1, 2, 1, 1500, 2, 1, 1200, 1, 1, 0, 0, 1, 1, 2}, ARGAND_FLOAT32, 1, 1);
  run_case({1, 1, 1, 1500, 5, 1, 2, 1, 1, 0, 0, 1, 1400, 1}, ARGAND_FLOAT32, 1, 1);
}

void empties_and_masks() {
  const Tensor x = empty({0, 3, 5, 5}, ARGAND_FLOAT32), w = real_tensor({4, 3, 3, 3}, ARGAND_FLOAT32);
  const Tensor y = cpu::convolution(x, w, Tensor(), {1, 1}, {0, 0}, {1, 1}, 1);
  CHECK(y.sizes() == IntList({0, 4, 3, 3}));
  const auto [dx, dw, db] = cpu::convolution_backward(y, x, w, {1, 1}, {0, 0}, {1, 1}, 1, {0, 1, 1});
  CHECK(!dx && dw.sizes() == w.sizes());
  for (int64_t i = 0; i < dw.numel(); i++) CHECK(at(dw, i) == 0);
  for (int64_t i = 0; i < 4; i++) CHECK(at(db, i) == 0);
  run_case({64, 3, 0, 5, 4, 2, 2, 1, 1, 2, 2, 1, 1, 1}, ARGAND_FLOAT32, 2, 2);  // many images that are padding alone
}

// What is not finite reaches the taps that read it, no others: not those that find it between two rows of pixels.
void only_taps_that_read_it() {
  for (double special : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (int64_t out : {1, 5}) {
      const Tensor x = real_tensor({2, 1, 4, 6}, ARGAND_FLOAT32), w = real_tensor({out, 1, 2, 3}, ARGAND_FLOAT32),
                   grad = real_tensor({2, out, 3, 4}, ARGAND_FLOAT32);
      for (int64_t i = 0; i < grad.numel(); i++) grad.data<float>()[i] = 1;
      x.data<float>()[24 + 6] = static_cast<float>(special);  // the first pixel of a row
      const Tensor dw = std::get<1>(cpu::convolution_backward(grad, x, w, {1, 1}, {0, 0}, {1, 1}, 1, {0, 1, 0}));
      for (int64_t i = 0; i < dw.numel(); i++) CHECK(std::isfinite(dw.data<float>()[i]) == (i % 3 > 0));
    }
}

void errors() {
  const Tensor x = real_tensor({1, 3, 4, 4}, ARGAND_FLOAT32), w = real_tensor({2, 4, 3, 3}, ARGAND_FLOAT32),
               v = real_tensor({2, 3, 5, 5}, ARGAND_FLOAT32);
  CHECK_THROWS("expected input[1, 3, 4, 4] to have 4 channels, but got 3 channels instead",
               cpu::convolution(x, w, Tensor(), {1, 1}, {0, 0}, {1, 1}, 1));
  CHECK_THROWS("Kernel size can't be greater", cpu::convolution(x, v, Tensor(), {1, 1}, {0, 0}, {1, 1}, 1));
  CHECK_THROWS("positive strides", cpu::convolution(x, v, Tensor(), {0, 1}, {1, 1}, {1, 1}, 1));
  CHECK_THROWS("expected bias to be 1-dimensional with 2 elements", cpu::convolution(x, v, x, {1, 1}, {1, 1}, {1, 1}, 1));
  CHECK_THROWS("same dtype", cpu::convolution(real_tensor({1, 3, 8, 8}, ARGAND_FLOAT64), v, Tensor(), {1, 1}, {0, 0}, {1, 1}, 1));
}

void tests() {
  RUN(cases);
  RUN(one_dimension);
  RUN(empties_and_masks);
  RUN(only_taps_that_read_it);
  RUN(errors);
}
}  // namespace

int main() { return run_in_every_tier(tests); }
