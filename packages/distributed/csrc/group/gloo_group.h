// Collectives of CPU tensors by Gloo over TCP.
#pragma once

#include <functional>
#include <thread>

#include "packages/distributed/csrc/group/group.h"
#include "packages/distributed/csrc/group/sockets.h"
#include "packages/distributed/csrc/group/transfers.h"
#include "packages/distributed/csrc/reduce/reduce.h"

namespace argand::distributed {

struct GlooOptions {
  std::string interface;  // of the network, as eth0; empty: `address`
  std::string address;    // of this host, as others reach it; empty: found by the host's name
};

class GlooGroup : public ProcessGroup, private Waiter {
 public:
  // Connects every pair of ranks; addresses are exchanged through `store`, within the group's timeout.
  GlooGroup(GroupOptions options, GlooOptions gloo, std::shared_ptr<Store> store, std::shared_ptr<Store> monitor_store);
  ~GlooGroup() override { GlooGroup::stop(); }
  const char* backend() const override { return "gloo"; }

  void stop() override;
  void watch() override;
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
  // Operations run one at a time, on the worker; a synchronous one that nothing is before runs in the caller's thread, which saves two hand-overs.
  WorkPtr submit(const Signature& signature, const CallOptions& call, std::function<void(uint32_t tag)> run, bool may_run_here = true);
  void run_tasks();
  void run_task(const Task& task);
  void run_here(const Task& task);
  void wake_caller();
  WorkPtr post(OpKind kind, const Tensor& tensor, int peer, int tag, const CallOptions& call);
  void run_waiters();
  void waits_for(UnboundBuffer* buffer) override;
  void look_around() override;
  bool has_own_way(size_t bytes) const;  // an all-reduce
  void all_reduce_one(const Tensor& t, ReduceFn fn, uint32_t tag);
  void add_all(char* data, size_t n, size_t item, ReduceFn fn, uint32_t tag);
  void add_shares(const Tensor& t, ReduceFn fn, uint32_t tag);
  // Sends parts[i] of `sends` to rank i and receives `receives` from there; undefined or empty tensors are left out.
  void exchange(uint32_t tag, const TensorList& sends, const TensorList& receives);

  std::shared_ptr<gloo::Context> context_;
  std::unique_ptr<LoopCalls> loop_;
  Sockets sockets_;  // of context_
  std::mutex queue_mutex_;
  std::condition_variable queue_changed_;
  std::deque<Task> queue_;
  bool running_ = false;                  // an operation
  UnboundBuffer* waited_here_ = nullptr;  // by a caller's thread
  bool stopping_ = false;
  std::thread worker_;

  // Threads that wait for point-to-point operations, as many as there ever were at once.
  std::condition_variable waits_changed_;
  std::deque<std::function<void()>> waits_;
  std::set<UnboundBuffer*> buffers_;  // that are waited for
  int idle_ = 0;
  std::vector<std::thread> waiters_;
};

}  // namespace argand::distributed
