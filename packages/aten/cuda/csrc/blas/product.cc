#include "packages/aten/cuda/csrc/blas/product.h"

#include <algorithm>

#include "packages/aten/cuda/csrc/blas/cublaslt.h"
#include "packages/aten/cuda/csrc/core/plain_key.h"
#include "packages/aten/cuda/csrc/core/settings.h"

namespace argand::cuda {
namespace {

// A row-major matrix is its transpose in column-major order, so cuBLASLt computes D^T = B^T A^T: its A is B here, its rows are n.

constexpr size_t kMaxWorkspace = 32u << 20;  // bytes
constexpr size_t kMaxPlans = 4096;           // of a thread
constexpr int64_t kMaxBatch = 65535;         // of one call: the limit of a grid's third dimension

// All that the choice of an algorithm depends on. No padding: compared and hashed as bytes.
struct Key {
  int64_t m, n, k, lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d;
  int32_t batch, device;
  uint8_t dtype, transposed_a, transposed_b, tf32, has_bias, has_c;
  uint8_t align_a, align_b, align_c, align_d, align_bias;  // log2 of bytes
  uint8_t unused[5];
};
static_assert(sizeof(Key) == 112);

struct Plan {
  lt::Desc desc = nullptr;
  lt::Layout b = nullptr, a = nullptr, c = nullptr, d = nullptr;
  lt::Algorithm algorithm{};
  size_t workspace = 0;
  bool usable = false;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (!desc) return;  // the library may be missing
    const lt::Library& l = lt::library();
    for (lt::Layout layout : {a, b, c, d})
      if (layout) l.layout_destroy(layout);
    l.desc_destroy(desc);
  }
};

struct Types {
  lt::DataType data;
  lt::ComputeType compute;
  lt::DataType scale;  // of alpha and beta
};

Types types_of(const char* op, int dtype, bool tf32) {
  const lt::ComputeType single = tf32 ? lt::kCompute32FFastTf32 : lt::kCompute32F;
  switch (dtype) {
    case ARGAND_FLOAT16:
      return {lt::kR16F, lt::kCompute32F, lt::kR32F};
    case ARGAND_BFLOAT16:
      return {lt::kR16BF, lt::kCompute32F, lt::kR32F};
    case ARGAND_FLOAT32:
      return {lt::kR32F, single, lt::kR32F};
    case ARGAND_FLOAT64:
      return {lt::kR64F, lt::kCompute64F, lt::kR64F};
    case ARGAND_COMPLEX64:
      return {lt::kC32F, single, lt::kC32F};
    case ARGAND_COMPLEX128:
      return {lt::kC64F, lt::kCompute64F, lt::kC64F};
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got %s, expected a dtype of numbers; convert with .to()", op, kDTypeName[dtype]);
  }
}

uint8_t alignment(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return address ? static_cast<uint8_t>(std::min(8, __builtin_ctzll(address))) : 8;
}

Key key_of(const Product& p, ArgandDevice device) {
  Key key{};
  key.m = p.m, key.n = p.n, key.k = p.k;
  key.lda = p.a.ld, key.ldb = p.b.ld, key.ldc = p.c ? p.ldc : p.ldd, key.ldd = p.ldd;
  key.batch = static_cast<int32_t>(p.batch);
  if (p.batch > 1) {
    key.stride_a = p.a.batch_stride, key.stride_b = p.b.batch_stride, key.stride_d = p.d_batch_stride;
    key.stride_c = p.c ? p.c_batch_stride : p.d_batch_stride;
  }
  key.device = ARGAND_DEVICE_INDEX(device);
  key.dtype = static_cast<uint8_t>(p.dtype);
  key.transposed_a = p.a.transposed, key.transposed_b = p.b.transposed;
  key.tf32 = !p.exact && (p.dtype == ARGAND_FLOAT32 || p.dtype == ARGAND_COMPLEX64) && settings().matmul_tf32.load(std::memory_order_relaxed);
  key.has_bias = p.bias != nullptr, key.has_c = p.c != nullptr;
  key.align_a = alignment(p.a.data), key.align_b = alignment(p.b.data);
  key.align_c = alignment(p.c ? p.c : p.d), key.align_d = alignment(p.d), key.align_bias = p.bias ? alignment(p.bias) : 0;
  return key;
}

// A matrix of `rows` x `cols` in row-major order, stored as it is or transposed.
lt::Layout make_layout(const char* op, lt::DataType type, int64_t rows, int64_t cols, bool transposed, int64_t ld, int32_t batch, int64_t stride) {
  const lt::Library& l = lt::library();
  if (transposed) std::swap(rows, cols);
  lt::Layout layout = nullptr;
  lt::check_status(op, "cublasLtMatrixLayoutCreate", l.layout_create(&layout, type, static_cast<uint64_t>(cols), static_cast<uint64_t>(rows), ld));
  if (batch > 1) {
    lt::check_status(op, "cublasLtMatrixLayoutSetAttribute", l.layout_set(layout, lt::kLayoutBatchCount, &batch, sizeof batch));
    lt::check_status(op, "cublasLtMatrixLayoutSetAttribute", l.layout_set(layout, lt::kLayoutStridedBatchOffset, &stride, sizeof stride));
  }
  return layout;
}

void choose_algorithm(const Product& p, const Key& key, Plan& plan) {
  const lt::Library& l = lt::library();
  lt::Preference preference = nullptr;
  lt::check_status(p.op, "cublasLtMatmulPreferenceCreate", l.preference_create(&preference));
  int status = l.preference_set(preference, lt::kPreferenceWorkspace, &kMaxWorkspace, sizeof kMaxWorkspace);
  const struct {
    lt::PreferenceAttribute attribute;
    uint8_t log2;
  } alignments[] = {{lt::kPreferenceAlignA, key.align_b},
                    {lt::kPreferenceAlignB, key.align_a},
                    {lt::kPreferenceAlignC, key.align_c},
                    {lt::kPreferenceAlignD, key.align_d}};
  for (const auto& a : alignments) {
    const uint32_t bytes = 1u << a.log2;
    if (!status) status = l.preference_set(preference, a.attribute, &bytes, sizeof bytes);
  }
  lt::HeuristicResult best{};
  int found = 0;
  const int searched = status ? status : l.heuristic(lt::handle(key.device), plan.desc, plan.b, plan.a, plan.c, plan.d, preference, 1, &best, &found);
  l.preference_destroy(preference);
  lt::check_status(p.op, "cublasLtMatmulPreferenceSetAttribute", status);
  plan.usable = searched == 0 && found > 0 && best.state == 0;
  plan.algorithm = best.algorithm;
  plan.workspace = best.workspace;
}

void make_plan(const Product& p, const Key& key, Plan& plan) {
  const Types types = types_of(p.op, p.dtype, key.tf32);
  const lt::Library& l = lt::library();
  lt::check_status(p.op, "cublasLtMatmulDescCreate", l.desc_create(&plan.desc, types.compute, types.scale));
  const int32_t trans_b = p.b.transposed ? lt::kOpT : lt::kOpN, trans_a = p.a.transposed ? lt::kOpT : lt::kOpN;
  const uint32_t epilogue = p.bias ? lt::kEpilogueBias : lt::kEpilogueDefault;
  lt::check_status(p.op, "cublasLtMatmulDescSetAttribute", l.desc_set(plan.desc, lt::kDescTransA, &trans_b, sizeof trans_b));
  lt::check_status(p.op, "cublasLtMatmulDescSetAttribute", l.desc_set(plan.desc, lt::kDescTransB, &trans_a, sizeof trans_a));
  lt::check_status(p.op, "cublasLtMatmulDescSetAttribute", l.desc_set(plan.desc, lt::kDescEpilogue, &epilogue, sizeof epilogue));
  if (p.bias) lt::check_status(p.op, "cublasLtMatmulDescSetAttribute", l.desc_set(plan.desc, lt::kDescBiasPointer, &p.bias, sizeof p.bias));
  plan.b = make_layout(p.op, types.data, p.k, p.n, p.b.transposed, p.b.ld, key.batch, key.stride_b);
  plan.a = make_layout(p.op, types.data, p.m, p.k, p.a.transposed, p.a.ld, key.batch, key.stride_a);
  plan.c = make_layout(p.op, types.data, p.m, p.n, false, key.ldc, key.batch, key.stride_c);
  plan.d = make_layout(p.op, types.data, p.m, p.n, false, key.ldd, key.batch, key.stride_d);
  choose_algorithm(p, key, plan);
}

// Plans are a thread's own: a bias pointer is part of its plan's description while a call is queued.
Plan& plan_of(const Product& p, const Key& key) {
  static thread_local PlanCache<Key, Plan, kMaxPlans> plans;
  return plans.get(key, [&](Plan& plan) { make_plan(p, key, plan); });
}

// alpha or beta in the dtype that cuBLASLt reads it in.
union ScaleValue {
  float single[2];
  double full[2];
  ScaleValue(const Scalar& s, int dtype) {
    if (dtype == ARGAND_FLOAT64 || dtype == ARGAND_COMPLEX128)
      full[0] = s.re, full[1] = s.im;
    else
      single[0] = static_cast<float>(s.re), single[1] = static_cast<float>(s.im);
  }
};

bool run_one(const Product& p, ArgandDevice device) {
  const Key key = key_of(p, device);
  Plan& plan = plan_of(p, key);
  if (!plan.usable) {
    if (p.bias) return false;
    fail(ARGAND_RUNTIME_ERROR, "%s: cuBLASLt has no algorithm for %lld products of %lldx%lld and %lldx%lld in %s", p.op,
         static_cast<long long>(p.batch), static_cast<long long>(p.m), static_cast<long long>(p.k), static_cast<long long>(p.k),
         static_cast<long long>(p.n), kDTypeName[p.dtype]);
  }
  const lt::Library& l = lt::library();
  if (p.bias) lt::check_status(p.op, "cublasLtMatmulDescSetAttribute", l.desc_set(plan.desc, lt::kDescBiasPointer, &p.bias, sizeof p.bias));
  Tensor workspace;
  if (plan.workspace) workspace = empty({static_cast<int64_t>(plan.workspace)}, ARGAND_UINT8, device);
  const ScaleValue alpha(p.alpha, p.dtype), beta(p.c ? p.beta : Scalar(0), p.dtype);
  lt::check_status(p.op, "cublasLtMatmul",
                   l.matmul(lt::handle(key.device), plan.desc, &alpha, p.b.data, plan.b, p.a.data, plan.a, &beta, p.c ? p.c : p.d, plan.c, p.d,
                            plan.d, &plan.algorithm, workspace ? workspace->data : nullptr, plan.workspace, current_stream(device)));
  return true;
}

}  // namespace

bool run_product(const Product& product, ArgandDevice device) {
  if (product.batch <= kMaxBatch) return run_one(product, device);
  const int64_t item = item_size(product.dtype);
  for (int64_t first = 0; first < product.batch; first += kMaxBatch) {
    Product part = product;
    part.batch = std::min(kMaxBatch, product.batch - first);
    const auto at = [&](const void* data, int64_t stride) { return data ? static_cast<const char*>(data) + first * stride * item : nullptr; };
    part.a.data = at(product.a.data, product.a.batch_stride);
    part.b.data = at(product.b.data, product.b.batch_stride);
    part.c = at(product.c, product.c_batch_stride);
    part.d = const_cast<char*>(at(product.d, product.d_batch_stride));
    if (!run_one(part, device)) return false;
  }
  return true;
}

}  // namespace argand::cuda
