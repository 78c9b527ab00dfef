// The caching allocator of one device. A freed block may be used again at once on the stream it was allocated for: work on a
// stream runs in order. Use on other streams is announced by record_stream and ends when their events are reached.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>

#include "packages/c10/csrc/device/cuda/block.h"
#include "packages/c10/csrc/device/cuda/context.h"

namespace argand::core::cuda {

class DeviceAllocator {
 public:
  explicit DeviceAllocator(int32_t index) : index_(index) {}

  void* allocate(size_t nbytes, CUstream stream);  // NULL: an error is set
  void deallocate(void* data);
  void record_stream(void* data, CUstream stream);
  int empty_cache();

  void stats(ArgandAllocatorStats* out);
  void reset(int what);
  int set_limit(double fraction);
  void snapshot(std::vector<ArgandMemoryBlock>* out);

  // Private pools. A rule sends allocations to a pool: those of a thread, or those on streams of a capture.
  void pool_new(uint64_t* id);
  int pool_retain(uint64_t id);
  int pool_release(uint64_t id);
  int add_rule(uint64_t id, const void* thread, uint64_t capture);  // one of thread and capture is set
  int remove_rule(uint64_t id, const void* thread, uint64_t capture);

 private:
  struct Segment {
    size_t size;
    Block* first;
  };
  struct PrivatePool {
    int64_t references = 1;
    std::map<CUstream, std::unique_ptr<StreamPool>> pools;
  };
  struct Rule {
    uint64_t id;
    const void* thread;
    uint64_t capture;
  };
  struct PendingEvent {
    CUevent event;
    Block* block;
  };

  StreamPool* pool_for(CUstream stream);
  uint64_t private_pool_for(CUstream stream);
  Block* grow(StreamPool* pool, size_t size, bool small, size_t requested);
  CUresult map_segment(size_t size, CUdeviceptr* out);
  Block* split(Block* block, size_t size);
  void merge_with_next(Block* block);
  void free_block(Block* block);
  void wait_for_streams(Block* block);
  void reach(Block* block);
  bool process_events(bool wait);
  bool release_segments();
  int out_of_memory(size_t requested, size_t segment);
  void count(ArgandCounterKind kind, const Block* block, int64_t change);
  Block* new_block();
  void delete_block(Block* block);

  const int32_t index_;
  std::mutex mutex_;
  std::unordered_map<CUstream, std::unique_ptr<StreamPool>> pools_;
  StreamPool* last_pool_ = nullptr;  // of pools_: streams change seldom
  std::map<uint64_t, PrivatePool> private_pools_;
  uint64_t next_pool_ = 1;
  std::vector<Rule> rules_;
  int64_t captures_ = 0;  // rules with a capture
  BlockTable table_;
  std::map<char*, Segment> segments_;
  std::deque<PendingEvent> events_;
  std::vector<Block*> deferred_;  // freed during a capture, when events cannot be recorded
  std::vector<Block*> unused_;    // Block records for reuse
  ArgandAllocatorStats stats_{};
};

// Made at first use; NULL with an error where there is no device.
DeviceAllocator* allocator(int32_t index);

// ---- page-locked host memory (host_allocator.cc) -----------------------------------------------------------------------
void* host_allocate(size_t nbytes);
void host_deallocate(void* data);
int host_is_pinned(const void* data, int* out);
// A copy on `stream` reads or writes this memory; true if it is page-locked and was allocated here.
bool host_record(const void* data, int32_t index, CUstream stream);
void host_empty_cache();

// Events without timing, for reuse (host_allocator.cc).
CUevent take_event(int32_t index);  // NULL: an error is set
void give_event(int32_t index, CUevent event);

}  // namespace argand::core::cuda
