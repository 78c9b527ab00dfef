#include "packages/distributed/csrc/store/store.h"

#include <algorithm>

namespace argand::distributed {

void (*check_interrupt)() = [] {};

namespace {
constexpr Millis kSlice{200};  // between looks at signals
}

void Store::wait(const Keys& keys, Millis timeout) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<Millis>(deadline - Clock::now());
    if (wait_for(keys, std::max(Millis{0}, std::min(left, kSlice)))) return;
    if (left <= kSlice && Clock::now() >= deadline) break;
    check_interrupt();
  }
  std::string missing;
  for (const auto& key : keys)
    if (!check({key})) missing += (missing.empty() ? "'" : ", '") + key + "'";
  throw DistError(DistErrorKind::kStore, "store: waited " + std::to_string(timeout.count() / 1000.0).substr(0, 6) + " s for " +
                                             (missing.empty() ? "keys that came just then" : missing) +
                                             "; does every process run, and with the same world size?");
}

std::string Store::get(const std::string& key) {
  std::string value;
  const auto deadline = Clock::now() + timeout();
  while (!fetch(key, &value)) wait({key}, std::max(Millis{0}, std::chrono::duration_cast<Millis>(deadline - Clock::now())));
  return value;
}

// ---- HashStore -----------------------------------------------------------------------------------------------------
void HashStore::set(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

bool HashStore::fetch(const std::string& key, std::string* value) {
  std::lock_guard lock(mutex_);
  auto found = values_.find(key);
  if (found == values_.end()) return false;
  *value = found->second;
  return true;
}

int64_t parse_count(const std::string& key, const std::string& text) {
  try {
    size_t used = 0;
    const int64_t value = std::stoll(text, &used);
    if (used == text.size()) return value;
  } catch (const std::exception&) {
  }
  throw DistError(DistErrorKind::kStore, "add: the value of '" + key + "' is no integer; add counts only in keys that add made");
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  std::lock_guard lock(mutex_);
  auto& value = values_[key];
  const int64_t sum = (value.empty() ? 0 : parse_count(key, value)) + amount;
  value = std::to_string(sum);
  changed_.notify_all();
  return sum;
}

std::string HashStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  std::lock_guard lock(mutex_);
  auto found = values_.find(key);
  if (found == values_.end()) {
    if (!expected.empty()) return expected;
    values_[key] = desired;
    changed_.notify_all();
    return desired;
  }
  if (found->second == expected) {
    found->second = desired;
    changed_.notify_all();
  }
  return found->second;
}

bool HashStore::has_all(const Keys& keys) const {
  for (const auto& key : keys)
    if (!values_.count(key)) return false;
  return true;
}

bool HashStore::check(const Keys& keys) {
  std::lock_guard lock(mutex_);
  return has_all(keys);
}

bool HashStore::delete_key(const std::string& key) {
  std::lock_guard lock(mutex_);
  return values_.erase(key) > 0;
}

int64_t HashStore::num_keys() {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(values_.size());
}

bool HashStore::wait_for(const Keys& keys, Millis slice) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, slice, [&] { return closed_ || has_all(keys); });
  return has_all(keys);
}

void HashStore::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Keys PrefixStore::full(const Keys& keys) const {
  Keys out;
  for (const auto& key : keys) out.push_back(full(key));
  return out;
}

}  // namespace argand::distributed
