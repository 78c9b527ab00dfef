// What is kept of each collective: enough to compare it with the other ranks' and to say where it was called.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "packages/distributed/csrc/store/store.h"

namespace argand::distributed {

enum class OpKind : uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kSend,
  kRecv,
};
const char* op_name(OpKind kind);

enum class ReduceOp : uint8_t { kSum, kAvg, kProduct, kMin, kMax, kBand, kBor, kBxor, kNone };
const char* reduce_name(ReduceOp op);

// The user's line; `file` lives for ever.
struct CallSite {
  const char* file = nullptr;
  int line = 0;
};

// What all ranks of a group must agree on. Shapes that may differ from rank to rank are left out by the caller.
struct Signature {
  static constexpr int kMaxInts = 15;

  OpKind kind = OpKind::kBarrier;
  ReduceOp reduce = ReduceOp::kNone;
  uint8_t dtype = 0xff;  // ARGAND_DTYPE_NONE: no tensors
  uint8_t n_ints = 0;    // of `ints` that are kept; all of them are in the fingerprint
  int32_t root = -1;
  uint64_t hash = 14695981039346656037u;
  std::array<int64_t, kMaxInts> ints{};  // for each tensor: its number of dimensions, its sizes

  void add(int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 1099511628211u;
    hash ^= hash >> 29;
    if (n_ints < kMaxInts) ints[n_ints++] = value;
  }
  void add_shape(const int64_t* sizes, int32_t ndim) {
    add(ndim);
    for (int32_t i = 0; i < ndim; i++) add(sizes[i]);
  }
  uint64_t fingerprint() const;
  std::string text() const;  // all_reduce(float32[2, 3], SUM)
};

enum class State : uint8_t { kQueued, kRunning, kDone, kFailed };

struct Record {
  uint64_t seq = 0;
  Signature signature;
  CallSite site;
  State state = State::kQueued;
  int32_t peer = -1;    // of send and recv
  std::string channel;  // of send and recv from a known rank: source, destination, tag and number, the same on both sides
  Clock::time_point queued, finished;
  Clock::time_point deadline;
  std::string text() const;  // #12 all_reduce(float32[2, 3], SUM) at train.py:33
};

}  // namespace argand::distributed
