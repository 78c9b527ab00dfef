// Lists of tensors for one launch: a table of addresses on the device, and the chunks that programs work on
// (argand_aten_cuda/kernels/optimizer.py).
#pragma once

#include <vector>

#include "packages/aten/cuda/csrc/fused.h"

namespace argand::kernels::cuda {

inline constexpr int64_t kTableRow = 8;  // words: six addresses, the number of elements, unused
inline constexpr int64_t kTableChunk = 32768, kTableBlock = 1024;

class TensorTable {
 public:
  // One row: the operands of one tensor, at most six, all of its number of elements (a step count may be of one).
  void add(std::initializer_list<const Tensor*> operands, int64_t numel);
  int32_t tensors() const { return static_cast<int32_t>(rows_.size() / kTableRow); }
  int64_t chunks() const { return n_chunks_; }
  bool is_aligned() const { return aligned_; }  // all addresses are multiples of 16

  // The table on the device, then the chunks behind it. Tables that are used again stay there; valid for work that is queued now.
  struct Addresses {
    const void *table, *chunks;
    Tensor owner;
  };
  Addresses upload(ArgandDevice device);

 private:
  std::vector<int64_t> rows_, chunk_words_;
  int64_t n_chunks_ = 0;
  bool aligned_ = true;
};

}  // namespace argand::kernels::cuda
