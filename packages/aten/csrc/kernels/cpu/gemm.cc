// mm, bmm, addmm, linear. Floating products go to OpenBLAS in tiles of our own, small ones to the tile kernels; for an epilogue in blocks of rows.
#include "packages/aten/csrc/kernels/cpu/gemm.h"

#include <algorithm>
#include <numeric>

#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/csrc/kernels/cpu/blas.h"
#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/epilogue.h"
#include "packages/aten/csrc/kernels/cpu/gemm_bf16.h"
#include "packages/aten/csrc/kernels/cpu/util.h"
#include "packages/aten/generated/kernels.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cpu {
namespace {

constexpr int64_t kSmallProduct = 8192;       // multiply-adds below which a library call costs more than it saves
constexpr int64_t kParallelProduct = 400000;  // multiply-adds worth more than one thread

// Of the parts that an epilogue is given: bytes that stay in the last-level cache, rows that are worth packing the other matrix again, and
// multiply-adds that are worth a part.
constexpr int64_t kPartBytes = 2 << 20, kPartRows = 512, kPartProduct = 2 << 20;

// Products for which packing a matrix costs OpenBLAS more than our tiles lose: dot products of few rows, and few rows by a matrix whose rows are
// short. Up to kLibraryProduct multiply-adds it does not pack, and may sum in another order.
constexpr int64_t kFewRows = 64, kFewComplexRows = 4, kFewTileRows = 32, kTileColumns = 1024, kLibraryProduct = 1000000;

// Rows and columns of parts are multiples of these. Rows: the most that OpenBLAS's kernels of any tier take at once, so that only a matrix's own last
// rows are summed by the kernels for remainders. Columns: of a register; a part has about kPartColumns of them.
constexpr int64_t kRowStep = 24, kColumnStep = 16, kPartColumns = 1024;

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

struct Operand2d {
  int trans;
  int64_t ld;
};

// How BLAS sees a matrix; false if neither stride is 1.
bool blas_layout(const Matrix& x, int64_t rows, int64_t cols, Operand2d* out) {
  if ((x.col_stride == 1 || cols == 1) && (x.row_stride >= cols || rows == 1)) {
    *out = {kNoTrans, rows == 1 ? (cols > 1 ? cols : 1) : x.row_stride};
    return true;
  }
  if ((x.row_stride == 1 || rows == 1) && (x.col_stride >= rows || cols == 1)) {
    *out = {kTrans, cols == 1 ? (rows > 1 ? rows : 1) : x.col_stride};
    return true;
  }
  return false;
}

template <class E>
const E* at(const Matrix& x, int64_t row, int64_t col) {
  return static_cast<const E*>(x.data) + row * x.row_stride + col * x.col_stride;
}

template <class E>
Tensor dense_matrix(int dtype, const Matrix& x, int64_t rows, int64_t cols) {
  Tensor t = empty({rows, cols}, dtype);
  const int64_t sizes[2] = {rows, cols}, from[2] = {x.row_stride, x.col_stride};
  strided_copy(sizeof(E), 2, sizes, t->data, t->strides, x.data, from);
  return t;
}

// How [m, n] is cut into parts: as evenly as the steps allow.
struct Grid {
  int64_t m, n, rows = 1, cols = 1;  // parts
  static int64_t start(int64_t i, int64_t parts, int64_t size, int64_t step) {
    return i == parts ? size : (i * size / parts + step / 2) / step * step;
  }
  static int64_t least(int64_t parts, int64_t size, int64_t step) {  // of a part, or less; below 1 there are too many parts
    return parts == 1 ? size : std::min(size / parts / step * step, size - start(parts - 1, parts, size, step));
  }
  int64_t row(int64_t i) const { return start(i, rows, m, kRowStep); }
  int64_t col(int64_t j) const { return start(j, cols, n, kColumnStep); }
  int64_t least_rows() const { return least(rows, m, kRowStep); }
  int64_t least_cols() const { return least(cols, n, kColumnStep); }
};

// For kernels whose sums do not depend on where an element lies: about a part for each thread, and none long and narrow.
Grid free_grid(int64_t m, int64_t n, int64_t k, int64_t threads) {
  Grid grid{m, n};
  if (threads <= 1 || m * n * k < kParallelProduct) return grid;
  double best = 1e300;
  for (int64_t g = 1; g <= threads; g++) {
    const Grid other{m, n, g, threads / g};
    if (threads % g || other.least_rows() <= 0 || other.least_cols() <= 0) continue;
    const double cost = 2 * static_cast<double>(m) / static_cast<double>(g) + static_cast<double>(n) / static_cast<double>(threads / g);
    if (cost <= best) best = cost, grid = other;
  }
  return grid;
}

// For OpenBLAS, whose sums depend on an element's column, and on whether a product is so small that other kernels take it: the cuts that change
// bits are the same for any number of threads; large parts' rows, which leave every bit as it is, are cut by it. No threads: a part, not to be cut.
Grid library_grid(int64_t m, int64_t n, int64_t k, int64_t threads) {
  Grid grid{m, n};
  if (threads == 0 || m * n * k < kParallelProduct) return grid;
  if ((n > 2 * m || m < 2 * kRowStep) && n >= 2 * kColumnStep)
    while (grid.cols < 2 || grid.cols * kPartColumns < n) grid.cols *= 2;
  const int64_t column = grid.least_cols() * k;
  if (grid.cols == 1 && m >= 2 * kRowStep) {
    grid.rows = 2;
    if (grid.least_rows() * column <= kLibraryProduct) return grid;
  }
  for (grid.rows = threads / std::gcd(threads, grid.cols); grid.rows > 1 && grid.least_rows() * column <= kLibraryProduct;) grid.rows--;
  return grid;
}

// Calls f(i, rows, j, cols) for each part, in parallel if there are threads.
template <class F>
void for_parts(const Grid& grid, int64_t threads, F&& f) {
  const int64_t parts = grid.rows * grid.cols;
  parallel_for(0, parts, threads > 1 ? 1 : parts, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; t++) {
      const int64_t i = t / grid.cols, j = t % grid.cols;
      f(grid.row(i), grid.row(i + 1) - grid.row(i), grid.col(j), grid.col(j + 1) - grid.col(j));
    }
  });
}

template <class E>
void call_blas(const Blas& lib, int ta, int tb, int64_t m, int64_t n, int64_t k, double alpha, const E* a, int64_t lda, const E* b, int64_t ldb,
               double beta, E* c, int64_t ldc) {
  const BlasCall call("gemm");
  if constexpr (std::is_same_v<E, float>) {
    lib.sgemm(kRowMajor, ta, tb, m, n, k, static_cast<float>(alpha), a, lda, b, ldb, static_cast<float>(beta), c, ldc);
  } else if constexpr (std::is_same_v<E, double>) {
    lib.dgemm(kRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  } else if constexpr (std::is_same_v<E, complex64>) {
    const float x[2] = {static_cast<float>(alpha), 0}, y[2] = {static_cast<float>(beta), 0};
    lib.cgemm(kRowMajor, ta, tb, m, n, k, x, a, lda, b, ldb, y, c, ldc);
  } else {
    const double x[2] = {alpha, 0}, y[2] = {beta, 0};
    lib.zgemm(kRowMajor, ta, tb, m, n, k, x, a, lda, b, ldb, y, c, ldc);
  }
}

template <class E>
void scale_rows(int64_t m, int64_t n, E beta, E* c, int64_t ldc) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) c[i * ldc + j] = beta == E(0) ? E(0) : static_cast<E>(beta * c[i * ldc + j]);
}

// Without BLAS: k in blocks that keep a panel of b in the second-level cache.
template <class E>
void tile_gemm(int64_t m, int64_t n, int64_t k, E alpha, const Matrix& a, const Matrix& b, E beta, E* c, int64_t ldc, int64_t threads) {
  constexpr int64_t kDepth = 256, kWidth = 48 * 8;
  const auto& kernels = tile_kernels<E>();
  for_parts(free_grid(m, n, k, threads), threads, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
    if (beta != E(1)) scale_rows(rows, cols, beta, c + i * ldc + j, ldc);
    for (int64_t p = 0; p < k; p += kDepth)
      for (int64_t q = 0; q < cols; q += kWidth)
        kernels.multiply(rows, q + kWidth < cols ? kWidth : cols - q, p + kDepth < k ? kDepth : k - p, alpha, at<E>(a, i, p), a.row_stride,
                         a.col_stride, at<E>(b, p, j + q), b.row_stride, true, c + i * ldc + j + q, ldc);
  });
}

template <class E>
void gemm_floating(int dtype, int64_t m, int64_t n, int64_t k, double alpha, Matrix a, Matrix b, double beta, E* c, int64_t ldc, int64_t threads) {
  if (k == 0) return scale_rows(m, n, static_cast<E>(beta), c, ldc);
  const bool b_rows = b.col_stride == 1 || n == 1;
  const bool along_k = (b.row_stride == 1 || k == 1) && (a.col_stride == 1 || k == 1), adds = beta == 0 || beta == 1;
  if (m * n * k <= kSmallProduct) {
    if (b_rows && adds && !(n == 1 && along_k && alpha == 1))  // one column fills one lane
      return tile_kernels<E>().multiply(m, n, k, static_cast<E>(alpha), at<E>(a, 0, 0), a.row_stride, a.col_stride, at<E>(b, 0, 0), b.row_stride,
                                        beta == 1, c, ldc);
  }
  const int64_t few = std::min(m, n);
  if (along_k && adds && alpha == 1 && (m * n * k <= kSmallProduct || (few <= kFewRows && k >= std::max<int64_t>(16, 2 * few))))
    return for_parts(free_grid(m, n, k, threads), threads, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
      tile_kernels<E>().dots(rows, cols, k, at<E>(a, i, 0), a.row_stride, at<E>(b, 0, j), b.col_stride, nullptr, beta == 1, c + i * ldc + j, ldc);
    });
  if (b_rows && m * n * k > kLibraryProduct && (m == 1 || (m <= kFewTileRows && n <= kTileColumns)))
    return tile_gemm<E>(m, n, k, static_cast<E>(alpha), a, b, static_cast<E>(beta), c, ldc, threads);
  Tensor hold_a, hold_b;
  Operand2d x, y;
  if (!blas_layout(a, m, k, &x)) {
    hold_a = dense_matrix<E>(dtype, a, m, k);
    a = {hold_a->data, k, 1};
    x = {kNoTrans, k};
  }
  const Blas* lib = blas();
  if (!blas_layout(b, k, n, &y) || (!lib && !b_rows)) {
    hold_b = dense_matrix<E>(dtype, b, k, n);
    b = {hold_b->data, n, 1};
    y = {kNoTrans, n};
  }
  if (!lib) return tile_gemm<E>(m, n, k, static_cast<E>(alpha), a, b, static_cast<E>(beta), c, ldc, threads);
  for_parts(library_grid(m, n, k, threads), threads, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
    call_blas<E>(*lib, x.trans, y.trans, rows, cols, k, alpha, at<E>(a, i, 0), x.ld, at<E>(b, 0, j), y.ld, beta, c + i * ldc + j, ldc);
  });
}

// One dot product in blocks, whose sums are added in their order.
template <class E, class R>
E long_dot(ComplexDots<R> dots, int64_t k, const R* a, const R* b, bool serial) {
  constexpr int64_t kBlock = 1 << 15;
  const int64_t blocks = (k + kBlock - 1) / kBlock;
  Scratch<E> sums(blocks);
  parallel_for(0, blocks, serial ? blocks : 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      dots(1, 1, std::min(kBlock, k - i * kBlock), a + 2 * i * kBlock, 0, b + 2 * i * kBlock, 0, reinterpret_cast<R*>(sums.get() + i), 0);
  });
  E sum = sums[0];
  for (int64_t i = 1; i < blocks; i++) sum.re += sums[i].re, sum.im += sums[i].im;
  return sum;
}

template <class E, class R>
void gemm_complex(int dtype, int64_t m, int64_t n, int64_t k, double alpha, Matrix a, Matrix b, double beta, E* c, int64_t ldc, int64_t threads) {
  const bool along_k = (b.row_stride == 1 || k == 1) && (a.col_stride == 1 || k == 1);
  if (along_k && alpha == 1 && beta == 0 && k > 0 && std::min(m, n) <= kFewComplexRows) {
    const auto& kernels = pick_gemm_kernels();
    const auto dots = [&] {
      if constexpr (sizeof(R) == 4)
        return kernels.c64;
      else
        return kernels.c128;
    }();
    const auto parts = [](const Matrix& x, int64_t row, int64_t col) { return reinterpret_cast<const R*>(at<E>(x, row, col)); };
    if (m * n == 1) {
      *c = long_dot<E, R>(dots, k, parts(a, 0, 0), parts(b, 0, 0), threads <= 1);
      return;
    }
    return for_parts(free_grid(m, n, 4 * k, threads), threads, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
      dots(rows, cols, k, parts(a, i, 0), a.row_stride, parts(b, 0, j), b.col_stride, reinterpret_cast<R*>(c + i * ldc + j), ldc);
    });
  }
  Tensor hold_a, hold_b;
  Operand2d x, y;
  const Blas* lib = k ? blas() : nullptr;
  if (lib) {
    if (!blas_layout(a, m, k, &x)) hold_a = dense_matrix<E>(dtype, a, m, k), a = {hold_a->data, k, 1}, x = {kNoTrans, k};
    if (!blas_layout(b, k, n, &y)) hold_b = dense_matrix<E>(dtype, b, k, n), b = {hold_b->data, n, 1}, y = {kNoTrans, n};
    for_parts(library_grid(m, n, 4 * k, threads), threads, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
      call_blas<E>(*lib, x.trans, y.trans, rows, cols, k, alpha, at<E>(a, i, 0), x.ld, at<E>(b, 0, j), y.ld, beta, c + i * ldc + j, ldc);
    });
    return;
  }
  parallel_for(0, m, row_grain(n * (k + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      for (int64_t j = 0; j < n; j++) {
        R re = 0, im = 0;
        for (int64_t p = 0; p < k; p++) {
          const E u = *at<E>(a, i, p), v = *at<E>(b, p, j);
          re += u.re * v.re - u.im * v.im;
          im += u.re * v.im + u.im * v.re;
        }
        E& out = c[i * ldc + j];
        const R s = static_cast<R>(alpha), t = static_cast<R>(beta);
        out = beta == 0 ? E{s * re, s * im} : E{s * re + t * out.re, s * im + t * out.im};
      }
  });
}

template <class U>
IntegerRow<U> integer_row() {
  const GemmKernels& kernels = pick_gemm_kernels();
  if constexpr (sizeof(U) == 1) return kernels.u8;
  if constexpr (sizeof(U) == 2) return kernels.u16;
  if constexpr (sizeof(U) == 4) return kernels.u32;
  if constexpr (sizeof(U) == 8) return kernels.u64;
}

template <class E>
void gemm_integer(int64_t m, int64_t n, int64_t k, int64_t alpha, Matrix a, Matrix b, int64_t beta, E* c, int64_t ldc) {
  using U = std::make_unsigned_t<E>;  // wraps, without undefined overflow
  const uint64_t s = static_cast<uint64_t>(alpha), t = static_cast<uint64_t>(beta);
  const bool rows = b.col_stride == 1 || n <= 1;
  Scratch<U> copy(rows ? 0 : k * n);
  for (int64_t p = 0; p < k && !rows; p++)
    for (int64_t j = 0; j < n; j++) copy[p * n + j] = static_cast<U>(*at<E>(b, p, j));
  const U* const from = rows ? reinterpret_cast<const U*>(at<E>(b, 0, 0)) : copy.get();
  parallel_for(0, m, row_grain(n * (k + 1)), [&](int64_t begin, int64_t end) {
    Scratch<U> factors(k);
    for (int64_t i = begin; i < end; i++) {
      U* row = reinterpret_cast<U*>(c + i * ldc);
      for (int64_t j = 0; j < n; j++) row[j] = beta == 0 ? U(0) : static_cast<U>(t * row[j]);
      for (int64_t p = 0; p < k; p++) factors[p] = static_cast<U>(s * static_cast<uint64_t>(*at<E>(a, i, p)));
      integer_row<U>()(n, k, factors, from, rows ? b.row_stride : n, row);
    }
  });
}

// A float32 copy of a 16-bit matrix that keeps a transposed layout.
struct Widened {
  Tensor data;
  Matrix matrix;
  Widened(int dtype, const Matrix& x, int64_t rows, int64_t cols, bool serial) {
    const bool flip = x.row_stride == 1 && x.col_stride != 1;
    const int64_t n = flip ? cols : rows, width = flip ? rows : cols, row = flip ? x.col_stride : x.row_stride,
                  col = flip ? x.row_stride : x.col_stride;
    data = empty({n, width}, ARGAND_FLOAT32);
    parallel_for(0, n, serial ? n + 1 : row_grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        convert(width, ARGAND_FLOAT32, data.data<float>() + i * width, 4, dtype, static_cast<const uint16_t*>(x.data) + i * row, col * 2);
    });
    matrix = flip ? Matrix{data->data, 1, width} : Matrix{data->data, width, 1};
  }
};

// False if the processor cannot or the product is too small to pack its matrices for it.
bool gemm_bf16(int64_t m, int64_t n, int64_t k, double alpha, const Matrix& a, const Matrix& b, double beta, uint16_t* c, int64_t ldc,
               int64_t threads) {
  const Bf16Unit unit = bf16_unit();
  Operand2d layout;
  if (unit == Bf16Unit::none || k == 0 || m * n * k < kSmallProduct || !blas_layout(a, m, k, &layout) || !blas_layout(b, k, n, &layout)) return false;
  // One column is one row of the transposed product, for which the matrix is read as it lies.
  if (n == 1 && m > 1 && ldc == 1)
    return gemm_bf16(1, m, k, alpha, {b.data, k, b.row_stride}, {a.data, a.col_stride, a.row_stride}, beta, c, m, threads);
  auto part = [](const Matrix& x, int64_t row, int64_t col) { return Bf16Matrix{at<uint16_t>(x, row, col), x.row_stride, x.col_stride}; };
  const bool few = m <= kFewBf16Rows;
  for_parts(free_grid(m, n, k, threads), threads, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
    gemm_bf16(unit, few, rows, cols, k, static_cast<float>(alpha), part(a, i, 0), part(b, 0, j), static_cast<float>(beta), c + i * ldc + j, ldc);
  });
  return true;
}

// How many of n rows or columns a block has, at most about `most`: all blocks alike, in multiples of the tiles' step.
int64_t block_size(int64_t n, int64_t most) {
  const int64_t blocks = (n + most - 1) / most, each = (n + blocks - 1) / blocks;
  return blocks == 1 ? n : (each + kColumnStep - 1) / kColumnStep * kColumnStep;
}

// 16-bit floats: widened, multiplied in float32, rounded once; by blocks, so that the float32 copies stay small beside the matrices.
void gemm_half(int dtype, int64_t m, int64_t n, int64_t k, double alpha, const Matrix& a, const Matrix& b, double beta, uint16_t* c, int64_t ldc,
               int64_t threads) {
  if (dtype == ARGAND_BFLOAT16 && gemm_bf16(m, n, k, alpha, a, b, beta, c, ldc, threads)) return;
  const bool serial = threads <= 1;
  const int64_t most_rows = block_size(m, 256), most_cols = block_size(n, 512);
  Scratch<float> sum(most_rows * most_cols);
  for (int64_t j = 0; j < n; j += most_cols) {
    const int64_t cols = std::min(n - j, most_cols);
    const Widened y(dtype, {at<uint16_t>(b, 0, j), b.row_stride, b.col_stride}, k, cols, serial);
    for (int64_t i = 0; i < m; i += most_rows) {
      const int64_t rows = std::min(m - i, most_rows);
      const Widened x(dtype, {at<uint16_t>(a, i, 0), a.row_stride, a.col_stride}, rows, k, serial);
      uint16_t* const to = c + i * ldc + j;
      const int64_t grain = serial ? rows + 1 : row_grain(cols);
      if (beta != 0)
        parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; r++) convert(cols, ARGAND_FLOAT32, sum + r * cols, 4, dtype, to + r * ldc, 2);
        });
      gemm_floating<float>(ARGAND_FLOAT32, rows, cols, k, alpha, x.matrix, y.matrix, beta, sum.get(), cols, threads);
      parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++) convert(cols, dtype, to + r * ldc, 2, ARGAND_FLOAT32, sum + r * cols, 4);
      });
    }
  }
}

Matrix matrix(const Tensor& t) { return {t->data, t.stride(-2), t.stride(-1)}; }

void check_product(const char* op, const Tensor& a, const Tensor& b, int64_t ndim) {
  if (a.dim() != ndim || b.dim() != ndim)
    fail(ARGAND_SHAPE_ERROR, "%s: got tensors of shapes %s and %s, expected %ld-D tensors; use matmul for batches and broadcasting", op,
         to_string(a.sizes()).c_str(), to_string(b.sizes()).c_str(), static_cast<long>(ndim));
  check_same_dtype(op, a, b);
  if (a.size(-1) != b.size(-2) || (ndim == 3 && a.size(0) != b.size(0)))
    fail(ARGAND_SHAPE_ERROR, "%s: mat1 and mat2 shapes cannot be multiplied (%s and %s)", op, to_string(a.sizes()).c_str(),
         to_string(b.sizes()).c_str());
}

// out = expand(self) for addmm-like operators.
void fill_from(const char* op, const Tensor& out, const Tensor& self) {
  check_same_dtype(op, self, out);
  const Dims strides = broadcast_strides(op, self, out.sizes());
  strided_copy(out.itemsize(), out.dim(), out->sizes, out->data, out->strides, self->data, strides.d);
}

}  // namespace

void gemm(int dtype, int64_t m, int64_t n, int64_t k, double alpha, Matrix a, Matrix b, double beta, void* c, int64_t ldc, bool serial) {
  if (m == 0 || n == 0) return;
  if (alpha == 0) k = 0;  // whatever the matrices hold, infinities and NaN included
  const int64_t threads = serial ? 1 : api->num_threads();
  switch (dtype) {
    case ARGAND_FLOAT32:
      return gemm_floating<float>(dtype, m, n, k, alpha, a, b, beta, static_cast<float*>(c), ldc, threads);
    case ARGAND_FLOAT64:
      return gemm_floating<double>(dtype, m, n, k, alpha, a, b, beta, static_cast<double*>(c), ldc, threads);
    case ARGAND_BFLOAT16:
    case ARGAND_FLOAT16:
      return gemm_half(dtype, m, n, k, alpha, a, b, beta, static_cast<uint16_t*>(c), ldc, threads);
    case ARGAND_COMPLEX64:
      return gemm_complex<complex64, float>(dtype, m, n, k, alpha, a, b, beta, static_cast<complex64*>(c), ldc, threads);
    case ARGAND_COMPLEX128:
      return gemm_complex<complex128, double>(dtype, m, n, k, alpha, a, b, beta, static_cast<complex128*>(c), ldc, threads);
    default:
      dispatch_integral("matmul", dtype, [&](auto tag) {
        using E = typename decltype(tag)::type;
        gemm_integer<E>(m, n, k, static_cast<int64_t>(alpha), a, b, static_cast<int64_t>(beta), static_cast<E*>(c), ldc);
      });
  }
}

namespace {

// Products of one shape: batch x [m, k] [k, n]; in elements, the next product's matrices lie a_step and b_step further.
struct Products {
  int dtype;
  int64_t batch, m, n, k;
  Matrix a, b;
  int64_t a_step = 0, b_step = 0;
  double alpha = 1, beta = 0;
  const Tensor* addend = nullptr;  // what results start from if beta is not 0, broadcast by these strides along rows and columns
  int64_t addend_rows = 0, addend_cols = 0;
};

// Into how many blocks of rows each product is cut, for parts that have the bits of the whole, which is cut by `grid`; 0: it cannot be.
int64_t blocks_of(const Products& p, const Grid& grid) {
  Operand2d layout;
  if ((p.dtype != ARGAND_FLOAT32 && p.dtype != ARGAND_FLOAT64) || !blas() || p.batch * p.m * p.n * p.k == 0 || !blas_layout(p.a, p.m, p.k, &layout) ||
      !blas_layout(p.b, p.k, p.n, &layout))
    return 0;
  const int64_t cols = grid.least_cols();
  if ((cols < p.n && cols <= kFewRows) || grid.least_rows() * cols * p.k <= kLibraryProduct) return 0;
  const int64_t threads = api->num_threads(), step = p.batch < threads ? threads : 1;  // blocks for every thread
  const int64_t bytes = p.m * p.n * item_size(p.dtype), wanted = (bytes / kPartBytes + step) / step * step;
  int64_t blocks = std::min({wanted, p.m / kPartRows, p.m * cols * p.k / kPartProduct}) / step * step;
  if (blocks == 0 && p.batch >= std::max<int64_t>(threads, 2)) blocks = 1;
  return blocks > 0 && bytes / blocks <= 2 * kPartBytes ? blocks : 0;
}

// Hands the products over to the epilogue, block by block; the result of `sizes` is given only if the epilogue wants it kept. False: nothing is done.
bool hand_over(const Products& p, IntList sizes, ArgandEpilogue* epilogue, Tensor* out) {
  if (!epilogue || p.m == 0 || p.n == 0 || p.alpha == 0) return false;
  const Grid grid = library_grid(p.m, p.n, p.k, api->num_threads());
  const int64_t blocks = blocks_of(p, grid);
  if (!blocks) return false;
  if (epilogue->keep) *out = empty(sizes, p.dtype);
  const int64_t size = item_size(p.dtype);
  auto start = [&](int64_t block) { return block == blocks ? p.m : block * p.m / blocks / kRowStep * kRowStep; };
  parallel_for(0, p.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    const Tensor own = epilogue->keep ? Tensor() : empty({(p.m / blocks + kRowStep) * p.n}, p.dtype);
    for (int64_t i = begin; i < end; i++) {
      const int64_t entry = i / blocks, top = start(i % blocks), rows = start(i % blocks + 1) - top, first = (entry * p.m + top) * p.n;
      char* const c = own ? own.data<char>() : out->data<char>() + first * size;
      if (p.beta != 0) {
        const int64_t shape[2] = {rows, p.n}, to[2] = {p.n, 1}, from[2] = {p.addend_rows, p.addend_cols};
        strided_copy(static_cast<int>(size), 2, shape, c, to, p.addend->data<char>() + top * p.addend_rows * size, from);
      }
      auto moved = [&](const Matrix& x, int64_t by) { return Matrix{static_cast<const char*>(x.data) + by * size, x.row_stride, x.col_stride}; };
      const Matrix a = moved(p.a, entry * p.a_step + top * p.a.row_stride);
      for (int64_t j = 0; j < grid.cols; j++) {
        const int64_t left = grid.col(j), cols = grid.col(j + 1) - left;
        const Matrix b = moved(p.b, entry * p.b_step + left * p.b.col_stride);
        const auto multiply = [&](auto* to) { gemm_floating(p.dtype, rows, cols, p.k, p.alpha, a, b, p.beta, to + left, p.n, 0); };
        p.dtype == ARGAND_FLOAT32 ? multiply(reinterpret_cast<float*>(c)) : multiply(reinterpret_cast<double*>(c));
      }
      epilogue->run(epilogue->context, first, first + rows * p.n, c);
    }
  });
  epilogue->done = 1;
  return true;
}

// float8 matrices are multiplied as float32 ones, whose products are rounded once.
Tensor converted(const Tensor& t, int dtype) {
  const Tensor out = empty(t.sizes(), dtype);
  copy_(out, t, false);
  return out;
}
Tensor in_float32(const Tensor& t) { return converted(t, ARGAND_FLOAT32); }

Tensor mm(const Tensor& self, const Tensor& mat2, ArgandEpilogue* epilogue) {
  check_product("mm", self, mat2, 2);
  if (is_float8(self.dtype())) return converted(mm(in_float32(self), in_float32(mat2), nullptr), self.dtype());
  const int64_t m = self.size(0), n = mat2.size(1), k = self.size(1);
  Tensor out;
  if (hand_over({self.dtype(), 1, m, n, k, matrix(self), matrix(mat2)}, {m, n}, epilogue, &out)) return out;
  out = empty({m, n}, self.dtype());
  gemm(self.dtype(), m, n, k, 1, matrix(self), matrix(mat2), 0, out->data, n);
  return out;
}

// Of real factors.
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha, ArgandEpilogue* epilogue) {
  check_product("addmm", mat1, mat2, 2);
  check_same_dtype("addmm", self, mat1);
  if (is_float8(mat1.dtype())) return converted(addmm(in_float32(self), in_float32(mat1), in_float32(mat2), beta, alpha, nullptr), mat1.dtype());
  const int64_t m = mat1.size(0), n = mat2.size(1), k = mat1.size(1);
  Tensor out;
  if (epilogue) {
    const Dims from = broadcast_strides("addmm", self, {m, n});
    if (hand_over({mat1.dtype(), 1, m, n, k, matrix(mat1), matrix(mat2), 0, 0, alpha.to_double(), beta.to_double(), &self, from[0], from[1]}, {m, n},
                  epilogue, &out))
      return out;
  }
  out = empty({m, n}, mat1.dtype());
  if (beta.to_double() != 0) fill_from("addmm", out, self);
  if (is_integral(mat1.dtype(), false))  // whose factors may be too long for a double
    dispatch_integral("addmm", mat1.dtype(), [&](auto tag) {
      using E = typename decltype(tag)::type;
      gemm_integer<E>(m, n, k, alpha.to_int(), matrix(mat1), matrix(mat2), beta.to_int(), out.data<E>(), n);
    });
  else
    gemm(mat1.dtype(), m, n, k, alpha.to_double(), matrix(mat1), matrix(mat2), beta.to_double(), out->data, n);
  return out;
}

void batched(const Tensor& out, const Tensor& a, const Tensor& b) {
  const int64_t batch = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  const bool serial = batch >= api->num_threads();
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      auto shifted = [&](const Tensor& t) { return Matrix{t.data<char>() + i * t.stride(0) * t.itemsize(), t.stride(1), t.stride(2)}; };
      gemm(a.dtype(), m, n, k, 1, shifted(a), shifted(b), 0, out.data<char>() + i * m * n * out.itemsize(), n, serial);
    }
  };
  if (!serial) return run(0, batch);
  parallel_for(0, batch, row_grain(m * n * (k + 1), kParallelProduct / 2), [&](int64_t begin, int64_t end) { run(begin, end); });
}

Tensor bmm(const Tensor& self, const Tensor& mat2, ArgandEpilogue* epilogue) {
  check_product("bmm", self, mat2, 3);
  const int64_t batch = self.size(0), m = self.size(1), n = mat2.size(2);
  Tensor out;
  if (hand_over({self.dtype(), batch, m, n, self.size(2), matrix(self), matrix(mat2), self.stride(0), mat2.stride(0)}, {batch, m, n}, epilogue, &out))
    return out;
  out = empty({batch, m, n}, self.dtype());
  batched(out, self, mat2);
  return out;
}

// input [..., in] x weight [out, in] -> [..., out].
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, ArgandEpilogue* epilogue) {
  if (is_float8(weight.dtype()) && input.dtype() == weight.dtype() && (!bias || bias.dtype() == weight.dtype()))
    return converted(linear(in_float32(input), in_float32(weight), bias ? in_float32(bias) : bias, nullptr), weight.dtype());
  if (weight.dim() != 2 || input.dim() == 0 || input.size(-1) != weight.size(1))
    fail(ARGAND_SHAPE_ERROR, "linear: got input of shape %s and weight of shape %s, expected (..., in_features) and (out_features, in_features)",
         to_string(input.sizes()).c_str(), to_string(weight.sizes()).c_str());
  check_same_dtype("linear", input, weight);
  const int64_t k = weight.size(1), n = weight.size(0), m = product(input.sizes(), 0, input.dim() - 1);
  if (bias) check_same_dtype("linear", bias, weight);
  Dims sizes(input.sizes());
  sizes[sizes.n - 1] = n;
  if (bias && bias.dim() == 2 && bias.size(0) == 1 && sizes.n == 1) return linear(input, weight, ops::select(bias, 0, 0), epilogue);
  if (bias && bias.dim() > 1) return ops::add_(linear(input, weight, Tensor(), nullptr), bias);
  if (bias && bias.numel() != n && bias.numel() != 1)
    fail(ARGAND_SHAPE_ERROR, "linear: got bias of shape %s, expected (%ld)", to_string(bias.sizes()).c_str(), static_cast<long>(n));
  const bool rows = input.dim() == 2 && input.stride(1) == 1;
  const Tensor x = rows ? input : contiguous(input);
  const Matrix a{x->data, rows ? x.stride(0) : k, 1}, b{weight->data, weight.stride(1), weight.stride(0)};
  const int64_t bias_step = bias && bias.numel() == n && bias.dim() == 1 ? bias.stride(0) : 0;
  Tensor out;
  if (hand_over({weight.dtype(), 1, m, n, k, a, b, 0, 0, 1, bias ? 1. : 0., &bias, 0, bias_step}, sizes, epilogue, &out)) return out;
  out = empty(sizes, weight.dtype());
  if (out.numel() == 0) return out;
  const bool dense_bias = !bias || (bias.numel() == n && (n == 1 || bias.stride(0) == 1));
  if (m * n * k <= kSmallProduct && weight.stride(1) == 1 && dense_bias && k > 0) {  // one pass without a library call
    if (weight.dtype() == ARGAND_FLOAT32) {
      tile_kernels<float>().dots(m, n, k, x.data<float>(), a.row_stride, weight.data<float>(), weight.stride(0), bias ? bias.data<float>() : nullptr,
                                 false, out.data<float>(), n);
      return out;
    }
    if (weight.dtype() == ARGAND_FLOAT64) {
      tile_kernels<double>().dots(m, n, k, x.data<double>(), a.row_stride, weight.data<double>(), weight.stride(0),
                                  bias ? bias.data<double>() : nullptr, false, out.data<double>(), n);
      return out;
    }
  }
  if (bias) {
    const int64_t shape[2] = {m, n}, to[2] = {n, 1}, from[2] = {0, bias_step};
    strided_copy(out.itemsize(), 2, shape, out->data, to, bias->data, from);
  }
  gemm(weight.dtype(), m, n, k, 1, a, b, bias ? 1 : 0, out->data, n);
  return out;
}

}  // namespace

Tensor mm(const Tensor& self, const Tensor& mat2) { return mm(self, mat2, nullptr); }
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  for (const Scalar& factor : {beta, alpha}) check_scalar("addmm", mat1.dtype(), false, value(factor));
  if (beta.im == 0 && alpha.im == 0) return addmm(self, mat1, mat2, beta, alpha, nullptr);
  return ops::add(ops::mul(self, beta), ops::mul(mm(mat1, mat2), alpha));
}
Tensor bmm(const Tensor& self, const Tensor& mat2) { return bmm(self, mat2, nullptr); }
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) { return linear(input, weight, bias, nullptr); }

Tensor vdot(const Tensor& self, const Tensor& other) {
  if (!is_complex(self.dtype()) || self.dtype() != other.dtype() || self.numel() == 0) return composite::vdot(self, other);
  const Tensor x = contiguous(self), y = contiguous(other), out = empty({}, self.dtype());
  const auto& kernels = pick_gemm_kernels();
  const auto run = [&](auto dots, auto tag) {
    using E = typename decltype(tag)::type;
    using R = decltype(E::re);
    *out.data<E>() = long_dot<E, R>(dots, x.numel(), reinterpret_cast<const R*>(x.data<E>()), reinterpret_cast<const R*>(y.data<E>()), false);
  };
  self.dtype() == ARGAND_COMPLEX64 ? run(kernels.c64_conj, Tag<complex64>{}) : run(kernels.c128_conj, Tag<complex128>{});
  return out;
}

int mm_epilogue(const ArgandOperator*, const ArgandValue* a, ArgandValue* r, ArgandEpilogue* e) {
  return guarded([&] { give(r[0], mm(as_tensor(a[0]), as_tensor(a[1]), e)); });
}
int addmm_epilogue(const ArgandOperator*, const ArgandValue* a, ArgandValue* r, ArgandEpilogue* e) {
  return guarded([&] { give(r[0], addmm(as_tensor(a[0]), as_tensor(a[1]), as_tensor(a[2]), Scalar(as_double(a[3])), Scalar(as_double(a[4])), e)); });
}
int bmm_epilogue(const ArgandOperator*, const ArgandValue* a, ArgandValue* r, ArgandEpilogue* e) {
  return guarded([&] { give(r[0], bmm(as_tensor(a[0]), as_tensor(a[1]), e)); });
}
int linear_epilogue(const ArgandOperator*, const ArgandValue* a, ArgandValue* r, ArgandEpilogue* e) {
  return guarded([&] { give(r[0], linear(as_tensor(a[0]), as_tensor(a[1]), as_tensor(a[2]), e)); });
}

}  // namespace argand::kernels::cpu
