#include "packages/inductor/csrc/recording_pool.h"

#include <map>
#include <utility>

namespace argand::inductor {

RecordingPool::RecordingPool(const ArgandApi* api, ArgandDevice device)
    : interface_(api->device_interface(ARGAND_DEVICE_TYPE(device))), index_(ARGAND_DEVICE_INDEX(device)) {}

RecordingPool* RecordingPool::of(const ArgandApi* api, ArgandDevice device) {
  static auto* const pools = new std::map<ArgandDevice, RecordingPool*>();  // as long as the process: recordings may outlive static destructors
  RecordingPool*& pool = (*pools)[device];
  if (!pool) pool = new RecordingPool(api, device);
  return pool;
}

uint64_t RecordingPool::add() {
  recordings_++;
  return ++last_number_;
}

// The last one takes the memory with it.
void RecordingPool::remove() {
  if (--recordings_ || !id_) return;
  interface_->pool_release(index_, id_);
  id_ = 0;
}

int RecordingPool::begin() {
  int status = id_ ? 0 : interface_->pool_new(index_, &id_);
  if (!status && !own_stream_) status = interface_->stream_new(index_, 0, &own_stream_);
  if (!status) status = interface_->stream_current(index_, &stream_before_);
  if (!status) status = interface_->stream_set(index_, own_stream_);
  if (status) return status;
  status = interface_->capture_begin(index_, id_, ARGAND_CAPTURE_THREAD_LOCAL);
  if (status) interface_->stream_set(index_, stream_before_);
  busy_ = !status;
  return status;
}

int RecordingPool::end(void** graph) {
  const int status = interface_->capture_end(index_, graph);
  const int restored = interface_->stream_set(index_, stream_before_);
  busy_ = false;
  return status ? status : restored;
}

std::shared_ptr<Result> RecordingPool::add_result(uint64_t recording) {
  std::erase_if(results_, [](const std::weak_ptr<Result>& r) { return r.expired(); });
  auto result = std::make_shared<Result>();
  result->recording = recording;
  results_.push_back(result);
  return result;
}

std::vector<std::shared_ptr<Result>> RecordingPool::overwritten_by(uint64_t recording) const {
  std::vector<std::shared_ptr<Result>> found;
  for (size_t i = results_.size(); i-- > 0;) {  // in the order of their recordings
    std::shared_ptr<Result> result = results_[i].lock();
    if (!result) continue;
    if (result->recording <= recording) break;
    if (result->held.load(std::memory_order_acquire)) found.push_back(std::move(result));
  }
  return found;
}

int RecordingPool::replay(void* graph) {
  void* stream = nullptr;
  int status = interface_->stream_current(index_, &stream);
  if (!status && replayed_ && stream != last_stream_) {  // after the graphs on the stream before, whose memory this one writes
    void* event = nullptr;
    status = interface_->event_new(index_, 0, &event);
    if (status) return status;
    status = interface_->event_record(event, index_, last_stream_);
    if (!status) status = interface_->stream_wait_event(index_, stream, event);
    const int destroyed = interface_->event_destroy(event, index_);
    status = status ? status : destroyed;
  }
  replayed_ = true;
  last_stream_ = stream;
  return status ? status : interface_->graph_launch(index_, graph);
}

}  // namespace argand::inductor
