// Collectives of CPU tensors by Gloo over TCP.
#pragma once

#include <functional>
#include <thread>

#include "packages/distributed/csrc/group/group.h"
#include "packages/distributed/csrc/group/sockets.h"
#include "packages/distributed/csrc/reduce/reduce.h"

namespace gloo {
class Context;
namespace transport {
class UnboundBuffer;
}
}  // namespace gloo

namespace argand::distributed {

struct GlooOptions {
  std::string interface;  // of the network, as eth0; empty: `address`
  std::string address;    // of this host, as others reach it; empty: found by the host's name
};

class GlooGroup : public ProcessGroup {
 public:
  // Connects every pair of ranks; addresses are exchanged through `store`, within the group's timeout.
  GlooGroup(GroupOptions options, GlooOptions gloo, std::shared_ptr<Store> store, std::shared_ptr<Store> monitor_store);
  ~GlooGroup() override { GlooGroup::stop(); }
  const char* backend() const override { return "gloo"; }

  void stop() override;
  WorkPtr all_reduce(const TensorList& tensors, ReduceOp op, const CallOptions& call) override;
  WorkPtr reduce(const Tensor& tensor, int root, ReduceOp op, const CallOptions& call) override;
  WorkPtr broadcast(const TensorList& tensors, int root, const CallOptions& call) override;
  WorkPtr all_gather(const TensorList& outputs, const Tensor& input, const CallOptions& call) override;
  WorkPtr gather(const TensorList& outputs, const Tensor& input, int root, const CallOptions& call) override;
  WorkPtr scatter(const Tensor& output, const TensorList& inputs, int root, const CallOptions& call) override;
  WorkPtr reduce_scatter(const Tensor& output, const TensorList& inputs, ReduceOp op, const CallOptions& call) override;
  WorkPtr all_to_all(const TensorList& outputs, const TensorList& inputs, bool same_shapes, const CallOptions& call) override;
  WorkPtr barrier(const CallOptions& call) override;
  WorkPtr send(const Tensor& tensor, int peer, int tag, const CallOptions& call) override;
  WorkPtr recv(const Tensor& tensor, int peer, int tag, const CallOptions& call) override;

 protected:
  void disconnect() override;

 private:
  struct Task {
    WorkPtr work;
    std::function<void()> run;
  };
  WorkPtr submit(const Signature& signature, const CallOptions& call, std::function<void(uint32_t tag)> run);
  void run_tasks();
  WorkPtr post(OpKind kind, const Tensor& tensor, int peer, int tag, const CallOptions& call);
  void run_waiters();
  using Buffers = std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>>;
  void all_reduce_one(const Tensor& t, ReduceFn fn, uint32_t tag);
  void add_all(char* data, size_t n, size_t item, ReduceFn fn, uint32_t tag);
  void add_shares(const Tensor& t, ReduceFn fn, uint32_t tag);
  // Sends parts[i] of `sends` to rank i and receives `receives` from there; undefined or empty tensors are left out.
  void exchange(uint32_t tag, const TensorList& sends, const TensorList& receives);

  std::shared_ptr<gloo::Context> context_;
  Sockets sockets_;  // of context_
  std::mutex queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<Task> queue_;
  bool stopping_ = false;
  std::thread worker_;

  // Threads that wait for point-to-point operations, as many as there ever were at once.
  std::deque<std::function<void()>> waits_;
  std::set<gloo::transport::UnboundBuffer*> buffers_;  // that are waited for
  int idle_ = 0;
  std::vector<std::thread> waiters_;
};

}  // namespace argand::distributed
