#include "packages/inductor/csrc/recording.h"

#include <algorithm>
#include <utility>

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
  const ArgandApi* api;
  ArgandTensor* tensor;  // owned
  std::shared_ptr<Result> result;
};

void end_loan(void*, void* context, size_t) {
  Loan* loan = static_cast<Loan*>(context);
  loan->result->held.store(false, std::memory_order_release);
  release(loan->api, loan->tensor);
  delete loan;
}

// Whether a result is an input that is read where it lies.
bool is_staying_input(const Result* result, const ArgandValue* values, const std::vector<Moves>& moves) {
  for (size_t i = 0; i < moves.size(); i++)
    if (values[i].tag == ARGAND_TAG_TENSOR && lent_result(values[i].t) == result) return !moves[i].is_moving();
  return false;
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

const Result* lent_result(const ArgandTensor* t) {
  return t->storage->deleter == end_loan ? static_cast<const Loan*>(t->storage->context)->result.get() : nullptr;
}

int lend(const ArgandApi* api, ArgandTensor* t, std::shared_ptr<Result> result, ArgandTensor** out) {
  Loan* loan = new Loan{api, t, std::move(result)};
  retain(t);
  ArgandStorage* storage = nullptr;
  int status = api->storage_from_blob(t->storage->device, t->storage->data, t->storage->nbytes, end_loan, loan, 0, &storage);
  if (status) {
    release(api, t);
    delete loan;
    return status;
  }
  loan->result->held.store(true, std::memory_order_release);
  status = api->tensor_from_storage(storage, t->ndim, t->sizes, t->strides, t->offset, t->dtype, out);
  if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(storage);
  return status;
}

void Moves::add(const ArgandTensor* t) { count += lent_result(t) ? 1 : kLentMoves + 1; }

Recording::Recording(const ArgandApi* api, ArgandDevice device)
    : number(RecordingPool::of(api, device)->add()),
      pool(RecordingPool::of(api, device)),
      api_(api),
      interface_(api->device_interface(ARGAND_DEVICE_TYPE(device))),
      device_(device) {}

Recording::~Recording() {
  for (RecordedInput& input : inputs) release(api_, input.buffer);
  for (RecordedOutput& output : outputs) release(api_, output.tensor);
  if (graph) interface_->graph_destroy(ARGAND_DEVICE_INDEX(device_), graph);
  pool->remove();
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
  return pool->replay(graph);
}

int Recording::hand_out(size_t i, ArgandTensor** out) {
  const RecordedOutput& output = outputs[i];
  if (!output.result->copied) return lend(api_, output.tensor, output.result, out);
  const int status = new_like(output.tensor, out);
  return status ? status : copy(*out, output.tensor);
}

bool Recording::fits(const ArgandValue* values, std::vector<Moves>* moves) {
  const auto others = pool->overwritten_by(number);
  bool found = others.empty();
  for (size_t i = 0; i < inputs.size(); i++) {
    if (values[i].tag != ARGAND_TAG_TENSOR) continue;
    const Result* lent = others.empty() ? nullptr : lent_result(values[i].t);
    const auto other = std::find_if(others.begin(), others.end(), [lent](const auto& result) { return result.get() == lent; });
    const bool moved = !inputs[i].buffer && values[i].t->data != inputs[i].address;
    if (!moved && other == others.end()) continue;
    (*moves)[i].add(values[i].t);
    found = false;
  }
  for (const auto& result : others) result->copied |= !is_staying_input(result.get(), values, *moves);
  for (const RecordedOutput& output : outputs) {
    if (!output.result || !output.result->held.load(std::memory_order_acquire)) continue;
    output.result->copied = true;
    found = false;
  }
  return found;
}

}  // namespace argand::inductor
