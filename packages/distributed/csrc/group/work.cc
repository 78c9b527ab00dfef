#include "packages/distributed/csrc/group/work.h"

namespace argand::distributed {

namespace {
constexpr Millis kSlice{200};  // between looks at signals
}

void Work::wait(Millis timeout) {
  const auto deadline = Clock::now() + timeout;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kSlice, [&] { return done_; })) {
    if (timeout.count() >= 0 && Clock::now() >= deadline)
      throw DistError(DistErrorKind::kTimeout,
                      "Work.wait: the operation has not ended within " + std::to_string(timeout.count()) + " ms; it goes on, wait longer or again");
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  if (error_) throw *error_;
}

// Those who wait are woken without the lock that they want.
void Work::finish(int source_rank) {
  {
    std::lock_guard lock(mutex_);
    if (done_) return;
    done_ = true;
    source_rank_ = source_rank;
  }
  changed_.notify_all();
}

void Work::fail(const DistError& error) {
  {
    std::lock_guard lock(mutex_);
    if (done_) return;
    done_ = true;
    error_ = error;
  }
  changed_.notify_all();
}

}  // namespace argand::distributed
