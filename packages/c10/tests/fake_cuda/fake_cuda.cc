// A stand-in for the CUDA driver library, for tests on machines without a GPU. Device memory is host memory; streams are queues;
// modules take any image; a launch does nothing but count, unless `fakeRunKernels` gives it to somebody. What a real driver runs
// in the background runs here at once, or, when
// `fakeLazy(1)` (FAKE_CUDA_LAZY=1), not before somebody waits for it.
//   FAKE_CUDA_DEVICES  how many devices (2)            FAKE_CUDA_MEMORY  bytes of each (4 GiB)
//   FAKE_CUDA_FAIL     "cuLaunchKernel:700:3": from its 4th call on, the function returns 700
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

struct Stream;
struct Event {
  Stream* stream = nullptr;
  uint64_t ticket = 0;  // done when the stream has run this many entries
  unsigned flags = 0;
  bool recorded = false;
};
struct Graph {
  std::vector<std::function<void()>> nodes;
};
struct Stream {
  int device = 0;
  std::deque<std::function<void()>> queue;
  uint64_t submitted = 0, run = 0;
  Graph* capture = nullptr;
  uint64_t capture_id = 0;
  bool invalidated = false;
};
struct Context {
  int device = 0;
  Stream default_stream;
  std::vector<Stream*> streams;
};
struct Allocation {
  size_t bytes = 0;
  int device = 0;
};
struct Fault {
  int result = 0;
  int after = 0;
};

// Never destroyed: threads may outlive static destructors.
struct State {
  std::recursive_mutex mutex;
  bool lazy = getenv("FAKE_CUDA_LAZY") && *getenv("FAKE_CUDA_LAZY") == '1';
  int devices = getenv("FAKE_CUDA_DEVICES") ? atoi(getenv("FAKE_CUDA_DEVICES")) : 2;
  size_t capacity = getenv("FAKE_CUDA_MEMORY") ? strtoull(getenv("FAKE_CUDA_MEMORY"), nullptr, 10) : size_t{4} << 30;
  Context contexts[16];
  size_t used[16] = {};
  std::map<uint64_t, Allocation> allocations, pinned;
  std::map<std::string, int> calls;
  std::map<std::string, Fault> faults;
  std::vector<std::string> launched;
  void (*run_kernel)(const char*, unsigned, unsigned, unsigned, void**) = nullptr;
  uint64_t (*note_launch)(const char*, void**) = nullptr;
  void (*run_noted)(uint64_t) = nullptr;
  uint64_t captures = 0;
  State() {
    for (int i = 0; i < 16; i++) contexts[i].device = contexts[i].default_stream.device = i;
    if (const char* text = getenv("FAKE_CUDA_FAIL")) {
      char name[64];
      Fault fault;
      if (sscanf(text, "%63[^:]:%d:%d", name, &fault.result, &fault.after) >= 2) faults[name] = fault;
    }
  }
};
State& state() {
  static State* s = new State;
  return *s;
}
thread_local Context* t_context = nullptr;

// Counts the call; a planned fault, or no current context, is its result.
int enter(const char* name, bool needs_context = true) {
  State& s = state();
  s.calls[name]++;
  const auto fault = s.faults.find(name);
  if (fault != s.faults.end() && fault->second.after-- <= 0) {
    fault->second.after = 0;
    return fault->second.result;
  }
  return needs_context && !t_context ? 201 : 0;
}
#define ENTER(...)                                           \
  std::lock_guard<std::recursive_mutex> lock(state().mutex); \
  if (int result = enter(__func__ __VA_OPT__(, ) __VA_ARGS__)) return result

Stream* stream_of(void* s) { return s ? static_cast<Stream*>(s) : &t_context->default_stream; }

void run_until(Stream* s, uint64_t ticket) {
  while (s->run < ticket && !s->queue.empty()) {
    auto work = std::move(s->queue.front());
    s->queue.pop_front();
    work();
    s->run++;
  }
}
void run_all(Stream* s) { run_until(s, s->submitted); }
bool any_capture() {
  for (Context& c : state().contexts)
    for (Stream* s : c.streams)
      if (s->capture) return true;
  return false;
}

int submit(Stream* s, std::function<void()> work) {
  if (s->capture) {
    s->capture->nodes.push_back(std::move(work));
    return 0;
  }
  s->queue.push_back(std::move(work));
  s->submitted++;
  if (!state().lazy) run_all(s);
  return 0;
}

bool inside(const std::map<uint64_t, Allocation>& all, uint64_t p, size_t n) {
  auto next = all.upper_bound(p);
  if (next == all.begin()) return false;
  --next;
  return p + n <= next->first + next->second.bytes;
}
bool on_device(uint64_t p, size_t n) { return inside(state().allocations, p, n); }

// Pageable memory is staged at once (towards the device) or waited for (from it), as the driver does.
int copy_bytes(uint64_t dst, uint64_t src, size_t n, Stream* s) {
  auto* to = reinterpret_cast<char*>(dst);
  auto* from = reinterpret_cast<const char*>(src);
  const bool host_source = !on_device(src, n), host_target = !on_device(dst, n);
  if (s->capture && ((host_source && !inside(state().pinned, src, n)) || (host_target && !inside(state().pinned, dst, n)))) {
    s->invalidated = true;
    return 900;
  }
  if (host_source && !inside(state().pinned, src, n)) {
    std::string staged(from, n);
    return submit(s, [to, staged] { memcpy(to, staged.data(), staged.size()); });
  }
  submit(s, [to, from, n] { memmove(to, from, n); });
  if (host_target && !s->capture && !inside(state().pinned, dst, n)) run_all(s);
  return 0;
}

}  // namespace

// ---- control, for tests (through dlsym) ---------------------------------------------------------------------------------
EXPORT fakeLazy(int on) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  state().lazy = on;
  return 0;
}
EXPORT fakeFail(const char* function, int result, int after) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  if (result)
    state().faults[function] = {result, after};
  else
    state().faults.erase(function);
  return 0;
}
EXPORT fakeCalls(const char* function) {
  std::lock_guard<std::recursive_mutex> lock(state().mutex);
  return state().calls[function];
}
extern "C" __attribute__((visibility("default"))) size_t fakeUsed(int device) { return state().used[device]; }
EXPORT fakeCapacity(size_t bytes) {
  state().capacity = bytes;
  return 0;
}
// From now on a launch calls `run`, which may compute what the kernel would; NULL: no more.
EXPORT fakeRunKernels(void (*run)(const char* name, unsigned x, unsigned y, unsigned z, void** params)) {
  state().run_kernel = run;
  return 0;
}
// From now on a launch calls `note` with its parameters, and `run` with what that returned whenever the work runs, in each replay of a graph.
EXPORT fakeDeferKernels(uint64_t (*note)(const char* name, void** params), void (*run)(uint64_t launch)) {
  state().note_launch = note;
  state().run_noted = run;
  return 0;
}
EXPORT fakeLaunches() { return static_cast<int>(state().launched.size()); }
extern "C" __attribute__((visibility("default"))) const char* fakeLaunched(int i) { return state().launched[static_cast<size_t>(i)].c_str(); }
// Pending work of a stream, in entries.
EXPORT fakePending(void* stream) {
  auto* s = static_cast<Stream*>(stream);
  return static_cast<int>(s->submitted - s->run);
}

// ---- devices ------------------------------------------------------------------------------------------------------------
EXPORT cuInit(unsigned) {
  ENTER(false);
  return 0;
}
EXPORT cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
EXPORT cuGetErrorName(int result, const char** name) {
  *name = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
          : result == 900 ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                          : "CUDA_ERROR_UNKNOWN";
  return 0;
}
EXPORT cuGetErrorString(int result, const char** text) {
  *text = result == 2     ? "out of memory"
          : result == 700 ? "an illegal memory access was encountered"
          : result == 719 ? "unspecified launch failure"
          : result == 900 ? "operation not permitted when stream is capturing"
                          : "unknown error";
  return 0;
}
EXPORT cuDeviceGetCount(int* count) {
  ENTER(false);
  *count = state().devices;
  return 0;
}
EXPORT cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < state().devices ? 0 : 101;
}
EXPORT cuDeviceGetName(char* name, int n, int device) {
  snprintf(name, static_cast<size_t>(n), "Fake GPU %d", device);
  return 0;
}
EXPORT cuDeviceGetAttribute(int* value, int attribute, int) {
  static const std::map<int, int> kValues = {{1, 1024}, {8, 49152}, {10, 32},     {16, 4},     {38, 1 << 20}, {39, 2048},
                                             {75, 9},   {76, 0},    {81, 233472}, {82, 65536}, {97, 232448}};
  const auto found = kValues.find(attribute);
  *value = found == kValues.end() ? 0 : found->second;
  return 0;
}
EXPORT cuDeviceGetUuid(uint8_t* uuid, int device) {
  memset(uuid, device, 16);
  return 0;
}
EXPORT cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = state().capacity;
  return 0;
}
EXPORT cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return 0;
}
EXPORT cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER(false);
  *context = &state().contexts[device];
  return 0;
}
EXPORT cuCtxSetCurrent(void* context) {
  ENTER(false);
  t_context = static_cast<Context*>(context);
  return 0;
}
EXPORT cuCtxSynchronize() {
  ENTER();
  if (any_capture()) return 900;
  run_all(&t_context->default_stream);
  for (Stream* s : t_context->streams) run_all(s);
  return 0;
}
EXPORT cuCtxEnablePeerAccess(void*, unsigned) {
  ENTER();
  return 0;
}
EXPORT cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return 0;
}

// ---- memory -------------------------------------------------------------------------------------------------------------
EXPORT cuMemAlloc_v2(uint64_t* p, size_t bytes) {
  ENTER();
  State& s = state();
  size_t& used = s.used[t_context->device];
  if (used + bytes > s.capacity) return 2;
  void* memory = nullptr;
  if (posix_memalign(&memory, 512, bytes)) return 2;
  memset(memory, 0xcd, std::min(bytes, size_t{1} << 16));
  used += bytes;
  *p = reinterpret_cast<uint64_t>(memory);
  s.allocations[*p] = {bytes, t_context->device};
  return 0;
}
EXPORT cuMemFree_v2(uint64_t p) {
  ENTER();
  State& s = state();
  const auto found = s.allocations.find(p);
  if (found == s.allocations.end()) return 1;
  cuCtxSynchronize();  // as the driver does
  s.used[found->second.device] -= found->second.bytes;
  s.allocations.erase(found);
  free(reinterpret_cast<void*>(p));
  return 0;
}
EXPORT cuMemGetInfo_v2(size_t* available, size_t* total) {
  ENTER();
  *total = state().capacity;
  *available = *total - state().used[t_context->device];
  return 0;
}
EXPORT cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  ENTER();
  if (posix_memalign(p, 4096, bytes)) return 2;
  state().pinned[reinterpret_cast<uint64_t>(*p)] = {bytes, 0};
  return 0;
}
EXPORT cuMemFreeHost(void* p) {
  ENTER(false);
  state().pinned.erase(reinterpret_cast<uint64_t>(p));
  free(p);
  return 0;
}
EXPORT cuPointerGetAttribute(void* out, int, uint64_t p) {
  ENTER(false);
  if (inside(state().pinned, p, 1))
    *static_cast<unsigned*>(out) = 1;
  else if (on_device(p, 1))
    *static_cast<unsigned*>(out) = 2;
  else
    return 1;
  return 0;
}
EXPORT cuMemcpyHtoDAsync_v2(uint64_t dst, const void* src, size_t n, void* stream) {
  ENTER();
  return on_device(dst, n) ? copy_bytes(dst, reinterpret_cast<uint64_t>(src), n, stream_of(stream)) : 1;
}
EXPORT cuMemcpyDtoHAsync_v2(void* dst, uint64_t src, size_t n, void* stream) {
  ENTER();
  return on_device(src, n) ? copy_bytes(reinterpret_cast<uint64_t>(dst), src, n, stream_of(stream)) : 1;
}
EXPORT cuMemcpyDtoDAsync_v2(uint64_t dst, uint64_t src, size_t n, void* stream) {
  ENTER();
  return on_device(dst, n) && on_device(src, n) ? copy_bytes(dst, src, n, stream_of(stream)) : 1;
}
EXPORT cuMemcpyPeerAsync(uint64_t dst, void*, uint64_t src, void*, size_t n, void* stream) {
  ENTER();
  return on_device(dst, n) && on_device(src, n) ? copy_bytes(dst, src, n, stream_of(stream)) : 1;
}
EXPORT cuMemsetD8Async(uint64_t dst, uint8_t value, size_t n, void* stream) {
  ENTER();
  if (!on_device(dst, n)) return 1;
  return submit(stream_of(stream), [=] { memset(reinterpret_cast<void*>(dst), value, n); });
}
EXPORT cuMemsetD32Async(uint64_t dst, unsigned value, size_t n, void* stream) {
  ENTER();
  if (!on_device(dst, 4 * n)) return 1;
  return submit(stream_of(stream), [=] { std::fill_n(reinterpret_cast<uint32_t*>(dst), n, value); });
}

// ---- streams and events --------------------------------------------------------------------------------------------------
EXPORT cuStreamCreateWithPriority(void** stream, unsigned, int) {
  ENTER();
  auto* s = new Stream;
  s->device = t_context->device;
  t_context->streams.push_back(s);
  *stream = s;
  return 0;
}
EXPORT cuStreamSynchronize(void* stream) {
  ENTER();
  Stream* s = stream_of(stream);
  if (s->capture) {
    s->invalidated = true;
    return 900;
  }
  run_all(s);
  return 0;
}
EXPORT cuStreamQuery(void* stream) {
  ENTER();
  Stream* s = stream_of(stream);
  if (s->capture) return 900;
  return s->run == s->submitted ? 0 : 600;
}
EXPORT cuEventCreate(void** event, unsigned flags) {
  ENTER();
  auto* e = new Event;
  e->flags = flags;
  *event = e;
  return 0;
}
EXPORT cuEventDestroy_v2(void* event) {
  ENTER();
  delete static_cast<Event*>(event);
  return 0;
}
EXPORT cuEventRecord(void* event, void* stream) {
  ENTER();
  auto* e = static_cast<Event*>(event);
  e->stream = stream_of(stream);
  e->recorded = true;
  if (e->stream->capture) return 0;
  e->ticket = e->stream->submitted;
  return 0;
}
EXPORT cuStreamWaitEvent(void* stream, void* event, unsigned) {
  ENTER();
  const auto* e = static_cast<Event*>(event);
  if (!e->recorded) return 0;
  Stream *from = e->stream, *to = stream_of(stream);
  if (from->capture) {
    to->capture = from->capture;  // the waiting stream joins
    to->capture_id = from->capture_id;
    return 0;
  }
  const uint64_t ticket = e->ticket;
  return submit(to, [from, ticket] { run_until(from, ticket); });
}
EXPORT cuEventQuery(void* event) {
  ENTER();
  const auto* e = static_cast<Event*>(event);
  if (e->recorded && e->stream->capture) return 900;
  return !e->recorded || e->stream->run >= e->ticket ? 0 : 600;
}
EXPORT cuEventSynchronize(void* event) {
  ENTER();
  const auto* e = static_cast<Event*>(event);
  if (e->recorded) run_until(e->stream, e->ticket);
  return 0;
}
EXPORT cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  ENTER();
  const auto *a = static_cast<Event*>(start), *b = static_cast<Event*>(end);
  if ((a->flags | b->flags) & 2 || !a->recorded || !b->recorded) return 400;
  *milliseconds = static_cast<float>(b->ticket) - static_cast<float>(a->ticket);
  return 0;
}

// ---- code ----------------------------------------------------------------------------------------------------------------
EXPORT cuModuleLoadData(void** module, const void* image) {
  ENTER();
  *module = const_cast<void*>(image);
  return 0;
}
EXPORT cuModuleUnload(void*) {
  ENTER();
  return 0;
}
EXPORT cuModuleGetFunction(void** function, void*, const char* name) {
  ENTER();
  *function = new std::string(name);
  return 0;
}
EXPORT cuFuncSetAttribute(void*, int, int) {
  ENTER();
  return 0;
}
EXPORT cuFuncGetAttribute(int* value, int which, void*) {
  ENTER();
  *value = which == 0 ? 1024 : which == 4 ? 32 : 0;
  return 0;
}
EXPORT cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned, unsigned, unsigned, unsigned, void* stream, void** params,
                      void**) {
  ENTER();
  if (!x || !y || !z) return 1;
  const std::string name = *static_cast<std::string*>(function);
  if (auto* run = state().run_kernel) {  // parameters are only valid now
    run_all(stream_of(stream));
    run(name.c_str(), x, y, z, params);
  }
  const uint64_t noted = state().note_launch ? state().note_launch(name.c_str(), params) : 0;
  return submit(stream_of(stream), [name, noted, run = state().run_noted] {
    state().launched.push_back(name);
    if (run) run(noted);
  });
}

// ---- graphs ----------------------------------------------------------------------------------------------------------------
EXPORT cuStreamBeginCapture_v2(void* stream, int) {
  ENTER();
  if (!stream) return 900;  // the legacy stream cannot capture
  auto* s = static_cast<Stream*>(stream);
  if (s->capture) return 901;
  s->capture = new Graph;
  s->capture_id = ++state().captures;
  s->invalidated = false;
  return 0;
}
EXPORT cuStreamEndCapture(void* stream, void** graph) {
  ENTER();
  auto* s = static_cast<Stream*>(stream);
  if (!s->capture) return 901;
  *graph = s->capture;
  const uint64_t id = s->capture_id;
  for (Context& c : state().contexts)
    for (Stream* other : c.streams)
      if (other->capture && other->capture_id == id) other->capture = nullptr;
  if (!s->invalidated) return 0;
  delete static_cast<Graph*>(*graph);
  *graph = nullptr;
  return 901;
}
EXPORT cuStreamGetCaptureInfo(void* stream, int* status, uint64_t* id) {
  ENTER();
  const Stream* s = stream_of(stream);
  *status = s->capture ? 1 : 0;
  *id = s->capture_id;
  return 0;
}
EXPORT cuThreadExchangeStreamCaptureMode(int*) {
  ENTER(false);
  return 0;
}
EXPORT cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  ENTER();
  *executable = new Graph(*static_cast<Graph*>(graph));
  return 0;
}
EXPORT cuGraphLaunch(void* executable, void* stream) {
  ENTER();
  for (const auto& node : static_cast<Graph*>(executable)->nodes) submit(stream_of(stream), node);
  return 0;
}
EXPORT cuGraphExecDestroy(void* executable) {
  ENTER(false);
  delete static_cast<Graph*>(executable);
  return 0;
}
EXPORT cuGraphDestroy(void* graph) {
  ENTER(false);
  delete static_cast<Graph*>(graph);
  return 0;
}
