#include "packages/distributed/csrc/group/nccl_group.h"

namespace argand::distributed {

namespace {

// Ends when its event on the group's stream has happened; waiting makes the current stream wait.
class NcclWork : public Work {
 public:
  NcclWork(const ArgandDeviceInterface* cuda) : cuda_(cuda) {}
  ~NcclWork() override {
    if (end) cuda_->event_destroy(end, index);
  }
  bool is_completed() override {
    if (Work::is_completed()) return true;
    int done = 0;
    return end && cuda_->event_query(end, &done) == 0 && done;
  }
  void wait(Millis) override {
    {
      std::lock_guard lock(mutex_);
      if (error_) throw *error_;
    }
    void* current = nullptr;
    check(cuda_->stream_current(index, &current));
    if (end) check(cuda_->stream_wait_event(index, current, end));
  }

  void* end = nullptr;
  int32_t index = 0;
  TensorList kept;

 private:
  const ArgandDeviceInterface* cuda_;
};

struct Typed {
  int dtype;
  size_t scale;  // elements of that dtype in one of the tensor's
};

Typed type_of(const char* op, int dtype) {
  switch (dtype) {
    case ARGAND_BOOL:
    case ARGAND_UINT8:
      return {nccl::kUint8, 1};
    case ARGAND_INT8:
      return {nccl::kInt8, 1};
    case ARGAND_INT32:
      return {nccl::kInt32, 1};
    case ARGAND_INT64:
      return {nccl::kInt64, 1};
    case ARGAND_FLOAT16:
      return {nccl::kFloat16, 1};
    case ARGAND_BFLOAT16:
      return {nccl::kBfloat16, 1};
    case ARGAND_FLOAT32:
      return {nccl::kFloat32, 1};
    case ARGAND_FLOAT64:
      return {nccl::kFloat64, 1};
    case ARGAND_COMPLEX64:
      return {nccl::kFloat32, 2};
    case ARGAND_COMPLEX128:
      return {nccl::kFloat64, 2};
    default:
      throw Error{ARGAND_TYPE_ERROR, std::string(op) + ": got " + kDTypeName[dtype] + " tensors, which NCCL cannot reduce; convert to int32"};
  }
}

int reduce_of(const char* op, int dtype, ReduceOp reduce) {
  const bool sums = reduce == ReduceOp::kSum || reduce == ReduceOp::kAvg;
  int found = -1;
  switch (reduce) {
    case ReduceOp::kSum:
      found = dtype == ARGAND_BOOL ? nccl::kMax : nccl::kSum;
      break;
    case ReduceOp::kAvg:
      found = dtype == ARGAND_BOOL ? -1 : nccl::kAvg;
      break;
    case ReduceOp::kProduct:
      found = dtype == ARGAND_BOOL ? nccl::kMin : nccl::kProd;
      break;
    case ReduceOp::kMin:
      found = nccl::kMin;
      break;
    case ReduceOp::kMax:
      found = nccl::kMax;
      break;
    default:
      break;
  }
  if (found < 0 || (is_complex(dtype) && !sums))
    throw Error{ARGAND_TYPE_ERROR, std::string(op) + ": got ReduceOp." + reduce_name(reduce) + " of " + kDTypeName[dtype] +
                                       " tensors, which NCCL cannot compute; choose another operation, or use a group with Gloo"};
  return found;
}

size_t bytes_of(const Tensor& t) { return static_cast<size_t>(t.numel()) * t.itemsize(); }

bool adjacent(const TensorList& list) {
  for (size_t i = 1; i < list.size(); i++)
    if (bytes_of(list[i]) != bytes_of(list[0]) || list[i]->data != static_cast<char*>(list[i - 1]->data) + bytes_of(list[i - 1])) return false;
  return true;
}

Signature signature_of(OpKind kind, const TensorList& tensors, int root = -1, ReduceOp op = ReduceOp::kNone) {
  Signature s;
  s.kind = kind;
  s.root = root;
  s.reduce = op;
  for (const Tensor& t : tensors) {
    s.dtype = static_cast<uint8_t>(t.dtype());
    s.add_shape(t.sizes().ptr, static_cast<int32_t>(t.dim()));
  }
  return s;
}

}  // namespace

NcclGroup::NcclGroup(GroupOptions options, std::vector<std::string> libraries, std::shared_ptr<Store> store, std::shared_ptr<Store> monitor_store)
    : ProcessGroup(std::move(options), std::move(monitor_store)),
      nccl_(nccl::open(libraries)),
      cuda_(api->device_interface(ARGAND_CUDA)),
      store_(std::move(store)) {
  if (!cuda_ || cuda_->device_count() == 0) throw DistError(DistErrorKind::kBackend, "nccl: there is no CUDA device here; use gloo");
}

void NcclGroup::check_nccl(const char* op, int result) {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  throw DistError(DistErrorKind::kBackend, std::string(op) + ": NCCL says: " + nccl_.ncclGetErrorString(result) + "; NCCL_DEBUG=INFO tells more");
}

void NcclGroup::connect(ArgandDevice device) {
  std::lock_guard lock(comm_mutex_);
  if (comm_) {
    if (device != device_)
      throw DistError(DistErrorKind::kBackend, "nccl: got a tensor on cuda:" + std::to_string(ARGAND_DEVICE_INDEX(device)) +
                                                   ", expected cuda:" + std::to_string(ARGAND_DEVICE_INDEX(device_)) +
                                                   ", where this rank's tensors have been; one device a rank");
    return;
  }
  nccl::UniqueId id;
  if (options_.rank == 0) {
    check_nccl("nccl", nccl_.ncclGetUniqueId(&id));
    store_->set("id", std::string(id.internal, sizeof id.internal));
  } else {
    const std::string text = store_->get("id");
    std::memcpy(id.internal, text.data(), sizeof id.internal);
  }
  check_nccl("nccl", nccl_.ncclCommInitRank(&comm_, options_.size, id, options_.rank));
  device_ = device;
  check(cuda_->stream_new(ARGAND_DEVICE_INDEX(device), -1, &stream_));
}

WorkPtr NcclGroup::make_work() { return std::make_shared<NcclWork>(cuda_); }

void NcclGroup::mark_end(const WorkPtr& work) {
  auto& w = static_cast<NcclWork&>(*work);
  check(cuda_->event_new(w.index, 0, &w.end));
  check(cuda_->event_record(w.end, w.index, stream_));
  std::lock_guard lock(running_mutex_);
  running_.push_back(work);
}

template <class Body>
WorkPtr NcclGroup::launch(WorkPtr work, const TensorList& tensors, Body&& body) {
  auto& w = static_cast<NcclWork&>(*work);
  w.kept = tensors;
  w.index = ARGAND_DEVICE_INDEX(device_);
  try {
    void *begin = nullptr, *current = nullptr;
    check(cuda_->stream_current(w.index, &current));
    check(cuda_->event_new(w.index, 0, &begin));
    const int recorded = cuda_->event_record(begin, w.index, current);
    const int waits = recorded ? recorded : cuda_->stream_wait_event(w.index, stream_, begin);
    cuda_->event_destroy(begin, w.index);
    check(waits);
    started(work->seq);
    body();
    for (const Tensor& t : tensors)
      if (t && t->storage->data) check(cuda_->record_stream(t->storage->data, w.index, stream_));
    if (grouped_) {
      group_works_.push_back(work);
    } else {
      mark_end(work);
    }
  } catch (const DistError& e) {
    failed(work, e.what());
    throw;
  }
  return work;
}

void NcclGroup::group_start() {
  check_nccl("batch_isend_irecv", nccl_.ncclGroupStart());
  grouped_ = true;
}

void NcclGroup::group_end() {
  grouped_ = false;
  check_nccl("batch_isend_irecv", nccl_.ncclGroupEnd());
  for (const WorkPtr& work : std::exchange(group_works_, {})) mark_end(work);
}

// Sees which operations have ended, and errors of the network, which NCCL tells only those who ask.
void NcclGroup::watch() {
  for (;;) {
    WorkPtr work;
    {
      std::lock_guard lock(running_mutex_);
      if (running_.empty() || !running_.front()->is_completed()) break;
      work = std::move(running_.front());
      running_.pop_front();
    }
    static_cast<NcclWork&>(*work).kept.clear();
    ended(work);
  }
  {
    std::unique_lock lock(comm_mutex_, std::try_to_lock);
    int result = 0;
    if (lock && comm_ && nccl_.ncclCommGetAsyncError(comm_, &result) == 0 && result != nccl::kSuccess && result != nccl::kInProgress) {
      const std::string why = std::string("nccl: ") + nccl_.ncclGetErrorString(result) + "; another rank failed, or the network between them";
      lock.unlock();
      abort(why);
      return;
    }
  }
  ProcessGroup::watch();
}

void NcclGroup::disconnect() {
  std::lock_guard lock(comm_mutex_);
  if (comm_) nccl_.ncclCommAbort(std::exchange(comm_, nullptr));
}

void NcclGroup::stop() {
  ProcessGroup::stop();
  std::lock_guard lock(comm_mutex_);
  if (!comm_) return;
  cuda_->stream_synchronize(ARGAND_DEVICE_INDEX(device_), stream_);
  nccl_.ncclCommDestroy(std::exchange(comm_, nullptr));
}

// ---- operations ----------------------------------------------------------------------------------------------------
WorkPtr NcclGroup::all_reduce(const TensorList& tensors, ReduceOp op, const CallOptions& call) {
  const int reduce = reduce_of("all_reduce", tensors[0].dtype(), op);
  for (const Tensor& t : tensors) type_of("all_reduce", t.dtype());
  DeviceGuard guard(tensors[0]);
  connect(tensors[0].device());
  return launch(enter(signature_of(OpKind::kAllReduce, tensors, -1, op), call), tensors, [&] {
    for (const Tensor& t : tensors) {
      const Typed type = type_of("all_reduce", t.dtype());
      check_nccl("all_reduce", nccl_.ncclAllReduce(t->data, t->data, type.scale * t.numel(), type.dtype, reduce, comm_, stream_));
    }
  });
}

WorkPtr NcclGroup::reduce(const Tensor& tensor, int root, ReduceOp op, const CallOptions& call) {
  const int how = reduce_of("reduce", tensor.dtype(), op);
  const Typed type = type_of("reduce", tensor.dtype());
  DeviceGuard guard(tensor);
  connect(tensor.device());
  return launch(enter(signature_of(OpKind::kReduce, {tensor}, root, op), call), {tensor}, [&] {
    check_nccl("reduce", nccl_.ncclReduce(tensor->data, tensor->data, type.scale * tensor.numel(), type.dtype, how, root, comm_, stream_));
  });
}

WorkPtr NcclGroup::broadcast(const TensorList& tensors, int root, const CallOptions& call) {
  DeviceGuard guard(tensors[0]);
  connect(tensors[0].device());
  return launch(enter(signature_of(OpKind::kBroadcast, tensors, root), call), tensors, [&] {
    for (const Tensor& t : tensors) check_nccl("broadcast", nccl_.ncclBroadcast(t->data, t->data, bytes_of(t), nccl::kUint8, root, comm_, stream_));
  });
}

WorkPtr NcclGroup::all_gather(const TensorList& outputs, const Tensor& input, const CallOptions& call) {
  DeviceGuard guard(input);
  connect(input.device());
  TensorList all = outputs;
  all.push_back(input);
  return launch(enter(signature_of(OpKind::kAllGather, outputs), call), all, [&] {
    if (adjacent(outputs))
      return check_nccl("all_gather", nccl_.ncclAllGather(input->data, outputs[0]->data, bytes_of(input), nccl::kUint8, comm_, stream_));
    check_nccl("all_gather", nccl_.ncclGroupStart());
    for (int r = 0; r < options_.size; r++) {
      const void* from = r == options_.rank ? input->data : outputs[r]->data;
      check_nccl("all_gather", nccl_.ncclBroadcast(from, outputs[r]->data, bytes_of(outputs[r]), nccl::kUint8, r, comm_, stream_));
    }
    check_nccl("all_gather", nccl_.ncclGroupEnd());
  });
}

void NcclGroup::exchange(const TensorList& sends, const TensorList& receives) {
  check_nccl("exchange", nccl_.ncclGroupStart());
  for (int r = 0; r < options_.size; r++) {
    if (!sends.empty() && sends[r] && sends[r].numel())
      check_nccl("send", nccl_.ncclSend(sends[r]->data, bytes_of(sends[r]), nccl::kUint8, r, comm_, stream_));
    if (!receives.empty() && receives[r] && receives[r].numel())
      check_nccl("recv", nccl_.ncclRecv(receives[r]->data, bytes_of(receives[r]), nccl::kUint8, r, comm_, stream_));
  }
  check_nccl("exchange", nccl_.ncclGroupEnd());
}

WorkPtr NcclGroup::gather(const TensorList& outputs, const Tensor& input, int root, const CallOptions& call) {
  DeviceGuard guard(input);
  connect(input.device());
  TensorList all = outputs, sends(static_cast<size_t>(options_.size));
  all.push_back(input);
  sends[root] = input;
  return launch(enter(signature_of(OpKind::kGather, {input}, root), call), all, [&] { exchange(sends, outputs); });
}

WorkPtr NcclGroup::scatter(const Tensor& output, const TensorList& inputs, int root, const CallOptions& call) {
  DeviceGuard guard(output);
  connect(output.device());
  TensorList all = inputs, receives(static_cast<size_t>(options_.size));
  all.push_back(output);
  receives[root] = output;
  return launch(enter(signature_of(OpKind::kScatter, {output}, root), call), all, [&] { exchange(inputs, receives); });
}

WorkPtr NcclGroup::reduce_scatter(const Tensor& output, const TensorList& inputs, ReduceOp op, const CallOptions& call) {
  const int how = reduce_of("reduce_scatter", output.dtype(), op);
  const Typed type = type_of("reduce_scatter", output.dtype());
  DeviceGuard guard(output);
  connect(output.device());
  TensorList all = inputs;
  all.push_back(output);
  return launch(enter(signature_of(OpKind::kReduceScatter, inputs, -1, op), call), all, [&] {
    if (adjacent(inputs))
      return check_nccl("reduce_scatter",
                        nccl_.ncclReduceScatter(inputs[0]->data, output->data, type.scale * output.numel(), type.dtype, how, comm_, stream_));
    check_nccl("reduce_scatter", nccl_.ncclGroupStart());
    for (int r = 0; r < options_.size; r++)
      check_nccl("reduce_scatter",
                 nccl_.ncclReduce(inputs[r]->data, output->data, type.scale * inputs[r].numel(), type.dtype, how, r, comm_, stream_));
    check_nccl("reduce_scatter", nccl_.ncclGroupEnd());
  });
}

WorkPtr NcclGroup::all_to_all(const TensorList& outputs, const TensorList& inputs, bool same_shapes, const CallOptions& call) {
  DeviceGuard guard(inputs[0]);
  connect(inputs[0].device());
  Signature signature = signature_of(OpKind::kAllToAll, same_shapes ? inputs : TensorList{});
  signature.dtype = static_cast<uint8_t>(inputs[0].dtype());
  TensorList all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  return launch(enter(signature, call), all, [&] { exchange(inputs, outputs); });
}

WorkPtr NcclGroup::barrier(const CallOptions& call) {
  int32_t index = 0;
  check(cuda_->get_device(&index));
  if (comm_) index = ARGAND_DEVICE_INDEX(device_);
  const Tensor token = empty({1}, ARGAND_UINT8, ARGAND_DEVICE(ARGAND_CUDA, index));
  DeviceGuard guard(token);
  connect(token.device());
  WorkPtr work = launch(enter(signature_of(OpKind::kBarrier, {}), call), {token},
                        [&] { check_nccl("barrier", nccl_.ncclAllReduce(token->data, token->data, 1, nccl::kUint8, nccl::kMax, comm_, stream_)); });
  check(cuda_->stream_synchronize(index, stream_));
  return work;
}

WorkPtr NcclGroup::send(const Tensor& tensor, int peer, int tag, const CallOptions& call) {
  DeviceGuard guard(tensor);
  connect(tensor.device());
  return launch(enter_point_to_point(signature_of(OpKind::kSend, {tensor}), peer, tag, call), {tensor},
                [&] { check_nccl("send", nccl_.ncclSend(tensor->data, bytes_of(tensor), nccl::kUint8, peer, comm_, stream_)); });
}

WorkPtr NcclGroup::recv(const Tensor& tensor, int peer, int tag, const CallOptions& call) {
  if (peer < 0) throw Error{ARGAND_VALUE_ERROR, "recv: NCCL cannot receive from any rank; name the sender"};
  DeviceGuard guard(tensor);
  connect(tensor.device());
  return launch(enter_point_to_point(signature_of(OpKind::kRecv, {tensor}), peer, tag, call), {tensor},
                [&] { check_nccl("recv", nccl_.ncclRecv(tensor->data, bytes_of(tensor), nccl::kUint8, peer, comm_, stream_)); });
}

}  // namespace argand::distributed
