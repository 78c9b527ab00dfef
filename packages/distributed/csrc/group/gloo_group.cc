#include "packages/distributed/csrc/group/gloo_group.h"

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cstring>

namespace argand::distributed {

namespace {

constexpr uint8_t kExchangePrefix = 0x21, kReduceScatterPrefix = 0x22, kSendPrefix = 0x23, kAllReducePrefix = 0x24;  // Gloo's own ones are below 0x10

constexpr size_t kOneStepBytes = 32 << 10, kTwoStepBytes = 256 << 20, kSegment = 512 << 10, kTwoStepRanks = 16;

constexpr int kDirectRanks = 8;  // among so few everybody sends to everybody

struct Interrupted {
  std::exception_ptr cause;
};

class GlooStore : public gloo::rendezvous::Store {
 public:
  explicit GlooStore(argand::distributed::Store& store) : store_(store) {}
  void set(const std::string& key, const std::vector<char>& data) override { store_.set(key, {data.begin(), data.end()}); }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { store_.wait(keys, store_.timeout()); }
  void wait(const std::vector<std::string>& keys, const Millis& timeout) override { store_.wait(keys, timeout); }

 private:
  argand::distributed::Store& store_;
};

std::shared_ptr<gloo::transport::Device> make_device(const GlooOptions& options) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = options.interface;
  if (options.interface.empty()) attributes.hostname = options.address;
  try {
    return gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception&) {
    if (!options.interface.empty() || options.address == "127.0.0.1")
      throw DistError(DistErrorKind::kNetwork,
                      "gloo: there is no network interface " + options.interface + "; GLOO_SOCKET_IFNAME names one that ip addr lists");
  }
  attributes.hostname = "127.0.0.1";  // a host whose name resolves to no address of its own
  return gloo::transport::tcp::CreateDevice(attributes);
}

struct Complex {
  double re, im;
};

size_t bytes_of(const Tensor& t) { return static_cast<size_t>(t.numel()) * t.itemsize(); }

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

ReduceFn must_reduce(const char* name, int dtype, ReduceOp op) {
  ReduceFn fn = reduce_function(dtype, op);
  if (!fn)
    throw Error{ARGAND_TYPE_ERROR, std::string(name) + ": got ReduceOp." + reduce_name(op) + " of " + kDTypeName[dtype] +
                                       " tensors, which has no meaning; choose another operation, or convert"};
  return fn;
}

// Gloo cuts buffers between elements, so it must know their size; what they are only the reduction function knows.
template <class Options>
void set_output(Options& options, const Tensor& t) {
  const auto n = static_cast<size_t>(t.numel());
  switch (t.itemsize()) {
    case 1:
      return options.setOutput(static_cast<uint8_t*>(t->data), n);
    case 2:
      return options.setOutput(static_cast<uint16_t*>(t->data), n);
    case 4:
      return options.setOutput(static_cast<uint32_t*>(t->data), n);
    case 8:
      return options.setOutput(static_cast<uint64_t*>(t->data), n);
    default:
      return options.setOutput(static_cast<Complex*>(t->data), n);
  }
}

void average(const Tensor& t, int size) { divide_function(t.dtype())(t->data, size, static_cast<size_t>(t.numel())); }

}  // namespace

GlooGroup::GlooGroup(GroupOptions options, GlooOptions gloo, std::shared_ptr<Store> store, std::shared_ptr<Store> monitor_store)
    : ProcessGroup(std::move(options), std::move(monitor_store)) {
  auto device = make_device(gloo);
  auto context = std::make_shared<gloo::rendezvous::Context>(options_.rank, options_.size);
  context->setTimeout(options_.timeout);
  GlooStore adapter(*store);
  // Gloo has no call that wakes those who wait for a rank that is gone: its sockets are what is new after connecting.
  static std::mutex one_at_a_time;
  std::lock_guard connecting(one_at_a_time);
  const Sockets before = connected_sockets();
  try {
    context->connectFullMesh(adapter, device);
  } catch (const gloo::Exception& e) {
    throw DistError(DistErrorKind::kNetwork,
                    std::string("gloo: ranks could not connect to one another: ") + e.what() + "; check firewalls, and GLOO_SOCKET_IFNAME");
  }
  for (const auto& [fd, inode] : connected_sockets()) {
    auto old = before.find(fd);
    if (old == before.end() || old->second != inode) sockets_[fd] = inode;
  }
  context->setTimeout(kNever);
  context_ = context;
  loop_ = std::make_unique<LoopCalls>(std::dynamic_pointer_cast<gloo::transport::tcp::Device>(device));
  worker_ = std::thread([this] { run_tasks(); });
}

void GlooGroup::stop() {
  if (!worker_.joinable()) return;
  ProcessGroup::stop();
  {
    std::lock_guard lock(queue_mutex_);
    stopping_ = true;
    queue_changed_.notify_all();
    waits_changed_.notify_all();
  }
  disconnect();
  worker_.join();
  for (auto& waiter : waiters_) waiter.join();
}

void GlooGroup::disconnect() {
  shut_down(sockets_);
  std::lock_guard lock(queue_mutex_);
  for (auto* buffer : buffers_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
  wake_caller();
}

void GlooGroup::watch() {
  ProcessGroup::watch();
  std::lock_guard lock(queue_mutex_);
  wake_caller();
}

// A caller's thread that waits looks at signals, and whether the group has failed; with queue_mutex_ held.
void GlooGroup::wake_caller() {
  if (!waited_here_) return;
  waited_here_->abortWaitRecv();
  waited_here_->abortWaitSend();
}

// ---- the worker ----------------------------------------------------------------------------------------------------
WorkPtr GlooGroup::submit(const Signature& signature, const CallOptions& call, std::function<void(uint32_t tag)> run, bool may_run_here) {
  WorkPtr work = enter(signature, call);
  // Ranks that call something else wait for other messages: data of different collectives never mixes.
  const uint64_t mixed = (signature.fingerprint() ^ work->seq * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  const uint32_t tag = static_cast<uint32_t>(mixed >> 32);
  Task task{work, [run = std::move(run), tag] { run(tag); }};
  {
    std::lock_guard lock(queue_mutex_);
    may_run_here = may_run_here && call.sync && queue_.empty() && !running_;
    if (may_run_here) {
      running_ = true;
    } else {
      queue_.push_back(std::move(task));
    }
  }
  if (may_run_here) {
    run_here(task);
  } else {
    queue_changed_.notify_one();
  }
  return work;
}

void GlooGroup::run_here(const Task& task) {
  struct Ended {
    GlooGroup& group;
    ~Ended() {
      std::lock_guard lock(group.queue_mutex_);
      group.running_ = false;
      if (!group.queue_.empty()) group.queue_changed_.notify_one();
    }
  } ended{*this};
  try {
    run_task(task);
  } catch (const Interrupted& interrupted) {  // half of it has been sent
    give_up("a signal interrupted rank " + std::to_string(options_.global_ranks[options_.rank]) + " in an operation");
    std::rethrow_exception(interrupted.cause);
  }
}

void GlooGroup::run_tasks() {
  api->thread_state()->grad_mode = 0;
  bool ran = false;
  for (;;) {
    Task task;
    {
      std::unique_lock lock(queue_mutex_);
      if (ran) running_ = false;
      queue_changed_.wait(lock, [&] { return stopping_ || (!queue_.empty() && !running_); });
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
      ran = running_ = true;
    }
    run_task(task);
  }
}

void GlooGroup::run_task(const Task& task) {
  if (task.work->is_completed()) return;  // aborted
  started(task.work->seq);
  std::string why;
  try {
    task.run();
  } catch (const std::exception& e) {
    why = std::string("the connection to another rank failed (") + e.what() + ")";
  } catch (const Error& e) {
    why = e.message;
  }
  if (why.empty()) {
    ended(task.work);
  } else {
    failed(task.work, why);
  }
}

void GlooGroup::waits_for(UnboundBuffer* buffer) {
  if (std::this_thread::get_id() == worker_.get_id()) return;
  std::lock_guard lock(queue_mutex_);
  waited_here_ = buffer;
}

void GlooGroup::look_around() {
  if (is_dead()) throw std::runtime_error("the operation was aborted");
  try {
    check_interrupt();
  } catch (...) {
    throw Interrupted{std::current_exception()};
  }
}

void GlooGroup::exchange(uint32_t tag, const TensorList& sends, const TensorList& receives) {
  const uint64_t slot = gloo::Slot::build(kExchangePrefix, tag);
  Transfers transfers(context_, *loop_, *this);
  const int size = options_.size, rank = options_.rank;
  for (int step = 1; step < size; step++) {
    const int peer = (rank + size - step) % size;
    if (receives.empty() || !receives[peer] || !bytes_of(receives[peer])) continue;
    transfers.recv(receives[peer]->data, bytes_of(receives[peer]), peer, slot);
  }
  for (int step = 1; step < size; step++) {
    const int peer = (rank + step) % size;
    if (sends.empty() || !sends[peer] || !bytes_of(sends[peer])) continue;
    transfers.send(sends[peer]->data, bytes_of(sends[peer]), peer, slot);
  }
  transfers.start();
  if (!sends.empty() && !receives.empty() && sends[rank] && receives[rank] && sends[rank]->data != receives[rank]->data)
    std::memcpy(receives[rank]->data, sends[rank]->data, bytes_of(sends[rank]));
  transfers.wait();
}

// ---- all-reduce ----------------------------------------------------------------------------------------------------
// Three ways: everything to everybody, one step, for few bytes; each rank adds up its share and gives it to all, two steps; Gloo's ring for very many
// bytes or ranks, which keeps few messages under way at once. The first two add in the order of ranks.
bool GlooGroup::has_own_way(size_t bytes) const { return bytes <= kTwoStepBytes && options_.size <= static_cast<int>(kTwoStepRanks); }

void GlooGroup::all_reduce_one(const Tensor& t, ReduceFn fn, uint32_t tag) {
  const auto n = static_cast<size_t>(t.numel()), size = static_cast<size_t>(options_.size);
  const size_t bytes = bytes_of(t);
  if (bytes * (size - 1) <= kOneStepBytes) return add_all(static_cast<char*>(t->data), n, static_cast<size_t>(t.itemsize()), fn, tag);
  if (has_own_way(bytes)) return add_shares(t, fn, tag);
  gloo::AllreduceOptions o(context_);
  set_output(o, t);
  o.setReduceFunction(fn);
  o.setTag(tag);
  o.setTimeout(kNever);
  gloo::allreduce(o);
}

// `data` of all ranks, added in their order.
void GlooGroup::add_all(char* data, size_t n, size_t item, ReduceFn fn, uint32_t tag) {
  const int size = options_.size, rank = options_.rank;
  const size_t bytes = n * item;
  const uint64_t slot = gloo::Slot::build(kAllReducePrefix, tag);
  std::vector<char> parts(bytes * static_cast<size_t>(size));
  {
    Transfers transfers(context_, *loop_, *this);
    for (int step = 1; step < size; step++) {
      const int from = (rank + size - step) % size;
      transfers.recv(&parts[bytes * from], bytes, from, slot);
    }
    for (int step = 1; step < size; step++) transfers.send(data, bytes, (rank + step) % size, slot);
    transfers.start();
    std::memcpy(&parts[bytes * rank], data, bytes);
    transfers.wait();
  }
  fn(data, &parts[0], &parts[bytes], n);
  for (int r = 2; r < size; r++) fn(data, data, &parts[bytes * r], n);
}

// Each rank adds up its share of the elements, segment by segment as they come, and gives each to all as soon as it is done.
void GlooGroup::add_shares(const Tensor& t, ReduceFn fn, uint32_t tag) {
  const auto size = static_cast<size_t>(options_.size), rank = static_cast<size_t>(options_.rank);
  const auto n = static_cast<size_t>(t.numel()), item = static_cast<size_t>(t.itemsize());
  const gloo::Slot slot = gloo::Slot::build(kAllReducePrefix, tag);
  const uint64_t first = slot, final = slot + uint8_t{1};
  char* data = static_cast<char*>(t->data);
  const auto begin = [&](size_t r) { return n * r / size * item; };
  const auto bytes = [&](size_t r) { return begin(r + 1) - begin(r); };
  const size_t own = bytes(rank);
  Tensor scratch = empty({static_cast<int64_t>(own * size)}, ARGAND_UINT8);
  char* parts = static_cast<char*>(scratch->data);
  Transfers transfers(context_, *loop_, *this);
  std::vector<std::vector<UnboundBuffer*>> in(size);  // by sender, its segments of this rank's share
  for (size_t step = 1; step < size; step++) {
    const size_t from = (rank + size - step) % size;
    const int peer = static_cast<int>(from);
    for (size_t i = 0; i < own; i += kSegment) in[from].push_back(&transfers.recv(parts + own * from + i, std::min(kSegment, own - i), peer, first));
    // A final segment comes only after its owner has this rank's part of it: what it overwrites has been sent.
    for (size_t i = 0; i < bytes(from); i += kSegment) transfers.recv(data + begin(from) + i, std::min(kSegment, bytes(from) - i), peer, final);
  }
  for (size_t step = 1; step < size; step++) {
    const size_t to = (rank + step) % size;
    for (size_t i = 0; i < bytes(to); i += kSegment)
      transfers.send(data + begin(to) + i, std::min(kSegment, bytes(to) - i), static_cast<int>(to), first);
  }
  transfers.start();
  char* mine = data + begin(rank);
  for (size_t i = 0; i < own; i += kSegment) {
    const size_t length = std::min(kSegment, own - i);
    for (size_t r = 0; r < size; r++)
      if (r != rank) transfers.wait_recv(*in[r][i / kSegment]);
    const auto part = [&](size_t r) { return (r == rank ? mine : parts + own * r) + i; };
    char* sum = size > 2 ? parts + own * rank + i : mine + i;  // not over this rank's part before its turn
    fn(sum, part(0), part(1), length / item);
    for (size_t r = 2; r < size; r++) fn(r + 1 == size ? mine + i : sum, sum, part(r), length / item);
    for (size_t step = 1; step < size; step++) transfers.send(mine + i, length, static_cast<int>((rank + step) % size), final);
    transfers.start();
  }
  transfers.wait();
}

// ---- collectives ---------------------------------------------------------------------------------------------------
WorkPtr GlooGroup::all_reduce(const TensorList& tensors, ReduceOp op, const CallOptions& call) {
  bool may_run_here = true;
  for (const Tensor& t : tensors) {
    must_reduce("all_reduce", t.dtype(), op);
    may_run_here = may_run_here && has_own_way(bytes_of(t));
  }
  const auto run = [this, tensors, op](uint32_t tag) {
    for (const Tensor& t : tensors) {
      if (!t.numel()) continue;
      if (options_.size > 1) all_reduce_one(t, reduce_function(t.dtype(), op), tag++);
      if (op == ReduceOp::kAvg) average(t, options_.size);
    }
  };
  return submit(signature_of(OpKind::kAllReduce, tensors, -1, op), call, run, may_run_here);
}

WorkPtr GlooGroup::reduce(const Tensor& tensor, int root, ReduceOp op, const CallOptions& call) {
  must_reduce("reduce", tensor.dtype(), op);
  const auto run = [this, tensor, root, op](uint32_t tag) {
    if (!tensor.numel()) return;
    if (options_.size > 1) {
      // Gloo uses the output as scratch on all ranks; others than root must keep their tensor.
      Tensor result = options_.rank == root ? tensor : empty(tensor.sizes(), tensor.dtype(), tensor.device());
      if (options_.rank != root) std::memcpy(result->data, tensor->data, bytes_of(tensor));
      gloo::ReduceOptions o(context_);
      set_output(o, result);
      o.setRoot(root);
      o.setReduceFunction(reduce_function(tensor.dtype(), op));
      o.setTag(tag);
      o.setTimeout(kNever);
      gloo::reduce(o);
    }
    if (op == ReduceOp::kAvg && options_.rank == root) average(tensor, options_.size);
  };
  return submit(signature_of(OpKind::kReduce, {tensor}, root, op), call, run, false);
}

WorkPtr GlooGroup::broadcast(const TensorList& tensors, int root, const CallOptions& call) {
  const auto direct = [this](const Tensor& t) { return options_.size <= kDirectRanks && bytes_of(t) <= kOneStepBytes; };
  const auto run = [this, tensors, root, direct](uint32_t tag) {
    for (const Tensor& t : tensors) {
      if (!t.numel() || options_.size == 1) continue;
      if (direct(t)) {
        const auto size = static_cast<size_t>(options_.size);
        TensorList receives(size);
        receives[root] = t;
        options_.rank == root ? exchange(tag++, TensorList(size, t), {}) : exchange(tag++, {}, receives);
        continue;
      }
      gloo::BroadcastOptions o(context_);
      o.setOutput(static_cast<char*>(t->data), bytes_of(t));
      o.setRoot(root);
      o.setTag(tag++);
      o.setTimeout(kNever);
      gloo::broadcast(o);
    }
  };
  return submit(signature_of(OpKind::kBroadcast, tensors, root), call, run, std::all_of(tensors.begin(), tensors.end(), direct));
}

WorkPtr GlooGroup::all_gather(const TensorList& outputs, const Tensor& input, const CallOptions& call) {
  // Among many ranks Gloo's ring, which keeps few messages under way. All ranks must choose alike, so by what they have in common.
  bool ring = options_.size > kDirectRanks;
  for (const Tensor& t : outputs) ring = ring && t.numel();
  const auto run = [this, outputs, input, ring](uint32_t tag) {
    if (!ring) return exchange(tag, TensorList(outputs.size(), input), outputs);
    std::vector<size_t> counts;
    bool adjacent = true;  // parts of one tensor
    const char* end = static_cast<char*>(outputs[0]->data);
    for (const Tensor& t : outputs) {
      adjacent = adjacent && t->data == end;
      end += bytes_of(t);
      counts.push_back(bytes_of(t));
    }
    const auto total = static_cast<size_t>(end - static_cast<char*>(outputs[0]->data));
    const Tensor whole = adjacent ? outputs[0] : empty({static_cast<int64_t>(total)}, ARGAND_UINT8);
    gloo::AllgathervOptions o(context_);
    if (!adjacent || input->data != outputs[options_.rank]->data) o.setInput(static_cast<char*>(input->data), bytes_of(input));
    o.setOutput(static_cast<char*>(whole->data), counts);
    o.setTag(tag);
    o.setTimeout(kNever);
    gloo::allgatherv(o);
    const char* from = static_cast<char*>(whole->data);
    for (const Tensor& t : outputs) {
      if (!adjacent) std::memcpy(t->data, from, bytes_of(t));
      from += bytes_of(t);
    }
  };
  return submit(signature_of(OpKind::kAllGather, outputs), call, run, !ring);
}

WorkPtr GlooGroup::gather(const TensorList& outputs, const Tensor& input, int root, const CallOptions& call) {
  return submit(signature_of(OpKind::kGather, {input}, root), call, [this, outputs, input, root](uint32_t tag) {
    TensorList sends(static_cast<size_t>(options_.size));
    sends[root] = input;
    exchange(tag, sends, outputs);
  });
}

WorkPtr GlooGroup::scatter(const Tensor& output, const TensorList& inputs, int root, const CallOptions& call) {
  return submit(signature_of(OpKind::kScatter, {output}, root), call, [this, output, inputs, root](uint32_t tag) {
    TensorList receives(static_cast<size_t>(options_.size));
    receives[root] = output;
    exchange(tag, inputs, receives);
  });
}

WorkPtr GlooGroup::reduce_scatter(const Tensor& output, const TensorList& inputs, ReduceOp op, const CallOptions& call) {
  const ReduceFn fn = must_reduce("reduce_scatter", output.dtype(), op);
  return submit(signature_of(OpKind::kReduceScatter, inputs, -1, op), call, [this, output, inputs, op, fn](uint32_t tag) {
    const int size = options_.size, rank = options_.rank;
    const uint64_t slot = gloo::Slot::build(kReduceScatterPrefix, tag);
    const size_t bytes = bytes_of(output);
    // Own part first, then what rank-1, rank-2, ... give: a fixed order. Two buffers, so that one fills while the other is added.
    Tensor parts[2];
    UnboundBuffer* in[2];
    Transfers transfers(context_, *loop_, *this);
    const auto receive = [&](int step) {
      if (step >= size || !bytes) return;
      Tensor& part = parts[step & 1];
      if (!part) part = empty(output.sizes(), output.dtype(), output.device());
      in[step & 1] = &transfers.recv(part->data, bytes, (rank + size - step) % size, slot);
    };
    receive(1);
    receive(2);
    for (int step = 1; step < size; step++) {
      const int peer = (rank + step) % size;
      if (!bytes_of(inputs[peer])) continue;
      transfers.send(inputs[peer]->data, bytes_of(inputs[peer]), peer, slot);
    }
    transfers.start();
    if (bytes) {
      const void* first = inputs[rank]->data;
      for (int step = 1; step < size; step++) {
        transfers.wait_recv(*in[step & 1]);
        fn(output->data, first, parts[step & 1]->data, static_cast<size_t>(output.numel()));
        first = output->data;
        receive(step + 2);
        transfers.start();
      }
      if (size == 1 && output->data != first) std::memcpy(output->data, first, bytes);
      if (op == ReduceOp::kAvg) average(output, size);
    }
    transfers.wait();
  });
}

WorkPtr GlooGroup::all_to_all(const TensorList& outputs, const TensorList& inputs, bool same_shapes, const CallOptions& call) {
  Signature signature = signature_of(OpKind::kAllToAll, same_shapes ? inputs : TensorList{});
  if (!inputs.empty()) signature.dtype = static_cast<uint8_t>(inputs[0].dtype());
  return submit(signature, call, [this, outputs, inputs](uint32_t tag) { exchange(tag, inputs, outputs); });
}

WorkPtr GlooGroup::barrier(const CallOptions& call) {
  const bool direct = options_.size <= kDirectRanks;
  const auto run = [this, direct](uint32_t tag) {
    if (options_.size == 1) return;
    if (direct) {
      const auto size = static_cast<size_t>(options_.size);
      TensorList receives;
      for (size_t r = 0; r < size; r++) receives.push_back(empty({1}, ARGAND_UINT8));
      return exchange(tag, TensorList(size, receives[options_.rank]), receives);
    }
    gloo::BarrierOptions o(context_);
    o.setTag(tag);
    o.setTimeout(kNever);
    gloo::barrier(o);
  };
  return submit(signature_of(OpKind::kBarrier, {}), call, run, direct);
}

// ---- point to point ------------------------------------------------------------------------------------------------
void GlooGroup::run_waiters() {
  for (;;) {
    std::function<void()> wait;
    {
      std::unique_lock lock(queue_mutex_);
      idle_++;
      waits_changed_.wait(lock, [&] { return stopping_ || !waits_.empty(); });
      idle_--;
      if (waits_.empty()) return;
      wait = std::move(waits_.front());
      waits_.pop_front();
    }
    wait();
  }
}

WorkPtr GlooGroup::post(OpKind kind, const Tensor& tensor, int peer, int tag, const CallOptions& call) {
  const Signature signature = signature_of(kind, {tensor});
  WorkPtr work = enter_point_to_point(signature, peer, tag, call);
  // Messages of another kind must not meet this buffer: shape and dtype are part of the slot.
  const uint64_t mixed = (static_cast<uint64_t>(tag) << 8 | signature.dtype) * 0x9e3779b97f4a7c15u ^ signature.hash * 0xbf58476d1ce4e5b9u;
  const uint64_t slot = gloo::Slot::build(kSendPrefix, static_cast<uint32_t>(mixed >> 32));
  std::shared_ptr<UnboundBuffer> buffer = context_->createUnboundBuffer(tensor->data, bytes_of(tensor));
  if (kind == OpKind::kSend) {
    buffer->send(peer, slot);
  } else if (peer >= 0) {
    buffer->recv(peer, slot);
  } else {
    std::vector<int> others;
    for (int r = 0; r < options_.size; r++)
      if (r != options_.rank) others.push_back(r);
    buffer->recv(others, slot);
  }
  std::lock_guard lock(queue_mutex_);
  buffers_.insert(buffer.get());
  waits_.push_back([this, work, buffer, kind, tensor] {
    std::string why;
    int source = -1;
    try {
      const bool over = kind == OpKind::kSend ? buffer->waitSend(kNever) : buffer->waitRecv(&source, kNever);
      if (!over) why = "the operation was aborted";
    } catch (const std::exception& e) {
      why = std::string("the connection to another rank failed (") + e.what() + ")";
    }
    {
      std::lock_guard lock(queue_mutex_);
      buffers_.erase(buffer.get());
    }
    if (why.empty()) {
      ended(work, source);
    } else {
      failed(work, why);
    }
  });
  if (idle_ < static_cast<int>(waits_.size())) waiters_.emplace_back([this] { run_waiters(); });
  waits_changed_.notify_one();
  return work;
}

WorkPtr GlooGroup::send(const Tensor& tensor, int peer, int tag, const CallOptions& call) { return post(OpKind::kSend, tensor, peer, tag, call); }
WorkPtr GlooGroup::recv(const Tensor& tensor, int peer, int tag, const CallOptions& call) { return post(OpKind::kRecv, tensor, peer, tag, call); }

}  // namespace argand::distributed
