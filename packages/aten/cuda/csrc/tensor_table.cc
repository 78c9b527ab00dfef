#include "packages/aten/cuda/csrc/tensor_table.h"

#include <cstring>

namespace argand::kernels::cuda {
namespace {

// Programs use few lists, and each again and again: gradients get the same blocks from the allocator in every step.
constexpr size_t kKept = 32;

struct Kept {
  ArgandDevice device;
  void* stream;  // on which it was written, and the only one on which it is read
  std::vector<int64_t> words;
  Tensor table;
};

bool is_capturing(const ArgandDeviceInterface* interface, ArgandDevice device, void* stream) {
  int capturing = 0;
  if (interface->capture_status) check(interface->capture_status(ARGAND_DEVICE_INDEX(device), stream, &capturing));
  return capturing != 0;
}

Tensor written(const ArgandDeviceInterface* interface, ArgandDevice device, const std::vector<int64_t>& words, bool capturing) {
  const size_t nbytes = words.size() * sizeof(int64_t);
  const Tensor table = empty({static_cast<int64_t>(words.size())}, ARGAND_INT64, device);
  void* host = interface->host_allocate(nbytes);
  if (!host) check(ARGAND_OUT_OF_MEMORY_ERROR);
  std::memcpy(host, words.data(), nbytes);
  const int status = interface->copy_async(table->data, device, host, ARGAND_DEVICE(ARGAND_CPU, 0), nbytes);
  // A graph copies it again at every replay: the block is then never given back.
  if (!capturing || status) interface->host_deallocate(host);
  check(status);
  return table;
}

}  // namespace

void TensorTable::add(std::initializer_list<const Tensor*> operands, int64_t numel) {
  const int64_t tensor = tensors();
  for (const Tensor* t : operands) {
    const auto address = reinterpret_cast<intptr_t>(*t ? (*t)->data : nullptr);
    if (*t && (*t).numel() == numel) aligned_ = aligned_ && address % 16 == 0;
    rows_.push_back(address);
  }
  rows_.resize(static_cast<size_t>((tensor + 1) * kTableRow));
  rows_[static_cast<size_t>(tensor * kTableRow + 6)] = numel;
  for (int64_t chunk = 0; chunk * kTableChunk < numel; chunk++, n_chunks_++) chunk_words_.push_back(tensor << 32 | chunk);
}

TensorTable::Addresses TensorTable::upload(ArgandDevice device) {
  const ArgandDeviceInterface* interface = device_interface(device);
  void* const stream = current_stream(device);
  const size_t split = rows_.size();
  std::vector<int64_t> words = rows_;
  words.insert(words.end(), chunk_words_.begin(), chunk_words_.end());
  const auto addresses = [&](const Tensor& table) { return Addresses{table->data, table.data<int64_t>() + split, table}; };
  if (is_capturing(interface, device, stream)) return addresses(written(interface, device, words, true));
  static thread_local std::vector<Kept> kept;
  for (const Kept& k : kept)
    if (k.device == device && k.stream == stream && k.words == words) return addresses(k.table);
  if (kept.size() == kKept) kept.erase(kept.begin());
  kept.push_back({device, stream, words, written(interface, device, words, false)});
  return addresses(kept.back().table);
}

}  // namespace argand::kernels::cuda
