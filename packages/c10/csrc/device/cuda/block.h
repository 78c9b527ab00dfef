// Data structures of the caching allocator: blocks, free lists and the table from addresses to blocks. No driver calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "packages/c10/csrc/device/cuda/driver.h"

namespace argand::core::cuda {

inline constexpr size_t kGrain = 512;                   // sizes and addresses of blocks are multiples of it
inline constexpr size_t kSmallBytes = size_t{1} << 20;  // requests up to this come from small segments
inline constexpr size_t kSmallSegment = size_t{2} << 20;
inline constexpr size_t kMiddleBytes = size_t{10} << 20;  // requests below this come from segments of kMiddleSegment
inline constexpr size_t kMiddleSegment = size_t{20} << 20;
inline constexpr size_t kLargeRound = size_t{2} << 20;  // larger segments are multiples of this

inline size_t round_size(size_t nbytes) { return nbytes < kGrain ? kGrain : (nbytes + kGrain - 1) & ~(kGrain - 1); }

struct StreamPool;

// A part of a segment. Neighbours by address are linked; two free neighbours never stay apart.
struct Block {
  char* data = nullptr;
  size_t size = 0;
  size_t requested = 0;
  StreamPool* pool = nullptr;
  Block *prev = nullptr, *next = nullptr;            // in the segment
  Block *free_prev = nullptr, *free_next = nullptr;  // in a list of free small blocks
  bool allocated = false;
  bool small = false;
  uint32_t pending = 0;                            // events to wait for before it is free
  std::unique_ptr<std::vector<CUstream>> streams;  // further ones that use it
  bool is_split() const { return prev || next; }
  bool is_free() const { return !allocated && !pending; }
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const { return a->size != b->size ? a->size < b->size : a->data < b->data; }
};

// The free blocks of one stream: small ones in a list for each multiple of kGrain with a bitmap over the lists, large ones ordered.
struct StreamPool {
  static constexpr size_t kLists = kSmallSegment / kGrain + 1;
  static constexpr size_t kWords = (kLists + 63) / 64;

  uint64_t id;  // of the private pool; 0: the common one
  CUstream stream;
  std::set<Block*, BySize> large;
  Block* lists[kLists] = {};
  uint64_t present[kWords] = {};

  StreamPool(uint64_t pool_id, CUstream s) : id(pool_id), stream(s) {}

  void insert(Block* b) {
    if (!b->small) {
      large.insert(b);
      return;
    }
    const size_t k = b->size / kGrain;
    b->free_prev = nullptr;
    b->free_next = lists[k];
    if (lists[k]) lists[k]->free_prev = b;
    lists[k] = b;
    present[k / 64] |= uint64_t{1} << (k % 64);
  }
  void remove(Block* b) {
    if (!b->small) {
      large.erase(b);
      return;
    }
    const size_t k = b->size / kGrain;
    if (b->free_prev)
      b->free_prev->free_next = b->free_next;
    else
      lists[k] = b->free_next;
    if (b->free_next) b->free_next->free_prev = b->free_prev;
    if (!lists[k]) present[k / 64] &= ~(uint64_t{1} << (k % 64));
  }
  // The smallest free block of at least `size` bytes, still in its list; NULL when there is none.
  Block* best(size_t size, bool small) {
    if (!small) {
      Block key;
      key.size = size;
      const auto found = large.lower_bound(&key);
      return found == large.end() ? nullptr : *found;
    }
    size_t word = size / kGrain / 64;
    uint64_t bits = present[word] & (~uint64_t{0} << (size / kGrain % 64));
    while (!bits && ++word < kWords) bits = present[word];
    return bits ? lists[word * 64 + static_cast<size_t>(__builtin_ctzll(bits))] : nullptr;
  }
};

// Address of a block in use -> block: open addressing, erased without tombstones.
class BlockTable {
 public:
  BlockTable() : slots_(1024) {}
  void insert(Block* b) {
    if (2 * ++count_ > slots_.size()) grow();
    place(b);
  }
  Block* find(const void* data) const {
    for (size_t i = home(data);; i = (i + 1) & mask()) {
      if (!slots_[i] || slots_[i]->data == data) return slots_[i];
    }
  }
  void erase(const Block* b) {
    size_t hole = home(b->data);
    while (slots_[hole] != b) hole = (hole + 1) & mask();
    count_--;
    for (size_t i = (hole + 1) & mask(); slots_[i]; i = (i + 1) & mask()) {  // close the gap behind
      if (((i - home(slots_[i]->data)) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = nullptr;
  }

 private:
  size_t mask() const { return slots_.size() - 1; }
  size_t home(const void* data) const {
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(data) / kGrain) * 0x9e3779b97f4a7c15ull >> 32) & mask();
  }
  void place(Block* b) {
    size_t i = home(b->data);
    while (slots_[i]) i = (i + 1) & mask();
    slots_[i] = b;
  }
  void grow() {
    std::vector<Block*> old(slots_.size() * 2);
    old.swap(slots_);
    for (Block* b : old)
      if (b) place(b);
  }
  std::vector<Block*> slots_;
  size_t count_ = 0;
};

}  // namespace argand::core::cuda
