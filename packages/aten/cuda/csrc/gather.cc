// gather, scatter_, scatter_add_, scatter_reduce, index_select, index_add_, embedding: one index per place along one dimension.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/csrc/core/pointwise_rules.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/arithmetic.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/indexing.h"

namespace argand::kernels::cuda {
namespace {

using namespace places;

// An index of the shape of the places; all dimensions but `dim` must fit into self, and into src if there is one.
Tensor checked_index(const char* op, const Tensor& index, const Tensor& self, int64_t dim, const Tensor& src) {
  const Tensor i64 = as_index(op, index, self);
  if (index.numel() == 0) return i64;
  const auto rank = [](const Tensor& t) { return t.dim() ? t.dim() : 1; };
  bool fits = rank(index) == rank(self) && (!src || rank(src) == rank(index));
  for (int64_t d = 0; fits && d < rank(index); d++)
    fits = (d == dim || size_of(index, d) <= size_of(self, d)) && (!src || size_of(index, d) <= size_of(src, d));
  if (!fits)
    fail(ARGAND_SHAPE_ERROR,
         "%s: got index of shape %s for self of shape %s%s%s, expected the same number of dims and no size greater than theirs apart from dimension "
         "%ld",
         op, to_string(index.sizes()).c_str(), to_string(self.sizes()).c_str(), src ? " and src of shape " : "",
         src ? to_string(src.sizes()).c_str() : "", static_cast<long>(dim));
  return i64;
}

// The walk over the places of `index`; `other` gives strides of the third tensor, or none.
Walk walk_of(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& other) {
  Walk w{op, Dims(index.sizes()), Dims(), Dims(index.strides()), Dims()};
  for (int64_t d = 0; d < index.dim(); d++) {
    w.x.push_back(d == dim ? 0 : stride_of(self, d));
    w.other.push_back(other && other.dim() ? other.stride(d) : 0);
  }
  w.step = stride_of(self, dim);
  w.limit = size_of(self, dim);
  w.dim = dim;
  w.is_runtime_error = true;
  return w;
}

// self += src at the walk's places, for any dtype: narrow integers are summed in int32, of which bool takes whether it is zero.
void add(Walk w, const Tensor& self, const Tensor& src, const Tensor& index, int64_t dim) {
  if (adds_atomically(self.dtype())) return put(w, self, src, index, Put::kAdd);
  const Tensor wide = dense(to_dtype(self, ARGAND_INT32));
  const Tensor from = to_dtype(src, ARGAND_INT32);
  for (int64_t d = 0; d < w.sizes.n; d++) {
    w.x[d] = d == dim ? 0 : stride_of(wide, d);
    w.other[d] = from.dim() ? from.stride(d) : 0;
  }
  w.step = stride_of(wide, dim);
  put(w, wide, from, index, Put::kAdd);
  ops::copy_(self, wide);
}

// Indices along one dimension: a walk over self's places with that dimension as long as `index`.
Walk select_walk(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  Walk w{op, Dims(), Dims(), Dims(), Dims()};
  for (int64_t d = 0; d < std::max<int64_t>(self.dim(), 1); d++) {
    w.sizes.push_back(d == dim ? index.numel() : self.size(d));
    w.x.push_back(d == dim ? 0 : self.stride(d));
    w.index.push_back(d == dim ? stride_of(index, 0) : 0);
  }
  w.step = stride_of(self, dim);
  w.limit = size_of(self, dim);
  w.dim = dim;
  return w;
}

}  // namespace

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const Below below;
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  const Tensor i64 = checked_index("gather", index, self, d, Tensor());
  Tensor out = empty(index.sizes(), self.dtype(), self.device());
  places::gather(walk_of("gather", self, d, i64, Tensor()), out, self, i64);
  return out;
}

void scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Operand& src) {
  const Below below;
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  Tensor source, value;
  if (src.is_tensor()) {
    source = src.tensor();
    if (source.dtype() != self.dtype())
      fail(ARGAND_DTYPE_ERROR, "scatter: Expected self.dtype to be equal to src.dtype, got %s and %s", kDTypeName[self.dtype()],
           kDTypeName[source.dtype()]);
    check_device("scatter", "src", source, self);
    if (source->storage == self->storage) source = ops::clone(source);
  }
  const Tensor i64 = checked_index("scatter", index, self, d, source);
  if (index.numel() == 0) return;
  if (!source) value = ops::full({}, src.scalar(), self.dtype(), self.device());
  put(walk_of("scatter", self, d, i64, source), self, source ? source : value, i64, Put::kStore);
}

void scatter_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const Below below;
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  check_same_dtype("scatter_add", self, src);
  check_device("scatter_add", "src", src, self);
  const Tensor i64 = checked_index("scatter_add", index, self, d, src);
  if (index.numel() == 0) return;
  add(walk_of("scatter_add", self, d, i64, src), self, src, i64, d);
}

namespace {

// A launch of extreme_keys or keyed_elements: `first` is what it writes.
template <class... T>
void launch_keys(const char* name, bool smallest, const Tensor& x, const Tensor& first, const T&... others) {
  const char* key = x.itemsize() == 8 ? "int64" : "int32";
  const std::string text = std::string(name) + ";T=" + real_name(x.dtype()) + ";K=" + key + ";SMALLEST=" + flag(smallest) + ";BLOCK=1024";
  launch(argand::cuda::kernel(text), programs("scatter_reduce", divide_up(x.numel(), 1024)), first->data, others->data..., x.numel());
}

// Integers that are the greater, the more extreme the elements are.
Tensor keys_of(const Tensor& x, bool smallest) {
  const Tensor keys = empty(x.sizes(), x.itemsize() == 8 ? ARGAND_INT64 : ARGAND_INT32, x.device());
  launch_keys("extreme_keys", smallest, x, keys, x);
  return keys;
}

}  // namespace

// The greatest and the least are those of integers, whose order does not matter; other reductions are made of other operators.
Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce, bool include_self) {
  const char* op = "scatter_reduce";
  if (reduce != "amax" && reduce != "amin") return ops::scatter_reduce_sorted(self, dim, index, src, reduce, include_self);
  const Below below;
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  check_same_dtype(op, self, src);
  check_device(op, "src", src, self);
  const Tensor i64 = checked_index(op, index, self, d, src), x = dense(self), from = dense(src),
               out = empty(self.sizes(), self.dtype(), self.device());
  const bool smallest = reduce == "amin";
  const Tensor keys = keys_of(x, smallest);
  if (!include_self) {
    const Tensor lowest = ops::full({}, Scalar(x.itemsize() == 8 ? INT64_MIN : int64_t{INT32_MIN}), keys.dtype(), self.device());
    put(walk_of(op, keys, d, i64, lowest), keys, lowest, i64, Put::kStore);
  }
  const Tensor candidates = keys_of(from, smallest);
  put(walk_of(op, keys, d, i64, candidates), keys, candidates, i64, Put::kMax);
  launch_keys("keyed_elements", smallest, x, out, keys, x);
  return out;
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  const Below below;
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  const Tensor i64 = as_index("index_select", index, self);
  if (self.dim() == 0 && index.numel() != 1)
    fail(ARGAND_SHAPE_ERROR, "index_select: got %ld indices for a 0-d tensor, expected one", static_cast<long>(index.numel()));
  const Walk w = self.dim() ? select_walk("index_select", self, d, i64) : Walk{"index_select", {}, {}, {}, {}, 1, 0, 1, 0};
  Tensor out = empty(w.sizes, self.dtype(), self.device());
  places::gather(w, out, self, i64);
  return out;
}

void index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  const Below below;
  const int64_t d = builtins::wrap_dim(dim, self.dim());
  check_same_dtype("index_add", self, source);
  check_scalar("index_add", self.dtype(), false, value(alpha));
  check_device("index_add", "source", source, self);
  if (index.dim() > 1) fail(ARGAND_INDEX_ERROR, "index_add: Index is supposed to be a vector, but got %s", to_string(index.sizes()).c_str());
  const Tensor i64 = as_index("index_add", index, self);
  const int64_t count = i64.numel();
  if (source.dim() == 0 && count != 1)
    fail(ARGAND_INDEX_ERROR, "index_add: got %ld indices for a source without dimensions, expected one", static_cast<long>(count));
  bool fits = self.dim() == source.dim();
  for (int64_t k = 0; fits && k < self.dim(); k++) fits = source.size(k) == (k == d ? count : self.size(k));
  if (!fits)
    fail(ARGAND_SHAPE_ERROR,
         "index_add: got source of shape %s and %ld indices for self of shape %s, expected self's shape with dimension %ld as long as index",
         to_string(source.sizes()).c_str(), static_cast<long>(count), to_string(self.sizes()).c_str(), static_cast<long>(d));
  if (source.numel() == 0) return;
  Tensor from = source;
  const Scalar factor = is_integral(self.dtype(), true) ? Scalar(alpha.to_int()) : alpha;
  const bool is_one = factor.tag == ARGAND_TAG_COMPLEX ? factor.re == 1 && factor.im == 0 : factor.to_double() == 1;
  if (!is_one) from = to_dtype(ops::mul(from, factor), self.dtype());
  if (from->storage == self->storage) from = ops::clone(from);
  Walk w = self.dim() ? select_walk("index_add", self, d, i64) : Walk{"index_add", {}, {}, {}, {}, 1, 0, 1, 0};
  w.is_runtime_error = self.dim() > 1;
  for (int64_t k = 0; k < w.sizes.n; k++) w.other.push_back(from.dim() ? from.stride(k) : 0);
  add(w, self, from, i64, d);
}

// padding_idx and the flags after it only concern the gradient.
Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool sparse) {
  const Below below;
  if (sparse) fail(ARGAND_NOT_IMPLEMENTED_ERROR, "embedding: got sparse=True, expected False; gradients of embeddings are dense");
  const Tensor i64 = as_index("embedding", indices, weight);
  Walk w{"embedding", Dims(i64.sizes()), Dims(), Dims(i64.strides()), Dims()};
  for (int64_t d = 0; d < i64.dim(); d++) w.x.push_back(0);
  w.sizes.push_back(weight.size(1));
  w.x.push_back(weight.stride(1));
  w.index.push_back(0);
  w.step = weight.stride(0);
  w.limit = weight.size(0);
  Tensor out = empty(w.sizes, weight.dtype(), weight.device());
  places::gather(w, out, weight, i64);
  return out;
}

}  // namespace argand::kernels::cuda
