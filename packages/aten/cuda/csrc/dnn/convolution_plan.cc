#include "packages/aten/cuda/csrc/dnn/convolution_plan.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "packages/aten/cuda/csrc/core/device_slot.h"
#include "packages/aten/cuda/csrc/core/plain_key.h"
#include "packages/aten/cuda/csrc/core/settings.h"
#include "packages/aten/cuda/csrc/dnn/cudnn.h"

namespace argand::cuda {
namespace {

using dnn::Descriptor;

constexpr int64_t kMaxWorkspace = int64_t{4} << 30;  // bytes
constexpr int kMaxConfigs = 16;                      // asked for of each kind of heuristic
constexpr int kMeasured = 8;                         // plans that benchmark mode tries
constexpr int kTimedRuns = 3;
constexpr size_t kMaxPlans = 4096;

struct Plan {
  Descriptor config;  // which the plan was made of
  Descriptor plan;
  int64_t workspace = 0;
};

// Handles and plans are shared by all threads, and used by one at a time: a handle has one stream.
struct Shared {
  std::mutex mutex;
  dnn::Handle handles[kMaxDevices] = {};
  void* streams[kMaxDevices] = {};
  std::unordered_map<ConvolutionProblem, Plan, PlainHash<ConvolutionProblem>, PlainEqual<ConvolutionProblem>> plans;
};

Shared& shared() {
  static Shared* const s = new Shared;  // outlives threads that still compute while the process ends
  return *s;
}

dnn::Handle handle_of(Shared& s, const char* op, int device) {
  const size_t slot = device_slot(op, device);
  const dnn::Library& l = dnn::library();
  void* const stream = current_stream(ARGAND_DEVICE(ARGAND_CUDA, device));
  const bool is_new = !s.handles[slot];
  if (is_new) dnn::check_status(op, "cudnnCreate", l.create(&s.handles[slot]));
  if (is_new || s.streams[slot] != stream) {
    dnn::check_status(op, "cudnnSetStream", l.set_stream(s.handles[slot], stream));
    s.streams[slot] = stream;
  }
  return s.handles[slot];
}

dnn::DataType data_type(const char* op, int dtype) {
  switch (dtype) {
    case ARGAND_FLOAT16:
      return dnn::kHalf;
    case ARGAND_BFLOAT16:
      return dnn::kBFloat16;
    case ARGAND_FLOAT32:
      return dnn::kFloat;
    case ARGAND_FLOAT64:
      return dnn::kDouble;
    default:
      fail(ARGAND_DTYPE_ERROR, "%s: got %s on a CUDA device, expected float16, bfloat16, float32 or float64; convert with .to()", op,
           kDTypeName[dtype]);
  }
}

Descriptor tensor(const char* op, dnn::DataType type, int ndim, const int64_t* sizes, int64_t id) {
  int64_t strides[5];
  for (int i = ndim - 1; i >= 0; i--) strides[i] = i == ndim - 1 ? 1 : strides[i + 1] * sizes[i + 1];
  Descriptor t(op, dnn::kTensor);
  t.set(dnn::kTensorDataType, dnn::kTypeDataType, type).set(dnn::kTensorDimensions, dnn::kTypeInt64, ndim, sizes);
  t.set(dnn::kTensorStrides, dnn::kTypeInt64, ndim, strides).set(dnn::kTensorUniqueId, id).set(dnn::kTensorByteAlignment, 16).finalize();
  return t;
}

enum TensorId : int64_t { kX = 1, kW = 2, kY = 3 };

// A graph of one operation; its parts live as long as it is asked about.
struct Graph {
  Descriptor convolution, x, w, y, operation, graph;
};

Graph operation_graph(const char* op, const ConvolutionProblem& p, dnn::Handle handle) {
  const dnn::DataType type = data_type(op, p.dtype);
  const bool full = type == dnn::kDouble;
  Descriptor convolution(op, dnn::kConvolution);
  convolution.set(dnn::kConvolutionCompType, dnn::kTypeDataType, full ? dnn::kDouble : dnn::kFloat);
  convolution.set(dnn::kConvolutionMode, dnn::kTypeConvolutionMode, dnn::kCrossCorrelation)
      .set(dnn::kConvolutionSpatialDims, static_cast<int64_t>(p.spatial));
  convolution.set(dnn::kConvolutionDilations, dnn::kTypeInt64, p.spatial, p.dilation)
      .set(dnn::kConvolutionFilterStrides, dnn::kTypeInt64, p.spatial, p.stride);
  convolution.set(dnn::kConvolutionPrePaddings, dnn::kTypeInt64, p.spatial, p.padding)
      .set(dnn::kConvolutionPostPaddings, dnn::kTypeInt64, p.spatial, p.padding)
      .finalize();
  static constexpr struct {
    dnn::Kind kind;
    int32_t first;
  } kParts[] = {{dnn::kConvolutionForward, dnn::kForwardAlpha},
                {dnn::kConvolutionBackwardData, dnn::kDataAlpha},
                {dnn::kConvolutionBackwardFilter, dnn::kFilterAlpha}};
  const auto& part = kParts[static_cast<int>(p.part)];
  const auto attribute = [&](int i) { return static_cast<dnn::Attribute>(part.first + i); };
  Descriptor operation(op, part.kind);
  const double scale[2] = {1, 0};
  const float single_scale[2] = {1, 0};
  for (int i = 0; i < 2; i++) {
    if (full)
      operation.set(attribute(i), dnn::kTypeDouble, 1, &scale[i]);
    else
      operation.set(attribute(i), dnn::kTypeFloat, 1, &single_scale[i]);
  }
  const int ndim = p.spatial + 2;
  Descriptor w = tensor(op, type, ndim, p.w, kW), x = tensor(op, type, ndim, p.x, kX), y = tensor(op, type, ndim, p.y, kY);
  operation.set(attribute(2), convolution).set(attribute(3), w).set(attribute(4), x).set(attribute(5), y).finalize();
  Descriptor graph(op, dnn::kOperationGraph);
  graph.set(dnn::kGraphOps, operation).set(dnn::kGraphHandle, dnn::kTypeHandle, 1, &handle).finalize();
  return {std::move(convolution), std::move(x), std::move(w), std::move(y), std::move(operation), std::move(graph)};
}

// Whether an engine keeps to what the program asks for.
bool is_allowed(const char* op, const ConvolutionProblem& p, const Descriptor& config) {
  const dnn::Library& l = dnn::library();
  const Descriptor engine(op, dnn::kEngine);
  void* place = engine.get();
  int64_t count = 0;
  dnn::check_status(op, "cudnnBackendGetAttribute", l.get_attribute(config.get(), dnn::kEngineConfigEngine, dnn::kTypeDescriptor, 1, &count, &place));
  int32_t notes[32];
  dnn::check_status(op, "cudnnBackendGetAttribute", l.get_attribute(place, dnn::kEngineNumericalNote, dnn::kTypeNumericalNote, 32, &count, notes));
  const bool exact = p.dtype == ARGAND_FLOAT32 && !p.tf32;
  return std::none_of(notes, notes + std::min<int64_t>(count, 32), [&](int32_t note) {
    return (exact && (note == dnn::kNoteTensorCore || note == dnn::kNoteDownConvertInputs)) ||
           (p.deterministic && note == dnn::kNoteNondeterministic);
  });
}

// Ways to compute the graph, best first by cuDNN's estimate, then those that work for everything.
std::vector<Descriptor> configurations(const char* op, const ConvolutionProblem& p, const Descriptor& graph) {
  const dnn::Library& l = dnn::library();
  std::vector<Descriptor> found;
  for (const int32_t mode : {dnn::kHeuristicA, dnn::kHeuristicFallback}) {
    Descriptor heuristic(op, dnn::kEngineHeuristic);
    heuristic.set(dnn::kHeuristicGraph, graph).set(dnn::kHeuristicMode, dnn::kTypeHeuristicMode, mode);
    if (heuristic.try_finalize() != 0) continue;
    std::vector<Descriptor> configs;
    void* places[kMaxConfigs];
    for (void*& place : places) {
      configs.emplace_back(op, dnn::kEngineConfig);
      place = configs.back().get();
    }
    int64_t count = 0;
    if (l.get_attribute(heuristic.get(), dnn::kHeuristicResults, dnn::kTypeDescriptor, kMaxConfigs, &count, places) != 0) continue;
    for (int64_t i = 0; i < std::min<int64_t>(count, kMaxConfigs); i++)
      if (is_allowed(op, p, configs[i])) found.push_back(std::move(configs[i]));
  }
  return found;
}

bool make_plan(const char* op, dnn::Handle handle, Descriptor config, Plan& out) {
  Plan made;
  made.plan = Descriptor(op, dnn::kExecutionPlan);
  made.plan.set(dnn::kPlanHandle, dnn::kTypeHandle, 1, &handle).set(dnn::kPlanEngineConfig, config);
  if (made.plan.try_finalize() != 0) return false;  // the engine does not support this problem
  int64_t count = 0;
  dnn::check_status(op, "cudnnBackendGetAttribute",
                    dnn::library().get_attribute(made.plan.get(), dnn::kPlanWorkspaceSize, dnn::kTypeInt64, 1, &count, &made.workspace));
  made.config = std::move(config);
  out = std::move(made);
  return out.workspace <= kMaxWorkspace;
}

int execute(const char* op, dnn::Handle handle, const Plan& plan, ArgandDevice device, void* x, void* w, void* y) {
  Tensor memory;
  if (plan.workspace) memory = empty({plan.workspace}, ARGAND_UINT8, device);
  void* workspace = memory ? memory->data : nullptr;
  void* const pointers[] = {x, w, y};
  static constexpr int64_t kIds[] = {kX, kW, kY};
  Descriptor pack(op, dnn::kVariantPack);
  pack.set(dnn::kPackDataPointers, dnn::kTypeVoidPtr, 3, pointers).set(dnn::kPackUniqueIds, dnn::kTypeInt64, 3, kIds);
  pack.set(dnn::kPackWorkspace, dnn::kTypeVoidPtr, 1, &workspace).finalize();
  return dnn::library().execute(handle, plan.plan.get(), pack.get());
}

// Milliseconds of one run, the least of a few; negative where it does not run.
float measure(const char* op, dnn::Handle handle, const Plan& plan, ArgandDevice device, void* x, void* w, void* y) {
  const ArgandDeviceInterface* d = device_interface(device);
  const int index = ARGAND_DEVICE_INDEX(device);
  if (execute(op, handle, plan, device, x, w, y) != 0) return -1;
  void *start = nullptr, *end = nullptr;
  check(d->event_new(index, ARGAND_EVENT_TIMING, &start));
  check(d->event_new(index, ARGAND_EVENT_TIMING, &end));
  float best = -1;
  for (int i = 0; i < kTimedRuns; i++) {
    check(d->event_record(start, index, current_stream(device)));
    if (execute(op, handle, plan, device, x, w, y) != 0) break;
    check(d->event_record(end, index, current_stream(device)));
    check(d->event_synchronize(end));
    float elapsed = 0;
    check(d->event_elapsed(start, end, &elapsed));
    best = best < 0 ? elapsed : std::min(best, elapsed);
  }
  check(d->event_destroy(start, index));
  check(d->event_destroy(end, index));
  return best;
}

// The first configuration that runs, or in benchmark mode the fastest of several; it has then run.
Plan choose_plan(const char* op, const ConvolutionProblem& p, dnn::Handle handle, ArgandDevice device, void* x, void* w, void* y) {
  const bool measured = settings().conv_benchmark.load(std::memory_order_relaxed);
  Plan best;
  float best_time = -1;
  int tried = 0;
  const Graph graph = operation_graph(op, p, handle);
  for (Descriptor& config : configurations(op, p, graph.graph)) {
    Plan plan;
    if (!make_plan(op, handle, std::move(config), plan)) continue;
    if (!measured) {
      if (execute(op, handle, plan, device, x, w, y) == 0) return plan;
      continue;
    }
    const float time = measure(op, handle, plan, device, x, w, y);
    if (time >= 0 && (best_time < 0 || time < best_time)) best = std::move(plan), best_time = time;
    if (++tried == kMeasured && best_time >= 0) break;
  }
  if (best_time < 0)
    fail(ARGAND_RUNTIME_ERROR, "%s: cuDNN has no way to compute it in %s with input %s and weight %s%s", op, kDTypeName[p.dtype],
         to_string(IntList(p.x, p.spatial + 2)).c_str(), to_string(IntList(p.w, p.spatial + 2)).c_str(),
         p.deterministic ? " deterministically; set argand.backends.cudnn.deterministic = False" : "");
  return best;
}

}  // namespace

void run_convolution(const char* op, const ConvolutionProblem& problem, void* x, void* w, void* y) {
  const ArgandDevice device = ARGAND_DEVICE(ARGAND_CUDA, problem.device);
  data_type(op, problem.dtype);  // an unknown dtype is told before cuDNN is missed
  Shared& s = shared();
  const std::lock_guard<std::mutex> lock(s.mutex);
  const dnn::Handle handle = handle_of(s, op, problem.device);
  const auto known = s.plans.find(problem);
  if (known != s.plans.end()) {
    const int status = execute(op, handle, known->second, device, x, w, y);
    return dnn::check_status(op, "cudnnBackendExecute", status);
  }
  if (s.plans.size() >= kMaxPlans) s.plans.clear();
  s.plans.emplace(problem, choose_plan(op, problem, handle, device, x, w, y));
}

}  // namespace argand::cuda
