// Advanced indexing: index and index_put_ with integer and bool tensors, one per dimension or None.
#include "packages/aten/csrc/core/builtins.h"
#include "packages/aten/cuda/csrc/places.h"
#include "packages/aten/generated/kernels_cuda.h"
#include "packages/aten/generated/ops/comparison.h"
#include "packages/aten/generated/ops/creation.h"
#include "packages/aten/generated/ops/view.h"

namespace argand::kernels::cuda {
namespace {

using namespace places;

Tensor on_device(const char* op, const Tensor& index, const Tensor& self) {  // indices may come from the CPU
  if (ARGAND_DEVICE_TYPE(index.device()) == ARGAND_CPU) return ops::_to_copy(index, ARGAND_DTYPE_NONE, self.device());
  check_device(op, "an index", index, self);
  return index;
}

void check_mask(const char* op, const Tensor& mask, const Tensor& self, int64_t at) {
  for (int64_t i = 0; i < mask.dim(); i++)
    if (at + i >= self.dim() || mask.size(i) != self.size(at + i))
      fail(ARGAND_INDEX_ERROR, "%s: The shape of the mask %s at index %ld does not match the shape of the indexed tensor %s at index %ld", op,
           to_string(mask.sizes()).c_str(), static_cast<long>(i), to_string(self.sizes()).c_str(), static_cast<long>(at + i));
}

// `self` with `n` dimensions from `at` on as one, if their elements are evenly spaced; undefined otherwise.
Tensor merge_dims(const Tensor& self, int64_t at, int64_t n) {
  Dims sizes, strides;
  int64_t count = 1;
  for (int64_t i = at + n - 1; i >= at; i--) {
    if (self.size(i) != 1 && self.stride(i) != count * self.stride(at + n - 1)) return Tensor();
    count *= self.size(i);
  }
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i > at && i < at + n) continue;
    sizes.push_back(i == at ? count : self.size(i));
    strides.push_back(i == at ? self.stride(at + n - 1) : self.stride(i));
  }
  return view_of(self, sizes, strides, self->offset);
}

// `self` with a new dimension of size 1 at `at`.
Tensor new_dim(const Tensor& self, int64_t at) {
  Dims sizes, strides;
  for (int64_t i = 0; i <= self.dim(); i++) {
    if (i == at) sizes.push_back(1), strides.push_back(0);
    if (i < self.dim()) sizes.push_back(self.size(i)), strides.push_back(self.stride(i));
  }
  return view_of(self, sizes, strides, self->offset);
}

// int64 index tensors for the dimensions of `self`; masks become the places where they are true.
void expand_masks(const char* op, Tensor& self, TensorList& indices) {
  TensorList out;
  for (const Tensor& given : indices) {
    if (!given) {
      out.push_back(given);
      continue;
    }
    const Tensor index = on_device(op, given, self);
    if (index.dtype() != ARGAND_BOOL) {
      out.push_back(as_index(op, index, self));
      continue;
    }
    const int64_t at = static_cast<int64_t>(out.size());
    if (index.dim() == 0) {  // the places of one element are its index, 0, or none
      self = new_dim(self, at);
      const Tensor found = cuda::nonzero(ops::reshape(index, {1}));
      out.push_back(view_of(found, {found.size(0)}, {found.stride(0)}, found->offset));
      continue;
    }
    check_mask(op, index, self, at);
    if (const Tensor merged = merge_dims(self, at, index.dim())) {
      self = merged;
      const Tensor found = cuda::nonzero(ops::reshape(index, {index.numel()}));
      out.push_back(view_of(found, {found.size(0)}, {found.stride(0)}, found->offset));
      continue;
    }
    const Tensor found = cuda::nonzero(index);
    for (int64_t i = 0; i < index.dim(); i++) out.push_back(view_of(found, {found.size(0)}, {found.stride(0)}, found->offset + i * found.stride(1)));
  }
  indices = std::move(out);
}

Dims broadcast_indices(const TensorList& indices) {
  Dims shape;
  for (const Tensor& t : indices) {
    if (!t) continue;
    const int64_t n = std::max<int64_t>(t.dim(), shape.n);
    Dims merged;
    for (int64_t i = 0; i < n; i++) {
      const int64_t a = i < n - t.dim() ? 1 : t.size(i - (n - t.dim())), b = i < n - shape.n ? 1 : shape[i - (n - shape.n)];
      if (a != b && a != 1 && b != 1) {
        std::string shapes;
        for (const Tensor& x : indices)
          if (x) shapes += (shapes.empty() ? "" : ", ") + to_string(x.sizes());
        fail(ARGAND_INDEX_ERROR, "shape mismatch: indexing tensors could not be broadcast together with shapes %s", shapes.c_str());
      }
      merged.push_back(a == 1 ? b : a);
    }
    shape = merged;
  }
  return shape;
}

// Strides of `t` over the trailing dimensions of `shape`, 0 where it is broadcast.
Dims spread(const Tensor& t, const Dims& shape) {
  Dims strides;
  for (int64_t i = 0; i < shape.n; i++) {
    const int64_t k = i - (shape.n - t.dim());
    strides.push_back(k < 0 || t.size(k) == 1 ? 0 : t.stride(k));
  }
  return strides;
}

// self[indices] as a walk over [dims before, indices' shape, dims after] with one tensor of indices.
struct Plan {
  Walk walk{};
  Tensor x, index;
  TensorList indices;  // of integers
};

// A table of offsets that stands for several tensors of indices.
Tensor make_table(const char* op, const Tensor& x, const TensorList& indices, const Dims& shape) {
  Tensor table = empty(shape, ARGAND_INT64, x.device());
  bool first = true;
  for (int64_t d = 0; d < static_cast<int64_t>(indices.size()); d++) {
    if (!indices[d]) continue;
    Walk w{op, shape, Dims(), spread(indices[d], shape), Dims()};
    w.step = x.stride(d);
    w.limit = x.size(d);
    w.dim = d;
    offsets(w, table, indices[d], first);
    first = false;
  }
  return table;
}

Plan make_plan(const char* op, const Tensor& self, const TensorList& given) {
  Plan plan;
  plan.x = self;
  TensorList& indices = plan.indices;
  indices = given;
  expand_masks(op, plan.x, indices);
  const Tensor& x = plan.x;
  if (static_cast<int64_t>(indices.size()) > x.dim())
    fail(ARGAND_INDEX_ERROR, "index: too many indices for tensor of dimension %ld (got %ld)", static_cast<long>(x.dim()),
         static_cast<long>(indices.size()));
  const Dims shape = broadcast_indices(indices);
  int64_t first = -1, last = -1, used = 0;
  for (int64_t k = 0; k < static_cast<int64_t>(indices.size()); k++)
    if (indices[k]) first = first < 0 ? k : first, last = k, used++;
  if (used == 0) fail(ARGAND_INDEX_ERROR, "%s: got no tensor of indices, expected at least one", op);
  Walk& w = plan.walk;
  w.op = op;
  if (used == 1) {
    plan.index = indices[first];
    w.step = x.stride(first);
    w.limit = x.size(first);
    w.lower = -w.limit;
    w.dim = first;
  } else {
    plan.index = make_table(op, x, indices, shape);
    w.limit = int64_t{1} << 62;
  }
  const Dims index_strides = spread(plan.index, shape);
  auto push_indexed = [&] {
    for (int64_t i = 0; i < shape.n; i++) w.sizes.push_back(shape[i]), w.x.push_back(0), w.index.push_back(index_strides[i]);
  };
  const bool adjacent = last - first + 1 == used;  // else the indexed dimensions come first
  if (!adjacent) push_indexed();
  for (int64_t i = 0; i < x.dim(); i++) {
    if (adjacent && i == first) push_indexed();
    if (i < static_cast<int64_t>(indices.size()) && indices[i]) continue;
    w.sizes.push_back(x.size(i));
    w.x.push_back(x.stride(i));
    w.index.push_back(0);
  }
  return plan;
}

// `values` as self's dtype on self's device, apart from its storage, without leading dimensions that do not count.
Tensor prepare_values(const Tensor& self, const Tensor& values, const Dims& result) {
  Tensor v = values;
  if (v.dtype() != self.dtype() && v.dim() != 0)
    fail(ARGAND_DTYPE_ERROR, "index_put: got self of dtype %s and values of dtype %s, expected the same dtype; convert with .to()",
         kDTypeName[self.dtype()], kDTypeName[v.dtype()]);
  if (v.device() != self.device()) {
    if (v.dim() != 0) check_device("index_put", "values", v, self);
    v = ops::_to_copy(v, self.dtype(), self.device());
  }
  v = to_dtype(v, self.dtype());
  if (v->storage == self->storage) v = ops::clone(v);
  while (v.dim() > result.n && v.size(0) == 1) v = view_of(v, {v->sizes + 1, v.dim() - 1}, {v->strides + 1, v.dim() - 1}, v->offset);
  bool fits = v.dim() <= result.n;
  for (int64_t i = 0; fits && i < v.dim(); i++) fits = v.size(i) == 1 || v.size(i) == result[i + result.n - v.dim()];
  if (!fits)
    fail(ARGAND_SHAPE_ERROR, "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
         to_string(values.sizes()).c_str(), to_string(result).c_str());
  return v;
}

}  // namespace

Tensor index(const Tensor& self, const TensorList& indices) {
  const Below below;
  Plan plan = make_plan("index", self, indices);
  Walk& w = plan.walk;
  Dims strides(IntList(builtins::index_shape(plan.x, plan.indices).strides));
  Tensor out = empty_strided(w.sizes, strides, self.dtype(), self.device());
  for (int64_t i = 1; i < strides.n; i++)  // `out` is row-major over dimensions in the order of its strides
    for (int64_t k = i; k > 0 && strides[k - 1] < strides[k]; k--)
      for (Dims* d : {&strides, &w.sizes, &w.x, &w.index}) std::swap((*d)[k - 1], (*d)[k]);
  gather(w, out, plan.x, plan.index);
  return out;
}

void index_put_(const Tensor& self, const TensorList& indices, const Tensor& values, bool accumulate) {
  const Below below;
  if (!accumulate && values.numel() == 1 && indices.size() == 1 && indices[0] && indices[0].dtype() == ARGAND_BOOL) {  // needs no positions
    Tensor mask = on_device("index_put", indices[0], self);
    check_mask("index_put", mask, self, 0);
    while (mask.dim() < self.dim()) mask = ops::unsqueeze(mask, -1);
    const Tensor value = prepare_values(self, values, Dims());
    ops::masked_fill_(self, mask, value);
    return;
  }
  if (accumulate && !adds_atomically(self.dtype())) {  // sums of narrow integers are taken in int32; of bool: is any of them true
    const Tensor wide = to_dtype(self, ARGAND_INT32);
    index_put_(wide, indices, to_dtype(values, ARGAND_INT32), true);
    ops::copy_(self, wide);
    return;
  }
  Plan plan = make_plan("index_put", self, indices);
  const Tensor v = prepare_values(self, values, plan.walk.sizes);
  plan.walk.other = spread(v, plan.walk.sizes);
  put(plan.walk, plan.x, v, plan.index, accumulate ? Put::kAdd : Put::kStore);
}

}  // namespace argand::kernels::cuda
