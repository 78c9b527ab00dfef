// Built-in functions of the registry's body language (docs/notes/registry.md) in C++; tools/codegen/runtime/language.py has the same in Python.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

#include "packages/aten/csrc/core/number.h"
#include "packages/aten/csrc/core/operand.h"
#include "packages/c10/csrc/core/strided.h"

namespace argand::builtins {

using Ints = std::vector<int64_t>;

// The operator whose shape function or body runs, for messages.
inline thread_local const char* current_op = "";
class OpScope {
 public:
  explicit OpScope(const char* name) : saved_(current_op) { current_op = name; }
  ~OpScope() { current_op = saved_; }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  const char* saved_;
};

// Geometry that a view's shape function returns; also what shape functions see of a tensor.
struct Strided {
  Ints sizes, strides;
  int64_t offset;
};
inline Strided strided(Ints sizes, Ints strides, int64_t offset) { return {std::move(sizes), std::move(strides), offset}; }

// ---- messages: text("a {} b", x, y) pieces are appended one by one --------------------------------------------------
inline void append(std::string& s, const char* v) { s += v; }
inline void append(std::string& s, std::string_view v) { s += v; }
inline void append(std::string& s, const std::string& v) { s += v; }
inline void append(std::string& s, bool v) { s += v ? "True" : "False"; }
inline void append(std::string& s, int64_t v) { s += std::to_string(v); }
inline void append(std::string& s, int v) { s += v >= 0 && v < ARGAND_NUM_DTYPES ? kDTypeName[v] : std::to_string(v); }
inline void append(std::string& s, double v) {
  char buffer[32];
  snprintf(buffer, sizeof buffer, "%g", v);
  s += buffer;
}
inline void append(std::string& s, IntList v) { s += to_string(v); }
inline void append(std::string& s, const Ints& v) { s += to_string(v); }
template <class T>
inline void append(std::string& s, const std::optional<T>& v) {
  if (v)
    append(s, *v);
  else
    s += "None";
}
template <class... Parts>
inline std::string text(const Parts&... parts) {
  std::string s;
  (append(s, parts), ...);
  return s;
}
[[noreturn]] __attribute__((noinline)) inline void raise(ArgandErrorKind kind, const std::string& message) {
  const std::string_view full = current_op;
  const std::string_view name = full.substr(0, full.find('.'));  // users know no overload names
  throw Error{kind, std::string(name) + (name.empty() ? "" : ": ") + message};
}
// check(condition, "message") is printed as `if (!(condition)) raise(ARGAND_SHAPE_ERROR, text(...));`

// ---- integers: sizes that do not fit are an error ----------------------------------------------------------------------
[[noreturn]] __attribute__((noinline)) inline void overflow() {
  raise(ARGAND_RUNTIME_ERROR, "an integer computed from sizes and arguments overflows 64 bits; use smaller ones");
}
inline int64_t plus(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_expect(__builtin_add_overflow(a, b, &r), 0)) overflow();
  return r;
}
inline int64_t minus(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_expect(__builtin_sub_overflow(a, b, &r), 0)) overflow();
  return r;
}
inline int64_t times(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_expect(__builtin_mul_overflow(a, b, &r), 0)) overflow();
  return r;
}
inline int64_t truncated(double x) {
  if (!(std::abs(x) < 0x1p63)) overflow();
  return static_cast<int64_t>(x);
}

// ---- attributes of tensors (derivatives add overloads for tensors of which only the geometry is kept) ------------------
inline IntList shape_of(const Tensor& t) { return t.sizes(); }
inline IntList strides_of(const Tensor& t) { return t.strides(); }
inline int64_t offset_of(const Tensor& t) { return t->offset; }
inline int64_t ndim_of(const Tensor& t) { return t.dim(); }
inline int64_t numel_of(const Tensor& t) { return t.numel(); }
inline int dtype_of(const Tensor& t) { return t.dtype(); }
inline std::optional<ArgandDevice> device_of(const Tensor& t) { return t.device(); }

// ---- lists -----------------------------------------------------------------------------------------------------------
inline Ints list(IntList l) { return l.vec(); }
inline Ints list(Ints l) { return l; }
inline TensorList list(TensorList l) { return l; }
template <class T>
T& entry(std::vector<T>& v, int64_t i) {  // v[i] of Python, to assign to
  const int64_t n = static_cast<int64_t>(v.size());
  if (i < 0) i += n;
  if (i < 0 || i >= n) raise(ARGAND_INDEX_ERROR, "list index out of range");
  return v[i];
}
inline const Tensor& at(const TensorList& v, int64_t i) { return entry(const_cast<TensorList&>(v), i); }
inline bool contains(IntList l, int64_t x) { return std::find(l.begin(), l.end(), x) != l.end(); }
template <class A, class B>
auto min_of(A a, B b) {
  return b < a ? std::common_type_t<A, B>(b) : std::common_type_t<A, B>(a);
}
template <class A, class B>
auto max_of(A a, B b) {
  return a < b ? std::common_type_t<A, B>(b) : std::common_type_t<A, B>(a);
}
inline int64_t min_entry(IntList l) { return *std::min_element(l.begin(), l.end()); }
inline int64_t max_entry(IntList l) { return *std::max_element(l.begin(), l.end()); }
inline bool any(IntList l) {
  return std::any_of(l.begin(), l.end(), [](int64_t x) { return x != 0; });
}
inline bool all(IntList l) {
  return std::all_of(l.begin(), l.end(), [](int64_t x) { return x != 0; });
}
inline Ints reversed(IntList l) { return {std::make_reverse_iterator(l.end()), std::make_reverse_iterator(l.begin())}; }
inline Ints concat(const Ints& a, const Ints& b) {
  Ints r(a);
  r.insert(r.end(), b.begin(), b.end());
  return r;
}
template <class T>
inline std::vector<T> concat(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline Ints repeat(const Ints& a, int64_t n) {
  Ints r;
  for (int64_t i = 0; i < n; i++) r.insert(r.end(), a.begin(), a.end());
  return r;
}
// Python's a[start:stop]
inline Ints slice(IntList a, std::optional<int64_t> start, std::optional<int64_t> stop) {
  const int64_t n = a.size();
  auto clip = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t b = start ? clip(*start) : 0, e = stop ? clip(*stop) : n;
  return b < e ? Ints(a.begin() + b, a.begin() + e) : Ints();
}
// Python's a[i]; out of range is our own bug in a body.
inline int64_t at(IntList a, int64_t i) {
  if (i < 0) i += a.size();
  if (i < 0 || i >= a.size()) raise(ARGAND_INDEX_ERROR, "list index out of range");
  return a[i];
}
inline int64_t len(IntList a) { return a.size(); }
inline int64_t len(const TensorList& a) { return static_cast<int64_t>(a.size()); }
inline int64_t sum(IntList a) { return std::accumulate(a.begin(), a.end(), int64_t{0}, plus); }
inline int64_t prod(IntList a) { return std::accumulate(a.begin(), a.end(), int64_t{1}, times); }
inline int64_t floordiv(int64_t a, int64_t b) {
  if (b == 0) raise(ARGAND_RUNTIME_ERROR, "integer division by zero");
  if (b == -1) return minus(0, a);
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
inline double floordiv(double a, double b) { return std::floor(a / b); }
inline double mod(double a, double b) { return a - std::floor(a / b) * b; }
inline int64_t mod(int64_t a, int64_t b) { return a - floordiv(a, b) * b; }

// ---- dims and shapes -------------------------------------------------------------------------------------------------
inline int64_t wrap_dim(int64_t d, int64_t ndim) { return argand::wrap_dim(current_op, d, ndim); }
inline Ints broadcast_shapes(IntList a, IntList b) { return IntList(argand::broadcast_shapes(current_op, a, b)).vec(); }
inline Ints contiguous_strides(IntList sizes) { return IntList(argand::contiguous_strides(sizes)).vec(); }
inline Ints infer_size(IntList shape, int64_t numel) { return IntList(argand::infer_size(current_op, shape, numel)).vec(); }
inline Ints view_strides(IntList shape, IntList strides, IntList sizes) {
  auto found = argand::view_strides(shape, strides, sizes);
  if (!found)
    raise(
        ARGAND_RUNTIME_ERROR,
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces): got shape " +
            to_string(shape) + " with strides " + to_string(strides) + ", expected one that can be seen as " + to_string(sizes) +
            ". Use .reshape(...) instead.");
  return IntList(*found).vec();
}
inline bool can_view(const Tensor& t, IntList sizes) { return argand::view_strides(t.sizes(), t.strides(), sizes).has_value(); }
inline bool is_contiguous(const Tensor& t) { return t.is_contiguous(); }
inline Ints inverse_permutation(IntList dims) {
  Ints r(dims.size());
  for (int64_t i = 0; i < dims.size(); i++) r[wrap_dim(dims[i], dims.size())] = i;
  return r;
}
inline bool is_reduced(int64_t i, std::optional<IntList> dims, int64_t ndim) {
  if (!dims || dims->size() == 0) return true;
  for (int64_t d : *dims)
    if (wrap_dim(d, ndim) == i) return true;
  return false;
}
inline Ints reduced_shape(IntList shape, std::optional<IntList> dims, bool keepdim) {
  if (dims) wrap_dims(current_op, *dims, shape.size());
  Ints r;
  for (int64_t i = 0; i < shape.size(); i++) {
    if (!is_reduced(i, dims, shape.size()))
      r.push_back(shape[i]);
    else if (keepdim)
      r.push_back(1);
  }
  return r;
}
inline Ints full_reduced_shape(IntList shape, bool keepdim) { return keepdim ? Ints(shape.size(), 1) : Ints(); }
inline int64_t reduced_count(IntList shape, std::optional<IntList> dims) {
  int64_t n = 1;
  for (int64_t i = 0; i < shape.size(); i++)
    if (is_reduced(i, dims, shape.size())) n = times(n, shape[i]);
  return n;
}
inline Ints all_dims(int64_t ndim) {
  Ints r(ndim);
  std::iota(r.begin(), r.end(), 0);
  return r;
}
inline Ints cat_shape(const TensorList& tensors, int64_t dim) {
  if (tensors.empty()) raise(ARGAND_VALUE_ERROR, "expected a non-empty list of Tensors");
  const Tensor* first = nullptr;  // 1-d empty tensors are skipped, as PyTorch does
  for (const Tensor& t : tensors)
    if (!(t.dim() == 1 && t.numel() == 0) && !first) first = &t;
  if (!first) return tensors[0].sizes().vec();
  const int64_t d = wrap_dim(dim, first->dim());
  if (first->dim() == 0) raise(ARGAND_RUNTIME_ERROR, "zero-dimensional tensor (at position 0) cannot be concatenated");
  Ints r = first->sizes().vec();
  r[d] = 0;
  for (size_t k = 0; k < tensors.size(); k++) {
    const Tensor& t = tensors[k];
    if (t.dim() == 1 && t.numel() == 0) continue;
    if (t.dim() != first->dim()) raise(ARGAND_SHAPE_ERROR, text("Tensors must have same number of dimensions: got ", first->dim(), " and ", t.dim()));
    for (int64_t i = 0; i < t.dim(); i++)
      if (i != d && t.size(i) != r[i])
        raise(ARGAND_SHAPE_ERROR, text("Sizes of tensors must match except in dimension ", d, ". Expected size ", r[i], " but got size ", t.size(i),
                                       " for tensor number ", static_cast<int64_t>(k), " in the list."));
    r[d] = plus(r[d], t.size(d));
  }
  return r;
}
inline Ints pool2d_shape(IntList shape, IntList kernel, IntList stride, IntList padding, IntList dilation, bool ceil_mode) {
  if (shape.size() != 3 && shape.size() != 4)
    raise(ARGAND_SHAPE_ERROR, "Expected 3D or 4D (batch mode) tensor for input, but got " + to_string(shape));
  Ints r(shape.begin(), shape.end() - 2);
  for (int64_t i = 0; i < 2; i++) {
    const int64_t k = kernel[i], s = stride.size() ? stride[i] : k, p = padding[i], d = dilation[i], n = shape[shape.size() - 2 + i];
    if (k <= 0 || s <= 0 || d <= 0)
      raise(ARGAND_RUNTIME_ERROR,
            text("kernel size, stride and dilation should be greater than zero, but got ", kernel, ", ", stride, ", ", dilation));
    if (p < 0 || p > k / 2) raise(ARGAND_RUNTIME_ERROR, text("pad should be at most half of kernel size, but got pad=", p, " and kernel_size=", k));
    const int64_t span = minus(plus(n, 2 * p), times(d, k - 1)) - 1;  // p is at most k / 2
    int64_t out = floordiv(plus(span, ceil_mode ? s - 1 : 0), s) + 1;
    if (ceil_mode && times(out - 1, s) >= plus(n, p)) out--;  // the last window starts inside the input or its left padding
    if (out < 1) raise(ARGAND_SHAPE_ERROR, text("Given input size: ", shape, ". Calculated output size would be too small"));
    r.push_back(out);
  }
  return r;
}
// Advanced indexing by integer tensors. The result lies as that of a pointwise operator on `self`, with a stride of 0 along the indexed
// dimensions, and then the indices.
inline Strided index_shape(const Tensor& self, const TensorList& indices) {
  Ints broadcast;
  int64_t first = -1, last = -1, used = 0;
  for (int64_t i = 0; i < len(indices); i++) {
    if (!indices[i]) continue;
    if (indices[i].dtype() == ARGAND_BOOL) raise(ARGAND_RUNTIME_ERROR, "the result's shape depends on data, which a meta tensor does not have");
    broadcast = builtins::broadcast_shapes(broadcast, indices[i].sizes());
    if (first < 0) first = i;
    last = i;
    used++;
  }
  const int64_t at = used > 0 && last - first + 1 == used ? first : 0;  // where they are not adjacent, the indexed dimensions come first
  Ints r, own;
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i < len(indices) && indices[i]) continue;
    r.push_back(self.size(i));
    own.push_back(self.stride(i));
  }
  r.insert(r.begin() + at, broadcast.begin(), broadcast.end());
  own.insert(own.begin() + at, broadcast.size(), 0);
  std::vector<Ints> operands{own};
  for (int64_t i = 0; i < len(indices); i++) {
    if (!indices[i]) continue;
    const Tensor& t = indices[i];
    const int64_t end = at + static_cast<int64_t>(broadcast.size()) - t.dim();
    Ints strides(r.size(), 0);
    for (int64_t d = 0; d < t.dim(); d++)
      if (t.size(d) == r[end + d]) strides[end + d] = t.stride(d);
    operands.push_back(std::move(strides));
  }
  const int n = static_cast<int>(r.size());
  if (n > ARGAND_MAX_DIMS)
    raise(ARGAND_SHAPE_ERROR, text("got a result of ", int64_t{n}, " dimensions, expected at most ", int64_t{ARGAND_MAX_DIMS}));
  int order[ARGAND_MAX_DIMS];
  sort_dims(n, order, [&](int a, int b) {
    const int i = n - 1 - a, j = n - 1 - b;
    for (const Ints& strides : operands)
      if (const int c = compare_dims(strides[i], r[i], strides[j], r[j])) return c;
    return 0;
  });
  return {r, IntList(strides_in_order(r, order)).vec(), 0};
}
inline Ints view_dtype_shape(IntList shape, int from, int to) {
  Ints r = shape.vec();
  const int a = item_size(from), b = item_size(to);
  if (a == b) return r;
  if (r.empty()) raise(ARGAND_RUNTIME_ERROR, text("self.dim() cannot be 0 to view ", from, " as ", to, " (different element sizes)"));
  if (a < b && r.back() % (b / a))
    raise(ARGAND_RUNTIME_ERROR, text("self.size(-1) must be divisible by ", int64_t{b / a}, " to view ", from, " as ", to));
  r.back() = a < b ? r.back() / (b / a) : times(r.back(), a / b);
  return r;
}
inline int cat_dtype(const TensorList& tensors) {
  std::vector<ArgandValue> values;
  for (const Tensor& t : tensors) values.push_back(value(t));
  int dtype = ARGAND_FLOAT32;
  if (!values.empty()) check(api->result_type(values.data(), values.size(), &dtype));
  return dtype;
}
// Memory formats have PyTorch's numbers: 0 is row-major, 2 has the channels (dimension 1) innermost of 4 dimensions, 3 of 5.
inline Ints format_strides(IntList shape, int64_t format) {
  if (format == 0) return builtins::contiguous_strides(shape);
  const int64_t n = format + 2;
  if (len(shape) != n)
    raise(ARGAND_RUNTIME_ERROR, text("required rank ", n, " tensor to use channels_last", n == 4 ? "" : "_3d", " format, got shape ", shape));
  Ints strides(n);
  int64_t step = 1;
  for (int64_t i = 0; i < n; i++) {
    const int64_t d = i == 0 ? 1 : i + 1 < n ? n - i : 0;
    strides[d] = step;
    step = times(step, shape[d]);
  }
  return strides;
}
inline bool has_format(IntList shape, IntList strides, int64_t format) {
  if (len(shape) != format + 2) return false;
  const Ints wanted = format_strides(shape, format);
  for (int64_t d = 0; d < len(shape); d++)
    if (shape[d] != 1 && strides[d] != wanted[d]) return false;
  return true;
}
// The format that results take over from a tensor: channels last where its strides rise from C over W, H (and D) to N, with or without gaps.
inline int64_t suggested_format(IntList shape, IntList strides) {
  const int64_t n = len(shape);
  if ((n != 4 && n != 5) || strides[1] == 0) return 0;
  int64_t least = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t d = i == 0 ? 1 : i + 1 < n ? n - i : 0;
    if (shape[d] == 0 || strides[d] < least || (d == 0 && least == strides[1])) return 0;  // the last: sizes of 1 that say nothing
    if (__builtin_mul_overflow(strides[d], shape[d], &least)) return 0;
  }
  return n - 2;
}
// The format that all suggest; row-major where they differ.
inline int64_t common_format(const TensorList& tensors) {
  int64_t format = -1;
  for (const Tensor& t : tensors) {
    const int64_t own = suggested_format(t.sizes(), t.strides());
    if (own == 0 || (format >= 0 && own != format)) return 0;
    format = own;
  }
  return std::max<int64_t>(format, 0);
}
// Dense matrices (the last two dimensions) that lie column by column; of one dimension as they are.
inline Strided column_major(IntList shape) {
  const int64_t n = len(shape);
  Ints strides = builtins::contiguous_strides(shape);
  if (n >= 2) {
    strides[n - 2] = 1;
    strides[n - 1] = std::max<int64_t>(shape[n - 2], 1);
  }
  return {shape.vec(), std::move(strides), 0};
}
// Strides of a Fourier transform's result: the dimensions that it leaves as they are outside, those that it transforms inside, either in the order of
// the input's strides; `last` keeps the last of `dims` innermost.
inline Ints transform_strides(IntList sizes, IntList strides, IntList dims, bool last) {
  Ints order = all_dims(len(sizes));
  const auto place = [&](int64_t d) { return last && d == dims[dims.size() - 1] ? 2 : contains(dims, d) ? 1 : 0; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return place(a) != place(b) ? place(a) < place(b) : strides[a] > strides[b]; });
  Ints found(order.size());
  int64_t step = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    found[*d] = step;
    step = times(step, std::max<int64_t>(sizes[*d], 1));
  }
  return found;
}
// Strides of a copy that keeps the order of dimensions, as clone and empty_like make them, or of a memory format.
inline Strided clone_shape(IntList shape, IntList strides, std::optional<int64_t> memory_format) {
  return {shape.vec(), memory_format ? format_strides(shape, *memory_format) : IntList(dense_strides(shape, strides)).vec(), 0};
}

// ---- dtypes and numbers ----------------------------------------------------------------------------------------------
inline int64_t to_int(const Scalar& s) { return s.to_int(); }
inline bool is_tensor(const Operand& o) { return o.is_tensor(); }
// Of what pointwise kernels of the CPU do not round to a 16-bit dtype: numbers, and the one element of a tensor.
inline bool is_exact(const Operand& o) {
  return !o.is_tensor() || (o.get()->numel == 1 && ARGAND_DEVICE_TYPE(o.get()->storage->device) == ARGAND_CPU);
}
inline bool fits(int dtype, const Scalar& s) { return argand::fits(dtype, s); }
inline bool fits(int dtype, const Operand& o) { return o.is_tensor() || argand::fits(dtype, o.raw()); }
inline bool is_integral(int dtype) { return argand::is_integral(dtype, false); }
// The fused attention kernel's conditions; its mask gets no gradient, which one of entries may need though it does not say so.
inline bool attention_is_fused(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  return q.dtype() == k.dtype() && k.dtype() == v.dtype() && argand::is_floating(q.dtype()) && k.size(1) > 0 && q.size(1) % k.size(1) == 0 &&
         k.size(1) == v.size(1) && q.size(0) == k.size(0) && k.size(0) == v.size(0) && k.size(2) == v.size(2) && q.size(3) == k.size(3) &&
         !(mask && (mask.requires_grad() || mask->keys & ARGAND_KEYBIT(ARGAND_KEY_BATCHED)));
}
// Sums of integers and bools are int64; float16 and bfloat16 statistics are float32.
inline int accumulate_dtype(int dtype) { return argand::is_integral(dtype, true) ? ARGAND_INT64 : dtype; }
inline int truth_dtype(int dtype) { return dtype == ARGAND_UINT8 ? ARGAND_UINT8 : ARGAND_BOOL; }
inline int accumulate_float_dtype(int dtype) { return dtype == ARGAND_FLOAT16 || dtype == ARGAND_BFLOAT16 ? ARGAND_FLOAT32 : dtype; }
inline double finfo_eps(int dtype) {
  return dtype == ARGAND_FLOAT64 ? DBL_EPSILON : dtype == ARGAND_FLOAT32 ? FLT_EPSILON : dtype == ARGAND_FLOAT16 ? 0x1p-10 : 0x1p-7;
}
inline double to_float(const Scalar& s) { return s.to_double(); }
inline bool is_complex(int dtype) { return argand::is_complex(dtype); }
inline bool is_floating(int dtype) { return argand::is_floating(dtype); }
inline int real_dtype(int dtype) { return dtype == ARGAND_COMPLEX64 ? ARGAND_FLOAT32 : dtype == ARGAND_COMPLEX128 ? ARGAND_FLOAT64 : dtype; }
inline int complex_dtype(int dtype) { return dtype == ARGAND_FLOAT64 || dtype == ARGAND_COMPLEX128 ? ARGAND_COMPLEX128 : ARGAND_COMPLEX64; }
inline int default_dtype() { return api->default_dtype(); }
inline int promote_types(int a, int b) {
  const int common = api->promote_types(a, b);
  if (common == ARGAND_DTYPE_NONE)
    raise(ARGAND_RUNTIME_ERROR, text("got ", a, " and ", b, ", expected dtypes that one dtype holds both of; convert one with .to()"));
  return common;
}
inline int scalar_dtype(const Scalar& s) {
  if (s.tag == ARGAND_TAG_BOOL) return ARGAND_BOOL;
  if (s.tag == ARGAND_TAG_INT) return ARGAND_INT64;
  return s.tag == ARGAND_TAG_FLOAT ? default_dtype() : complex_dtype(default_dtype());
}
inline int dtype_of(const Operand& o) { return o.is_tensor() ? o.get()->dtype : scalar_dtype(o.scalar()); }
// An operand where a tensor is wanted: numbers become 0-d tensors that are weak in promotion.
inline Tensor as_tensor(const Tensor& t) { return t; }
inline Tensor as_tensor(const Operand& o) {
  if (o.is_tensor()) return o.tensor();
  static const ArgandOperator* const op = find_operator("scalar_tensor");
  // In full precision: the operation that uses it decides the dtype, not the number.
  const uint32_t tag = o.raw().tag;
  const int dtype = tag == ARGAND_TAG_FLOAT ? ARGAND_FLOAT64 : tag == ARGAND_TAG_COMPLEX ? ARGAND_COMPLEX128 : scalar_dtype(o.scalar());
  const ArgandValue args[] = {o.raw(), dtype_value(dtype), none()};
  ArgandValue rets[1];
  check(api->call(op, args, rets));
  Tensor t = take_tensor(rets[0]);
  t->flags |= ARGAND_TENSOR_WRAPPED_NUMBER;
  return t;
}
// The conjugate of an operand; a number's keeps its precision.
inline Tensor conj(const Operand& o) {
  ArgandValue v = o.raw();
  if (!o.is_tensor()) {
    if (v.tag == ARGAND_TAG_COMPLEX) v.c.im = -v.c.im;
    return as_tensor(Operand(v));
  }
  static const ArgandOperator* const op = find_operator("conj");
  ArgandValue rets[1];
  check(api->call(op, &v, rets));
  return take_tensor(rets[0]);
}
// The value of a one-element integer tensor in host memory.
inline int64_t item_int(const Tensor& t) {
  if (t.numel() != 1 || t.is_meta()) raise(ARGAND_RUNTIME_ERROR, text("expected a tensor of one element with data, got shape ", t.sizes()));
  static const ArgandOperator* const op = find_operator("_to_copy");
  const ArgandValue args[] = {value(t), dtype_value(ARGAND_INT64), device_value(ARGAND_DEVICE(ARGAND_CPU, 0)), value(false), none()};
  ArgandValue rets[1];
  check(api->call(op, args, rets));
  return *take_tensor(rets[0]).data<int64_t>();
}
// Of one bool; where its value is not known, it is taken to be true.
inline bool holds(const Tensor& t) { return t.is_meta() || item_int(t) != 0; }
inline bool is_one(int64_t n) { return n == 1; }
inline bool is_on_cuda(const Tensor& t) { return ARGAND_DEVICE_TYPE(t.device()) == ARGAND_CUDA; }
inline bool is_on_cpu(const Tensor& t) { return ARGAND_DEVICE_TYPE(t.device()) == ARGAND_CPU; }
inline double finfo_max(int dtype) {
  switch (dtype) {
    case ARGAND_FLOAT16:
      return 65504.0;
    case ARGAND_BFLOAT16:
      return 3.3895313892515355e38;
    case ARGAND_FLOAT32:
      return FLT_MAX;
    case ARGAND_FLOAT8_E4M3FN:
      return 448.0;
    case ARGAND_FLOAT8_E5M2:
      return 57344.0;
    default:
      return DBL_MAX;
  }
}
inline double finfo_min(int dtype) { return -finfo_max(dtype); }
inline bool same_device(const Tensor& t, std::optional<ArgandDevice> device) {
  if (!device || *device == t.device()) return true;
  const bool any = ARGAND_DEVICE_INDEX(*device) == 0xff || ARGAND_DEVICE_TYPE(*device) == ARGAND_CPU;  // there is one CPU
  return any && ARGAND_DEVICE_TYPE(*device) == ARGAND_DEVICE_TYPE(t.device());
}
inline int64_t arange_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  const double s = step.to_double(), span = end.to_double() - start.to_double();
  if (s == 0) raise(ARGAND_RUNTIME_ERROR, "step must be nonzero");
  if (!std::isfinite(span)) raise(ARGAND_RUNTIME_ERROR, text("unsupported range: ", start.to_double(), " -> ", end.to_double()));
  if ((span > 0 && s < 0) || (span < 0 && s > 0)) raise(ARGAND_RUNTIME_ERROR, "upper bound and lower bound inconsistent with step sign");
  if (start.tag != ARGAND_TAG_FLOAT && end.tag != ARGAND_TAG_FLOAT && step.tag != ARGAND_TAG_FLOAT) {
    const int64_t n = minus(end.to_int(), start.to_int()), k = step.to_int();
    return floordiv(plus(n, k - (k > 0 ? 1 : -1)), k);
  }
  return truncated(std::ceil(span / s));
}
inline int arange_dtype(const Scalar& start, const Scalar& end, const Scalar& step) {
  const bool any = start.is_floating() || end.is_floating() || step.is_floating();
  return any ? default_dtype() : ARGAND_INT64;
}

}  // namespace argand::builtins
