// Caches whose keys are compared and hashed as bytes: structs without padding, whose size is a multiple of 8.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <unordered_map>

namespace argand::cuda {

template <class Key>
struct PlainHash {
  static_assert(std::is_trivially_copyable_v<Key> && sizeof(Key) % 8 == 0);
  size_t operator()(const Key& key) const {
    uint64_t words[sizeof(Key) / 8], h = 0x9e3779b97f4a7c15u;
    std::memcpy(words, &key, sizeof key);
    for (const uint64_t w : words) {
      h = (h ^ w) * 0xff51afd7ed558ccdu;
      h ^= h >> 32;
    }
    return h;
  }
};
template <class Key>
struct PlainEqual {
  bool operator()(const Key& a, const Key& b) const { return std::memcmp(&a, &b, sizeof a) == 0; }
};

// Plans by their keys, `kMost` of them at most: programs with ever new keys start over.
template <class Key, class Plan, size_t kMost>
class PlanCache {
 public:
  // make(Plan&) fills in a plan that is not there; where it throws, none is kept.
  template <class Make>
  Plan& get(const Key& key, Make&& make) {
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;
    if (plans_.size() >= kMost) plans_.clear();
    Plan& plan = plans_[key];
    try {
      make(plan);
    } catch (...) {
      plans_.erase(key);
      throw;
    }
    return plan;
  }

 private:
  std::unordered_map<Key, Plan, PlainHash<Key>, PlainEqual<Key>> plans_;
};

}  // namespace argand::cuda
