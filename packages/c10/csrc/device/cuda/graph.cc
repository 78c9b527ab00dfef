// Capture and replay of work. Captured kernels draw random numbers from counters fixed at capture plus a number that replays set.
#include <map>
#include <utility>

#include "packages/c10/csrc/device/cuda/allocator.h"
#include "packages/c10/csrc/random/generator.h"

namespace argand::core::cuda {
namespace {

struct GraphGenerator {
  ArgandGenerator* generator;  // one reference
  uint64_t* state;             // device memory: seed, number added to counters
  uint64_t first;              // its offset when the capture began
  uint64_t used;               // counters that one run draws
};

struct Capture {
  uint64_t pool = 0;
  uint64_t id = 0;
  std::vector<GraphGenerator> generators;
};

struct Graph {
  CUgraphExec executable = nullptr;
  uint64_t pool = 0;
  std::vector<GraphGenerator> generators;
};

std::mutex g_mutex;
std::map<CUstream, Capture> g_captures;
thread_local std::vector<ArgandGenerator*> t_generators;  // of the next capture; references

void drop(ArgandGenerator* g) {
  if (__atomic_sub_fetch(&g->refcount, 1, __ATOMIC_ACQ_REL) == 0) generator_release(g);
}
ArgandGenerator* keep(ArgandGenerator* g) {
  __atomic_fetch_add(&g->refcount, 1, __ATOMIC_RELAXED);
  return g;
}

void release_generators(DeviceAllocator* memory, std::vector<GraphGenerator>& generators) {
  for (const GraphGenerator& g : generators) {
    if (g.state) memory->deallocate(g.state);
    drop(g.generator);
  }
  generators.clear();
}

// Takes over the references of `list`. The memory comes from the common pool: no capture has begun.
int prepare_generators(int32_t index, DeviceAllocator* memory, std::vector<GraphGenerator>* out) {
  std::vector<ArgandGenerator*> list = std::exchange(t_generators, {});
  if (ArgandGenerator* g = default_generator(ARGAND_DEVICE(ARGAND_CUDA, index))) list.push_back(keep(g));
  for (ArgandGenerator* g : list) out->push_back({g, nullptr, 0, 0});
  for (GraphGenerator& g : *out) {
    g.state = static_cast<uint64_t*>(memory->allocate(2 * sizeof(uint64_t), current_stream(index)));
    if (!g.state) return ARGAND_OUT_OF_MEMORY_ERROR;
  }
  return 0;
}

int begin_native(int32_t index, int mode, CUstream stream, Capture* capture) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  if (int status = check_result(driver().cuStreamBeginCapture(stream, mode), "cuda graph", b.get())) return status;
  int capturing = 0;
  if (int status = check_result(driver().cuStreamGetCaptureInfo(stream, &capturing, &capture->id), "cuda graph", b.get())) {
    CUgraph partial = nullptr;
    if (driver().cuStreamEndCapture(stream, &partial) == kSuccess && partial) driver().cuGraphDestroy(partial);
    return status;
  }
  return 0;
}

int capture_begin(int32_t index, uint64_t pool, int mode) {
  DeviceAllocator* memory = allocator(index);
  if (!memory) return ARGAND_DEVICE_ERROR;
  const CUstream stream = current_stream(index);
  if (!stream)
    return error(ARGAND_RUNTIME_ERROR,
                 "cuda graph: got a capture on the default stream of device 'cuda:%d', expected another one; use `with cuda.graph(g):`, or "
                 "`with cuda.stream(cuda.Stream()):`",
                 index);
  Capture capture;
  capture.pool = pool;
  if (int status = memory->pool_retain(pool)) return status;
  int status = prepare_generators(index, memory, &capture.generators);
  if (!status) status = begin_native(index, mode, stream, &capture);
  if (status) {
    release_generators(memory, capture.generators);
    memory->pool_release(pool);
    return status;
  }
  memory->add_rule(pool, nullptr, capture.id);
  for (GraphGenerator& g : capture.generators) {
    g.first = __atomic_load_n(&g.generator->offset, __ATOMIC_RELAXED);
    g.generator->graph_state = g.state;
  }
  std::lock_guard<std::mutex> lock(g_mutex);
  g_captures[stream] = std::move(capture);
  return 0;
}

// Ends the capture, whatever comes of it.
int finish_native(Device* device, CUstream stream, CUgraphExec* executable) {
  CUgraph graph = nullptr;
  CUresult result = driver().cuStreamEndCapture(stream, &graph);
  if (result == kSuccess && graph) result = driver().cuGraphInstantiate(executable, graph, 0);
  const int status = check_result(result, "cuda graph", device);
  if (graph) driver().cuGraphDestroy(graph);
  return status;
}

int capture_end(int32_t index, void** out) {
  Bound b(index);
  DeviceAllocator* memory = b ? allocator(index) : nullptr;
  if (!memory) return ARGAND_DEVICE_ERROR;
  const CUstream stream = current_stream(index);
  Capture capture;
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    const auto found = g_captures.find(stream);
    if (found == g_captures.end())
      return error(ARGAND_RUNTIME_ERROR, "cuda graph: got the end of a capture on a stream of device 'cuda:%d' that is not capturing", index);
    capture = std::move(found->second);
    g_captures.erase(found);
  }
  CUgraphExec executable = nullptr;
  const int status = finish_native(b.get(), stream, &executable);
  memory->remove_rule(capture.pool, nullptr, capture.id);
  for (GraphGenerator& g : capture.generators) {
    g.used = __atomic_exchange_n(&g.generator->offset, g.first, __ATOMIC_RELAXED) - g.first;
    g.generator->graph_state = nullptr;
  }
  if (status) {
    release_generators(memory, capture.generators);
    memory->pool_release(capture.pool);
    return status;
  }
  *out = new Graph{executable, capture.pool, std::move(capture.generators)};
  return 0;
}

int capture_status(int32_t index, void* stream, int* capturing) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  uint64_t id = 0;
  int state = kCaptureNone;
  const CUresult result = driver().cuStreamGetCaptureInfo(as_stream(stream), &state, &id);
  *capturing = result == kSuccess && state != kCaptureNone;  // the default stream has no answer while others capture
  return 0;
}

int graph_launch(int32_t index, void* handle) {
  Bound b(index);
  if (!b) return ARGAND_DEVICE_ERROR;
  auto* graph = static_cast<Graph*>(handle);
  const CUstream stream = current_stream(index);
  for (const GraphGenerator& g : graph->generators) {
    if (!g.used) continue;
    const uint64_t words[2] = {g.generator->seed, generator_reserve(g.generator, g.used) - g.first};
    if (int status = check_result(driver().cuMemcpyHtoDAsync(address(g.state), words, sizeof words, stream), "cuda graph", b.get())) return status;
  }
  return check_result(driver().cuGraphLaunch(graph->executable, stream), "cuda graph", b.get());
}

int graph_destroy(int32_t index, void* handle) {
  auto* graph = static_cast<Graph*>(handle);
  DeviceAllocator* memory = allocator(index);
  if (!memory) return ARGAND_DEVICE_ERROR;
  const CUresult result = driver().cuGraphExecDestroy(graph->executable);
  release_generators(memory, graph->generators);
  memory->pool_release(graph->pool);
  delete graph;
  return check_result(result, "cuda graph", opened_device(index));
}

int graph_generator(int32_t, ArgandGenerator* generator) {
  t_generators.push_back(keep(generator));
  return 0;
}

int pool_new(int32_t index, uint64_t* pool) {
  DeviceAllocator* memory = allocator(index);
  if (!memory) return ARGAND_DEVICE_ERROR;
  memory->pool_new(pool);
  return 0;
}
int pool_release(int32_t index, uint64_t pool) {
  DeviceAllocator* memory = allocator(index);
  return memory ? memory->pool_release(pool) : ARGAND_DEVICE_ERROR;
}
int pool_begin(int32_t index, uint64_t pool) {
  DeviceAllocator* memory = allocator(index);
  return memory ? memory->add_rule(pool, &t_devices, 0) : ARGAND_DEVICE_ERROR;
}
int pool_end(int32_t index, uint64_t pool) {
  DeviceAllocator* memory = allocator(index);
  return memory ? memory->remove_rule(pool, &t_devices, 0) : ARGAND_DEVICE_ERROR;
}

}  // namespace

void add_graph_entries(ArgandDeviceInterface& i) {
  i.pool_new = pool_new;
  i.pool_release = pool_release;
  i.pool_begin = pool_begin;
  i.pool_end = pool_end;
  i.capture_begin = capture_begin;
  i.capture_end = capture_end;
  i.capture_status = capture_status;
  i.graph_launch = graph_launch;
  i.graph_destroy = graph_destroy;
  i.graph_generator = graph_generator;
}

}  // namespace argand::core::cuda
