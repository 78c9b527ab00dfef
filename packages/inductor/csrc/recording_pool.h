// The memory and the stream that all recordings of a device share, so that one's temporary memory is another's too.
#ifndef ARGAND_INDUCTOR_RECORDING_POOL_H_
#define ARGAND_INDUCTOR_RECORDING_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "packages/c10/csrc/abi/argand.h"

namespace argand::inductor {

// One result of a recording. Shared with the tensors that the caller gets, which may outlive it.
struct Result {
  uint64_t recording = 0;         // number of the recording; 0: of a call that was not recorded
  bool copied = false;            // handed out as a copy
  std::atomic<bool> held{false};  // the caller holds the memory itself
};

// Work of recordings runs in the order in which they are replayed, on whatever streams. A recording's graph may write to the results of every
// later recording of the pool, whose memory was free when it was made, and to no result of an earlier one. Used with the GIL.
class RecordingPool {
 public:
  static RecordingPool* of(const ArgandApi* api, ArgandDevice device);

  bool busy() const { return busy_; }  // a recording is being made, which one thread can do at a time
  uint64_t add();                      // a recording's number, higher than all before
  void remove();                       // it is gone, its graph too
  int begin();                         // the pool's stream becomes the current one, and what it is given is recorded. A status
  int end(void** graph);
  std::shared_ptr<Result> add_result(uint64_t recording);
  // The results of later recordings that the caller holds: a replay of this one may write to them.
  std::vector<std::shared_ptr<Result>> overwritten_by(uint64_t recording) const;
  int replay(void* graph);  // on the current stream. A status

 private:
  RecordingPool(const ArgandApi* api, ArgandDevice device);

  const ArgandDeviceInterface* interface_;
  const int32_t index_;
  uint64_t id_ = 0;  // 0: none
  int64_t recordings_ = 0;
  uint64_t last_number_ = 0;  // of a recording
  bool busy_ = false;
  void *own_stream_ = nullptr, *stream_before_ = nullptr;
  bool replayed_ = false;
  void* last_stream_ = nullptr;  // of a replay
  std::vector<std::weak_ptr<Result>> results_;
};

}  // namespace argand::inductor

#endif  // ARGAND_INDUCTOR_RECORDING_POOL_H_
