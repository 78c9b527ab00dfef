// Recording of a thread's calls. While no thread is recorded nothing is paid: the function table holds the plain functions.
#include "packages/c10/csrc/abi/profiler.h"

#include <time.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "packages/c10/csrc/core/errors.h"
#include "packages/c10/csrc/core/function_table.h"
#include "packages/c10/csrc/core/storage.h"
#include "packages/c10/csrc/dispatch/dispatcher.h"

namespace argand::core {
namespace {

struct Event {
  const ArgandOperator* op;  // operators live forever
  std::string name;          // of an event without one
  ArgandEventKind kind;
  int32_t parent;
  int64_t begin, end, nbytes;
  size_t first_argument, n_arguments;
};

struct Recorder {
  uint32_t number;  // tells events of different recordings of a thread apart
  bool shapes, memory;
  int32_t current = -1;
  std::vector<Event> events = {};
  std::vector<int64_t> arguments = {};
};

std::mutex g_mutex;  // of the next two
int g_recording = 0;
uint32_t g_recordings = 0;

int profiled_call(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets);
int profiled_call_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);

void count_recording(int change) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  const int recording = g_recording + change;
  __atomic_store_n(&g_recording, recording, __ATOMIC_RELEASE);
  ArgandApi& table = function_table();
  __atomic_store_n(&table.call, recording ? &profiled_call : &call, __ATOMIC_RELEASE);
  __atomic_store_n(&table.call_epilogue, recording ? &profiled_call_epilogue : &call_epilogue, __ATOMIC_RELEASE);
}

struct StopRecording {
  void operator()(Recorder* recorder) const {
    delete recorder;
    count_recording(-1);
  }
};
thread_local std::unique_ptr<Recorder, StopRecording> t_recorder;

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

int64_t allocated() {
  ArgandMemoryStats stats{};
  memory_stats(ARGAND_DEVICE(ARGAND_CPU, 0), &stats);
  return static_cast<int64_t>(stats.allocated_bytes);
}

void note_tensor(std::vector<int64_t>& out, const ArgandTensor* t) {
  if (!t) return out.push_back(ARGAND_EVENT_OTHER);
  out.push_back(t->dtype);
  out.push_back(t->ndim);
  out.insert(out.end(), t->sizes, t->sizes + t->ndim);
}

void note_argument(std::vector<int64_t>& out, const ArgandValue& v) {
  switch (v.tag) {
    case ARGAND_TAG_TENSOR:
      return note_tensor(out, v.t);
    case ARGAND_TAG_TENSOR_LIST:
      out.push_back(ARGAND_EVENT_LIST);
      out.push_back(v.len);
      for (uint32_t i = 0; i < v.len; i++) note_tensor(out, v.tensors[i]);
      return;
    case ARGAND_TAG_BOOL:
    case ARGAND_TAG_INT:
    case ARGAND_TAG_FLOAT:
    case ARGAND_TAG_COMPLEX:
      return out.push_back(ARGAND_EVENT_NUMBER);
    default:
      return out.push_back(ARGAND_EVENT_OTHER);
  }
}

int64_t enter_event(const ArgandOperator* op, const char* name, ArgandEventKind kind, const ArgandValue* args) {
  Recorder* r = t_recorder.get();
  if (!r) return -1;
  const size_t first = r->arguments.size();
  for (uint16_t i = 0; r->shapes && op && i < op->n_args; i++) note_argument(r->arguments, args[i]);
  const auto index = static_cast<int32_t>(r->events.size());
  r->events.push_back({op, op ? std::string() : name, kind, r->current, 0, -1, 0, first, r->arguments.size() - first});
  r->current = index;
  Event& event = r->events.back();
  if (r->memory) event.nbytes = -allocated();
  event.begin = now();
  return static_cast<int64_t>(r->number) << 32 | index;
}

void end(Recorder* r, Event& event, int64_t at) {
  event.end = at;
  if (r->memory) event.nbytes += allocated();
}

int start(int shapes, int memory) {
  if (t_recorder) return error(ARGAND_RUNTIME_ERROR, "profiler: this thread is being profiled already; stop the other profiler before");
  count_recording(1);
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_recordings = (g_recordings + 1) & 0x7fffffff;
  t_recorder.reset(new Recorder{g_recordings, shapes != 0, memory != 0});
  return 0;
}

void stop(void (*visit)(const ArgandEvent* event, void* context), void* context) {
  std::unique_ptr<Recorder, StopRecording> r = std::move(t_recorder);
  if (!r || !visit) return;
  const int64_t at = now();
  for (Event& event : r->events) {
    if (event.end < 0) end(r.get(), event, at);
    const ArgandEvent seen = {event.op ? event.op->name : event.name.c_str(), event.kind,       event.parent, event.begin, event.end, event.nbytes,
                              r->arguments.data() + event.first_argument,     event.n_arguments};
    visit(&seen, context);
  }
}

int64_t enter(const char* name, ArgandEventKind kind) { return enter_event(nullptr, name, kind, nullptr); }

// What was entered inside of it and not left, as by an exception, ends with it.
void leave(int64_t event) {
  Recorder* r = t_recorder.get();
  if (event < 0 || !r || r->number != static_cast<uint32_t>(event >> 32)) return;
  const auto index = static_cast<int32_t>(event & 0xffffffff);
  const int64_t at = now();
  if (r->events[index].end >= 0) return;
  int32_t open = r->current;
  for (; open > index; open = r->events[open].parent) end(r, r->events[open], at);
  end(r, r->events[index], at);
  if (open == index) r->current = r->events[index].parent;
}

int profiled_call(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets) {
  const int64_t event = enter_event(op, nullptr, ARGAND_EVENT_OPERATOR, args);
  const int status = call(op, args, rets);
  leave(event);
  return status;
}
int profiled_call_epilogue(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue) {
  const int64_t event = enter_event(op, nullptr, ARGAND_EVENT_OPERATOR, args);
  const int status = call_epilogue(op, args, rets, epilogue);
  leave(event);
  return status;
}

constexpr ArgandProfiler kProfiler = {start, stop, enter, leave, &g_recording};

}  // namespace
}  // namespace argand::core

extern "C" __attribute__((visibility("default"))) const ArgandProfiler* argand_profiler(void) { return &argand::core::kProfiler; }
