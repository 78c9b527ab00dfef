// Header-only C++ face of the C ABI: owning handles, values, errors. Each shared library compiles its own hidden copy,
// so no C++ type crosses a library boundary. Set `argand::api` once before any use.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "packages/c10/csrc/abi/argand.h"

namespace argand {

inline const ArgandApi* api = nullptr;

// ---- errors --------------------------------------------------------------------------------------------------------
struct Error {
  int kind;
  std::string message;
};

// Throws Error with a printf-formatted message: "op: got ..., expected ...; remedy".
[[noreturn]] __attribute__((format(printf, 2, 3))) inline void fail(ArgandErrorKind kind, const char* format, ...) {
  va_list list;
  va_start(list, format);
  char buffer[2048];
  vsnprintf(buffer, sizeof buffer, format, list);
  va_end(list);
  throw Error{kind, buffer};
}

inline void check(int status) {
  if (__builtin_expect(status != 0, 0)) {
    int kind = 0;
    const char* message = api->last_error(&kind);
    throw Error{kind, message ? message : ""};
  }
}

// Runs body() at an ABI boundary: C++ exceptions become the thread's error and a status.
template <class Body>
inline int guarded(Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const Error& e) {
    return api->set_error(e.kind, e.message.c_str());
  } catch (const std::bad_alloc&) {
    return api->set_error(ARGAND_OUT_OF_MEMORY_ERROR, "out of host memory");
  } catch (const std::exception& e) {
    return api->set_error(ARGAND_INTERNAL_ERROR, e.what());
  }
}

// ---- dtypes --------------------------------------------------------------------------------------------------------
inline constexpr int kItemSize[ARGAND_NUM_DTYPES] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1, 2, 4, 8};
inline constexpr const char* kDTypeName[ARGAND_NUM_DTYPES] = {"bool",          "uint8",       "int8",    "int16",   "int32",     "int64",
                                                              "float16",       "bfloat16",    "float32", "float64", "complex64", "complex128",
                                                              "float8_e4m3fn", "float8_e5m2", "uint16",  "uint32",  "uint64"};
inline int item_size(int dtype) { return kItemSize[dtype]; }
inline constexpr bool is_float8(int dtype) { return dtype == ARGAND_FLOAT8_E4M3FN || dtype == ARGAND_FLOAT8_E5M2; }
inline constexpr bool is_wide_unsigned(int dtype) { return dtype >= ARGAND_UINT16 && dtype <= ARGAND_UINT64; }
// The signed dtype of a wide unsigned one's width, whose arithmetic has the same bits; of other dtypes themselves.
inline constexpr int same_width_signed(int dtype) { return is_wide_unsigned(dtype) ? dtype - ARGAND_UINT16 + ARGAND_INT16 : dtype; }
inline bool is_floating(int dtype) { return (dtype >= ARGAND_FLOAT16 && dtype <= ARGAND_FLOAT64) || is_float8(dtype); }
inline bool is_complex(int dtype) { return dtype == ARGAND_COMPLEX64 || dtype == ARGAND_COMPLEX128; }
inline bool is_integral(int dtype, bool include_bool) {
  return (dtype <= ARGAND_INT64 && (include_bool || dtype != ARGAND_BOOL)) || is_wide_unsigned(dtype);
}
inline bool is_differentiable(int dtype) { return !is_integral(dtype, true); }

// ---- lists ---------------------------------------------------------------------------------------------------------
// A borrowed run of integers: sizes, strides, dims.
struct IntList {
  const int64_t* ptr = nullptr;
  int64_t n = 0;
  IntList() = default;
  IntList(const int64_t* p, int64_t count) : ptr(p), n(count) {}
  IntList(const std::vector<int64_t>& v) : ptr(v.data()), n(static_cast<int64_t>(v.size())) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  IntList(std::initializer_list<int64_t> v) : ptr(v.begin()), n(static_cast<int64_t>(v.size())) {}  // valid within the full expression
#pragma GCC diagnostic pop
  int64_t operator[](int64_t i) const { return ptr[i]; }
  int64_t size() const { return n; }
  const int64_t* begin() const { return ptr; }
  const int64_t* end() const { return ptr + n; }
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  bool operator==(const IntList& o) const { return n == o.n && (n == 0 || std::memcmp(ptr, o.ptr, n * sizeof(int64_t)) == 0); }
};

// Up to ARGAND_MAX_DIMS integers on the stack, for shapes computed on the way.
struct Dims {
  int64_t d[ARGAND_MAX_DIMS];
  int32_t n = 0;
  Dims() {}
  explicit Dims(IntList l) : n(static_cast<int32_t>(l.n)) {
    if (l.n > ARGAND_MAX_DIMS) too_many(l.n);
    if (n) std::memcpy(d, l.ptr, sizeof(int64_t) * l.n);
  }
  [[noreturn]] static void too_many(int64_t count) {
    fail(ARGAND_SHAPE_ERROR, "tensor: got %lld dimensions, expected at most %d", static_cast<long long>(count), ARGAND_MAX_DIMS);
  }
  int64_t& operator[](int64_t i) { return d[i]; }
  int64_t operator[](int64_t i) const { return d[i]; }
  void push_back(int64_t v) {
    if (n == ARGAND_MAX_DIMS) too_many(int64_t{n} + 1);
    d[n++] = v;
  }
  int64_t size() const { return n; }
  operator IntList() const { return {d, n}; }
};

inline std::string to_string(IntList l) {  // "[2, 3]"
  std::string s = "[";
  for (int64_t i = 0; i < l.n; i++) s += (i ? ", " : "") + std::to_string(l[i]);
  return s + "]";
}

// ---- Tensor: an owning reference; empty = undefined ------------------------------------------------------------------
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& o) : p_(o.p_) { retain(p_); }
  Tensor(Tensor&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Tensor() { release(p_); }
  static Tensor steal(ArgandTensor* p) {  // takes over one reference
    Tensor t;
    t.p_ = p;
    return t;
  }
  static Tensor borrow(ArgandTensor* p) {  // adds a reference
    retain(p);
    return steal(p);
  }
  static void retain(ArgandTensor* p) {
    if (p) __atomic_fetch_add(&p->refcount, 1, __ATOMIC_RELAXED);
  }
  static void release(ArgandTensor* p) {
    // A sole owner needs no locked decrement.
    if (p && (__atomic_load_n(&p->refcount, __ATOMIC_ACQUIRE) == 1 || __atomic_sub_fetch(&p->refcount, 1, __ATOMIC_ACQ_REL) == 0))
      api->tensor_release(p);
  }

  ArgandTensor* get() const { return p_; }
  ArgandTensor* take() { return std::exchange(p_, nullptr); }
  ArgandTensor* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool defined() const { return p_ != nullptr; }

  int64_t dim() const { return p_->ndim; }
  int64_t numel() const { return p_->numel; }
  IntList sizes() const { return {p_->sizes, p_->ndim}; }
  IntList strides() const { return {p_->strides, p_->ndim}; }
  int64_t size(int64_t d) const { return p_->sizes[d < 0 ? d + p_->ndim : d]; }
  int64_t stride(int64_t d) const { return p_->strides[d < 0 ? d + p_->ndim : d]; }
  int dtype() const { return p_->dtype; }
  int itemsize() const { return kItemSize[p_->dtype]; }
  ArgandDevice device() const { return p_->storage->device; }
  bool is_meta() const { return ARGAND_DEVICE_TYPE(p_->storage->device) == ARGAND_META; }
  bool is_contiguous() const { return p_->flags & ARGAND_TENSOR_CONTIGUOUS; }
  bool requires_grad() const {
    return has_key(ARGAND_KEY_AUTOGRAD) && !(p_->flags & ARGAND_TENSOR_VIEW_NO_GRAD && !(p_->keys & ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD)));
  }
  bool has_key(ArgandDispatchKey key) const { return (p_->keys | (p_->base ? p_->base->keys : 0)) & ARGAND_KEYBIT(key); }
  uint32_t version() const { return __atomic_load_n(&p_->storage->version, __ATOMIC_RELAXED); }
  void bump_version() const {
    if (!(p_->flags & (ARGAND_TENSOR_NO_VERSION | ARGAND_TENSOR_INFERENCE))) __atomic_fetch_add(&p_->storage->version, 1, __ATOMIC_RELAXED);
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(p_->data);
  }

 private:
  ArgandTensor* p_ = nullptr;
};
using TensorList = std::vector<Tensor>;

inline Tensor empty(IntList sizes, int dtype, ArgandDevice device = ARGAND_DEVICE(ARGAND_CPU, 0)) {
  ArgandTensor* out = nullptr;
  check(api->tensor_empty(static_cast<int32_t>(sizes.n), sizes.ptr, dtype, device, &out));
  return Tensor::steal(out);
}
inline Tensor empty_strided(IntList sizes, IntList strides, int dtype, ArgandDevice device = ARGAND_DEVICE(ARGAND_CPU, 0)) {
  ArgandTensor* out = nullptr;
  check(api->tensor_empty_strided(static_cast<int32_t>(sizes.n), sizes.ptr, strides.ptr, dtype, device, &out));
  return Tensor::steal(out);
}
inline Tensor view_of(const Tensor& self, IntList sizes, IntList strides, int64_t offset) {
  ArgandTensor* out = nullptr;
  check(api->tensor_view(self.get(), static_cast<int32_t>(sizes.n), sizes.ptr, strides.ptr, offset, self.dtype(), &out));
  return Tensor::steal(out);
}

// ---- Scalar --------------------------------------------------------------------------------------------------------
struct Scalar {
  uint32_t tag = ARGAND_TAG_INT;  // BOOL, INT, FLOAT or COMPLEX
  int64_t i = 0;
  double re = 0, im = 0;
  Scalar() = default;
  Scalar(bool v) : tag(ARGAND_TAG_BOOL), i(v), re(v) {}
  Scalar(int v) : i(v), re(v) {}
  Scalar(int64_t v) : i(v), re(static_cast<double>(v)) {}
  Scalar(double v) : tag(ARGAND_TAG_FLOAT), i(0), re(v) {}
  Scalar(double r, double m) : tag(ARGAND_TAG_COMPLEX), re(r), im(m) {}
  static Scalar of_unsigned(uint64_t v) {
    Scalar s(static_cast<int64_t>(v));
    s.re = static_cast<double>(v);
    return s;
  }
  double to_double() const { return re; }
  int64_t to_int() const { return tag == ARGAND_TAG_FLOAT || tag == ARGAND_TAG_COMPLEX ? static_cast<int64_t>(re) : i; }
  bool is_floating() const { return tag == ARGAND_TAG_FLOAT; }
  bool beyond_int64() const { return tag == ARGAND_TAG_INT && i < 0 && re > 0; }  // `i` holds a uint64
};

// ---- values --------------------------------------------------------------------------------------------------------
inline ArgandValue none() { return ArgandValue{}; }
inline ArgandValue value(const Tensor& t) {
  ArgandValue v{};
  v.tag = t ? ARGAND_TAG_TENSOR : ARGAND_TAG_NONE;
  v.t = t.get();
  return v;
}
inline ArgandValue int_value(int64_t i, uint32_t tag = ARGAND_TAG_INT) {
  ArgandValue v{};
  v.tag = tag;
  v.i = i;
  return v;
}
inline ArgandValue value(bool b) { return int_value(b, ARGAND_TAG_BOOL); }
inline ArgandValue value(int64_t i) { return int_value(i); }
inline ArgandValue value(int i) { return int_value(i); }
inline ArgandValue value(double d) {
  ArgandValue v{};
  v.tag = ARGAND_TAG_FLOAT;
  v.d = d;
  return v;
}
inline ArgandValue value(const Scalar& s) {
  if (s.tag == ARGAND_TAG_FLOAT) return value(s.re);
  ArgandValue v{};
  if (s.tag != ARGAND_TAG_COMPLEX) {
    v = int_value(s.i, s.tag);
    v.len = s.beyond_int64();
    return v;
  }
  v.tag = ARGAND_TAG_COMPLEX;
  v.c = {s.re, s.im};
  return v;
}
inline ArgandValue value(IntList l) {
  ArgandValue v{};
  v.tag = ARGAND_TAG_INT_LIST;
  v.len = static_cast<uint32_t>(l.n);
  v.ints = l.ptr;
  return v;
}
inline ArgandValue value(const char* s) {
  ArgandValue v{};
  v.tag = ARGAND_TAG_STRING;
  v.len = static_cast<uint32_t>(std::strlen(s));
  v.s = s;
  return v;
}
inline ArgandValue string_value(std::string_view s) {
  ArgandValue v{};
  v.tag = ARGAND_TAG_STRING;
  v.len = static_cast<uint32_t>(s.size());
  v.s = s.data();
  return v;
}
inline ArgandValue string_value(const std::optional<std::string_view>& s) { return s ? string_value(*s) : ArgandValue{}; }
inline ArgandValue generator_value(ArgandGenerator* g) {
  ArgandValue v{};
  v.tag = g ? ARGAND_TAG_GENERATOR : ARGAND_TAG_NONE;
  v.p = g;
  return v;
}
inline ArgandValue bool_list_value(IntList l) {
  ArgandValue v = value(l);
  v.tag = ARGAND_TAG_BOOL_LIST;
  return v;
}
inline ArgandValue value(const std::vector<double>& l) {
  ArgandValue v{};
  v.tag = ARGAND_TAG_FLOAT_LIST;
  v.len = static_cast<uint32_t>(l.size());
  v.floats = l.data();
  return v;
}
inline ArgandValue value(const TensorList& l) {  // Tensor has the layout of a pointer
  static_assert(sizeof(Tensor) == sizeof(ArgandTensor*));
  ArgandValue v{};
  v.tag = ARGAND_TAG_TENSOR_LIST;
  v.len = static_cast<uint32_t>(l.size());
  v.tensors = reinterpret_cast<ArgandTensor**>(const_cast<Tensor*>(l.data()));
  return v;
}
inline ArgandValue dtype_value(int dtype) { return dtype == ARGAND_DTYPE_NONE ? none() : int_value(dtype, ARGAND_TAG_DTYPE); }
inline ArgandValue device_value(ArgandDevice device) { return int_value(device, ARGAND_TAG_DEVICE); }
template <class T>
inline ArgandValue value(const std::optional<T>& o) {
  return o ? value(*o) : none();
}

// ---- reading arguments (types were checked by the caller's schema) ---------------------------------------------------
inline bool is_none(const ArgandValue& v) { return v.tag == ARGAND_TAG_NONE || (v.tag == ARGAND_TAG_TENSOR && !v.t); }
inline Tensor as_tensor(const ArgandValue& v) { return v.tag == ARGAND_TAG_TENSOR ? Tensor::borrow(v.t) : Tensor(); }
inline IntList as_ints(const ArgandValue& v) { return {v.ints, v.tag == ARGAND_TAG_NONE ? 0 : static_cast<int64_t>(v.len)}; }
inline bool beyond_int64(const ArgandValue& v) { return v.tag == ARGAND_TAG_INT && v.len != 0; }
inline double as_double(const ArgandValue& v) {
  if (beyond_int64(v)) return static_cast<double>(static_cast<uint64_t>(v.i));
  return v.tag == ARGAND_TAG_FLOAT ? v.d : v.tag == ARGAND_TAG_COMPLEX ? v.c.re : static_cast<double>(v.i);
}
inline Scalar as_scalar(const ArgandValue& v) {
  if (v.tag == ARGAND_TAG_FLOAT) return Scalar(v.d);
  if (v.tag == ARGAND_TAG_COMPLEX) return Scalar(v.c.re, v.c.im);
  if (v.tag == ARGAND_TAG_BOOL) return Scalar(v.i != 0);
  if (beyond_int64(v)) return Scalar::of_unsigned(static_cast<uint64_t>(v.i));
  return Scalar(v.i);
}
inline TensorList as_tensors(const ArgandValue& v) {
  TensorList out;
  if (v.tag != ARGAND_TAG_TENSOR_LIST) return out;
  out.reserve(v.len);
  for (uint32_t i = 0; i < v.len; i++) out.push_back(Tensor::borrow(v.tensors[i]));
  return out;
}
inline int as_dtype(const ArgandValue& v, int otherwise) { return v.tag == ARGAND_TAG_NONE ? otherwise : static_cast<int>(v.i); }
inline bool as_bool(const ArgandValue& v) { return v.i != 0; }
inline int64_t as_int(const ArgandValue& v) { return v.tag == ARGAND_TAG_FLOAT ? static_cast<int64_t>(v.d) : v.i; }
inline std::string_view as_view(const ArgandValue& v) { return {v.s, v.len}; }
inline ArgandGenerator* as_generator(const ArgandValue& v) { return v.tag == ARGAND_TAG_GENERATOR ? static_cast<ArgandGenerator*>(v.p) : nullptr; }
inline std::vector<double> as_doubles(const ArgandValue& v) {
  return v.tag == ARGAND_TAG_FLOAT_LIST ? std::vector<double>(v.floats, v.floats + v.len) : std::vector<double>();
}
template <class T, class F>
inline std::optional<T> as_optional(const ArgandValue& v, F read) {
  return v.tag == ARGAND_TAG_NONE ? std::nullopt : std::optional<T>(read(v));
}
inline std::string as_string(const ArgandValue& v) { return {v.s, v.len}; }

// ---- results -------------------------------------------------------------------------------------------------------
inline void give(ArgandValue& ret, Tensor t) {
  ret = ArgandValue{};
  ret.tag = ARGAND_TAG_TENSOR;
  ret.t = t.take();
}
inline void give(ArgandValue& ret, TensorList list) {  // hands over a list result
  auto** array = static_cast<ArgandTensor**>(api->alloc_array(sizeof(void*) * (list.size() + 1)));
  if (!array) check(ARGAND_OUT_OF_MEMORY_ERROR);
  for (size_t i = 0; i < list.size(); i++) array[i] = list[i].take();
  ret = ArgandValue{};
  ret.tag = ARGAND_TAG_TENSOR_LIST;
  ret.len = static_cast<uint32_t>(list.size());
  ret.tensors = array;
}
inline Tensor take_tensor(ArgandValue& ret) { return ret.tag == ARGAND_TAG_TENSOR ? Tensor::steal(std::exchange(ret.t, nullptr)) : Tensor(); }
inline TensorList take_tensors(ArgandValue& ret) {
  const ArgandValue list = std::exchange(ret, ArgandValue{});
  TensorList out;
  auto take = [&](auto&& each) {
    for (uint32_t i = 0; i < list.len; i++) each(Tensor::steal(list.tensors[i]));
    api->free_array(list.tensors);
  };
  try {
    out.reserve(list.len);
  } catch (...) {
    take([](Tensor) {});
    throw;
  }
  take([&](Tensor t) { out.push_back(std::move(t)); });
  return out;
}

// Calls a registered operator by handle with results released on error paths; N results.
template <size_t N, size_t M>
inline void call(const ArgandOperator* op, const ArgandValue (&args)[M], ArgandValue (&rets)[N]) {
  check(api->call(op, args, rets));
}

// Finds an operator once; use through a function-local static.
inline const ArgandOperator* find_operator(const char* name) {
  const ArgandOperator* op = api->op_find(name);
  if (!op) fail(ARGAND_INTERNAL_ERROR, "%s: operator is not registered", name);
  return op;
}

// Changes thread state for a scope.
class StateGuard {
 public:
  StateGuard() : state_(api->thread_state()), saved_(*state_) {}
  ~StateGuard() { *state_ = saved_; }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;
  ArgandThreadState* operator->() { return state_; }

 private:
  ArgandThreadState* state_;
  ArgandThreadState saved_;
};

// ---- devices -------------------------------------------------------------------------------------------------------
inline const ArgandDeviceInterface* device_interface(ArgandDevice device) { return api->device_interface(ARGAND_DEVICE_TYPE(device)); }

// Makes a tensor's device the thread's current one for a scope; nothing where devices have no such state (the CPU).
class DeviceGuard {
 public:
  explicit DeviceGuard(ArgandDevice device) {
    if (ARGAND_DEVICE_TYPE(device) == ARGAND_CPU) return;
    const ArgandDeviceInterface* interface = device_interface(device);
    if (!interface || !interface->set_device) return;
    check(interface->get_device(&previous_));
    if (previous_ == ARGAND_DEVICE_INDEX(device)) return;
    check(interface->set_device(ARGAND_DEVICE_INDEX(device)));
    interface_ = interface;
  }
  explicit DeviceGuard(const Tensor& t) : DeviceGuard(t.device()) {}
  ~DeviceGuard() {
    if (interface_) interface_->set_device(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  const ArgandDeviceInterface* interface_ = nullptr;
  int32_t previous_ = 0;
};

inline void* current_stream(ArgandDevice device) {
  void* stream = nullptr;
  const ArgandDeviceInterface* interface = device_interface(device);
  if (interface && interface->stream_current) check(interface->stream_current(ARGAND_DEVICE_INDEX(device), &stream));
  return stream;
}

// f(begin, end) on disjoint ranges. The first exception of any of them is thrown again here, after all have ended.
template <class F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  struct Task {
    std::remove_reference_t<F>* f;
    int32_t failed = 0;
    std::exception_ptr error = nullptr;
  } task{&f};
  auto run = [](void* context, int64_t b, int64_t e) {
    Task& t = *static_cast<Task*>(context);
    if (__atomic_load_n(&t.failed, __ATOMIC_RELAXED)) return;
    try {
      (*t.f)(b, e);
    } catch (...) {
      if (!__atomic_exchange_n(&t.failed, 1, __ATOMIC_ACQ_REL)) t.error = std::current_exception();
    }
  };
  api->parallel_for(begin, end, grain, run, &task);
  if (__builtin_expect(task.failed, 0)) std::rethrow_exception(task.error);
}

}  // namespace argand
