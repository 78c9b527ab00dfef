#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"

#include <limits>

namespace argand::kernels::cuda::places {

using argand::cuda::Grid;
using argand::cuda::Kernel;
using argand::cuda::launch;

namespace {

constexpr int kSide = 4;  // dimensions that a kernel walks over
constexpr int64_t kTile = 1024;
enum Operand3 { kX, kIndex, kOther };

// A walk whose dimensions are merged where that changes no offset, over elements that may be parts of, or runs of, the tensors' elements.
struct Merged {
  int64_t n = 0;
  int64_t sizes[ARGAND_MAX_DIMS + 1], strides[3][ARGAND_MAX_DIMS + 1];
  int64_t step = 0;
  int64_t itemsize = 0;

  void push(int64_t size, int64_t x, int64_t index, int64_t other) {
    if (size == 1) return;
    const int64_t s[3] = {x, index, other};
    bool joins = n > 0;
    for (int k = 0; joins && k < 3; k++) joins = strides[k][n - 1] == s[k] * size;
    if (!joins) sizes[n++] = 1;
    sizes[n - 1] *= size;
    for (int k = 0; k < 3; k++) strides[k][n - 1] = s[k];
  }
};

Merged merge(const Walk& w, int64_t itemsize) {
  Merged m;
  m.itemsize = itemsize;
  m.step = w.step;
  for (int64_t d = 0; d < w.sizes.n; d++) m.push(w.sizes[d], w.x[d], w.index[d], w.other[d]);
  return m;
}

// Elements as two halves each: complex numbers.
Merged halves(const Walk& w, int64_t itemsize) {
  Merged m;
  m.itemsize = itemsize / 2;
  m.step = w.step * 2;
  for (int64_t d = 0; d < w.sizes.n; d++) m.push(w.sizes[d], w.x[d] * 2, w.index[d], w.other[d] * 2);
  m.push(2, 1, 0, 1);
  return m;
}

// Moves runs of elements as larger ones, where rows share an index and everything is aligned.
void widen(Merged& m, const void* x, const void* other) {
  const int64_t last = m.n - 1;
  if (m.n == 0 || m.strides[kIndex][last] != 0 || m.strides[kX][last] != 1 || m.strides[kOther][last] != 1) return;
  while (m.itemsize < 8) {
    bool even = m.sizes[last] % 2 == 0 && m.step % 2 == 0;
    for (int64_t d = 0; even && d < last; d++) even = m.strides[kX][d] % 2 == 0 && m.strides[kOther][d] % 2 == 0;
    if (!even || (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(other)) % static_cast<uintptr_t>(m.itemsize * 2)) return;
    m.itemsize *= 2;
    m.sizes[last] /= 2;
    m.step /= 2;
    for (int64_t d = 0; d < last; d++) m.strides[kX][d] /= 2, m.strides[kOther][d] /= 2;
  }
}

int64_t reach(const Tensor& t) {  // one more than the largest offset, in elements
  int64_t r = 1;
  for (int64_t d = 0; d < t.dim(); d++) r += (t.size(d) - 1) * t.stride(d);
  return r;
}

// One launch: at most four dimensions, the last one in columns.
template <class I>
struct Shape {
  I rows = 1, cols = 1, n1 = 1, n2 = 1;
  I strides[3][kSide] = {};
  int block = 0;  // 0: 128, 1: 1024, 2: 8 columns
  bool two = true, per_row = true;
  Grid grid;

  Shape(const char* op, const Merged& m, int64_t from) {
    const int64_t n = m.n - from;
    int64_t sizes[kSide] = {1, 1, 1, 1}, count = 1;
    for (int64_t i = 0; i < n; i++) {
      const int64_t at = kSide - n + i;
      sizes[at] = m.sizes[from + i];
      for (int k = 0; k < 3; k++) strides[k][at] = static_cast<I>(m.strides[k][from + i]);
    }
    for (int i = 0; i < kSide - 1; i++) count *= sizes[i];
    rows = static_cast<I>(count);
    cols = static_cast<I>(sizes[3]);
    n1 = static_cast<I>(sizes[1]);
    n2 = static_cast<I>(sizes[2]);
    per_row = strides[kIndex][3] == 0;
    two = n <= 2;
    if (two)
      for (int k = 0; k < 3; k++) strides[k][0] = strides[k][2];
    block = cols >= 512 ? 1 : cols >= 16 ? 0 : 2;
    grid = programs(op, divide_up(count, kTile / columns()) * divide_up(sizes[3], columns()));
  }
  int64_t columns() const { return block == 0 ? 128 : block == 1 ? 1024 : 8; }
  size_t number() const { return static_cast<size_t>((block * 2 + two) * 2 + per_row); }
  std::string constants() const { return ";BLOCK=" + std::to_string(columns()) + ";RANK=" + (two ? "2" : "4") + ";PER_ROW=" + flag(per_row); }
  const I* s(Operand3 which) const { return strides[which]; }
};
constexpr size_t kShapes = 12;

// f(offsets of x, index and other, in elements) for every launch: one, unless there are more than four dimensions.
template <class F>
void for_launches(const Merged& m, F&& f) {
  const int64_t outer = m.n > kSide ? m.n - kSide : 0;
  int64_t at[ARGAND_MAX_DIMS + 1] = {}, offset[3] = {}, serial = 0;
  while (true) {
    f(offset, serial++, outer);
    int64_t d = outer - 1;
    for (; d >= 0; d--) {
      for (int k = 0; k < 3; k++) offset[k] += m.strides[k][d];
      if (++at[d] < m.sizes[d]) break;
      for (int k = 0; k < 3; k++) offset[k] -= m.strides[k][d] * at[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

int64_t* error_record(const Tensor& t) {
  ArgandDeviceError* record = nullptr;
  check(api->device_interface(ARGAND_CUDA)->error_record(ARGAND_DEVICE_INDEX(t.device()), &record));
  return &record->op;
}
int64_t name_of(const Walk& w) { return w.skips_bad ? 0 : static_cast<int64_t>(reinterpret_cast<intptr_t>(w.op)); }
// ArgandDeviceError::where; its complement asks for a RuntimeError.
int64_t info_of(const Walk& w) {
  const int64_t where = w.limit > (int64_t{1} << 56) ? 0 : w.limit << 6 | w.dim;
  return w.is_runtime_error ? ~where : where;
}

bool is_small(const Merged& m, int64_t reach_x, int64_t reach_index, int64_t reach_other, int64_t per_element) {
  int64_t places = 1;
  for (int64_t d = 0; d < m.n; d++) places *= m.sizes[d];
  const int64_t limit = std::numeric_limits<int32_t>::max() - 2 * kTile;
  return places < limit && reach_x * per_element < limit && reach_index < limit && reach_other * per_element < limit;
}

Dims row_major(const Dims& sizes) {
  Dims strides;
  strides.n = sizes.n;
  int64_t step = 1;
  for (int32_t d = sizes.n - 1; d >= 0; d--) strides.d[d] = step, step *= sizes.d[d];
  return strides;
}

bool is_empty(const Walk& w) {
  for (int64_t d = 0; d < w.sizes.n; d++)
    if (w.sizes[d] == 0) return true;
  return false;
}

size_t size_number(int64_t itemsize) { return itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : 3; }

template <class I>
constexpr const char* kOffsets = sizeof(I) == 4 ? ";I=int32" : ";I=int64";

template <class I>
void launch_gather(const Walk& w, const Merged& m, const Tensor& out, const Tensor& x, const Tensor& index) {
  static Table<4 * kShapes> table;
  int64_t* error = error_record(x);
  for_launches(m, [&](const int64_t* offset, int64_t, int64_t outer) {
    const Shape<I> s(w.op, m, outer);
    const Kernel* k = table.get(size_number(m.itemsize) * kShapes + s.number(),
                                [&] { return std::string("gather_elements;T=") + integer_name(m.itemsize) + kOffsets<I> + s.constants(); });
    const I *a = s.s(kX), *b = s.s(kIndex);
    launch(k, s.grid, out.data<char>() + offset[kOther] * m.itemsize, x.data<char>() + offset[kX] * m.itemsize,
           index.data<int64_t>() + offset[kIndex], error, name_of(w), info_of(w), s.rows, s.cols, w.limit, w.lower, static_cast<I>(m.step), s.n1,
           s.n2, a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]);
  });
}

// `dtype`: of the sums; else integers of the elements' size are moved.
template <class I>
void launch_put(const Walk& w, const Merged& m, const Tensor& x, const Tensor& src, const Tensor& index, Put how, int dtype) {
  static Table<(8 + ARGAND_NUM_DTYPES) * kShapes> table;
  const bool add = how == Put::kAdd;
  const size_t type = add ? 8 + static_cast<size_t>(dtype) : size_number(m.itemsize) + (how == Put::kMax ? 4 : 0);
  int64_t* error = error_record(x);
  for_launches(m, [&](const int64_t* offset, int64_t, int64_t outer) {
    const Shape<I> s(w.op, m, outer);
    const Kernel* k = table.get(type * kShapes + s.number(), [&] {
      return std::string("put_elements;T=") + (add ? kDTypeName[same_width_signed(dtype)] : integer_name(m.itemsize)) + kOffsets<I> + s.constants() +
             ";HOW=" +
             (add                ? "add"
              : how == Put::kMax ? "max"
                                 : "store");
    });
    const I *a = s.s(kX), *b = s.s(kIndex), *c = s.s(kOther);
    launch(k, s.grid, x.data<char>() + offset[kX] * m.itemsize, src.data<char>() + offset[kOther] * m.itemsize,
           index.data<int64_t>() + offset[kIndex], error, name_of(w), info_of(w), s.rows, s.cols, w.limit, w.lower, static_cast<I>(m.step), s.n1,
           s.n2, a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], c[0], c[1], c[2], c[3]);
  });
}

template <class I>
void launch_offsets(const Walk& w, const Merged& m, const Tensor& table_of, const Tensor& index, bool first) {
  static Table<2 * kShapes> table;
  int64_t* error = error_record(table_of);
  for_launches(m, [&](const int64_t* offset, int64_t, int64_t outer) {
    const Shape<I> s(w.op, m, outer);
    const Kernel* k = table.get(first * kShapes + s.number(), [&] {
      return "index_offsets" + std::string(kOffsets<I>) + ";BLOCK=" + std::to_string(s.columns()) + ";RANK=" + (s.two ? "2" : "4") +
             ";FIRST=" + flag(first);
    });
    const I* b = s.s(kIndex);
    launch(k, s.grid, table_of.data<int64_t>() + offset[kOther], index.data<int64_t>() + offset[kIndex], error, name_of(w), info_of(w), s.rows,
           s.cols, w.limit, w.step, s.n1, s.n2, b[0], b[1], b[2], b[3]);
  });
}

}  // namespace

void gather(Walk w, const Tensor& out, const Tensor& x, const Tensor& index) {
  if (is_empty(w)) return;
  w.other = row_major(w.sizes);
  const bool pairs = x.itemsize() == 16;
  Merged m = pairs ? halves(w, 16) : merge(w, x.itemsize());
  widen(m, x->data, out->data);
  if (is_small(m, reach(x), reach(index), out.numel(), pairs ? 2 : 1))
    launch_gather<int32_t>(w, m, out, x, index);
  else
    launch_gather<int64_t>(w, m, out, x, index);
}

void put(const Walk& w, const Tensor& x, const Tensor& src, const Tensor& index, Put how) {
  if (is_empty(w)) return;
  const bool add = how == Put::kAdd, pairs = add ? is_complex(x.dtype()) : x.itemsize() == 16;
  Merged m = pairs ? halves(w, x.itemsize()) : merge(w, x.itemsize());
  int dtype = ARGAND_DTYPE_NONE;
  if (how == Put::kStore) widen(m, x->data, src->data);
  if (add) dtype = x.dtype() == ARGAND_COMPLEX64 ? ARGAND_FLOAT32 : x.dtype() == ARGAND_COMPLEX128 ? ARGAND_FLOAT64 : x.dtype();
  if (is_small(m, reach(x), reach(index), reach(src), pairs ? 2 : 1))
    launch_put<int32_t>(w, m, x, src, index, how, dtype);
  else
    launch_put<int64_t>(w, m, x, src, index, how, dtype);
}

void offsets(Walk w, const Tensor& table, const Tensor& index, bool first) {
  if (is_empty(w)) return;
  w.other = row_major(w.sizes);
  w.x = Dims();
  for (int64_t d = 0; d < w.sizes.n; d++) w.x.push_back(0);
  const Merged m = merge(w, 8);
  if (is_small(m, 1, reach(index), table.numel(), 1))
    launch_offsets<int32_t>(w, m, table, index, first);
  else
    launch_offsets<int64_t>(w, m, table, index, first);
}

// ---- what kernels share ------------------------------------------------------------------------------------------------
Grid programs(const char* op, int64_t n) {
  if (n > std::numeric_limits<int32_t>::max())
    fail(ARGAND_RUNTIME_ERROR, "%s: got a tensor that needs %lld programs, expected fewer than 2^31; split it", op, static_cast<long long>(n));
  return {static_cast<uint32_t>(n)};
}

const char* integer_name(int64_t itemsize) { return itemsize == 1 ? "int8" : itemsize == 2 ? "int16" : itemsize == 4 ? "int32" : "int64"; }

Tensor dense(const Tensor& t) { return t.is_contiguous() ? t : ops::contiguous(t); }
Tensor to_dtype(const Tensor& t, int dtype) { return t.dtype() == dtype ? t : ops::_to_copy(t, dtype); }

Tensor zeros(IntList sizes, int dtype, ArgandDevice device) {
  const Tensor t = empty(sizes, dtype, device);
  if (t.numel())
    check(api->device_interface(ARGAND_CUDA)->fill_bytes(t->data, ARGAND_DEVICE_INDEX(device), 0, static_cast<size_t>(t.numel() * t.itemsize())));
  return t;
}

int64_t product(IntList l, int64_t begin, int64_t end) {
  int64_t p = 1;
  for (int64_t i = begin; i < end; i++) p *= l[i];
  return p;
}

void check_device(const char* op, const char* argument, const Tensor& t, const Tensor& self) {
  if (t.device() == self.device()) return;
  const auto name = [](const Tensor& x) {
    const ArgandDeviceInterface* device = api->device_interface(ARGAND_DEVICE_TYPE(x.device()));
    const std::string type = device ? device->name : "?";
    return type == "cpu" ? type : type + ":" + std::to_string(ARGAND_DEVICE_INDEX(x.device()));
  };
  fail(ARGAND_DEVICE_ERROR, "%s: got self on %s and %s on %s, expected all tensors on one device; move one with .to()", op, name(self).c_str(),
       argument, name(t).c_str());
}

void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    fail(ARGAND_DTYPE_ERROR, "%s: got tensors of dtypes %s and %s, expected the same dtype; convert one with .to()", op, kDTypeName[a.dtype()],
         kDTypeName[b.dtype()]);
}

Tensor as_index(const char* op, const Tensor& index, const Tensor& self) {
  if (index.dtype() != ARGAND_INT64 && index.dtype() != ARGAND_INT32)
    fail(ARGAND_DTYPE_ERROR, "%s: got an index of dtype %s, expected int64 or int32; convert with .long()", op, kDTypeName[index.dtype()]);
  check_device(op, "index", index, self);
  return to_dtype(index, ARGAND_INT64);
}

}  // namespace argand::kernels::cuda::places
