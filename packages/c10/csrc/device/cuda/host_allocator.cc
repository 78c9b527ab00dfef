// Page-locked host memory, in blocks of powers of two. A freed block waits for the copies that were queued on it.
#include <algorithm>
#include <map>
#include <utility>

#include "packages/c10/csrc/device/cuda/allocator.h"

namespace argand::core::cuda {
namespace {

constexpr size_t kMinimum = 512;

struct HostBlock {
  size_t size = 0;
  uint32_t pending = 0;
  std::vector<std::pair<int32_t, CUstream>> uses;
};
struct PendingEvent {
  CUevent event;
  int32_t device;
  char* data;
};

// Never destroyed: threads may outlive static destructors.
struct HostPool {
  std::mutex mutex;
  std::map<char*, HostBlock> blocks;  // by address: copies may start inside of one
  std::map<size_t, std::vector<char*>> available;
  std::deque<PendingEvent> events;
};
HostPool& pool() {
  static HostPool* p = new HostPool;
  return *p;
}

struct EventPool {
  std::mutex mutex;
  std::vector<CUevent> events[kMaxDevices];
};
EventPool& event_pool() {
  static EventPool* p = new EventPool;
  return *p;
}

void make_available(HostPool& p, char* data) { p.available[p.blocks[data].size].push_back(data); }

void process_events(HostPool& p) {
  for (auto it = p.events.begin(); it != p.events.end();) {
    Bound b(it->device);
    const CUresult result = b ? driver().cuEventQuery(it->event) : kSuccess;
    if (result == kNotReady) {
      ++it;  // other devices and streams may be further
      continue;
    }
    if (b) give_event(it->device, it->event);
    if (--p.blocks[it->data].pending == 0) make_available(p, it->data);
    it = p.events.erase(it);
  }
}

// The block that holds the address; end() when it is not memory of this pool. Mutex held.
std::map<char*, HostBlock>::iterator find(HostPool& p, const void* data) {
  auto next = p.blocks.upper_bound(static_cast<char*>(const_cast<void*>(data)));
  if (next == p.blocks.begin()) return p.blocks.end();
  --next;
  return static_cast<const char*>(data) < next->first + next->second.size ? next : p.blocks.end();
}

}  // namespace

CUevent take_event(int32_t index) {
  {
    EventPool& p = event_pool();
    std::lock_guard<std::mutex> lock(p.mutex);
    if (!p.events[index].empty()) {
      CUevent event = p.events[index].back();
      p.events[index].pop_back();
      return event;
    }
  }
  Bound b(index);
  CUevent event = nullptr;
  if (!b || check_result(driver().cuEventCreate(&event, kEventNoTiming), "Event", b.get())) return nullptr;
  return event;
}

void give_event(int32_t index, CUevent event) {
  EventPool& p = event_pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  p.events[index].push_back(event);
}

void* host_allocate(size_t nbytes) {
  size_t size = kMinimum;
  while (size < nbytes && size <= SIZE_MAX / 4) size *= 2;
  HostPool& p = pool();
  Bound b(t_devices.current);
  if (!b) return nullptr;
  RelaxedCapture relaxed;
  std::lock_guard<std::mutex> lock(p.mutex);
  process_events(p);
  auto& free = p.available[size];
  if (!free.empty()) {
    char* data = free.back();
    free.pop_back();
    return data;
  }
  void* data = nullptr;
  if (check_result(driver().cuMemHostAlloc(&data, size, kHostPortable), "pin_memory", b.get())) return nullptr;
  p.blocks[static_cast<char*>(data)].size = size;
  return data;
}

void host_deallocate(void* data) {
  HostPool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  const auto found = p.blocks.find(static_cast<char*>(data));
  if (found == p.blocks.end()) return;
  HostBlock& block = found->second;
  for (const auto& [index, stream] : std::exchange(block.uses, {})) {
    Bound b(index);
    CUevent event = b ? take_event(index) : nullptr;
    if (!event) continue;
    if (driver().cuEventRecord(event, stream) != kSuccess) {  // the device is lost
      give_event(index, event);
      continue;
    }
    block.pending++;
    p.events.push_back({event, index, found->first});
  }
  if (!block.pending) make_available(p, found->first);
}

bool host_record(const void* data, int32_t index, CUstream stream) {
  HostPool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  if (p.blocks.empty()) return false;
  const auto found = find(p, data);
  if (found == p.blocks.end()) return false;
  auto& uses = found->second.uses;
  const std::pair<int32_t, CUstream> use{index, stream};
  // What a graph copies must outlive the graph, whose maker sees to it.
  if (std::find(uses.begin(), uses.end(), use) == uses.end() && !is_capturing(stream)) uses.push_back(use);
  return true;
}

int host_is_pinned(const void* data, int* out) {
  *out = 0;
  if (!data) return 0;
  {
    HostPool& p = pool();
    std::lock_guard<std::mutex> lock(p.mutex);
    if (!p.blocks.empty() && find(p, data) != p.blocks.end()) {
      *out = 1;
      return 0;
    }
  }
  bool opened = false;
  for (int i = 0; i < kMaxDevices; i++) opened = opened || opened_device(i);
  if (!opened) return 0;  // nobody in this process has page-locked memory through the driver yet, and it is not asked for this alone
  Bound b(t_devices.current);
  unsigned type = 0;
  *out = b && driver().cuPointerGetAttribute(&type, kPointerMemoryType, address(data)) == kSuccess && type == kMemoryTypeHost;
  return 0;
}

void host_empty_cache() {
  HostPool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  process_events(p);
  for (auto& [size, list] : p.available) {
    for (char* data : list) {
      driver().cuMemFreeHost(data);
      p.blocks.erase(data);
    }
    list.clear();
  }
}

}  // namespace argand::core::cuda
