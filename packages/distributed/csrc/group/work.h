// An operation under way.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "packages/distributed/csrc/group/record.h"
#include "packages/distributed/csrc/store/error.h"

namespace argand::distributed {

class Work {
 public:
  virtual ~Work() = default;

  virtual bool is_completed() {
    std::lock_guard lock(mutex_);
    return done_;
  }
  bool is_success() {
    std::lock_guard lock(mutex_);
    return done_ && !error_;
  }
  std::optional<DistError> error() {
    std::lock_guard lock(mutex_);
    return error_;
  }
  int source_rank() const { return source_rank_; }  // of a finished recv
  // Waits at most `timeout` (negative: until the operation's own), then throws what went wrong.
  virtual void wait(Millis timeout);

  void finish(int source_rank = -1);
  void fail(const DistError& error);  // the first one counts

  uint64_t seq = 0;

 protected:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::optional<DistError> error_;
  int source_rank_ = -1;
};

}  // namespace argand::distributed
