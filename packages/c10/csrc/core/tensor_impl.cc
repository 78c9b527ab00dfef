#include "packages/c10/csrc/core/tensor_impl.h"

#include <cstring>

#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/core/storage.h"
#include "packages/c10/csrc/core/strided.h"
#include "packages/c10/csrc/device/device.h"
#include "packages/c10/csrc/dispatch/thread_state.h"
#include "packages/c10/csrc/memory/cpu_allocator.h"

namespace argand::core {
namespace {

void (*g_release_pyobject)(ArgandTensor*) = nullptr;
void (*g_last_cpp_owner_gone)(ArgandTensor*) = nullptr;

int check_dtype(const char* op, int dtype) {
  if (dtype >= 0 && dtype < ARGAND_NUM_DTYPES) return 0;
  return error(ARGAND_DTYPE_ERROR, "%s: got dtype number %d, expected one below %d", op, dtype, static_cast<int>(ARGAND_NUM_DTYPES));
}

int bad_sizes(const char* op, int32_t ndim, const int64_t* sizes, int dtype) {
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] < 0)
      return error(ARGAND_SHAPE_ERROR, "%s: got the negative dimension %lld in shape %s; expected sizes >= 0", op, static_cast<long long>(sizes[i]),
                   shape_text(ndim, sizes).c_str());
  }
  return error(ARGAND_SHAPE_ERROR, "%s: got shape %s of %s: its size in bytes overflows 64 bits; expected at most 2**63 - 1 bytes", op,
               shape_text(ndim, sizes).c_str(), kDTypeName[dtype]);
}

// Numel of valid sizes, whose bytes fit an int64 even with every size of 0 taken as 1 (so that strides do not overflow either).
inline int count_elements(const char* op, int32_t ndim, const int64_t* sizes, int dtype, int64_t* numel) {
  if (__builtin_expect(ndim < 0 || ndim > ARGAND_MAX_DIMS, 0))
    return error(ARGAND_SHAPE_ERROR, "%s: got %d dimensions, expected at most %d", op, ndim, ARGAND_MAX_DIMS);
  int64_t n = 1, span = kItemSize[dtype];
  for (int32_t i = 0; i < ndim; i++) {
    const bool bad = sizes[i] < 0 || __builtin_mul_overflow(span, sizes[i] > 1 ? sizes[i] : 1, &span);
    if (__builtin_expect(bad, 0)) return bad_sizes(op, ndim, sizes, dtype);
    n *= sizes[i];
  }
  *numel = n;
  return 0;
}

// Elements from the first to past the last one that the geometry reaches; every intermediate value fits an int64.
int reach(const char* op, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int64_t numel, int64_t* out) {
  int64_t last = offset;
  bool bad = offset < 0;
  for (int32_t i = 0; i < ndim; i++) {
    bad |= strides[i] < 0;
    int64_t step = 0;
    if (numel) bad |= __builtin_mul_overflow(strides[i], sizes[i] - 1, &step) || __builtin_add_overflow(last, step, &last);
  }
  if (__builtin_expect(bad || last >= INT64_MAX / 16, 0))
    return error(ARGAND_RUNTIME_ERROR, "%s: got sizes %s, strides %s and storage offset %lld; expected strides and offset >= 0 within 64 bits", op,
                 shape_text(ndim, sizes).c_str(), shape_text(ndim, strides).c_str(), static_cast<long long>(offset));
  *out = numel ? last + 1 : offset;
  return 0;
}

int check_bounds(const char* op, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int64_t numel, int dtype,
                 const ArgandStorage* storage) {
  int64_t end = 0;
  if (int status = reach(op, ndim, sizes, strides, offset, numel, &end)) return status;
  if (__builtin_expect(numel && static_cast<uint64_t>(end) * static_cast<uint64_t>(kItemSize[dtype]) > storage->nbytes, 0))
    return error(ARGAND_RUNTIME_ERROR,
                 "%s: got sizes %s, strides %s and storage offset %lld of %s, which take %lld bytes; expected at most the storage's %zu bytes", op,
                 shape_text(ndim, sizes).c_str(), shape_text(ndim, strides).c_str(), static_cast<long long>(offset), kDTypeName[dtype],
                 static_cast<long long>(end * kItemSize[dtype]), storage->nbytes);
  return 0;
}

inline size_t dims_bytes(int32_t ndim) { return 2 * sizeof(int64_t) * static_cast<size_t>(ndim); }

inline void free_dims(const ArgandTensor* t, int64_t* sizes, int32_t ndim) {
  if (sizes != t->inline_dims) record_free(sizes, dims_bytes(ndim));
}

// Fails, without a change, for want of memory; never for ARGAND_INLINE_DIMS and fewer.
inline bool place_dims(ArgandTensor* t, int32_t ndim) {
  if (__builtin_expect(ndim <= ARGAND_INLINE_DIMS, 1)) {
    t->sizes = t->inline_dims;
    t->strides = t->inline_dims + ARGAND_INLINE_DIMS;
  } else {
    auto* sizes = static_cast<int64_t*>(record_allocate(dims_bytes(ndim)));
    if (!sizes) return false;
    t->sizes = sizes;
    t->strides = sizes + ndim;
  }
  t->ndim = ndim;
  return true;
}

inline void set_data(ArgandTensor* t) {
  char* data = static_cast<char*>(t->storage->data);
  t->data = data && t->numel ? data + t->offset * kItemSize[t->dtype] : nullptr;
}

// Writes checked geometry (strides NULL: contiguous) into a tensor whose dims are placed and whose storage and dtype are set.
inline void fill_geometry(ArgandTensor* t, const int64_t* sizes, const int64_t* strides, int64_t offset, int64_t numel) {
  const int32_t n = t->ndim;
  for (int32_t i = 0; i < n; i++) t->sizes[i] = sizes[i];
  bool dense = true;
  if (strides) {
    for (int32_t i = 0; i < n; i++) t->strides[i] = strides[i];
    dense = is_contiguous(n, sizes, strides);
  } else {
    contiguous_strides(n, sizes, t->strides);
  }
  t->flags = (t->flags & ~ARGAND_TENSOR_CONTIGUOUS) | (dense ? ARGAND_TENSOR_CONTIGUOUS : 0);
  t->offset = offset;
  t->numel = numel;
  set_data(t);
}

// A tensor of refcount 1 that takes over one reference of `storage`, which goes if there is no memory; geometry is still to be filled.
inline int new_tensor(const char* op, ArgandStorage* storage, int32_t ndim, int dtype, uint64_t keys, uint32_t flags, ArgandTensor** out) {
  ArgandTensor* t = tensor_allocate();
  if (__builtin_expect(!t || !place_dims(t, ndim), 0)) {
    if (t) tensor_free(t);
    storage_drop(storage);
    return no_memory_for_record(op, sizeof *t + dims_bytes(ndim));
  }
  t->refcount = 1;
  t->flags = flags;
  t->keys = keys;
  t->storage = storage;
  t->dtype = static_cast<uint8_t>(dtype);
  t->reserved[0] = t->reserved[1] = t->reserved[2] = 0;
  t->base = nullptr;
  t->meta = nullptr;
  t->pyobject = nullptr;
  *out = t;
  return 0;
}

// Of tensors on new memory; views and aliases inherit.
inline uint32_t fresh_flags() { return t_state.inference_mode ? ARGAND_TENSOR_INFERENCE : 0u; }

inline uint64_t backend_key(ArgandDevice device) { return ARGAND_KEYBIT(ARGAND_DEVICE_TYPE(device)); }

// Changes geometry in place. The new values may lie in the tensor's own arrays, so dims move only after they were copied.
int change_geometry(const char* op, ArgandTensor* t, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int64_t numel) {
  int64_t copy[2 * ARGAND_MAX_DIMS];
  if (ndim) memcpy(copy, sizes, sizeof(int64_t) * static_cast<size_t>(ndim));
  if (ndim && strides) memcpy(copy + ndim, strides, sizeof(int64_t) * static_cast<size_t>(ndim));
  if (ndim != t->ndim) {
    int64_t* const old_sizes = t->sizes;
    const int32_t old_ndim = t->ndim;
    if (!place_dims(t, ndim)) return no_memory_for_record(op, dims_bytes(ndim));
    free_dims(t, old_sizes, old_ndim);
  }
  fill_geometry(t, copy, strides ? copy + ndim : nullptr, offset, numel);
  return 0;
}

// What a view or alias takes over from its source; its own history is not among it.
constexpr uint32_t kInheritedFlags = ARGAND_TENSOR_INFERENCE | ARGAND_TENSOR_NO_VERSION;
constexpr uint64_t kHistoryKeys = ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);

}  // namespace

int tensor_empty(int32_t ndim, const int64_t* sizes, int dtype, ArgandDevice device, ArgandTensor** out) {
  if (int status = check_dtype("empty", dtype)) return status;
  int64_t numel = 0;
  if (int status = count_elements("empty", ndim, sizes, dtype, &numel)) return status;
  if (device != ARGAND_DEVICE(ARGAND_CPU, 0)) {
    if (int status = resolve_device("empty", device, &device)) return status;
  }
  ArgandStorage* storage = nullptr;
  if (int status = storage_make("empty", device, static_cast<size_t>(numel) * static_cast<size_t>(kItemSize[dtype]), &storage)) return status;
  ArgandTensor* t = nullptr;
  if (int status = new_tensor("empty", storage, ndim, dtype, backend_key(device), fresh_flags(), &t)) return status;
  fill_geometry(t, sizes, nullptr, 0, numel);
  *out = t;
  return 0;
}

int tensor_empty_strided(int32_t ndim, const int64_t* sizes, const int64_t* strides, int dtype, ArgandDevice device, ArgandTensor** out) {
  const char* op = "empty_strided";
  if (int status = check_dtype(op, dtype)) return status;
  int64_t numel = 0, end = 0;
  if (int status = count_elements(op, ndim, sizes, dtype, &numel)) return status;
  if (int status = reach(op, ndim, sizes, strides, 0, numel, &end)) return status;
  if (int status = resolve_device(op, device, &device)) return status;
  ArgandStorage* storage = nullptr;
  if (int status = storage_make(op, device, static_cast<size_t>(end) * static_cast<size_t>(kItemSize[dtype]), &storage)) return status;
  ArgandTensor* t = nullptr;
  if (int status = new_tensor(op, storage, ndim, dtype, backend_key(device), fresh_flags(), &t)) return status;
  fill_geometry(t, sizes, strides, 0, numel);
  *out = t;
  return 0;
}

int tensor_from_storage(ArgandStorage* storage, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int dtype,
                        ArgandTensor** out) {
  const char* op = "from_storage";
  if (int status = check_dtype(op, dtype)) return status;
  int64_t numel = 0;
  if (int status = count_elements(op, ndim, sizes, dtype, &numel)) return status;
  int64_t dense[ARGAND_MAX_DIMS];
  if (!strides) {
    contiguous_strides(ndim, sizes, dense);
    strides = dense;
  }
  if (int status = check_bounds(op, ndim, sizes, strides, offset, numel, dtype, storage)) return status;
  storage_retain(storage);
  ArgandTensor* t = nullptr;
  if (int status = new_tensor(op, storage, ndim, dtype, backend_key(storage->device), fresh_flags(), &t)) return status;
  fill_geometry(t, sizes, strides, offset, numel);
  *out = t;
  return 0;
}

int tensor_view(ArgandTensor* self, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int dtype, ArgandTensor** out) {
  const char* op = "as_strided";
  if (int status = check_dtype(op, dtype)) return status;
  int64_t numel = 0;
  if (int status = count_elements(op, ndim, sizes, dtype, &numel)) return status;
  if (int status = check_bounds(op, ndim, sizes, strides, offset, numel, dtype, self->storage)) return status;
  storage_retain(self->storage);
  ArgandTensor* t = nullptr;
  if (int status = new_tensor(op, self->storage, ndim, dtype, self->keys & ~kHistoryKeys, self->flags & kInheritedFlags, &t)) return status;
  t->base = self->base ? self->base : self;
  Tensor::retain(t->base);
  fill_geometry(t, sizes, strides, offset, numel);
  *out = t;
  return 0;
}

int tensor_alias(ArgandTensor* self, ArgandTensor** out) {
  storage_retain(self->storage);
  ArgandTensor* t = nullptr;
  if (int status = new_tensor("alias", self->storage, self->ndim, self->dtype, self->keys & ~kHistoryKeys, self->flags & kInheritedFlags, &t))
    return status;
  fill_geometry(t, self->sizes, self->strides, self->offset, self->numel);
  *out = t;
  return 0;
}

int tensor_set_geometry(ArgandTensor* self, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  const char* op = "set_geometry";
  int64_t numel = 0;
  if (int status = count_elements(op, ndim, sizes, self->dtype, &numel)) return status;
  int64_t dense[ARGAND_MAX_DIMS];
  if (!strides) {
    contiguous_strides(ndim, sizes, dense);
    strides = dense;
  }
  if (int status = check_bounds(op, ndim, sizes, strides, offset, numel, self->dtype, self->storage)) return status;
  return change_geometry(op, self, ndim, sizes, strides, offset, numel);
}

// A geometry that the new storage cannot hold becomes one dimension over all of it; the caller sets another one afterwards.
int tensor_set_storage(ArgandTensor* self, ArgandStorage* storage, int dtype) {
  if (int status = check_dtype("set_storage", dtype)) return status;
  int64_t end = 0;
  const bool fits = reach("set_storage", self->ndim, self->sizes, self->strides, self->offset, self->numel, &end) == 0 &&
                    static_cast<uint64_t>(end) <= storage->nbytes / static_cast<uint64_t>(kItemSize[dtype]);
  ArgandStorage* old = self->storage;
  ArgandTensor* old_base = nullptr;
  storage_retain(storage);
  if (storage != old) {  // no longer a view
    old_base = self->base;
    self->base = nullptr;
  }
  self->storage = storage;
  self->dtype = static_cast<uint8_t>(dtype);
  self->keys = (self->keys & ~backend_key(old->device)) | backend_key(storage->device);
  if (fits) {
    set_data(self);
  } else {
    const auto all = static_cast<int64_t>(storage->nbytes / static_cast<size_t>(kItemSize[dtype]));
    (void)change_geometry("set_storage", self, 1, &all, nullptr, 0, all);  // one dimension needs no memory
  }
  storage_drop(old);
  if (old_base && drop_reference(&old_base->refcount)) tensor_release(old_base);
  return 0;
}

int tensor_resize(ArgandTensor* self, int32_t ndim, const int64_t* sizes) {
  int64_t numel = 0;
  if (int status = count_elements("resize", ndim, sizes, self->dtype, &numel)) return status;
  if (IntList(sizes, ndim) == IntList(self->sizes, self->ndim)) return 0;
  int64_t elements = 0;
  if (__builtin_add_overflow(self->offset, numel, &elements) || elements > INT64_MAX / 16) return bad_sizes("resize", ndim, sizes, self->dtype);
  const size_t needed = numel ? static_cast<size_t>(elements) * static_cast<size_t>(kItemSize[self->dtype]) : 0;
  if (needed > self->storage->nbytes) {
    ArgandTensor* base = self->base;
    // A base that this view alone keeps looks at the memory for nobody.
    if (base && !base->meta && !self->meta && __atomic_load_n(&base->refcount, __ATOMIC_ACQUIRE) == 1) {
      self->base = nullptr;
      self->flags &= ~ARGAND_TENSOR_VIEW_NO_GRAD;
      if (drop_reference(&base->refcount)) tensor_release(base);
    }
    if (int status = storage_resize(self->storage, needed)) return status;
  }
  return change_geometry("resize", self, ndim, sizes, nullptr, self->offset, numel);
}

void tensor_set_data(ArgandTensor* self) { set_data(self); }

// Teardown may run Python code (weak references, finalizers) that takes the tensor up again: during it the tensor holds a
// reference to itself, and it lives on when others came to hold it.
void tensor_release(ArgandTensor* self) {
  if (self->pyobject) {
    __atomic_store_n(&self->refcount, 1, __ATOMIC_RELAXED);
    if ((self->flags & ARGAND_TENSOR_OWNS_PYOBJECT) && g_last_cpp_owner_gone) g_last_cpp_owner_gone(self);
    if (self->pyobject && g_release_pyobject) g_release_pyobject(self);
    if (__atomic_sub_fetch(&self->refcount, 1, __ATOMIC_ACQ_REL) != 0) return;
  }
  if (self->meta) self->meta->destroy(self->meta);
  ArgandTensor* base = self->base;
  storage_drop(self->storage);
  free_dims(self, self->sizes, self->ndim);
  tensor_free(self);
  if (base && drop_reference(&base->refcount)) tensor_release(base);
}

void set_pyobject_hooks(void (*release)(ArgandTensor*), void (*last_cpp_owner_gone)(ArgandTensor*)) {
  g_release_pyobject = release;
  g_last_cpp_owner_gone = last_cpp_owner_gone;
}

}  // namespace argand::core
