// Messages of an operation among the ranks of a Gloo context.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace argand::distributed {

// Gloo's own limit lies behind ours: the monitor ends an operation first, with a report.
constexpr std::chrono::milliseconds kNever = std::chrono::hours(24 * 30);

// Calls functions on the thread of a device's event loop. That thread never waits for a connection's lock, it polls until it gets it: a thread of
// ours that lost the processor with the lock held, in the middle of a message, would keep it busy for a whole slice of time.
class LoopCalls : public gloo::transport::tcp::Handler {
 public:
  explicit LoopCalls(std::shared_ptr<gloo::transport::tcp::Device> device);
  ~LoopCalls() override;
  void call(std::function<void()> function);
  void handleEvents(int events) override;

 private:
  std::shared_ptr<gloo::transport::tcp::Device> device_;
  int fd_;
  std::mutex mutex_;
  std::vector<std::function<void()>> functions_;
};

using gloo::transport::UnboundBuffer;

// Who waits for messages.
class Waiter {
 public:
  virtual void waits_for(UnboundBuffer* buffer) = 0;  // nullptr: not any more
  virtual void look_around() = 0;                     // when a wait was interrupted; throws to end it

 protected:
  ~Waiter() = default;
};

// Sends and receives of one operation. Their memory must stay until they have ended, or this goes.
class Transfers {
 public:
  Transfers(const std::shared_ptr<gloo::Context>& context, LoopCalls& loop, Waiter& waiter);
  ~Transfers();
  Transfers(const Transfers&) = delete;

  UnboundBuffer& send(const void* data, size_t bytes, int peer, uint64_t slot) { return add(const_cast<void*>(data), bytes, peer, slot, true); }
  UnboundBuffer& recv(void* data, size_t bytes, int peer, uint64_t slot) { return add(data, bytes, peer, slot, false); }
  void start();                           // those that were added since the last start
  void wait_recv(UnboundBuffer& buffer);  // each once
  void wait();                            // for all sends, and receives that nobody has waited for

 private:
  struct Transfer {
    std::shared_ptr<UnboundBuffer> buffer;
    int peer;
    uint64_t slot;
    bool sends;
    bool waited = false;
  };
  // What the loop's thread sees.
  struct Shared {
    std::mutex mutex;
    bool over = false;
    std::string error;
  };
  UnboundBuffer& add(void* data, size_t bytes, int peer, uint64_t slot, bool sends);
  void wait_for(Transfer& transfer);

  std::shared_ptr<gloo::Context> context_;
  LoopCalls& loop_;
  Waiter& waiter_;
  std::vector<Transfer> all_;
  size_t started_ = 0;
  std::shared_ptr<Shared> shared_;
};

}  // namespace argand::distributed
