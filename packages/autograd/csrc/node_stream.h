// A node's backward runs with the device and on the stream of its forward, and is ordered with the caller's stream on both sides.
#pragma once

#include "packages/autograd/csrc/node.h"

namespace argand::autograd {

class NodeStream {
 public:
  NodeStream(const Node* node, const Tensor* in, uint32_t n_in) : device_(node->device()) {
    if (__builtin_expect(ARGAND_DEVICE_TYPE(device_) == ARGAND_CPU, 1)) return;
    enter(node->stream(), in, n_in);
  }
  bool switched() const { return switched_; }
  // Gradients made on the node's stream are read on the caller's; an error leaves that to the destructor.
  void leave(const Tensor* out, uint32_t n_out) {
    if (!switched_) return;
    for (uint32_t i = 0; i < n_out; i++) use(out[i], caller_);
    switched_ = false;
    order(stream_, caller_);
    check(interface_->stream_set(index(), caller_));
  }
  ~NodeStream() {
    if (switched_) interface_->stream_set(index(), caller_);
    if (previous_ >= 0) interface_->set_device(previous_);
  }
  NodeStream(const NodeStream&) = delete;
  NodeStream& operator=(const NodeStream&) = delete;

 private:
  int32_t index() const { return ARGAND_DEVICE_INDEX(device_); }

  void enter(void* stream, const Tensor* in, uint32_t n_in) {
    interface_ = device_interface(device_);
    if (!interface_ || !interface_->set_device) return;
    int32_t current = 0;
    check(interface_->get_device(&current));
    if (current != index()) {
      check(interface_->set_device(index()));
      previous_ = current;
    }
    if (!interface_->stream_current) return;
    check(interface_->stream_current(index(), &caller_));
    if (caller_ == stream) return;
    stream_ = stream;
    for (uint32_t i = 0; i < n_in; i++) use(in[i], stream);
    order(caller_, stream);
    check(interface_->stream_set(index(), stream));
    switched_ = true;
  }

  void use(const Tensor& t, void* stream) const {
    if (t && t.device() == device_ && t->storage->data) check(interface_->record_stream(t->storage->data, index(), stream));
  }

  // What `later` gets from now on runs after what `earlier` has.
  void order(void* earlier, void* later) const {
    void* event = nullptr;
    check(interface_->event_new(index(), 0, &event));
    int status = interface_->event_record(event, index(), earlier);
    if (!status) status = interface_->stream_wait_event(index(), later, event);
    interface_->event_destroy(event, index());
    check(status);
  }

  const ArgandDevice device_;
  const ArgandDeviceInterface* interface_ = nullptr;
  void *caller_ = nullptr, *stream_ = nullptr;
  int32_t previous_ = -1;
  bool switched_ = false;
};

}  // namespace argand::autograd
