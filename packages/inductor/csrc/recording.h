// One recorded call: a device graph, the memory that it reads and writes, and which of its results the caller still holds.
#ifndef ARGAND_INDUCTOR_RECORDING_H_
#define ARGAND_INDUCTOR_RECORDING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "packages/c10/csrc/abi/argand.h"
#include "packages/inductor/csrc/recording_pool.h"

namespace argand::inductor {

inline void retain(ArgandTensor* t) { __atomic_fetch_add(&t->refcount, 1, __ATOMIC_RELAXED); }
inline void release(const ArgandApi* api, ArgandTensor* t) {
  if (t && __atomic_sub_fetch(&t->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->tensor_release(t);
}

// What tells calls apart that need recordings of their own: ints, dtypes and geometries of the inputs.
using CallKey = std::vector<int64_t>;
void append_key(CallKey* key, const ArgandValue& value);

// How often an input could not be read where the recording before had it.
struct Moves {
  int count = 0;
  void add(const ArgandTensor* t);
  // It is copied into a buffer. Results of another recording stay where they are once that is not made again.
  bool is_moving() const { return count > kLentMoves; }
  static constexpr int kLentMoves = 3;
};

// Where an input lies while the graph runs: at the address that it had when it was recorded, or in a buffer of the recording.
struct RecordedInput {
  void* address = nullptr;
  ArgandTensor* buffer = nullptr;  // owned; NULL: `address` is the caller's
};

// Where a result comes from.
struct RecordedOutput {
  ArgandTensor* tensor = nullptr;  // owned, in memory of the graph; NULL: not a tensor of the graph
  int input = -1;                  // an input that is returned as it is
  std::shared_ptr<Result> result;  // of `tensor`
};

// A tensor over the memory of `t`, which lives as long: `result` tells whether the caller holds it. A status.
int lend(const ArgandApi* api, ArgandTensor* t, std::shared_ptr<Result> result, ArgandTensor** out);
// The result whose memory was lent as this tensor's; NULL: memory of its own.
const Result* lent_result(const ArgandTensor* t);

class Recording {
 public:
  Recording(const ArgandApi* api, ArgandDevice device);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Brings the inputs to where the graph reads them, runs it on the current stream. A status.
  int replay(const ArgandValue* values);
  // An empty tensor of one geometry, with what lies behind the rows of a padded one.
  int new_like(const ArgandTensor* t, ArgandTensor** out);
  // A result for the caller: a tensor over the graph's memory, or a copy. A status.
  int hand_out(size_t i, ArgandTensor** out);
  // Whether a call can be a replay: inputs lie where they were, and it writes to no memory that the caller holds, of results of this recording or
  // of others. Otherwise counts the inputs' moves, and such results are handed out as copies from then on; those that are inputs of the call only
  // if that comes again and again, since the next recording is a later one than theirs.
  bool fits(const ArgandValue* values, std::vector<Moves>* moves);

  const uint64_t number;
  std::vector<RecordedInput> inputs;
  std::vector<RecordedOutput> outputs;
  void* graph = nullptr;
  RecordingPool* const pool;

 private:
  int copy(ArgandTensor* to, ArgandTensor* from);  // of one geometry; also what lies behind the rows of padded ones

  const ArgandApi* api_;
  const ArgandDeviceInterface* interface_;
  ArgandDevice device_;
};

}  // namespace argand::inductor

#endif  // ARGAND_INDUCTOR_RECORDING_H_
