// A process group: numbers collectives, keeps their records, compares them with the other ranks' when one does not end.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "packages/c10/csrc/abi/tensor.h"
#include "packages/distributed/csrc/group/work.h"

namespace argand::distributed {

using WorkPtr = std::shared_ptr<Work>;

struct GroupOptions {
  std::string name;
  int rank = 0, size = 1;
  std::vector<int> global_ranks;  // of the group's ranks, for messages
  Millis timeout = std::chrono::minutes(30);
};

struct CallOptions {
  CallSite site;
  bool sync = false;  // the caller will wait for it at once
};

// Tensors are contiguous; results are written into them. Operations of a group run in the order of their calls.
class ProcessGroup {
 public:
  ProcessGroup(GroupOptions options, std::shared_ptr<Store> monitor_store);
  virtual ~ProcessGroup();
  const GroupOptions& options() const { return options_; }
  virtual const char* backend() const = 0;

  virtual WorkPtr all_reduce(const TensorList& tensors, ReduceOp op, const CallOptions& call) = 0;
  virtual WorkPtr reduce(const Tensor& tensor, int root, ReduceOp op, const CallOptions& call) = 0;
  virtual WorkPtr broadcast(const TensorList& tensors, int root, const CallOptions& call) = 0;
  // Each rank's tensor goes to every rank's outputs[rank].
  virtual WorkPtr all_gather(const TensorList& outputs, const Tensor& input, const CallOptions& call) = 0;
  virtual WorkPtr gather(const TensorList& outputs, const Tensor& input, int root, const CallOptions& call) = 0;   // outputs: on root
  virtual WorkPtr scatter(const Tensor& output, const TensorList& inputs, int root, const CallOptions& call) = 0;  // inputs: on root
  virtual WorkPtr reduce_scatter(const Tensor& output, const TensorList& inputs, ReduceOp op, const CallOptions& call) = 0;
  // `same_shapes`: every rank gives the same list of shapes, so that they can be compared.
  virtual WorkPtr all_to_all(const TensorList& outputs, const TensorList& inputs, bool same_shapes, const CallOptions& call) = 0;
  virtual WorkPtr barrier(const CallOptions& call) = 0;
  virtual WorkPtr send(const Tensor& tensor, int peer, int tag, const CallOptions& call) = 0;
  virtual WorkPtr recv(const Tensor& tensor, int peer, int tag, const CallOptions& call) = 0;  // peer -1: any
  // Point-to-point operations between these start together.
  virtual void group_start() {}
  virtual void group_end() {}

  std::vector<Record> records();  // oldest first
  // Keeps the record of a call that does nothing, all of it: what the recorder costs a call. As a collective, it is numbered on every rank.
  void record_only(const Signature& signature, const CallOptions& call);
  uint64_t last_seq();
  bool is_dead();
  void abort(const std::string& why);    // fails everything under way and everything after
  void give_up(const std::string& why);  // abort, which the other ranks will read about
  void set_timeout(Millis timeout) { timeout_ms_ = timeout.count(); }
  // Looks after operations that take long; called by the monitor's thread.
  virtual void watch();
  // Ends connections and threads; nothing may be called afterwards. Must be called before the last reference goes, without locks that kernels or
  // deallocation may want.
  virtual void stop();

 protected:
  struct Entry {
    Record record;
    WorkPtr work;  // while it is under way
  };
  // The last entries, with consecutive numbers.
  struct Log {
    std::deque<Entry> entries;
    uint64_t next;
    Entry* find(uint64_t seq);
    Entry& append(WorkPtr work, const Signature& signature, const CallOptions& call, Millis timeout);
  };
  static constexpr uint64_t kPointToPoint = uint64_t{1} << 48;  // the first number of those calls

  // A new record and its work. Throws if the group has failed. Point-to-point calls have a peer (-1: any) and numbers of their own.
  WorkPtr enter(const Signature& signature, const CallOptions& call);
  WorkPtr enter_point_to_point(const Signature& signature, int peer, int tag, const CallOptions& call);
  void started(uint64_t seq);
  void ended(const WorkPtr& work, int source_rank = -1);     // finish, and its record
  void failed(const WorkPtr& work, const std::string& why);  // asks the other ranks what they know first
  virtual WorkPtr make_work() { return std::make_shared<Work>(); }
  virtual void disconnect() {}  // after a failure; other ranks' waits should end
  void must_be_alive() const;   // with mutex_ held

  GroupOptions options_;

 private:
  Entry* find(uint64_t seq) { return (seq >= kPointToPoint ? point_to_point_ : collectives_).find(seq); }  // with mutex_ held
  bool stalled_in(const Log& log, Clock::time_point now, Record& head, bool& late) const;
  void publish(uint64_t seq);
  void answer_questions();
  bool ask(const Record& head);
  bool ask_peer(const Record& head);
  std::map<int, std::string> answers(uint64_t seq);
  std::string report(const Record& record, const std::string& what, Millis patience);
  std::string rank_name(int rank) const;

  static constexpr size_t kKept = 2048;

  std::mutex mutex_;
  Log collectives_{{}, 1};
  Log point_to_point_{{}, kPointToPoint};
  std::map<std::string, uint64_t> channels_;  // point-to-point calls so far, by direction, peer and tag
  size_t unfinished_ = 0;
  std::optional<std::string> dead_;
  std::atomic<int64_t> timeout_ms_;

  // Of the monitor's thread, and of failed() under store_mutex_.
  std::mutex store_mutex_;
  std::shared_ptr<Store> store_;
  int64_t answered_ = 0;                // questions
  std::set<uint64_t> asked_;            // by this rank
  std::map<uint64_t, bool> published_;  // seq: with a record (else: that there is none yet)
};

// One thread that watches all groups of the process.
void watch_group(const std::shared_ptr<ProcessGroup>& group);

// Groups by name, for operators in graphs.
void register_group(const std::shared_ptr<ProcessGroup>& group);
void unregister_group(const std::string& name);
std::shared_ptr<ProcessGroup> find_group(const std::string& name);  // throws if there is none

}  // namespace argand::distributed
