// Storages and tensors: geometry, views, aliases, resizing, limits and errors.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "packages/c10/tests/cpp/check.h"

using namespace argand;

namespace {

constexpr ArgandDevice kCpu = ARGAND_DEVICE(ARGAND_CPU, 0);
constexpr ArgandDevice kMeta = ARGAND_DEVICE(ARGAND_META, 0);

void fill(const Tensor& t) {
  for (int64_t i = 0; i < t.numel(); i++) t.data<float>()[i] = static_cast<float>(i);
}

void test_empty() {
  Tensor t = empty({2, 3, 4}, ARGAND_FLOAT32);
  CHECK_EQ(t->refcount, 1);
  CHECK_EQ(t.numel(), 24);
  CHECK(t.is_contiguous());
  CHECK(t.strides() == IntList({12, 4, 1}));
  CHECK_EQ(t->storage->nbytes, 96);
  CHECK_EQ(reinterpret_cast<uintptr_t>(t->data) % 64, 0);
  CHECK_EQ(t->keys, ARGAND_KEYBIT(ARGAND_KEY_CPU));
  CHECK_EQ(t->storage->version, 0);
  CHECK(t->data == t->storage->data && !t->base && !t->meta && !t->pyobject);

  Tensor scalar = empty({}, ARGAND_COMPLEX128);
  CHECK_EQ(scalar.numel(), 1);
  CHECK_EQ(scalar->storage->nbytes, 16);
  Tensor none = empty({3, 0, 2}, ARGAND_INT64);
  CHECK(none.numel() == 0 && none.is_contiguous() && !none->data && none->storage->nbytes == 0);
  CHECK(none.strides() == IntList({2, 2, 1}));
}

void test_many_dims() {
  for (int n : {5, 6, 64}) {
    std::vector<int64_t> sizes(static_cast<size_t>(n), 1);
    sizes[static_cast<size_t>(n) - 1] = 3;
    sizes[0] = 2;
    Tensor t = empty(sizes, ARGAND_INT16);
    CHECK(t.dim() == n && t.numel() == 6 && t.stride(0) == 3 && t.stride(-1) == 1);
    CHECK((t->sizes == t->inline_dims) == (n <= ARGAND_INLINE_DIMS));
    Tensor v = view_of(t, t.sizes(), t.strides(), 0);
    CHECK(v.sizes() == t.sizes() && v->sizes != t->sizes);
    check(api->tensor_set_geometry(v.get(), 1, t->sizes, nullptr, 0));
    CHECK(v.dim() == 1 && v.size(0) == 2);
    check(api->tensor_set_geometry(v.get(), n, t->sizes, t->strides, 0));
    CHECK(v.sizes() == t.sizes());
  }
  const std::vector<int64_t> sizes(65, 1);
  ArgandTensor* out = nullptr;
  CHECK_FAILS(api->tensor_empty(65, sizes.data(), ARGAND_INT8, kCpu, &out), ARGAND_SHAPE_ERROR, "empty: got 65 dimensions, expected at most 64");
}

void test_bad_sizes() {
  ArgandTensor* out = nullptr;
  const int64_t negative[] = {2, -1};
  CHECK_FAILS(api->tensor_empty(2, negative, ARGAND_FLOAT32, kCpu, &out), ARGAND_SHAPE_ERROR, "negative dimension -1 in shape [2, -1]");
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  CHECK_FAILS(api->tensor_empty(2, huge, ARGAND_FLOAT32, kCpu, &out), ARGAND_SHAPE_ERROR, "overflows 64 bits");
  const int64_t hidden[] = {int64_t{1} << 62, 0, int64_t{1} << 62};  // numel is 0, but strides are not representable
  CHECK_FAILS(api->tensor_empty(3, hidden, ARGAND_FLOAT32, kCpu, &out), ARGAND_SHAPE_ERROR, "overflows 64 bits");
  const int64_t edge[] = {int64_t{1} << 61};
  CHECK_FAILS(api->tensor_empty(1, edge, ARGAND_FLOAT32, kCpu, &out), ARGAND_SHAPE_ERROR, "overflows 64 bits");
  CHECK_FAILS(api->tensor_empty(1, edge, 77, kCpu, &out), ARGAND_DTYPE_ERROR, "dtype number 77");
  CHECK_FAILS(api->tensor_empty(1, edge, ARGAND_UINT8, ARGAND_DEVICE(ARGAND_CUDA, 1), &out), ARGAND_DEVICE_ERROR, "got device 'cuda:1'");
  CHECK_FAILS(api->tensor_empty(1, edge, ARGAND_UINT8, ARGAND_DEVICE(ARGAND_CPU, 3), &out), ARGAND_DEVICE_ERROR, "index below");
  CHECK(out == nullptr);
}

void test_out_of_memory() {
  ArgandTensor* out = nullptr;
  const int64_t sizes[] = {int64_t{1} << 50};
  CHECK_FAILS(api->tensor_empty(1, sizes, ARGAND_UINT8, kCpu, &out), ARGAND_OUT_OF_MEMORY_ERROR,
              "empty: could not allocate 1125899906842624 bytes (1.00 PiB) on device 'cpu'; in use ");
  int kind = 0;
  CHECK(strstr(api->last_error(&kind), "cached "));
  CHECK(out == nullptr);
  Tensor t = empty({100}, ARGAND_FLOAT32);  // later work is unaffected
  fill(t);
}

#if !defined(__SANITIZE_ADDRESS__)  // which needs the address space
// Views until there is no memory for another record: an error, after which all is as before.
void test_out_of_memory_for_records() {
  Tensor t = empty({1, 1, 1, 1, 1, 100}, ARGAND_FLOAT32);
  std::vector<ArgandTensor*> aliases;
  aliases.reserve(1 << 18);
  rlimit before;
  CHECK(getrlimit(RLIMIT_AS, &before) == 0);
  FILE* statm = fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  CHECK(statm && fscanf(statm, "%lu", &pages) == 1);
  fclose(statm);
  rlimit limited = before;
  limited.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (4 << 20);
  CHECK(setrlimit(RLIMIT_AS, &limited) == 0);
  int status = 0;
  while (!status && aliases.size() < aliases.capacity()) {
    ArgandTensor* alias = nullptr;
    status = api->tensor_alias(t.get(), &alias);
    if (alias) aliases.push_back(alias);
  }
  ArgandTensor* made = nullptr;
  const int64_t none[] = {0};
  while (!api->tensor_empty(1, none, ARGAND_FLOAT32, kCpu, &made)) aliases.push_back(made);
  const std::string of_empty = api->last_error(nullptr);
  const int64_t more[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100};
  int grown = 0;
  size_t i = 0;
  while (!grown && i + 1 < aliases.size()) grown = api->tensor_set_geometry(aliases[i++], 12, more, nullptr, 0);
  CHECK_EQ(grown, ARGAND_OUT_OF_MEMORY_ERROR);
  CHECK_EQ(aliases[i - 1]->ndim, 6);
  CHECK_EQ(aliases[i - 1]->sizes[5], 100);
  for (ArgandTensor* alias : aliases) Tensor::steal(alias);  // freed blocks are kept in lists, which have no memory either
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK_EQ(status, ARGAND_OUT_OF_MEMORY_ERROR);
  CHECK(of_empty.starts_with("empty: could not allocate"));
  CHECK_EQ(t->storage->refcount, 1);
  Tensor after = empty({100}, ARGAND_FLOAT32);
  fill(after);
}
#endif

void test_meta() {
  ArgandMemoryStats before, during, after;
  api->memory_stats(kMeta, &before);
  {
    Tensor t = empty({int64_t{1} << 40}, ARGAND_FLOAT32, ARGAND_DEVICE(ARGAND_META, 0xff));
    CHECK(!t->data && !t->storage->data && t.is_meta());
    CHECK_EQ(t.device(), kMeta);
    CHECK_EQ(t->keys, ARGAND_KEYBIT(ARGAND_KEY_META));
    Tensor v = view_of(t, {4}, {2}, 100);
    CHECK(!v->data && v.size(0) == 4);
    const int64_t larger[] = {int64_t{1} << 41};
    v = Tensor();
    check(api->tensor_resize(t.get(), 1, larger));
    api->memory_stats(kMeta, &during);
  }
  api->memory_stats(kMeta, &after);
  CHECK_EQ(during.allocated_bytes - before.allocated_bytes, uint64_t{4} << 41);
  CHECK_EQ(after.allocated_bytes, before.allocated_bytes);
}

void test_views() {
  Tensor t = empty({4, 6}, ARGAND_FLOAT32);
  fill(t);
  Tensor column = view_of(t, {4}, {6}, 2);
  CHECK(!column.is_contiguous() && column->base == t.get() && column->storage == t->storage);
  CHECK_EQ(*column.data<float>(), 2);
  Tensor inner = view_of(column, {2}, {12}, 8);
  CHECK(inner->base == t.get());  // a base is never a view
  CHECK_EQ(*inner.data<float>(), 8);
  CHECK_EQ(t->refcount, 3);
  column.bump_version();
  CHECK_EQ(t.version(), 1);
  t->keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD);
  Tensor v = view_of(t, {24}, {1}, 0);
  CHECK_EQ(v->keys, ARGAND_KEYBIT(ARGAND_KEY_CPU));
  CHECK(v.requires_grad());  // through its base
  Tensor alias;
  {
    ArgandTensor* out = nullptr;
    check(api->tensor_alias(t.get(), &out));
    alias = Tensor::steal(out);
  }
  CHECK(!alias->base && !alias.requires_grad() && alias->storage == t->storage && alias.sizes() == t.sizes());
  t = Tensor();
  CHECK_EQ(*column.data<float>(), 2);  // the base lives as long as its views

  ArgandTensor* out = nullptr;
  const int64_t five[] = {5}, six[] = {6}, minus[] = {-1};
  CHECK_FAILS(api->tensor_view(column.get(), 1, five, six, 0, ARGAND_FLOAT32, &out), ARGAND_RUNTIME_ERROR,
              "which take 100 bytes; expected at most the storage's 96");
  CHECK_FAILS(api->tensor_view(column.get(), 1, five, minus, 4, ARGAND_FLOAT32, &out), ARGAND_RUNTIME_ERROR, "expected strides and offset >= 0");
  const int64_t wide[] = {INT64_MAX};
  CHECK_FAILS(api->tensor_view(column.get(), 1, five, wide, 0, ARGAND_FLOAT32, &out), ARGAND_RUNTIME_ERROR, "within 64 bits");
  CHECK(!out);
}

void test_view_as_dtype() {
  Tensor t = empty({4}, ARGAND_COMPLEX64);
  ArgandTensor* out = nullptr;
  const int64_t sizes[] = {3, 2}, strides[] = {2, 1};
  check(api->tensor_view(t.get(), 2, sizes, strides, 2, ARGAND_FLOAT32, &out));
  Tensor real = Tensor::steal(out);
  CHECK(real.data<char>() == t.data<char>() + 8 && real.is_contiguous() && real.dtype() == ARGAND_FLOAT32);
}

void test_strided() {
  Tensor t = empty_strided({2, 3}, {1, 2}, ARGAND_FLOAT64);
  CHECK(!t.is_contiguous() && t->storage->nbytes == 48);
  CHECK(empty_strided({3, 1}, {1, 77}, ARGAND_FLOAT64).is_contiguous());  // strides of size-1 dimensions do not matter
  CHECK(empty_strided({0, 3}, {9, 9}, ARGAND_FLOAT64).is_contiguous());
  CHECK_EQ(empty_strided({3}, {0}, ARGAND_FLOAT64)->storage->nbytes, 8);
}

void test_from_blob() {
  static int deleted = 0;
  float data[6] = {0, 1, 2, 3, 4, 5};
  ArgandStorage* s = nullptr;
  check(api->storage_from_blob(
      kCpu, data, sizeof data, [](void*, void* context, size_t n) { deleted += *static_cast<int*>(context) + static_cast<int>(n); }, &deleted,
      ARGAND_STORAGE_READONLY, &s));
  const int64_t sizes[] = {2, 3};
  ArgandTensor* out = nullptr;
  check(api->tensor_from_storage(s, 2, sizes, nullptr, 0, ARGAND_FLOAT32, &out));
  Tensor t = Tensor::steal(out);
  __atomic_sub_fetch(&s->refcount, 1, __ATOMIC_ACQ_REL);
  CHECK(t->data == data && !t->base && t.is_contiguous());
  CHECK_FAILS(api->tensor_from_storage(s, 2, sizes, nullptr, 1, ARGAND_FLOAT32, &out), ARGAND_RUNTIME_ERROR, "storage's 24 bytes");
  const int64_t more[] = {7};
  CHECK_FAILS(api->tensor_resize(t.get(), 1, more), ARGAND_RUNTIME_ERROR, "foreign memory");
  CHECK(t.sizes() == IntList(sizes, 2));
  CHECK_EQ(deleted, 0);
  t = Tensor();
  CHECK_EQ(deleted, 24);
  CHECK_FAILS(api->storage_from_blob(kCpu, nullptr, 8, nullptr, nullptr, 0, &s), ARGAND_VALUE_ERROR, "null pointer");
}

void test_resize() {
  Tensor t = empty({2, 2}, ARGAND_FLOAT32);
  fill(t);
  const int64_t larger[] = {2, 2, 2, 2, 2, 2}, smaller[] = {3};
  check(api->tensor_resize(t.get(), 6, larger));
  CHECK(t.numel() == 64 && t->storage->nbytes == 256 && t.is_contiguous());
  CHECK_EQ(t.data<float>()[3], 3);
  check(api->tensor_resize(t.get(), 1, smaller));
  CHECK(t.numel() == 3 && t->storage->nbytes == 256);

  // A storage that others look at does not move under them.
  Tensor view = view_of(t, {3}, {1}, 0);
  const int64_t huge[] = {1000};
  CHECK_FAILS(api->tensor_resize(t.get(), 1, huge), ARGAND_RUNTIME_ERROR, "share");
  CHECK(t.numel() == 3 && view.data<float>()[2] == 2);

  Tensor none = empty({0}, ARGAND_FLOAT32), none_view = view_of(none, {0}, {1}, 0);  // nobody looks at no memory
  check(api->tensor_resize(none.get(), 1, huge));
  CHECK(none.numel() == 1000 && !none_view->data);
  fill(none);

  ArgandStorage* s = nullptr;
  check(api->storage_new(kCpu, 100, &s));
  check(api->storage_resize(s, 0));
  CHECK_EQ(s->nbytes, 0);
  check(api->storage_resize(s, 100000));
  memset(s->data, 1, 100000);
  s->refcount = 0;
  api->storage_release(s);
}

void test_set_storage() {
  Tensor a = empty({2, 3}, ARGAND_FLOAT32), b = empty({6}, ARGAND_FLOAT32), small = empty({2}, ARGAND_FLOAT32);
  fill(b);
  Tensor view = view_of(a, {3}, {1}, 3);
  check(api->tensor_set_storage(view.get(), b->storage, ARGAND_FLOAT32));
  CHECK(!view->base && view->storage == b->storage && view.data<float>()[0] == 3);
  check(api->tensor_set_storage(view.get(), small->storage, ARGAND_INT16));  // does not fit: all of the storage
  CHECK(view.dim() == 1 && view.size(0) == 4 && view->offset == 0 && view.dtype() == ARGAND_INT16);
  Tensor meta = empty({6}, ARGAND_FLOAT32, kMeta);
  check(api->tensor_set_storage(b.get(), meta->storage, ARGAND_FLOAT32));
  CHECK(b->keys == ARGAND_KEYBIT(ARGAND_KEY_META) && !b->data);
}

void test_inference_flag() {
  Tensor normal = empty({2}, ARGAND_FLOAT32);
  {
    StateGuard guard;
    guard->inference_mode = 1;
    Tensor t = empty({2}, ARGAND_FLOAT32);
    CHECK(t->flags & ARGAND_TENSOR_INFERENCE);
    t.bump_version();
    CHECK_EQ(t.version(), 0);
  }
  CHECK(!(normal->flags & ARGAND_TENSOR_INFERENCE) && !(empty({2}, ARGAND_FLOAT32)->flags & ARGAND_TENSOR_INFERENCE));
}

int g_meta_destroyed = 0, g_released = 0;
Tensor g_resurrected;

void test_release() {
  ArgandTensorMeta meta{[](ArgandTensorMeta*) { g_meta_destroyed++; }};
  {
    Tensor t = empty({2}, ARGAND_FLOAT32);
    t->meta = &meta;
  }
  CHECK_EQ(g_meta_destroyed, 1);

  api->set_pyobject_hooks([](ArgandTensor* t) { g_released++, t->pyobject = nullptr; },
                          [](ArgandTensor* t) {
                            if (t->numel == 7) g_resurrected = Tensor::borrow(t);
                          });
  int object = 0;
  for (int64_t n : {2, 7}) {
    Tensor t = empty({n}, ARGAND_FLOAT32);
    t->pyobject = &object;
    t->flags |= ARGAND_TENSOR_OWNS_PYOBJECT;
  }
  CHECK_EQ(g_released, 2);
  CHECK(g_resurrected && g_resurrected->refcount == 1 && g_resurrected.numel() == 7);
  fill(g_resurrected);
  g_resurrected = Tensor();
  api->set_pyobject_hooks(nullptr, nullptr);
}

}  // namespace

int main() {
  api = argand_api();
  CHECK_EQ(api->abi_version, ARGAND_ABI_VERSION);
  CHECK_EQ(api->struct_size, sizeof(ArgandApi));
  for (const void* const* p = reinterpret_cast<const void* const*>(&api->set_error); p < reinterpret_cast<const void* const*>(api + 1); p++)
    CHECK(*p);
  RUN(test_empty);
  RUN(test_many_dims);
  RUN(test_bad_sizes);
  RUN(test_out_of_memory);
#if !defined(__SANITIZE_ADDRESS__)
  RUN(test_out_of_memory_for_records);
#endif
  RUN(test_meta);
  RUN(test_views);
  RUN(test_view_as_dtype);
  RUN(test_strided);
  RUN(test_from_blob);
  RUN(test_resize);
  RUN(test_set_storage);
  RUN(test_inference_flag);
  RUN(test_release);
  ArgandMemoryStats stats;
  api->memory_stats(kCpu, &stats);
  CHECK_EQ(stats.allocated_bytes, 0);  // nothing leaked
  return 0;
}
