#include "packages/distributed/csrc/group/group.h"

#include <algorithm>
#include <thread>

namespace argand::distributed {

namespace {

constexpr Millis kStalled{1000};   // an operation that takes longer makes its rank ask the others
constexpr Millis kTick{250};       // of the monitor
constexpr Millis kPatience{2500};  // for answers after a timeout: others look every kTick
constexpr char kField = '\x1f';    // between parts of an answer

std::string seconds(Millis t) {
  char text[32];
  snprintf(text, sizeof text, "%.1f s", static_cast<double>(t.count()) / 1000.0);
  return text;
}

std::string say_key(uint64_t seq, int rank) { return "say/" + std::to_string(seq) + "/" + std::to_string(rank); }

std::string gave_up_key(int rank) { return "gave up/" + std::to_string(rank); }

}  // namespace

ProcessGroup::ProcessGroup(GroupOptions options, std::shared_ptr<Store> monitor_store)
    : options_(std::move(options)), timeout_ms_(options_.timeout.count()), store_(std::move(monitor_store)) {}

ProcessGroup::~ProcessGroup() = default;

std::string ProcessGroup::rank_name(int rank) const {
  const int global = static_cast<size_t>(rank) < options_.global_ranks.size() ? options_.global_ranks[rank] : rank;
  return std::to_string(global);
}

// ---- records -------------------------------------------------------------------------------------------------------
ProcessGroup::Entry* ProcessGroup::Log::find(uint64_t seq) {
  if (entries.empty() || seq < entries.front().record.seq) return nullptr;
  const uint64_t at = seq - entries.front().record.seq;
  return at < entries.size() ? &entries[at] : nullptr;
}

ProcessGroup::Entry& ProcessGroup::Log::append(WorkPtr work, const Signature& signature, const CallOptions& call, Millis timeout) {
  if (entries.size() >= kKept && !entries.front().work) entries.pop_front();
  Entry& entry = entries.emplace_back();
  entry.work = std::move(work);
  entry.work->seq = entry.record.seq = next++;
  entry.record.signature = signature;
  entry.record.site = call.site;
  entry.record.queued = Clock::now();
  entry.record.deadline = entry.record.queued + timeout;
  return entry;
}

void ProcessGroup::must_be_alive() const {
  if (dead_) throw DistError(DistErrorKind::kBackend, "process group '" + options_.name + "' cannot be used any more: " + *dead_);
}

WorkPtr ProcessGroup::enter(const Signature& signature, const CallOptions& call) {
  std::lock_guard lock(mutex_);
  must_be_alive();
  unfinished_++;
  return collectives_.append(make_work(), signature, call, Millis{timeout_ms_.load()}).work;
}

WorkPtr ProcessGroup::enter_point_to_point(const Signature& signature, int peer, int tag, const CallOptions& call) {
  std::lock_guard lock(mutex_);
  must_be_alive();
  unfinished_++;
  Entry& entry = point_to_point_.append(make_work(), signature, call, Millis{timeout_ms_.load()});
  entry.record.peer = peer;
  if (peer >= 0) {
    const bool sends = signature.kind == OpKind::kSend;
    const std::string ends =
        std::to_string(sends ? options_.rank : peer) + "/" + std::to_string(sends ? peer : options_.rank) + "/" + std::to_string(tag);
    entry.record.channel = ends + "/" + std::to_string(channels_[(sends ? "to/" : "from/") + ends]++);
  }
  return entry.work;
}

void ProcessGroup::started(uint64_t seq) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = find(seq)) entry->record.state = State::kRunning;
}

void ProcessGroup::ended(const WorkPtr& work, int source_rank) {
  {
    std::lock_guard lock(mutex_);
    Entry* entry = find(work->seq);
    if (entry && entry->work) {
      entry->record.state = State::kDone;
      entry->record.finished = Clock::now();
      entry->work = nullptr;
      unfinished_--;
    }
  }
  work->finish(source_rank);
}

void ProcessGroup::record_only(const Signature& signature, const CallOptions& call) {
  const WorkPtr work = enter(signature, call);
  started(work->seq);
  ended(work);
}

void ProcessGroup::abort(const std::string& why) {
  std::vector<WorkPtr> pending;
  {
    std::lock_guard lock(mutex_);
    if (!dead_) dead_ = why;
    for (Log* log : {&collectives_, &point_to_point_}) {
      for (Entry& entry : log->entries) {
        if (!entry.work) continue;
        entry.record.state = State::kFailed;
        entry.record.finished = Clock::now();
        pending.push_back(std::move(entry.work));
        entry.work = nullptr;
      }
    }
    unfinished_ = 0;
  }
  for (const WorkPtr& work : pending) work->fail(DistError(DistErrorKind::kBackend, why));
  disconnect();
}

void ProcessGroup::give_up(const std::string& why) {
  std::lock_guard lock(store_mutex_);
  try {
    if (store_) store_->set(gave_up_key(options_.rank), why);
  } catch (const DistError&) {  // then they will see that the connection ended
  }
  abort(why);
}

std::vector<Record> ProcessGroup::records() {
  std::lock_guard lock(mutex_);
  std::vector<Record> out;
  for (const Log* log : {&collectives_, &point_to_point_})
    for (const Entry& entry : log->entries) out.push_back(entry.record);
  std::stable_sort(out.begin(), out.end(), [](const Record& a, const Record& b) { return a.queued < b.queued; });
  return out;
}

uint64_t ProcessGroup::last_seq() {
  std::lock_guard lock(mutex_);
  return collectives_.next - 1;
}

bool ProcessGroup::is_dead() {
  std::lock_guard lock(mutex_);
  return dead_.has_value();
}

// ---- questions and answers -----------------------------------------------------------------------------------------
// A rank whose operation stalls appends its number to the group's questions; every rank looks there each tick and writes what it
// called under that number. So nothing is exchanged while all goes well.

void ProcessGroup::publish(uint64_t seq) {
  std::string text;
  bool there = false;
  {
    std::lock_guard lock(mutex_);
    if (Entry* entry = find(seq)) {
      there = true;
      text = std::to_string(entry->record.signature.fingerprint()) + kField + entry->record.text();
      if (entry->record.state == State::kDone) text += " (ended here)";
    } else if (seq < collectives_.next) {
      return;  // too long ago
    } else {
      text = std::string("none") + kField;
      const auto& all = collectives_.entries;
      text += all.empty() ? "no collective so far" : "its last collective was " + all.back().record.text();
    }
  }
  auto known = published_.find(seq);
  if (known != published_.end() && known->second == there) return;
  store_->set(say_key(seq, options_.rank), text);
  published_[seq] = there;
  while (published_.size() > 16) {  // old answers are nobody's business any more
    store_->delete_key(say_key(published_.begin()->first, options_.rank));
    published_.erase(published_.begin());
  }
}

void ProcessGroup::answer_questions() {
  std::string text;
  while (store_->fetch("ask/" + std::to_string(answered_ + 1), &text)) {
    answered_++;
    publish(std::stoull(text));
  }
  std::vector<uint64_t> open;
  for (const auto& [seq, there] : published_)
    if (!there) open.push_back(seq);
  for (uint64_t seq : open) publish(seq);
}

std::map<int, std::string> ProcessGroup::answers(uint64_t seq) {
  std::map<int, std::string> out;
  std::string text;
  for (int rank = 0; rank < options_.size; rank++) {
    if (rank == options_.rank) continue;
    const bool said = store_->fetch(say_key(seq, rank), &text);
    if (said) out[rank] = text;
    // A rank that had not come when it was asked may have given up since.
    if ((!said || !text.compare(0, text.find(kField), "none")) && store_->fetch(gave_up_key(rank), &text))
      out[rank] = std::string("none") + kField + "gave up: " + text;
  }
  return out;
}

// Asks about `head` and compares what is known; true if the group was aborted.
bool ProcessGroup::ask(const Record& head) {
  if (head.seq >= kPointToPoint) return ask_peer(head);
  publish(head.seq);
  if (asked_.insert(head.seq).second) {
    const int64_t number = store_->add("asks", 1);
    store_->set("ask/" + std::to_string(number), std::to_string(head.seq));
    return false;
  }
  const std::string own = std::to_string(head.signature.fingerprint());
  std::string differing;
  bool differs = false;
  const auto all = answers(head.seq);
  for (const auto& [rank, text] : all) {
    const auto cut = text.find(kField);
    if (text.compare(0, cut, "none") && text.compare(0, cut, own)) differs = true;
    differing += "\n  rank " + rank_name(rank) + ": " + text.substr(cut + 1);
  }
  if (!differs) return false;
  const std::string why =
      std::string(op_name(head.signature.kind)) + ": ranks of process group '" + options_.name +
      "' called different collectives; every rank must make the same calls, with the same shapes and dtypes, in the same order\n  rank " +
      rank_name(options_.rank) + ": " + head.text() + differing;
  abort(why);
  return true;
}

// A send waits until the other side receives, so both sides of calls that do not fit stall.
bool ProcessGroup::ask_peer(const Record& head) {
  if (head.channel.empty()) return false;
  const bool sends = head.signature.kind == OpKind::kSend;
  const std::string own = std::to_string(head.signature.hash) + "/" + std::to_string(head.signature.dtype);
  store_->set((sends ? "send/" : "recv/") + head.channel, own + kField + head.text());
  std::string text;
  if (!store_->fetch((sends ? "recv/" : "send/") + head.channel, &text) || !text.compare(0, text.find(kField), own)) return false;
  abort(std::string(op_name(head.signature.kind)) +
        ": sender and receiver have different shapes or dtypes; receive into a tensor like the one that is sent\n  rank " + rank_name(options_.rank) +
        ": " + head.text() + "\n  rank " + rank_name(head.peer) + ": " + text.substr(text.find(kField) + 1));
  return true;
}

std::string ProcessGroup::report(const Record& record, const std::string& what, Millis patience) {
  std::string out = std::string(op_name(record.signature.kind)) + ": " + what + "\n  rank " + rank_name(options_.rank) + ": " + record.text();
  try {
    const auto deadline = Clock::now() + patience;
    ask(record);
    const bool collective = record.seq < kPointToPoint;
    if (!collective) {  // nobody has this number: the others tell what they did last
      const int64_t number = store_->add("asks", 1);
      store_->set("ask/" + std::to_string(number), std::to_string(record.seq));
    }
    auto all = answers(record.seq);
    while (static_cast<int>(all.size()) < options_.size - 1 && Clock::now() < deadline) {
      std::this_thread::sleep_for(Millis{100});
      answer_questions();
      all = answers(record.seq);
    }
    std::string missing;
    for (int rank = 0; rank < options_.size; rank++) {
      if (rank == options_.rank || (record.peer >= 0 && rank != record.peer)) continue;
      out += "\n  rank " + rank_name(rank) + ": ";
      auto found = all.find(rank);
      const bool none = found != all.end() && !found->second.compare(0, found->second.find(kField), "none");
      if (found == all.end()) {
        out += "did not answer; its process is stopped, hung or gone";
      } else {
        out += (none && collective ? "has not made this call, " : "") + found->second.substr(found->second.find(kField) + 1);
      }
      if (found == all.end() || (none && collective)) missing += (missing.empty() ? "" : ", ") + rank_name(rank);
    }
    if (!missing.empty()) out += "\n  ranks that did not arrive: " + missing;
  } catch (const DistError& e) {
    out += std::string("\n  the other ranks could not be asked: ") + e.what();
  }
  return out;
}

void ProcessGroup::failed(const WorkPtr& work, const std::string& why) {
  Record record;
  {
    std::lock_guard lock(mutex_);
    Entry* entry = find(work->seq);
    if (!entry || !entry->work) return;  // aborted meanwhile
    record = entry->record;
  }
  std::lock_guard lock(store_mutex_);
  abort(store_ ? report(record, why, kPatience) : op_name(record.signature.kind) + (": " + why));
}

// The first operation that is late, else the first that stalls.
bool ProcessGroup::stalled_in(const Log& log, Clock::time_point now, Record& head, bool& late) const {
  bool stalled = false;
  for (const Entry& entry : log.entries) {
    if (!entry.work) continue;
    late = now >= entry.record.deadline;
    if (!late && now - entry.record.queued < kStalled) break;
    if (late || !stalled) head = entry.record;
    stalled = true;
    if (late) break;
  }
  return stalled;
}

void ProcessGroup::watch() {
  std::lock_guard lock(store_mutex_);
  if (!store_) return;
  Record head;
  bool stalled = false, late = false;
  {
    std::lock_guard records(mutex_);
    if (dead_) return;
    const auto now = Clock::now();
    if (unfinished_) stalled = stalled_in(collectives_, now, head, late) || stalled_in(point_to_point_, now, head, late);
  }
  try {
    answer_questions();
    if (late) {
      const Millis waited = std::chrono::duration_cast<Millis>(head.deadline - head.queued);
      const std::string what = "timed out after " + seconds(waited) + " in process group '" + options_.name + "'";
      abort(report(head, what, kPatience));
    } else if (stalled) {
      ask(head);
    }
  } catch (const DistError& e) {
    if (late) abort(std::string(op_name(head.signature.kind)) + ": timed out; " + head.text() + "; the other ranks could not be asked: " + e.what());
  }
}

void ProcessGroup::stop() {
  std::lock_guard lock(store_mutex_);
  store_ = nullptr;
}

// ---- the monitor, and names ----------------------------------------------------------------------------------------
namespace {

struct Directory {
  std::mutex mutex;
  std::vector<std::weak_ptr<ProcessGroup>> watched;
  std::map<std::string, std::shared_ptr<ProcessGroup>> named;
  bool running = false;
};
Directory& directory() {
  static Directory* one = new Directory;  // the monitor's thread outlives static destruction
  return *one;
}

void monitor() {
  for (;;) {
    std::this_thread::sleep_for(kTick);
    std::vector<std::shared_ptr<ProcessGroup>> groups;
    {
      Directory& d = directory();
      std::lock_guard lock(d.mutex);
      std::erase_if(d.watched, [&](const auto& weak) {
        auto group = weak.lock();
        if (group) groups.push_back(group);
        return !group;
      });
      if (d.watched.empty()) {
        d.running = false;
        return;
      }
    }
    for (const auto& group : groups) group->watch();
  }
}

}  // namespace

void watch_group(const std::shared_ptr<ProcessGroup>& group) {
  Directory& d = directory();
  std::lock_guard lock(d.mutex);
  d.watched.push_back(group);
  if (!std::exchange(d.running, true)) std::thread(monitor).detach();
}

void register_group(const std::shared_ptr<ProcessGroup>& group) {
  Directory& d = directory();
  std::lock_guard lock(d.mutex);
  d.named[group->options().name] = group;
}

void unregister_group(const std::string& name) {
  Directory& d = directory();
  std::lock_guard lock(d.mutex);
  d.named.erase(name);
}

std::shared_ptr<ProcessGroup> find_group(const std::string& name) {
  Directory& d = directory();
  std::lock_guard lock(d.mutex);
  auto found = d.named.find(name);
  if (found == d.named.end())
    throw DistError(DistErrorKind::kBackend,
                    "process group '" + name + "' does not exist here; call init_process_group, or new_group, on every rank first");
  return found->second;
}

}  // namespace argand::distributed
