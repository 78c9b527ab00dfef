// Opens and runs packages: the functions of argand_package.h.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "packages/export/csrc/failure.h"
#include "packages/export/csrc/manifest.h"
#include "packages/export/csrc/tensors.h"

namespace argand::package {
namespace {

constexpr uint64_t kLargestManifest = 1 << 28, kLargestLibrary = 1ull << 32;
constexpr const char* kManifest = "package.json";
constexpr ArgandDevice kCpu = ARGAND_DEVICE(ARGAND_CPU, 0);
const char* const kTiers[] = {"SSE4.2", "AVX2", "AVX-512"};

thread_local std::string last_error;

template <class F>
int guarded(const ArgandApi* api, F&& f) {
  try {
    f();
    return 0;
  } catch (const Failure& failure) {
    last_error = failure.text;
    if (api && failure.kind < ARGAND_PACKAGE_DAMAGED && failure.kind != ARGAND_PYTHON_ERROR) api->set_error(failure.kind, last_error.c_str());
    return failure.kind;
  } catch (const std::bad_alloc&) {
    last_error = "package: out of memory";
    return api ? api->set_error(ARGAND_OUT_OF_MEMORY_ERROR, last_error.c_str()) : ARGAND_OUT_OF_MEMORY_ERROR;
  }
}

// ---- the library -----------------------------------------------------------------------------------------------------------
class Library {
 public:
  using Run = int (*)(const ArgandApi*, const ArgandValue* inputs, ArgandValue* outputs);

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_) dlclose(handle_);
    if (fd_ >= 0) close(fd_);
  }

  void open_file(const ArgandApi* api, const char* path) {
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle_) fail(ARGAND_RUNTIME_ERROR, "package: its library cannot be loaded: %s", dlerror());
    const auto load = reinterpret_cast<int (*)(const ArgandApi*)>(dlsym(handle_, "argand_program_load"));
    run = reinterpret_cast<Run>(dlsym(handle_, "argand_program_run"));
    manifest = static_cast<const char*>(dlsym(handle_, "argand_program_manifest"));
    if (!load || !run || !manifest) fail(ARGAND_PACKAGE_DAMAGED, "its library is no compiled graph");
    check_status(api, load(api));
  }

  // The code goes to memory without a name. The descriptor stays open: the loader takes libraries of one path for one library.
  void open_bytes(const ArgandApi* api, const std::string& data) {
    fd_ = memfd_create("argand-package", MFD_CLOEXEC);
    if (fd_ < 0) fail(ARGAND_PACKAGE_UNREADABLE, "package: no memory for its library: %s", strerror(errno));
    for (size_t at = 0; at < data.size();) {
      const ssize_t n = write(fd_, data.data() + at, data.size() - at);
      if (n < 0 && errno != EINTR) fail(ARGAND_PACKAGE_UNREADABLE, "package: no memory for its library: %s", strerror(errno));
      if (n > 0) at += static_cast<size_t>(n);
    }
    open_file(api, ("/proc/self/fd/" + std::to_string(fd_)).c_str());
  }

  Run run = nullptr;
  const char* manifest = nullptr;

 private:
  void* handle_ = nullptr;
  int fd_ = -1;
};

// ---- layouts ---------------------------------------------------------------------------------------------------------------
void strides_of(const Input& input, const int64_t* sizes, int64_t* strides) {
  int64_t step = 1;
  for (size_t k = input.order.size(); k-- > 0;) {
    const int d = input.order[k];
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
}

bool is_laid_out(const Input& input, const ArgandTensor* t, const int64_t* strides) {
  for (int32_t d = 0; d < t->ndim; d++)
    if (t->sizes[d] > 1 && t->strides[d] != strides[d]) return t->numel == 0;
  return input.order.size() == static_cast<size_t>(t->ndim);
}

// target[...] = value, without history.
void copy_into(const ArgandApi* api, const ArgandOperator* copy, ArgandTensor* target, ArgandTensor* value) {
  ArgandThreadState* const state = api->thread_state();
  const ArgandThreadState saved = *state;
  state->grad_mode = 0;
  state->exclude_keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD) | ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST);
  ArgandValue args[3] = {}, result = {};
  args[0].tag = args[1].tag = ARGAND_TAG_TENSOR;
  args[0].t = target;
  args[1].t = value;
  args[2].tag = ARGAND_TAG_BOOL;
  const int status = api->call(copy, args, &result);
  *state = saved;
  check_status(api, status);
  TensorRef(api, result.t);
}

TensorRef placed(const ArgandApi* api, const ArgandOperator* copy, const ArgandTensor* t, const int64_t* strides) {
  ArgandTensor* made = nullptr;
  check_status(api, api->tensor_empty_strided(t->ndim, t->sizes, strides, t->dtype, kCpu, &made));
  TensorRef result(api, made);
  copy_into(api, copy, made, const_cast<ArgandTensor*>(t));
  return result;
}

}  // namespace
}  // namespace argand::package

using namespace argand::package;

struct ArgandPackage {
  const ArgandApi* api;
  const ArgandOperator* copy;
  Manifest manifest;
  std::string text, digest;
  std::map<std::string, TensorRef> weights, constants;
  Library library;
  std::vector<ArgandValue> values;  // what the library takes; the caller's are NONE
  std::vector<const Input*> given;
  std::vector<ArgandPackageInput> described;
  std::vector<int64_t> bounds;
  ArgandPackageInfo info = {};

  void read(const char* path, const ArgandPackageOptions& options);
  void load_operators() const;
  void load(const Archive& archive, const ArgandPackageOptions& options);
  void check_library() const;
  void place_state();
  void describe();
};

// ---- opening ---------------------------------------------------------------------------------------------------------------
void ArgandPackage::read(const char* path, const ArgandPackageOptions& options) {
  const Archive archive(path);
  text = archive.content(kManifest, kLargestManifest);
  archive.check(archive.member(kManifest), text);
  Sha256 hash;
  hash.update(text.data(), text.size());
  digest = hash.hex();
  if (options.digest && digest != options.digest)
    fail(ARGAND_PACKAGE_DAMAGED, "its digest is %s, expected %.64s; it is another package than the one you verified", digest.c_str(), options.digest);
  manifest = read_manifest(text);
  weights = read_tensors(api, archive, manifest.weights, manifest.hash_of(manifest.weights));
  constants = read_tensors(api, archive, manifest.constants, manifest.hash_of(manifest.constants));
  place_state();
  describe();
  load_operators();
  load(archive, options);
  check_library();
}

void ArgandPackage::load_operators() const {
  for (const OperatorLibrary& needed : manifest.operator_libraries) {
    bool known = true;
    for (const std::string& name : needed.operators) known = known && api->op_find(name.c_str());
    if (known) continue;
    void* const handle = dlopen(needed.library.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded, as its operators do
    if (!handle)
      fail(ARGAND_PACKAGE_OPERATORS, "it calls operators of %s: %s; put the folder of that library into LD_LIBRARY_PATH", needed.library.c_str(),
           dlerror());
    const auto init = reinterpret_cast<int (*)(const ArgandApi*)>(dlsym(handle, needed.init.c_str()));
    if (!init)
      fail(ARGAND_PACKAGE_OPERATORS, "it calls operators of %s, which has no %s; it is of another version", needed.library.c_str(),
           needed.init.c_str());
    check_status(api, init(api));
  }
}

void ArgandPackage::load(const Archive& archive, const ArgandPackageOptions& options) {
  info.tier = api->cpu_tier();
  if (options.library) return library.open_file(api, options.library);
  // Code for a lower tier runs too.
  auto found = manifest.libraries.upper_bound(info.tier);
  if (found == manifest.libraries.begin() || (--found)->first < 0) {
    const int first = manifest.libraries.empty() ? 2 : manifest.libraries.begin()->first;
    fail(ARGAND_PACKAGE_TIER, "its code needs %s, this processor (or ARGAND_CPU_TIER) has %s; package the program with tiers=(%d, ...)",
         first >= 0 && first < 3 ? kTiers[first] : "another processor", kTiers[info.tier], info.tier);
  }
  info.tier = found->first;
  const std::string code = archive.content(found->second, kLargestLibrary);
  Sha256 hash;
  hash.update(code.data(), code.size());
  if (hash.hex() != manifest.hash_of(found->second))
    fail(ARGAND_PACKAGE_DAMAGED, "its %s differs from the hash in its manifest", found->second.c_str());
  library.open_bytes(api, code);
}

// The library and the manifest are about one program: a wrong number of values would be a wrong address.
void ArgandPackage::check_library() const {
  const Json own = Json::parse(library.manifest);
  std::vector<const Json*> inputs;
  for (const char* kind : {"inputs", "constants"})
    for (const Json& input : own[kind].items()) inputs.push_back(&input);
  bool same = inputs.size() == manifest.inputs.size() && own["outputs"].items().size() == manifest.results.size();
  for (size_t i = 0; same && i < inputs.size(); i++) {
    const Input& input = manifest.inputs[i];
    same = dtype_of((*inputs[i])["dtype"].text()) == input.dtype && (*inputs[i])["sizes"].items().size() == input.sizes.size();
  }
  if (!same) fail(ARGAND_PACKAGE_DAMAGED, "its library is of another program than its manifest");
}

void ArgandPackage::place_state() {
  for (const Input& input : manifest.inputs) {
    ArgandValue value = {};
    if (input.given) {
      given.push_back(&input);
    } else {
      auto& tensors = input.constant ? constants : weights;
      const auto found = tensors.find(input.name);
      bool good = found != tensors.end();
      const ArgandTensor* t = good ? found->second.get() : nullptr;
      good = good && t->dtype == input.dtype && static_cast<size_t>(t->ndim) == input.sizes.size();
      for (size_t d = 0; good && d < input.sizes.size(); d++) good = t->sizes[d] == input.sizes[d].offset;
      if (!good) fail(ARGAND_PACKAGE_DAMAGED, "it has no tensor '%s' of the dtype and shape in its manifest", input.name.c_str());
      int64_t strides[ARGAND_MAX_DIMS];
      strides_of(input, t->sizes, strides);
      if (!is_laid_out(input, t, strides)) found->second = placed(api, copy, t, strides);
      value.tag = ARGAND_TAG_TENSOR;
      value.t = found->second.get();
      info.n_elements += value.t->numel;
    }
    values.push_back(value);
  }
}

void ArgandPackage::describe() {
  size_t n = 0;
  for (const Input* input : given) n += input->sizes.size();
  bounds.reserve(2 * n);
  for (const Input* input : given) {
    const size_t at = bounds.size(), ndim = input->sizes.size();
    for (const Size& size : input->sizes)
      bounds.push_back(size.dimension < 0 ? size.offset : size.factor * manifest.dimensions[static_cast<size_t>(size.dimension)].low + size.offset);
    for (const Size& size : input->sizes) {
      const int64_t high = size.dimension < 0 ? 0 : manifest.dimensions[static_cast<size_t>(size.dimension)].high;
      bounds.push_back(size.dimension < 0 ? size.offset : high < 0 ? -1 : size.factor * high + size.offset);
    }
    described.push_back({input->name.c_str(), input->dtype, static_cast<int32_t>(ndim), &bounds[at], &bounds[at + ndim]});
  }
  info.n_inputs = static_cast<int32_t>(given.size());
  info.n_outputs = static_cast<int32_t>(manifest.outputs.size());
  info.inputs = described.data();
  info.digest = digest.c_str();
  info.manifest = text.c_str();
  for (const Result& result : manifest.results)
    info.changes_buffers |= result.target >= 0 && !manifest.inputs[static_cast<size_t>(result.target)].given;
}

// ---- calls -----------------------------------------------------------------------------------------------------------------
namespace {

const char* dtype_name(int dtype) {
  static const char* const names[] = {"bool",          "uint8",       "int8",    "int16",   "int32",     "int64",
                                      "float16",       "bfloat16",    "float32", "float64", "complex64", "complex128",
                                      "float8_e4m3fn", "float8_e5m2", "uint16",  "uint32",  "uint64"};
  return dtype < ARGAND_NUM_DTYPES ? names[dtype] : "no dtype";
}

struct Seen {  // a dimension's value in this call, and where it was read first
  int64_t value = -1;
  const Input* input = nullptr;
  size_t d = 0;
};

std::string text_of(const ArgandPackage& p, const Size& size) {
  const Dimension& dimension = p.manifest.dimensions[static_cast<size_t>(size.dimension)];
  std::string text = (size.factor == 1 ? "" : std::to_string(size.factor) + "*") + dimension.name;
  if (size.offset) text += (size.offset < 0 ? " - " : " + ") + std::to_string(size.offset < 0 ? -size.offset : size.offset);
  return text;
}

void check_size(const ArgandPackage& p, const Input& input, size_t d, int64_t got, Seen* seen) {
  const Size& size = input.sizes[d];
  if (size.dimension < 0) {
    if (got != size.offset)
      fail(ARGAND_VALUE_ERROR, "package: got size %lld in dimension %zu of '%s', expected %lld; export with dynamic_shapes to let it vary",
           static_cast<long long>(got), d, input.name.c_str(), static_cast<long long>(size.offset));
    return;
  }
  const Dimension& dimension = p.manifest.dimensions[static_cast<size_t>(size.dimension)];
  const int64_t value = (got - size.offset) / size.factor;
  if (value * size.factor + size.offset != got || value < dimension.low || (dimension.high >= 0 && value > dimension.high))
    fail(ARGAND_VALUE_ERROR, "package: got size %lld in dimension %zu of '%s', expected %s with %s in [%lld, %s]", static_cast<long long>(got), d,
         input.name.c_str(), text_of(p, size).c_str(), dimension.name.c_str(), static_cast<long long>(dimension.low),
         dimension.high < 0 ? "inf" : std::to_string(dimension.high).c_str());
  Seen& first = seen[size.dimension];
  if (!first.input) first = {value, &input, d};
  if (first.value != value)
    fail(ARGAND_VALUE_ERROR,
         "package: got size %lld in dimension %zu of '%s', where %s is %lld, but it is %lld by dimension %zu of '%s'; expected equal sizes",
         static_cast<long long>(got), d, input.name.c_str(), dimension.name.c_str(), static_cast<long long>(value),
         static_cast<long long>(first.value), first.d, first.input->name.c_str());
}

void check_input(const ArgandPackage& p, const Input& input, const ArgandValue& value, Seen* seen) {
  if (value.tag != ARGAND_TAG_TENSOR || !value.t) fail(ARGAND_TYPE_ERROR, "package: got no tensor for '%s', expected one", input.name.c_str());
  const ArgandTensor* t = value.t;
  if (t->dtype != input.dtype || static_cast<size_t>(t->ndim) != input.sizes.size())
    fail(ARGAND_VALUE_ERROR, "package: got %s of %d dimensions for '%s', expected %s of %zu", dtype_name(t->dtype), t->ndim, input.name.c_str(),
         dtype_name(input.dtype), input.sizes.size());
  if (t->storage->device != kCpu)
    fail(ARGAND_VALUE_ERROR, "package: got a tensor on device %s for '%s', expected one on the CPU",
         p.api->device_type_name(ARGAND_DEVICE_TYPE(t->storage->device)), input.name.c_str());
  for (size_t d = 0; d < input.sizes.size(); d++) check_size(p, input, d, t->sizes[d], seen);
}

// Values of a call: on the stack for programs of usual size.
template <class T>
class Room {
 public:
  explicit Room(size_t n) : many_(n > kFew ? n : 0), data_(n > kFew ? many_.data() : few_) {}
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  static constexpr size_t kFew = 32;
  T few_[kFew] = {};
  std::vector<T> many_;
  T* data_;
};

void give_outputs(const ArgandPackage& p, ArgandValue* results, ArgandValue* outputs) {
  for (size_t i = 0; i < p.manifest.outputs.size(); i++) {
    const Output& output = p.manifest.outputs[i];
    ArgandValue& to = outputs[i] = {};
    if (output.result >= 0) {
      to = std::exchange(results[output.result], {});
      continue;
    }
    switch (output.value.kind()) {
      case Json::Kind::kBool:
        to.tag = ARGAND_TAG_BOOL;
        to.i = output.value.boolean();
        break;
      case Json::Kind::kInteger:
        to.tag = ARGAND_TAG_INT;
        to.i = output.value.integer();
        break;
      case Json::Kind::kObject:  // {"float": hexadecimal}, which keeps every bit
        if (const Json* number = output.value.find("float")) {
          to.tag = ARGAND_TAG_FLOAT;
          to.d = strtod(number->text().c_str(), nullptr);
        }
        break;
      case Json::Kind::kString:
        to.tag = ARGAND_TAG_STRING;
        to.s = output.value.text().c_str();
        to.len = static_cast<uint32_t>(output.value.text().size());
        break;
      default:
        break;
    }
  }
}

struct Results {  // owned until they are given
  const ArgandPackage& p;
  Room<ArgandValue> values;
  explicit Results(const ArgandPackage& package) : p(package), values(package.manifest.results.size()) {}
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  ~Results() {
    for (size_t i = 0; i < p.manifest.results.size(); i++) argand_package_release(p.api, &values[i]);
  }
};

void run(const ArgandPackage& p, const ArgandValue* inputs, ArgandValue* outputs) {
  const Manifest& m = p.manifest;
  Room<ArgandValue> values(m.inputs.size());
  Room<Seen> seen(m.dimensions.size());
  std::vector<TensorRef> copies;
  std::copy(p.values.begin(), p.values.end(), values.data());
  const ArgandValue* next = inputs;
  for (size_t i = 0; i < m.inputs.size(); i++) {
    const Input& input = m.inputs[i];
    if (!input.given) continue;
    check_input(p, input, *next, seen.data());
    values[i] = *next++;
    int64_t strides[ARGAND_MAX_DIMS];
    strides_of(input, values[i].t->sizes, strides);
    if (is_laid_out(input, values[i].t, strides)) continue;
    copies.push_back(placed(p.api, p.copy, values[i].t, strides));
    values[i].t = copies.back().get();
  }
  Results results(p);
  check_status(p.api, p.library.run(p.api, values.data(), results.values.data()));
  next = inputs;
  for (size_t i = 0; i < m.inputs.size(); i++)  // changes go to the caller's tensors, not to copies
    if (m.inputs[i].given) values[i] = *next++;
  for (size_t i = 0; i < m.results.size(); i++)
    if (m.results[i].target >= 0) copy_into(p.api, p.copy, values[static_cast<size_t>(m.results[i].target)].t, results.values[i].t);
  give_outputs(p, results.values.data(), outputs);
}

void* load_runtime_library(const char* path, const char* name) {
  void* library = dlopen(path ? path : name, RTLD_NOW | RTLD_GLOBAL);
  if (!library) fail(ARGAND_PACKAGE_UNREADABLE, "package: %s; give its path, or put its folder into LD_LIBRARY_PATH", dlerror());
  return library;
}

}  // namespace

// ---- the C functions -------------------------------------------------------------------------------------------------------
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define ABI TEXT(ARGAND_ABI_VERSION)
#define PUBLIC extern "C" __attribute__((visibility("default")))

PUBLIC const ArgandApi* argand_package_runtime(const char* c10, const char* aten, const char* blas) {
  const ArgandApi* api = nullptr;
  const int status = guarded(nullptr, [&] {
    void* library = load_runtime_library(c10, "libargand_c10.so." ABI);
    const auto get = reinterpret_cast<const ArgandApi* (*)()>(dlsym(library, "argand_api"));
    const ArgandApi* found = get ? get() : nullptr;
    if (!found || found->abi_version != ARGAND_ABI_VERSION)
      fail(ARGAND_RUNTIME_ERROR, "package: libargand_c10 is of another version, expected ABI %d", ARGAND_ABI_VERSION);
    library = load_runtime_library(aten, "libargand_aten.so." ABI);
    const auto init = reinterpret_cast<int (*)(const ArgandApi*)>(dlsym(library, "argand_aten_init"));
    const auto set_blas = reinterpret_cast<int (*)(const char*)>(dlsym(library, "argand_aten_set_blas"));
    if (!init || !set_blas) fail(ARGAND_RUNTIME_ERROR, "package: libargand_aten is of another version");
    if (!found->op_find("copy_")) check_status(found, init(found));
    if (!blas) blas = getenv("ARGAND_BLAS");
    if (blas) check_status(found, set_blas(blas));
    api = found;
  });
  return status ? nullptr : api;
}

PUBLIC int argand_package_open(const ArgandApi* api, const char* path, const ArgandPackageOptions* options, ArgandPackage** out) {
  const int status = guarded(api, [&] {
    auto made = std::make_unique<ArgandPackage>();
    made->api = api;
    made->copy = api->op_find("copy_");
    if (!made->copy) fail(ARGAND_RUNTIME_ERROR, "package: operator 'copy_' is not registered; load libargand_aten first (argand_package_runtime)");
    made->read(path, options ? *options : ArgandPackageOptions{});
    *out = made.release();
  });
  if (status >= ARGAND_PACKAGE_DAMAGED) last_error = std::string("package ") + path + ": " + last_error;
  return status;
}

PUBLIC const ArgandPackageInfo* argand_package_info(const ArgandPackage* package) { return &package->info; }

PUBLIC int argand_package_run(ArgandPackage* package, const ArgandValue* inputs, ArgandValue* outputs) {
  return guarded(package->api, [&] { run(*package, inputs, outputs); });
}

PUBLIC ArgandTensor* argand_package_state(const ArgandPackage* package, const char* name) {
  for (const auto* tensors : {&package->weights, &package->constants})
    if (const auto found = tensors->find(name); found != tensors->end()) return found->second.get();
  return nullptr;
}

PUBLIC void argand_package_close(ArgandPackage* package) { delete package; }

PUBLIC int argand_package_tensor(const ArgandApi* api, void* data, int dtype, int32_t ndim, const int64_t* sizes, ArgandValue* out) {
  return guarded(api, [&] {
    if (dtype < 0 || dtype >= ARGAND_NUM_DTYPES || ndim < 0 || ndim > ARGAND_MAX_DIMS)
      fail(ARGAND_VALUE_ERROR, "package: got dtype %d and %d dimensions, expected an ArgandDType and 0 to %d", dtype, ndim, ARGAND_MAX_DIMS);
    int64_t strides[ARGAND_MAX_DIMS], numel = 1;
    for (int32_t d = ndim; d-- > 0;) {
      strides[d] = numel;
      if (sizes[d] < 0 || __builtin_mul_overflow(numel, sizes[d], &numel)) fail(ARGAND_VALUE_ERROR, "package: got sizes that no memory has");
    }
    ArgandStorage* storage = nullptr;
    const size_t nbytes = static_cast<size_t>(numel * item_size(dtype));
    check_status(api, api->storage_from_blob(kCpu, data, nbytes, nullptr, nullptr, 0, &storage));
    ArgandTensor* t = nullptr;
    const int status = api->tensor_from_storage(storage, ndim, sizes, strides, 0, dtype, &t);
    if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(storage);
    check_status(api, status);
    *out = {};
    out->tag = ARGAND_TAG_TENSOR;
    out->t = t;
  });
}

PUBLIC void argand_package_release(const ArgandApi* api, ArgandValue* value) {
  if (value->tag == ARGAND_TAG_TENSOR) TensorRef(api, value->t);
  *value = {};
}

PUBLIC const char* argand_package_error(void) { return last_error.c_str(); }
