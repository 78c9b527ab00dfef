#include "packages/aten/csrc/kernels/cpu/pointwise_driver.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "packages/aten/csrc/core/number.h"
#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/csrc/kernels/cpu/cast.h"
#include "packages/aten/csrc/kernels/cpu/copy.h"
#include "packages/aten/csrc/kernels/sweep.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand {
namespace {

using kernels::cpu::convert;
using kernels::cpu::gather_tile;
using kernels::cpu::spread_rows;

constexpr int64_t kGrain = 32768;      // additions that are worth a thread
constexpr int64_t kBlockBytes = 8192;  // an operand's conversion buffer; what all operands need stays in the first cache
constexpr int64_t kTileRows = 16, kTileColumns = 256;
constexpr int64_t kShortRow = 64;  // elements; shorter rows are gathered into longer ones

const PointwiseKernel* find_kernel(const PointwiseOp& op, int dtype) {
  const PointwiseKernel* table = op.kernels[api->cpu_tier()];
  for (int i = 0; i < op.n_kernels; i++)
    if (table[i].compute_dtype == dtype) return table + i;
  return nullptr;
}

// The kernel of a computation in `dtype`. Where sign matters, uint16 and uint32 have none of their own, and uint64's computes it.
const PointwiseKernel& require_kernel(const PointwiseOp& op, int dtype) {
  if (const PointwiseKernel* k = find_kernel(op, dtype)) return *k;
  if (is_wide_unsigned(dtype))
    if (const PointwiseKernel* k = find_kernel(op, ARGAND_UINT64)) return *k;
  std::string known;
  for (int i = 0; i < op.n_kernels; i++) known += (i ? ", " : "") + std::string(kDTypeName[static_cast<int>(op.kernels[0][i].compute_dtype)]);
  fail(ARGAND_NOT_IMPLEMENTED_ERROR, "%s: not implemented for dtype %s; expected one of %s", op.name, kDTypeName[dtype], known.c_str());
}

// What float8 numbers can do without a cast: by float32 numbers, whose results they hold exactly.
bool takes_float8(const char* name) {
  for (const char* known : {"eq", "ne", "isnan", "where", "abs"})
    if (!std::strcmp(name, known)) return true;
  return false;
}

// ---- numbers beside 16-bit floats ---------------------------------------------------------------------------------------------

// Whether a 16-bit float is that number, as float32 holds it.
bool holds(int dtype, float number) {
  char rounded[2];
  float back;
  convert(1, dtype, rounded, 2, ARGAND_FLOAT32, &number, 4);
  convert(1, ARGAND_FLOAT32, &back, 4, dtype, rounded, 2);
  return back == number || number != number;
}

// Whether operand `k` is a number beside 16-bit floats of `dtype`. As the second of two, a tensor of one element is one.
bool is_number(const PointwiseOp& op, const Operand& operand, int k, int dtype) {
  const ArgandTensor* t = operand.get();
  const bool second = k == 1 && op.n_operands == 2;
  return !t || (t->dtype != dtype && t->numel == 1 && t->data && (second || t->flags & ARGAND_TENSOR_WRAPPED_NUMBER));
}

// Whether an operand before the last is a number that 16-bit floats of `dtype` do not hold.
bool rounds_numbers(const PointwiseOp& op, const Operand* const* operands, int dtype) {
  for (int k = 0; k + 1 < op.n_operands; k++) {
    if (!is_number(op, *operands[k], k, dtype)) continue;
    float number;
    if (const ArgandTensor* t = operands[k]->get())
      convert(1, ARGAND_FLOAT32, &number, 4, t->dtype, t->data, 4);
    else
      write_number(&number, ARGAND_FLOAT32, operands[k]->raw());
    if (!holds(dtype, number)) return true;
  }
  return false;
}

// ---- functions of one 16-bit float by a table of all their values ------------------------------------------------------------
constexpr int kTableCost = 21;               // of an element, from which looking it up is cheaper: a transcendental function and what goes with it
constexpr int64_t kTableElements = 1 << 18;  // that pay for a table of 65,536

constexpr size_t kScalarTables = 32;  // tables of expressions with scalars, of which there may be any number

using Table = std::unique_ptr<uint16_t[]>;

// A kernel and the bits of its scalars.
struct TableKey {
  const PointwiseKernel* kernel;
  int64_t bits[2 * kMaxOperands] = {};
  TableKey(const PointwiseKernel& k, const double* scalars, const int64_t* ints) : kernel(&k) {
    if (!scalars) return;
    std::memcpy(bits, scalars, sizeof bits / 2);
    std::memcpy(bits + kMaxOperands, ints, sizeof bits / 2);
  }
  bool operator<(const TableKey& o) const {
    return kernel != o.kernel ? std::less<>()(kernel, o.kernel) : std::lexicographical_compare(bits, std::end(bits), o.bits, std::end(o.bits));
  }
};

// The table of an expression that was worth one: computed by the kernel itself, so that its bits are the same. NULL: it has none.
const uint16_t* table_of(const PointwiseOp& op, const PointwiseKernel& kernel, const double* scalars, const int64_t* ints, int64_t numel) {
  if (op.n_operands != 1 || op.cost < kTableCost || numel < kTableElements || kernel.out_dtype != kernel.compute_dtype ||
      (kernel.compute_dtype != ARGAND_BFLOAT16 && kernel.compute_dtype != ARGAND_FLOAT16))
    return nullptr;
  static std::mutex mutex;
  static auto* const tables = new std::map<TableKey, Table>;  // 128 KiB each, kept
  static size_t with_scalars = 0;
  const std::lock_guard lock(mutex);
  const TableKey key(kernel, scalars, ints);
  const auto found = tables->find(key);
  if (found == tables->end() && scalars && with_scalars == kScalarTables) return nullptr;
  Table& table = found == tables->end() ? (*tables)[key] : found->second;
  if (!table) {
    with_scalars += scalars != nullptr;
    constexpr int64_t kValues = 1 << 16;
    Table arguments(new uint16_t[kValues]), values(new uint16_t[kValues]);
    for (int64_t i = 0; i < kValues; i++) arguments[i] = static_cast<uint16_t>(i);
    char* const ptrs[] = {reinterpret_cast<char*>(values.get()), reinterpret_cast<char*>(arguments.get())};
    const int64_t strides[] = {2, 2};
    kernel.loop(kValues, ptrs, strides, scalars, ints);
    table = std::move(values);
  }
  return table.get();
}

// Eight elements, with few loads: these are what a core runs out of. As a call it takes a tenth more time.
[[gnu::always_inline]] inline __m128i look_up_eight(const uint16_t* table, const uint16_t* from) {
  uint32_t pairs[4];
  std::memcpy(pairs, from, sizeof pairs);
  __m128i v = _mm_cvtsi32_si128(table[pairs[0] & 0xffff]);
  v = _mm_insert_epi16(v, table[pairs[0] >> 16], 1);
  v = _mm_insert_epi16(v, table[pairs[1] & 0xffff], 2);
  v = _mm_insert_epi16(v, table[pairs[1] >> 16], 3);
  v = _mm_insert_epi16(v, table[pairs[2] & 0xffff], 4);
  v = _mm_insert_epi16(v, table[pairs[2] >> 16], 5);
  v = _mm_insert_epi16(v, table[pairs[3] & 0xffff], 6);
  return _mm_insert_epi16(v, table[pairs[3] >> 16], 7);
}

void look_up(const uint16_t* table, int64_t n, char* const* ptrs, const int64_t* strides) {
  int64_t i = 0;
  if (strides[0] == 2 && strides[1] == 2) {
    auto* const to = reinterpret_cast<uint16_t*>(ptrs[0]);
    auto* const from = reinterpret_cast<const uint16_t*>(ptrs[1]);
    for (; i + 16 <= n; i += 16) {
      const __m128i first = look_up_eight(table, from + i), second = look_up_eight(table, from + i + 8);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), first);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i + 8), second);
    }
  }
  for (; i < n; i++) *reinterpret_cast<uint16_t*>(ptrs[0] + i * strides[0]) = table[*reinterpret_cast<const uint16_t*>(ptrs[1] + i * strides[1])];
}

// What one computation is: the kernel, its operands in the kernel's order (0 is the result), and how they get there.
struct Work {
  PointwiseLoop loop;
  const double* scalars;
  const int64_t* ints;
  const uint16_t* table = nullptr;  // of the kernel's values
  Iteration it;
  int8_t from[kMaxOperands + 1];  // dtype to convert an operand from, or -1
  int8_t into[kMaxOperands + 1];  // the kernel's dtype of each operand
  bool converts = false;          // some operand, or the result, is converted
  bool streams = false;           // the result goes past the caches
  int64_t block = 0;              // elements of a conversion block

  void run(int64_t n, char* const* ptrs, const int64_t* strides) const {
    if (table)
      look_up(table, n, ptrs, strides);
    else
      loop(n, ptrs, strides, scalars, ints);
  }

  // Elements [i, i + m) of a row's result; meanwhile those that come next are fetched, where all operands are as large as the result.
  void stream_block(int64_t n, int64_t i, int64_t m, char* const* ptrs, const int64_t* strides, const char* result) const {
    const char* next[kMaxOperands];
    int n_next = 0;
    for (int k = 1; k < it.n_operands; k++)
      if (strides[k] == strides[0]) next[n_next++] = ptrs[k] + (i + m) * strides[k];
    const bool fetches = i + m < n && n_next == it.n_operands - 1;
    kernels::cpu::stream_copy(ptrs[0] + i * strides[0], result, static_cast<size_t>(m * strides[0]), fetches ? n_next : 0, next);
  }

  // A row in blocks: operands are converted on the way in, the result on the way out.
  void run_blocks(int64_t n, char* const* ptrs, const int64_t* strides) const {
    alignas(64) char buffers[kMaxOperands + 1][kBlockBytes];
    char* p[kMaxOperands + 1];
    int64_t s[kMaxOperands + 1];
    for (int64_t i = 0; i < n; i += block) {
      const int64_t m = std::min(block, n - i);
      for (int k = 0; k < it.n_operands; k++) {
        char* const at = ptrs[k] + i * strides[k];
        const bool buffered = from[k] >= 0 || (k == 0 && streams);
        p[k] = buffered ? buffers[k] : at;
        s[k] = buffered ? kItemSize[into[k]] : strides[k];
        if (k && buffered) convert(m, into[k], buffers[k], s[k], from[k], at, strides[k]);
      }
      run(m, p, s);
      if (from[0] >= 0)
        convert(m, from[0], ptrs[0] + i * strides[0], strides[0], into[0], buffers[0], s[0]);
      else if (streams)
        stream_block(n, i, m, ptrs, strides, buffers[0]);
    }
  }
  void run_row(int64_t n, char* const* ptrs, const int64_t* strides) const {
    if (converts || streams)
      run_blocks(n, ptrs, strides);
    else
      run(n, ptrs, strides);
  }

  int size_of(int k) const { return kItemSize[from[k] >= 0 ? from[k] : into[k]]; }
  bool transposed(int k) const { return it.strides[k][0] > it.strides[k][1] && it.strides[k][1] != 0 && it.strides[k][1] < 64; }

  // Flat indices [begin, end).
  void run_range(int64_t begin, int64_t end) const {
    int64_t strides[kMaxOperands + 1];
    for (int k = 0; k < it.n_operands; k++) strides[k] = it.strides[k][0];
    for_each_row(it, begin, end, [&](int64_t n, char* const* ptrs) { run_row(n, ptrs, strides); });
  }

  // Planes of the two innermost dimensions, tile by tile: transposed operands are gathered so that each cache line is read once.
  void run_tiles(int64_t begin, int64_t end) const {  // flat tile-row indices: (outer, block of kTileRows rows)
    const int64_t columns = it.shape[0], rows = it.shape[1], row_blocks = (rows + kTileRows - 1) / kTileRows;
    std::unique_ptr<char[]> tiles(new char[it.n_operands * kTileRows * kTileColumns * 16]);
    for (int64_t index = begin; index < end; index++) {
      char* plane[kMaxOperands + 1];
      int64_t rest = index / row_blocks;
      for (int k = 0; k < it.n_operands; k++) plane[k] = it.data[k];
      for (int d = 2; d < it.ndim; d++) {
        for (int k = 0; k < it.n_operands; k++) plane[k] += rest % it.shape[d] * it.strides[k][d];
        rest /= it.shape[d];
      }
      const int64_t first = index % row_blocks * kTileRows, count = std::min(kTileRows, rows - first);
      for (int64_t c = 0; c < columns; c += kTileColumns) run_tile(plane, first, count, c, std::min(kTileColumns, columns - c), tiles.get());
    }
  }
  void run_tile(char* const* plane, int64_t first, int64_t rows, int64_t c, int64_t columns, char* tiles) const {
    char* p[kMaxOperands + 1];
    int64_t strides[kMaxOperands + 1], row_strides[kMaxOperands + 1];
    for (int k = 0; k < it.n_operands; k++) {
      p[k] = plane[k] + first * it.strides[k][1] + c * it.strides[k][0];
      strides[k] = it.strides[k][0];
      row_strides[k] = it.strides[k][1];
      if (k == 0 || !transposed(k)) continue;
      char* const tile = tiles + k * kTileRows * kTileColumns * 16;
      const int size = size_of(k);
      gather_tile(tile, size * columns, p[k], row_strides[k], strides[k], rows, columns, size);
      p[k] = tile;
      strides[k] = size;
      row_strides[k] = size * columns;
    }
    for (int64_t r = 0; r < rows; r++) {
      run_row(columns, p, strides);
      for (int k = 0; k < it.n_operands; k++) p[k] += row_strides[k];
    }
  }

  // Short rows, several at a time: what is not one run over them is gathered. The result is one run or scattered back.
  void run_short_rows(int64_t begin, int64_t end) const {  // indices of rows
    const int64_t n = it.shape[0], rows_at_once = std::max<int64_t>(1, 1024 / n);
    alignas(64) char buffers[(kMaxOperands + 1) * 1024 * 16];
    for_each_row(it.of_rows(), begin, end, [&](int64_t rows, char* const* ptrs) {
      for (int64_t r = 0; r < rows; r += rows_at_once) run_gathered(n, r, std::min(rows_at_once, rows - r), ptrs, buffers);
    });
  }
  void run_gathered(int64_t n, int64_t first, int64_t rows, char* const* ptrs, char* buffers) const {
    char* p[kMaxOperands + 1];
    int64_t strides[kMaxOperands + 1];
    for (int k = 0; k < it.n_operands; k++) {
      const int size = size_of(k);
      const int64_t s0 = it.strides[k][0], s1 = it.strides[k][1];
      p[k] = ptrs[k] + first * s1;
      strides[k] = s0;
      if ((s0 == 0 && s1 == 0 && k) || s1 == n * s0) continue;
      char* const buffer = buffers + k * 1024 * 16;
      strides[k] = size;
      if (k && s1 == 0) {  // one row for all
        convert(n, into_storage(k), buffer, size, into_storage(k), p[k], s0);
        for (int64_t r = 1; r < rows; r *= 2) std::memcpy(buffer + r * n * size, buffer, static_cast<size_t>(std::min(r, rows - r)) * n * size);
      } else if (k && s0 == 0) {
        spread_rows(rows, n, buffer, p[k], s1, size);
      } else if (k) {
        for (int64_t r = 0; r < rows; r++) convert(n, into_storage(k), buffer + r * n * size, size, into_storage(k), p[k] + r * s1, s0);
      }
      p[k] = buffer;
    }
    run_row(n * rows, p, strides);
    char* const out = ptrs[0] + first * it.strides[0][1];
    if (p[0] != out) {
      const int size = size_of(0);
      for (int64_t r = 0; r < rows; r++)
        convert(n, into_storage(0), out + r * it.strides[0][1], it.strides[0][0], into_storage(0), p[0] + r * n * size, size);
    }
  }
  int into_storage(int k) const { return from[k] >= 0 ? from[k] : into[k]; }

  void run_all(int cost);
};

void Work::run_all(int cost) {
  if (it.numel == 0) return;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max(cost, 1));
  bool tiles = false;
  if (it.numel >= 2048 && it.ndim >= 2 && it.shape[0] >= 8 && it.shape[1] >= 8 && !transposed(0))
    for (int k = 1; k < it.n_operands; k++) tiles = tiles || transposed(k);
  if (tiles) {
    const int64_t row_blocks = (it.shape[1] + kTileRows - 1) / kTileRows, per_block = it.shape[0] * kTileRows;
    const int64_t total = it.numel / (it.shape[0] * it.shape[1]) * row_blocks;
    parallel_for(0, total, std::max<int64_t>(1, grain / per_block), [&](int64_t b, int64_t e) { run_tiles(b, e); });
  } else if (it.ndim >= 2 && it.shape[0] < kShortRow && it.shape[1] > 1 && it.numel > 3 * it.shape[0]) {
    const int64_t rows = it.numel / it.shape[0];
    parallel_for(0, rows, std::max<int64_t>(1, grain / it.shape[0]), [&](int64_t b, int64_t e) { run_short_rows(b, e); });
  } else if (it.numel <= grain) {
    run_range(0, it.numel);
  } else {
    int64_t bytes = 0;
    for (int k = 0; k < it.n_operands; k++) bytes += size_of(k);
    parallel_sweep(it.numel, grain, bytes, [&](int64_t b, int64_t e) { run_range(b, e); });
  }
}

// ---- the common case: contiguous tensors of one shape and dtype, and numbers that do not change it ------------------------
bool fast_path(const PointwiseOp& op, const Operand* const* operands, const double* scalars, const int64_t* ints, const Tensor& out, Tensor* result) {
  const ArgandTensor* first = nullptr;
  alignas(16) char numbers[kMaxOperands][16];
  char* ptrs[kMaxOperands + 1];
  int64_t strides[kMaxOperands + 1];
  bool beside_number = false;  // the dimensions of one element then say where channels are
  if (op.bool_operands || op.number_rule == kDivisor) return false;
  for (int k = 0; k < op.n_operands; k++) {
    const ArgandTensor* t = operands[k]->get();
    if (t && (!first || first->ndim == 0)) first = t;
  }
  if (!first || ((op.promote == kPromoteFloat || op.number_rule == kExponent) && is_integral(first->dtype, true))) return false;
  for (int k = 0; k < op.n_operands; k++) {
    const ArgandTensor* t = operands[k]->get();
    beside_number = beside_number || !t || t->ndim != first->ndim;
    if (!t) continue;
    const bool one = t->ndim == 0 && first->ndim != 0;  // for every element
    if (t->dtype != first->dtype || (!one && (t->ndim != first->ndim || std::memcmp(t->sizes, first->sizes, sizeof(int64_t) * t->ndim) != 0)))
      return false;
    if (!(t->flags & ARGAND_TENSOR_CONTIGUOUS) || (t->flags & ARGAND_TENSOR_WRAPPED_NUMBER) || ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_CPU)
      return false;
    ptrs[k + 1] = static_cast<char*>(t->data);
    strides[k + 1] = one ? 0 : kItemSize[t->dtype];
  }
  if (first->numel > kGrain / std::max<int>(op.cost, 1) || (beside_number && first->ndim >= 4 && first->strides[1] < first->strides[2])) return false;
  const PointwiseKernel* kernel = find_kernel(op, first->dtype);
  const bool exact = op.exact_numbers && is_half(first->dtype);
  if (!kernel || (exact && rounds_numbers(op, operands, first->dtype))) return false;
  PointwiseLoop loop = kernel->loop;
  for (int k = 0; k < op.n_operands; k++) {
    if (operands[k]->get()) continue;
    const int category = number_category(operands[k]->raw());
    if (category > dtype_category(first->dtype) || (category == 0 && op.promote == kPromoteNumbers)) return false;
    if (!passes(op.number_rule, first->dtype, operands[k]->raw())) return false;
    int dtype = first->dtype;
    if (exact && k == op.n_operands - 1) {
      loop = kernel->number_loop;
      dtype = ARGAND_FLOAT32;
    }
    write_number(numbers[k], dtype, operands[k]->raw());
    ptrs[k + 1] = numbers[k];
    strides[k + 1] = 0;
  }
  const ArgandTensor* to = out.get();
  if (to) {
    if (to->dtype != kernel->out_dtype || to->ndim != first->ndim || std::memcmp(to->sizes, first->sizes, sizeof(int64_t) * to->ndim) != 0 ||
        !(to->flags & ARGAND_TENSOR_CONTIGUOUS) || (to->storage->flags & ARGAND_STORAGE_READONLY) ||
        ARGAND_DEVICE_TYPE(to->storage->device) != ARGAND_CPU)
      return false;
    for (int k = 0; k < op.n_operands; k++) {
      const ArgandTensor* t = operands[k]->get();
      if (t && t->storage == to->storage && !(t->data == to->data && t->dtype == to->dtype && t->ndim == to->ndim)) return false;
    }
    *result = out;
  } else {
    ArgandTensor* made = nullptr;
    check(api->tensor_empty(first->ndim, first->sizes, kernel->out_dtype, first->storage->device, &made));
    *result = Tensor::steal(made);
    to = made;
  }
  ptrs[0] = static_cast<char*>(to->data);
  strides[0] = kItemSize[static_cast<int>(kernel->out_dtype)];
  if (first->numel) loop(first->numel, ptrs, strides, scalars, ints);
  return true;
}

// ---- checks and the general case -------------------------------------------------------------------------------------------
template <class T>
__attribute__((optimize("O3"))) bool has_zero(int64_t n, const char* p, int64_t stride) {
  bool zero = false;
  if (stride == static_cast<int64_t>(sizeof(T)))
    for (int64_t i = 0; i < n; i++) zero |= reinterpret_cast<const T*>(p)[i] == 0;
  else
    for (int64_t i = 0; i < n; i++) zero |= *reinterpret_cast<const T*>(p + i * stride) == 0;
  return zero;
}

void check_divisor(const PointwiseOp& op, const Operand& divisor, int dtype) {
  if (dtype_category(dtype) > 1) return;
  bool zero = false;
  if (const ArgandTensor* t = divisor.get()) {
    if (!is_integral(t->dtype, true) || ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_CPU) return;
    Iteration it;
    it.set_shape({t->sizes, t->ndim});
    const int size = kItemSize[t->dtype];
    it.add(t->data, {t->sizes, t->ndim}, {t->strides, t->ndim}, size);
    it.sort(nullptr);
    it.coalesce();
    const int kept = std::min(size, kItemSize[dtype]);  // low bytes: a number may become 0 where it is converted
    const auto row = kept == 1 ? has_zero<uint8_t> : kept == 2 ? has_zero<uint16_t> : kept == 4 ? has_zero<uint32_t> : has_zero<uint64_t>;
    for_each_row(it, 0, it.numel, [&](int64_t n, char* const* ptrs) { zero = zero || row(n, ptrs[0], it.strides[0][0]); });
  } else {
    zero = static_cast<uint64_t>(divisor.raw().i) << (64 - 8 * kItemSize[dtype]) == 0;
  }
  if (zero) fail(ARGAND_RUNTIME_ERROR, "%s: ZeroDivisionError: got a zero in an integer divisor, expected nonzero integers", op.name);
}

}  // namespace

Tensor pointwise(const PointwiseOp& op, const Operand* const* operands, const double* scalars, const int64_t* ints, const Tensor& out, bool inplace) {
  Tensor result;
  if (__builtin_expect(fast_path(op, operands, scalars, ints, out, &result), 1)) return result;

  const int promoted = pointwise_dtype(op.name, op.n_operands, static_cast<Promotion>(op.promote), op.bool_operands, operands);
  const bool float8 = is_float8(promoted) && takes_float8(op.name);
  const int last = op.n_operands - 1;
  const bool exact = op.exact_numbers && is_half(promoted), wider = exact && rounds_numbers(op, operands, promoted);
  const bool beside = exact && !wider && is_number(op, *operands[last], last, promoted);
  const PointwiseKernel& kernel = require_kernel(op, float8 || wider ? ARGAND_FLOAT32 : promoted);
  const int dtype = kernel.compute_dtype, result_dtype = kernel.out_dtype == dtype ? promoted : kernel.out_dtype;
  const Dims shape = pointwise_shape(op.name, op.n_operands, operands);
  ArgandDevice device = out ? out.device() : ARGAND_DEVICE(ARGAND_CPU, 0);
  bool meta = out && out.is_meta();
  for (int k = 0; k < op.n_operands; k++)
    if (const ArgandTensor* t = operands[k]->get(); t && ARGAND_DEVICE_TYPE(t->storage->device) == ARGAND_META) {
      meta = true;
      device = t->storage->device;
    }
  for (int k = 0; meta && k < op.n_operands; k++)
    if (const ArgandTensor* t = operands[k]->get(); t && t->ndim > 0 && ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_META)
      fail(ARGAND_DEVICE_ERROR, "%s: got tensors on cpu and meta, expected all on one device; move them with .to(device)", op.name);
  if (op.number_rule == kDivisor && !meta && numel_of(shape) > 0) check_divisor(op, *operands[last], dtype);
  check_numbers(op.name, op.number_rule, promoted, op.n_operands, operands);
  const bool resized = out && prepare_pointwise_out(op.name, out, result_dtype, shape, inplace, op.exact_out, op.n_operands, operands);
  if (wider && out && out.dtype() != promoted) {  // the result is rounded before it is converted
    kernels::cpu::copy_(out, pointwise(op, operands, scalars, ints, {}, false), false);
    return out;
  }

  // Inputs first: their strides say how a new result is laid out.
  Work work;
  work.loop = beside ? kernel.number_loop : kernel.loop;
  work.scalars = scalars;
  work.ints = ints;
  Tensor held[kMaxOperands];  // copies of operands that the result would overwrite
  alignas(16) char values[kMaxOperands][16];
  Iteration& it = work.it;
  it.set_shape(shape);
  it.n_operands = 1;
  it.data[0] = nullptr;
  std::memset(it.strides[0], 0, sizeof(int64_t) * it.ndim);
  work.from[0] = -1;
  work.into[0] = static_cast<int8_t>(kernel.out_dtype);
  if (kernel.out_dtype != result_dtype) {
    work.from[0] = static_cast<int8_t>(result_dtype);
    work.converts = true;
  }
  for (int k = 0; k < op.n_operands; k++) {
    const bool is_bool = op.bool_operands >> k & 1;
    work.from[k + 1] = -1;
    work.into[k + 1] = static_cast<int8_t>(is_bool ? static_cast<int>(ARGAND_BOOL) : dtype);
    if (beside && k == last) work.into[k + 1] = ARGAND_FLOAT32;
    held[k] = operands[k]->tensor();
    const int number_dtype = is_wide_unsigned(promoted) && !is_bool ? promoted : work.into[k + 1];  // where that is computed in another dtype, too
    const auto add_number = [&] {
      if (number_dtype != work.into[k + 1]) convert(1, work.into[k + 1], values[k], 16, number_dtype, values[k], 16);
      it.add_value(values[k]);
    };
    if (!held[k]) {
      write_number(values[k], number_dtype, operands[k]->raw());
      add_number();
      continue;
    }
    if (out && !meta && held[k].get() != out.get() && partial_overlap(out, held[k]) != Overlap::no)
      held[k] = kernels::cpu::clone(held[k], std::nullopt);
    const Tensor& t = held[k];
    const bool differs = t.dtype() != work.into[k + 1];
    if (differs && t.numel() == 1 && !meta) {
      convert(1, number_dtype, values[k], 16, t.dtype(), t.data<void>(), 16);
      add_number();
      continue;
    }
    if (differs) {
      work.from[k + 1] = static_cast<int8_t>(t.dtype());
      work.converts = true;
    }
    it.add(t->data, t.sizes(), t.strides(), t.itemsize());
  }
  const bool row_major = is_row_major(static_cast<Layout>(op.layout), *operands[0]) || are_contiguous(op.n_operands, operands);
  if (resized && !row_major) lie_as_result(out, it, shape);
  if (out || row_major) {
    result = out ? out : empty(shape, result_dtype, device);
    const int kept = it.n_operands;
    it.n_operands = 0;
    it.add(result->data, result.sizes(), result.strides(), result.itemsize());
    it.n_operands = kept;
    work.from[0] = -1;
    if (result.dtype() != kernel.out_dtype) {
      work.from[0] = static_cast<int8_t>(result.dtype());
      work.converts = true;
    }
    if (meta) return result;
    it.sort(nullptr);
  } else {
    int perm[ARGAND_MAX_DIMS];
    it.sort(perm);
    result = shape.n ? pointwise_result(it, shape, perm, result_dtype, device) : empty(shape, result_dtype, device);
    if (meta) return result;
    it.data[0] = result.data<char>();
    int64_t stride = kItemSize[result_dtype];
    for (int d = 0; d < it.ndim; d++) {
      it.strides[0][d] = stride;
      stride *= std::max<int64_t>(it.shape[d], 1);
    }
  }
  it.coalesce();
  work.table = table_of(op, kernel, scalars, ints, it.numel);
  int largest = 1;
  for (int k = 0; k < it.n_operands; k++) largest = std::max(largest, std::max(kItemSize[work.into[k]], work.size_of(k)));
  work.block = kBlockBytes / largest;
  work.streams = !out && it.shape[0] >= 1024 && kernels::cpu::goes_past_caches(it.numel * kItemSize[result_dtype]);
  work.run_all(op.cost);
  return result;
}

}  // namespace argand
