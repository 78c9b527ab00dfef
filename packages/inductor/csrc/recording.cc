#include "packages/inductor/csrc/recording.h"

namespace argand::inductor {
namespace {

constexpr int64_t kItemSize[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

// Bytes from the first element to behind the last one.
int64_t span(const ArgandTensor* t) {
  if (!t->numel) return 0;
  int64_t last = 0;
  for (int32_t d = 0; d < t->ndim; d++) last += (t->sizes[d] - 1) * t->strides[d];
  return (last + 1) * kItemSize[t->dtype];
}

// Gaps behind rows that count as the tensor's own memory, in elements: less than a line of the cache (joint_passes/pad_rows.py).
constexpr int64_t kGap = 64;

// Elements of a row-major tensor with such gaps behind its rows, the last one's included; 0 for others.
int64_t with_gaps(const ArgandTensor* t) {
  if (t->ndim < 2 || !t->numel || t->strides[t->ndim - 1] != 1) return 0;
  const int64_t gap = t->strides[t->ndim - 2] - t->sizes[t->ndim - 1];
  if (gap <= 0 || gap >= kGap) return 0;
  int64_t step = t->strides[t->ndim - 2];
  for (int32_t d = t->ndim - 2; d >= 0; d--) {
    if (t->strides[d] != step) return 0;
    step *= t->sizes[d];
  }
  return static_cast<size_t>(t->offset + step) * kItemSize[t->dtype] <= t->storage->nbytes ? step : 0;
}

// dst.copy_(src)
int copy_elements(const ArgandApi* api, ArgandTensor* dst, ArgandTensor* src) {
  const ArgandOperator* op = api->op_find("copy_");
  ArgandValue args[3] = {}, result = {};
  args[0].tag = args[1].tag = ARGAND_TAG_TENSOR;
  args[0].t = dst;
  args[1].t = src;
  args[2].tag = ARGAND_TAG_BOOL;
  const int status = api->call(op, args, &result);
  if (!status) release(api, result.t);
  return status;
}

struct Loan {
  Recording* recording;
  std::atomic<bool>* lent;
};

void end_loan(void*, void* context, size_t) {
  Loan* loan = static_cast<Loan*>(context);
  loan->lent->store(false, std::memory_order_release);
  loan->recording->drop();
  delete loan;
}

}  // namespace

void append_key(CallKey* key, const ArgandValue& value) {
  if (value.tag != ARGAND_TAG_TENSOR) {
    key->push_back(value.i);
    return;
  }
  const ArgandTensor* t = value.t;
  key->push_back(t->dtype | static_cast<int64_t>(t->ndim) << 8 | static_cast<int64_t>(t->storage->device) << 32);
  key->insert(key->end(), t->sizes, t->sizes + t->ndim);
  key->insert(key->end(), t->strides, t->strides + t->ndim);
}

Recording::~Recording() {
  for (RecordedInput& input : inputs) release(api_, input.buffer);
  for (RecordedOutput& output : outputs) {
    release(api_, output.tensor);
    delete output.lent;
  }
  if (graph) interface_->graph_destroy(ARGAND_DEVICE_INDEX(device_), graph);
}

int Recording::new_like(const ArgandTensor* t, ArgandTensor** out) {
  const int64_t n = with_gaps(t);
  if (!n) return api_->tensor_empty_strided(t->ndim, t->sizes, t->strides, t->dtype, device_, out);
  ArgandStorage* storage = nullptr;
  int status = api_->storage_new(device_, static_cast<size_t>(n * kItemSize[t->dtype]), &storage);
  if (status) return status;
  status = api_->tensor_from_storage(storage, t->ndim, t->sizes, t->strides, 0, t->dtype, out);
  if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api_->storage_release(storage);
  return status;
}

int Recording::copy(ArgandTensor* to, ArgandTensor* from) {
  const int64_t gapped = with_gaps(to) == with_gaps(from) ? with_gaps(from) : 0;
  const int64_t nbytes = gapped ? gapped * kItemSize[from->dtype] : span(from);
  if (!gapped && nbytes != from->numel * kItemSize[from->dtype]) return copy_elements(api_, to, from);
  return nbytes ? interface_->copy(to->data, device_, from->data, device_, static_cast<size_t>(nbytes)) : 0;
}

int Recording::replay(const ArgandValue* values) {
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!inputs[i].buffer) continue;
    if (const int status = copy(inputs[i].buffer, values[i].t)) return status;
  }
  return interface_->graph_launch(ARGAND_DEVICE_INDEX(device_), graph);
}

int Recording::lend(size_t i, ArgandTensor** out) {
  RecordedOutput& output = outputs[i];
  ArgandTensor* t = output.tensor;
  if (output.copied) {
    const int status = new_like(t, out);
    return status ? status : copy(*out, t);
  }
  Loan* loan = new Loan{this, output.lent};
  ArgandStorage* storage = nullptr;
  hold();
  int status = api_->storage_from_blob(device_, t->storage->data, t->storage->nbytes, end_loan, loan, 0, &storage);
  if (status) {
    delete loan;
    drop();
    return status;
  }
  output.lent->store(true, std::memory_order_release);
  status = api_->tensor_from_storage(storage, t->ndim, t->sizes, t->strides, t->offset, t->dtype, out);
  if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api_->storage_release(storage);
  return status;
}

bool Recording::is_held(std::vector<bool>* copied) const {
  bool found = false;
  for (size_t i = 0; i < outputs.size(); i++) {
    if (!outputs[i].lent || !outputs[i].lent->load(std::memory_order_acquire)) continue;
    (*copied)[i] = found = true;
  }
  return found;
}

bool Recording::has_moved(const ArgandValue* values, std::vector<bool>* moving) const {
  bool found = false;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (values[i].tag != ARGAND_TAG_TENSOR || inputs[i].buffer || values[i].t->data == inputs[i].address) continue;
    (*moving)[i] = found = true;
  }
  return found;
}

}  // namespace argand::inductor
