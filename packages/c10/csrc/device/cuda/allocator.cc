#include "packages/c10/csrc/device/cuda/allocator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace argand::core::cuda {
namespace {

// ARGAND_CUDA_ALLOC_CONF=max_split_size_mb:512: blocks from this size on are neither split nor given to requests much smaller.
// ARGAND_CUDA_ALLOC_CONF=caching:off: every tensor has memory of its own from the driver, of exactly its size, so that memory checkers see its ends.
struct Configuration {
  size_t max_split_bytes = SIZE_MAX;
  bool caching = true;
};

Configuration read_configuration() {
  const char* text = getenv("ARGAND_CUDA_ALLOC_CONF");
  constexpr const char kSplit[] = "max_split_size_mb:";
  Configuration c;
  if (!text || !*text) return c;
  if (strcmp(text, "caching:off") == 0) {
    c.caching = false;
    return c;
  }
  char* end = nullptr;
  const bool known = strncmp(text, kSplit, sizeof kSplit - 1) == 0;
  const unsigned long long megabytes = known ? strtoull(text + sizeof kSplit - 1, &end, 10) : 0;
  if (!known || *end || megabytes < 2 || megabytes > (1ull << 40)) {
    fprintf(stderr,
            "argand: environment variable ARGAND_CUDA_ALLOC_CONF: got '%s', expected max_split_size_mb:<number from 2> or caching:off; using the "
            "default\n",
            text);
    return c;
  }
  c.max_split_bytes = static_cast<size_t>(megabytes) << 20;
  return c;
}

const Configuration& configuration() {
  static const Configuration c = read_configuration();
  return c;
}

size_t segment_bytes(size_t size, bool small) {
  if (!configuration().caching) return size;
  if (small) return kSmallSegment;
  if (size < kMiddleBytes) return kMiddleSegment;
  return (size + kLargeRound - 1) / kLargeRound * kLargeRound;
}

inline void change(ArgandCounter& c, int64_t by) {
  c.current += by;
  if (by > 0) {
    c.allocated += by;
    if (c.current > c.peak) c.peak = c.current;
  } else {
    c.freed -= by;
  }
}

inline int64_t bytes(size_t n) { return static_cast<int64_t>(n); }

}  // namespace

DeviceAllocator* allocator(int32_t index) {
  static std::atomic<DeviceAllocator*> all[kMaxDevices];
  if (static_cast<uint32_t>(index) < kMaxDevices) {
    if (DeviceAllocator* a = all[index].load(std::memory_order_acquire)) return a;
  }
  if (!device(index)) return nullptr;
  auto* made = new DeviceAllocator(index);  // lives as long as the process: threads may outlive static destructors
  DeviceAllocator* existing = nullptr;
  if (all[index].compare_exchange_strong(existing, made, std::memory_order_acq_rel)) return made;
  delete made;
  return existing;
}

void DeviceAllocator::count(ArgandCounterKind kind, const Block* block, int64_t by) {
  change(stats_.counters[kind][0], by);
  change(stats_.counters[kind][block->small ? 1 : 2], by);
}

Block* DeviceAllocator::new_block() {
  if (unused_.empty()) return new Block;
  Block* b = unused_.back();
  unused_.pop_back();
  return b;
}

void DeviceAllocator::delete_block(Block* block) {
  *block = Block{};
  unused_.push_back(block);
}

// ---- allocation ----------------------------------------------------------------------------------------------------------
StreamPool* DeviceAllocator::pool_for(CUstream stream) {
  if (__builtin_expect(!rules_.empty(), 0)) {
    if (const uint64_t id = private_pool_for(stream)) {
      auto& pool = private_pools_[id].pools[stream];
      if (!pool) pool = std::make_unique<StreamPool>(id, stream);
      return pool.get();
    }
  }
  if (__builtin_expect(last_pool_ && last_pool_->stream == stream, 1)) return last_pool_;
  auto& pool = pools_[stream];
  if (!pool) pool = std::make_unique<StreamPool>(0, stream);
  return last_pool_ = pool.get();
}

uint64_t DeviceAllocator::private_pool_for(CUstream stream) {
  int capturing = kCaptureNone;
  uint64_t capture = 0;
  if (captures_) {
    Bound b(index_);
    if (!b || driver().cuStreamGetCaptureInfo(stream, &capturing, &capture) != kSuccess || capturing != kCaptureActive) capture = 0;
  }
  for (size_t i = rules_.size(); i-- > 0;) {
    const Rule& rule = rules_[i];
    if (rule.capture ? rule.capture == capture : rule.thread == &t_devices) return rule.id;
  }
  return 0;
}

void* DeviceAllocator::allocate(size_t nbytes, CUstream stream) {
  if (nbytes > static_cast<size_t>(INT64_MAX) - kLargeRound) nbytes = static_cast<size_t>(INT64_MAX) - kLargeRound;  // fails below
  const Configuration& conf = configuration();
  const size_t size = conf.caching ? round_size(nbytes) : std::max<size_t>(nbytes, 1);
  const bool small = size <= kSmallBytes;
  std::lock_guard<std::mutex> lock(mutex_);
  if (__builtin_expect(!events_.empty(), 0)) process_events(false);
  StreamPool* pool = pool_for(stream);
  Block* block = conf.caching ? pool->best(size, small) : nullptr;
  const size_t limit = conf.max_split_bytes;
  const bool wasteful = block && block->size >= limit && (size < limit || block->size - size > kMiddleSegment);
  if (__builtin_expect(block && !wasteful, 1)) {
    pool->remove(block);
  } else {
    block = grow(pool, size, small, nbytes);
    if (!block) return nullptr;
  }
  if (block->is_split()) {
    count(ARGAND_COUNT_INACTIVE_SPLIT, block, -1);
    count(ARGAND_COUNT_INACTIVE_SPLIT_BYTES, block, -bytes(block->size));
  }
  const size_t rest = block->size - size;
  if (small ? rest >= kGrain : rest > kSmallBytes && block->size < limit) {
    Block* remaining = split(block, size);
    pool->insert(remaining);
    count(ARGAND_COUNT_INACTIVE_SPLIT, block, 1);
    count(ARGAND_COUNT_INACTIVE_SPLIT_BYTES, block, bytes(remaining->size));
  }
  block->allocated = true;
  block->requested = nbytes;
  table_.insert(block);
  count(ARGAND_COUNT_ALLOCATION, block, 1);
  count(ARGAND_COUNT_ACTIVE, block, 1);
  count(ARGAND_COUNT_ALLOCATED_BYTES, block, bytes(block->size));
  count(ARGAND_COUNT_ACTIVE_BYTES, block, bytes(block->size));
  count(ARGAND_COUNT_REQUESTED_BYTES, block, bytes(nbytes));
  return block->data;
}

// Cuts the block to `size`; the rest is returned, free but in no list.
Block* DeviceAllocator::split(Block* block, size_t size) {
  Block* rest = new_block();
  rest->data = block->data + size;
  rest->size = block->size - size;
  rest->pool = block->pool;
  rest->small = block->small;
  rest->prev = block;
  rest->next = block->next;
  if (block->next) block->next->prev = rest;
  block->next = rest;
  block->size = size;
  return rest;
}

CUresult DeviceAllocator::map_segment(size_t size, CUdeviceptr* out) {
  const auto reserved = static_cast<size_t>(stats_.counters[ARGAND_COUNT_RESERVED_BYTES][0].current);
  if (stats_.limit_bytes && reserved + size > static_cast<size_t>(stats_.limit_bytes)) return kOutOfMemory;
  RelaxedCapture relaxed;
  return driver().cuMemAlloc(out, size);
}

// A new segment as one free block that is in no list. When memory is short, what is cached is given back first.
Block* DeviceAllocator::grow(StreamPool* pool, size_t size, bool small, size_t requested) {
  Bound b(index_);
  if (!b) return nullptr;
  const size_t segment = segment_bytes(size, small);
  CUdeviceptr p = 0;
  CUresult result = map_segment(segment, &p);
  if (result == kOutOfMemory) {
    stats_.num_alloc_retries++;
    process_events(true);
    Block* freed = pool->best(size, small);
    if (freed && freed->size < configuration().max_split_bytes) {
      pool->remove(freed);
      return freed;
    }
    if (release_segments()) result = map_segment(segment, &p);
    if (result == kOutOfMemory) {
      host_empty_cache();
      result = map_segment(segment, &p);
    }
  }
  if (result == kOutOfMemory) {
    out_of_memory(requested, segment);
    return nullptr;
  }
  if (check_result(result, "empty", b.get())) return nullptr;
  Block* block = new_block();
  block->data = reinterpret_cast<char*>(p);
  block->size = segment;
  block->pool = pool;
  block->small = small;
  segments_[block->data] = {segment, block};
  stats_.num_device_alloc++;
  count(ARGAND_COUNT_SEGMENT, block, 1);
  count(ARGAND_COUNT_RESERVED_BYTES, block, bytes(segment));
  return block;
}

int DeviceAllocator::out_of_memory(size_t requested, size_t segment) {
  stats_.num_ooms++;
  size_t available = 0, total = 0;
  driver().cuMemGetInfo(&available, &total);
  const auto allocated = static_cast<uint64_t>(stats_.counters[ARGAND_COUNT_ALLOCATED_BYTES][0].current);
  const auto reserved = static_cast<uint64_t>(stats_.counters[ARGAND_COUNT_RESERVED_BYTES][0].current);
  const std::string limit = stats_.limit_bytes ? ", limit of this process " + bytes_text(static_cast<uint64_t>(stats_.limit_bytes)) : "";
  return error(ARGAND_OUT_OF_MEMORY_ERROR,
               "CUDA out of memory. Tried to allocate %s (%zu bytes; a segment of %s) on device 'cuda:%d', which has %s in total and %s free; this "
               "process has %s allocated to tensors and %s reserved but unallocated%s; use smaller tensors or batches, or free some and call "
               "cuda.empty_cache(); cuda.memory_summary() shows what is held",
               bytes_text(requested).c_str(), requested, bytes_text(segment).c_str(), index_, bytes_text(total).c_str(),
               bytes_text(available).c_str(), bytes_text(allocated).c_str(), bytes_text(reserved - allocated).c_str(), limit.c_str());
}

// ---- freeing -------------------------------------------------------------------------------------------------------------
void DeviceAllocator::deallocate(void* data) {
  std::lock_guard<std::mutex> lock(mutex_);
  Block* block = table_.find(data);
  if (!block) return;
  table_.erase(block);
  block->allocated = false;
  count(ARGAND_COUNT_ALLOCATION, block, -1);
  count(ARGAND_COUNT_ALLOCATED_BYTES, block, -bytes(block->size));
  if (__builtin_expect(block->streams != nullptr, 0)) {
    if (captures_) {  // recording an event would make it part of the graph
      block->pending = 1;
      deferred_.push_back(block);
    } else {
      wait_for_streams(block);
    }
    return;
  }
  free_block(block);
}

void DeviceAllocator::merge_with_next(Block* block) {
  Block* next = block->next;
  block->size += next->size;
  block->next = next->next;
  if (block->next) block->next->prev = block;
  delete_block(next);
}

// The block joins its free neighbours and the free lists; the record at the lowest address survives.
void DeviceAllocator::free_block(Block* block) {
  count(ARGAND_COUNT_ACTIVE, block, -1);
  count(ARGAND_COUNT_ACTIVE_BYTES, block, -bytes(block->size));
  count(ARGAND_COUNT_REQUESTED_BYTES, block, -bytes(block->requested));
  block->requested = 0;
  StreamPool* pool = block->pool;
  for (Block* neighbour : {block->prev, block->next}) {
    if (!neighbour || !neighbour->is_free()) continue;
    pool->remove(neighbour);
    count(ARGAND_COUNT_INACTIVE_SPLIT, block, -1);
    count(ARGAND_COUNT_INACTIVE_SPLIT_BYTES, block, -bytes(neighbour->size));
    Block* lower = neighbour == block->prev ? neighbour : block;
    merge_with_next(lower);
    block = lower;
  }
  if (block->is_split()) {
    count(ARGAND_COUNT_INACTIVE_SPLIT, block, 1);
    count(ARGAND_COUNT_INACTIVE_SPLIT_BYTES, block, bytes(block->size));
  }
  pool->insert(block);
  if (__builtin_expect(!configuration().caching, 0)) {
    if (Bound b(index_); b) release_segments();
  }
}

void DeviceAllocator::record_stream(void* data, CUstream stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  Block* block = table_.find(data);
  if (!block || block->pool->stream == stream) return;  // memory of another owner, or ordered anyway
  if (!block->streams) block->streams = std::make_unique<std::vector<CUstream>>();
  auto& streams = *block->streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

// One event on every further stream; the block is free when all of them are reached.
void DeviceAllocator::wait_for_streams(Block* block) {
  Bound b(index_);
  const auto streams = std::move(block->streams);
  block->pending = 1;
  for (CUstream stream : *streams) {
    CUevent event = b ? take_event(index_) : nullptr;
    if (!event || driver().cuEventRecord(event, stream) != kSuccess) {  // the device is lost: nothing runs on it any more
      if (event) give_event(index_, event);
      continue;
    }
    block->pending++;
    events_.push_back({event, block});
  }
  reach(block);
}

void DeviceAllocator::reach(Block* block) {
  if (--block->pending == 0) free_block(block);
}

// Frees the blocks whose events were reached, in the order of recording; `wait`: all of them. Nothing may be asked during a capture.
bool DeviceAllocator::process_events(bool wait) {
  if (captures_) return false;
  Bound b(index_);
  if (!b) return false;
  while (!events_.empty()) {
    const PendingEvent pending = events_.front();
    const CUresult result = wait ? driver().cuEventSynchronize(pending.event) : driver().cuEventQuery(pending.event);
    if (result == kNotReady) break;
    events_.pop_front();
    give_event(index_, pending.event);
    reach(pending.block);
  }
  return true;
}

// Gives segments that are free as a whole back to the driver: those of the common pools and of released private ones.
bool DeviceAllocator::release_segments() {
  if (captures_) return false;
  for (auto it = segments_.begin(); it != segments_.end();) {
    Block* block = it->second.first;
    const bool whole = block->is_free() && block->size == it->second.size;
    const bool held = block->pool->id && private_pools_[block->pool->id].references > 0;
    if (!whole || held || driver().cuMemFree(address(block->data)) != kSuccess) {
      ++it;
      continue;
    }
    block->pool->remove(block);
    stats_.num_device_free++;
    count(ARGAND_COUNT_SEGMENT, block, -1);
    count(ARGAND_COUNT_RESERVED_BYTES, block, -bytes(block->size));
    delete_block(block);
    it = segments_.erase(it);
  }
  std::set<uint64_t> used;
  for (const auto& entry : segments_) used.insert(entry.second.first->pool->id);
  std::erase_if(private_pools_, [&](const auto& entry) { return entry.second.references == 0 && !used.count(entry.first); });
  return true;
}

int DeviceAllocator::empty_cache() {
  Bound b(index_);
  if (!b) return ARGAND_DEVICE_ERROR;
  std::lock_guard<std::mutex> lock(mutex_);
  process_events(true);
  release_segments();
  return 0;
}

// ---- statistics ------------------------------------------------------------------------------------------------------------
void DeviceAllocator::stats(ArgandAllocatorStats* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  *out = stats_;
}

void DeviceAllocator::reset(int what) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& kind : stats_.counters) {
    for (ArgandCounter& c : kind) {
      if (what == 0)
        c.peak = c.current;
      else
        c.allocated = c.freed = 0;
    }
  }
  if (what) stats_.num_alloc_retries = stats_.num_ooms = stats_.num_device_alloc = stats_.num_device_free = 0;
}

int DeviceAllocator::set_limit(double fraction) {
  Bound b(index_);
  if (!b) return ARGAND_DEVICE_ERROR;
  size_t available = 0, total = 0;
  if (int status = check_result(driver().cuMemGetInfo(&available, &total), "set_per_process_memory_fraction", b.get())) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.limit_bytes = static_cast<int64_t>(static_cast<double>(total) * fraction);
  return 0;
}

void DeviceAllocator::snapshot(std::vector<ArgandMemoryBlock>* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [data, segment] : segments_) {
    for (const Block* b = segment.first; b; b = b->next) {
      const int32_t state = b->allocated ? 1 : b->pending ? 2 : 0;
      out->push_back({address(data), segment.size, address(b->data), b->size, b->requested, b->pool->id, b->pool->stream, !b->small, state});
    }
  }
}

// ---- private pools -----------------------------------------------------------------------------------------------------------
void DeviceAllocator::pool_new(uint64_t* id) {
  std::lock_guard<std::mutex> lock(mutex_);
  *id = next_pool_++;
  private_pools_[*id];
}

int DeviceAllocator::pool_retain(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = private_pools_.find(id);
  if (found == private_pools_.end() || found->second.references == 0)
    return error(ARGAND_VALUE_ERROR, "cuda graph: got memory pool %llu of device 'cuda:%d', which does not exist or was released",
                 static_cast<unsigned long long>(id), index_);
  found->second.references++;
  return 0;
}

// Its segments stay until empty_cache, or until memory is short: replays may still be running.
int DeviceAllocator::pool_release(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = private_pools_.find(id);
  if (found == private_pools_.end() || found->second.references == 0)
    return error(ARGAND_VALUE_ERROR, "cuda graph: got memory pool %llu of device 'cuda:%d', which was released before",
                 static_cast<unsigned long long>(id), index_);
  found->second.references--;
  return 0;
}

int DeviceAllocator::add_rule(uint64_t id, const void* thread, uint64_t capture) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!private_pools_.count(id))
    return error(ARGAND_VALUE_ERROR, "cuda graph: got memory pool %llu of device 'cuda:%d', which does not exist",
                 static_cast<unsigned long long>(id), index_);
  rules_.push_back({id, thread, capture});
  if (capture) captures_++;
  return 0;
}

int DeviceAllocator::remove_rule(uint64_t id, const void* thread, uint64_t capture) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = rules_.size(); i-- > 0;) {
    const Rule& r = rules_[i];
    if (r.id != id || r.thread != thread || r.capture != capture) continue;
    rules_.erase(rules_.begin() + static_cast<std::ptrdiff_t>(i));
    if (capture && --captures_ == 0) {
      for (Block* block : std::exchange(deferred_, {})) wait_for_streams(block);
    }
    return 0;
  }
  return error(ARGAND_RUNTIME_ERROR, "cuda graph: got the end of a use of memory pool %llu that did not begin in this thread",
               static_cast<unsigned long long>(id));
}

}  // namespace argand::core::cuda
