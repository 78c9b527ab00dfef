#include "packages/distributed/csrc/group/transfers.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace argand::distributed {

LoopCalls::LoopCalls(std::shared_ptr<gloo::transport::tcp::Device> device) : device_(std::move(device)), fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) throw std::runtime_error("gloo: no file descriptor is left");
  device_->registerDescriptor(fd_, EPOLLIN, this);
}

LoopCalls::~LoopCalls() {
  device_->unregisterDescriptor(fd_, this);
  close(fd_);
}

void LoopCalls::call(std::function<void()> function) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = functions_.empty();
    functions_.push_back(std::move(function));
  }
  if (first) eventfd_write(fd_, 1);
}

void LoopCalls::handleEvents(int) {
  eventfd_t count;
  eventfd_read(fd_, &count);
  std::vector<std::function<void()>> functions;
  {
    std::lock_guard lock(mutex_);
    functions.swap(functions_);
  }
  for (const auto& function : functions) function();
}

Transfers::Transfers(const std::shared_ptr<gloo::Context>& context, LoopCalls& loop, Waiter& waiter)
    : context_(context), loop_(loop), waiter_(waiter), shared_(std::make_shared<Shared>()) {}

Transfers::~Transfers() {
  std::lock_guard lock(shared_->mutex);
  shared_->over = true;
}

UnboundBuffer& Transfers::add(void* data, size_t bytes, int peer, uint64_t slot, bool sends) {
  all_.push_back({context_->createUnboundBuffer(data, bytes), peer, slot, sends});
  return *all_.back().buffer;
}

void Transfers::start() {
  std::vector<Transfer> next(all_.begin() + static_cast<ptrdiff_t>(started_), all_.end());
  started_ = all_.size();
  if (next.empty()) return;
  loop_.call([next = std::move(next), shared = shared_] {
    std::lock_guard lock(shared->mutex);
    if (shared->over) return;
    try {
      for (const Transfer& t : next) t.sends ? t.buffer->send(t.peer, t.slot) : t.buffer->recv(t.peer, t.slot);
    } catch (const std::exception& e) {
      shared->error = e.what();
      for (const Transfer& t : next) t.sends ? t.buffer->abortWaitSend() : t.buffer->abortWaitRecv();
    }
  });
}

void Transfers::wait_for(Transfer& t) {
  struct Waits {
    Waiter& waiter;
    ~Waits() { waiter.waits_for(nullptr); }
  } waits{waiter_};
  waiter_.waits_for(t.buffer.get());
  while (!(t.sends ? t.buffer->waitSend(kNever) : t.buffer->waitRecv(kNever))) {
    {
      std::lock_guard lock(shared_->mutex);
      if (!shared_->error.empty()) throw std::runtime_error(shared_->error);
    }
    waiter_.look_around();
  }
  t.waited = true;
}

void Transfers::wait_recv(UnboundBuffer& buffer) {
  wait_for(*std::find_if(all_.begin(), all_.end(), [&](const Transfer& t) { return t.buffer.get() == &buffer; }));
}

void Transfers::wait() {
  for (const bool sends : {false, true})
    for (Transfer& t : all_)
      if (t.sends == sends && !t.waited) wait_for(t);
}

}  // namespace argand::distributed
