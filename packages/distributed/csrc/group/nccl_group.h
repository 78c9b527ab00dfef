// Collectives of CUDA tensors by NCCL, on a stream of the group.
#pragma once

#include "packages/distributed/csrc/group/group.h"
#include "packages/distributed/csrc/group/nccl.h"

namespace argand::distributed {

// Tensors of a rank lie on one device. The communicator is made by the first operation, which all ranks must take part in.
class NcclGroup : public ProcessGroup {
 public:
  NcclGroup(GroupOptions options, std::vector<std::string> libraries, std::shared_ptr<Store> store, std::shared_ptr<Store> monitor_store);
  ~NcclGroup() override { NcclGroup::stop(); }
  const char* backend() const override { return "nccl"; }

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
  // Operations between these start together.
  void group_start() override;
  void group_end() override;

 protected:
  WorkPtr make_work() override;
  void disconnect() override;

 private:
  void connect(ArgandDevice device);
  void check_nccl(const char* op, int result);
  // Runs `body` with the device current, its stream behind the current one; `tensors` stay alive for it.
  template <class Body>
  WorkPtr launch(WorkPtr work, const TensorList& tensors, Body&& body);
  void mark_end(const WorkPtr& work);
  // Parts to and from each rank, as one group of sends and receives; undefined or empty tensors are left out.
  void exchange(const TensorList& sends, const TensorList& receives);

  const nccl::Library& nccl_;
  const ArgandDeviceInterface* cuda_;
  std::shared_ptr<Store> store_;
  nccl::Comm comm_ = nullptr;
  std::mutex comm_mutex_;
  ArgandDevice device_ = 0;
  void* stream_ = nullptr;
  bool grouped_ = false;
  std::vector<WorkPtr> group_works_;
  std::mutex running_mutex_;
  std::deque<WorkPtr> running_;  // whose ends are not seen yet
};

}  // namespace argand::distributed
