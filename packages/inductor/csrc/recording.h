// One recorded call: a device graph, the memory that it reads and writes, and which of its results the caller still holds.
#ifndef ARGAND_INDUCTOR_RECORDING_H_
#define ARGAND_INDUCTOR_RECORDING_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "packages/c10/csrc/abi/argand.h"

namespace argand::inductor {

inline void retain(ArgandTensor* t) { __atomic_fetch_add(&t->refcount, 1, __ATOMIC_RELAXED); }
inline void release(const ArgandApi* api, ArgandTensor* t) {
  if (t && __atomic_sub_fetch(&t->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->tensor_release(t);
}

// What tells calls apart that need recordings of their own: ints, dtypes and geometries of the inputs.
using CallKey = std::vector<int64_t>;
void append_key(CallKey* key, const ArgandValue& value);

// Where an input lies while the graph runs: at the address that it had when it was recorded, or in a buffer of the recording.
struct RecordedInput {
  void* address = nullptr;
  ArgandTensor* buffer = nullptr;  // owned; NULL: `address` is the caller's
};

// Where a result comes from.
struct RecordedOutput {
  ArgandTensor* tensor = nullptr;     // owned, in memory of the graph; NULL: not a tensor of the graph
  int input = -1;                     // an input that is returned as it is
  bool copied = false;                // handed out as a copy
  std::atomic<bool>* lent = nullptr;  // whether the caller holds the graph's memory itself
};

// Shared by the recorder and by the results that it lent; the last one destroys it, on any thread.
class Recording {
 public:
  Recording(const ArgandApi* api, ArgandDevice device) : api_(api), interface_(api->device_interface(ARGAND_DEVICE_TYPE(device))), device_(device) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void hold() { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Brings the inputs to where the graph reads them, runs it on the current stream. A status.
  int replay(const ArgandValue* values);
  // An empty tensor of one geometry, with what lies behind the rows of a padded one.
  int new_like(const ArgandTensor* t, ArgandTensor** out);
  // A result for the caller: a tensor over the graph's memory, or a copy. A status.
  int lend(size_t i, ArgandTensor** out);
  // Whether the caller still holds memory that the graph writes; marks those results in `copied`.
  bool is_held(std::vector<bool>* copied) const;
  // Whether the inputs lie where they were; marks those that do not in `moving`.
  bool has_moved(const ArgandValue* values, std::vector<bool>* moving) const;

  CallKey key;
  std::vector<RecordedInput> inputs;
  std::vector<RecordedOutput> outputs;
  void* graph = nullptr;

 private:
  ~Recording();
  int copy(ArgandTensor* to, ArgandTensor* from);  // of one geometry; also what lies behind the rows of padded ones

  std::atomic<int> references_{1};
  const ArgandApi* api_;
  const ArgandDeviceInterface* interface_;
  ArgandDevice device_;
};

}  // namespace argand::inductor

#endif  // ARGAND_INDUCTOR_RECORDING_H_
