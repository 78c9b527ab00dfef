// Key-value stores by which processes find and question one another.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "packages/distributed/csrc/store/error.h"

namespace argand::distributed {

using Millis = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Keys = std::vector<std::string>;

// Called between slices of a long wait; throws to end it. The binding looks for signals there.
extern void (*check_interrupt)();

// Methods may be called from any thread.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual bool fetch(const std::string& key, std::string* value) = 0;  // false: there is no such key
  virtual int64_t add(const std::string& key, int64_t amount) = 0;     // values are decimal text; a missing key is 0
  // Sets `desired` where the value equals `expected`, or where there is none and `expected` is empty. Returns the value after that.
  virtual std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) = 0;
  virtual bool check(const Keys& keys) = 0;  // all are there
  virtual bool delete_key(const std::string& key) = 0;
  virtual int64_t num_keys() = 0;
  // Waits until all keys are there, for at most `slice`.
  virtual bool wait_for(const Keys& keys, Millis slice) = 0;
  virtual std::shared_ptr<Store> clone() { return nullptr; }  // one with a connection of its own; nullptr: this one serves all threads
  virtual std::string local_address() { return ""; }          // by which this host reached the store's

  std::string get(const std::string& key);  // waits for it
  void wait(const Keys& keys, Millis timeout);
  virtual Millis timeout() const { return timeout_; }
  virtual void set_timeout(Millis timeout) { timeout_ = timeout; }

 protected:
  Millis timeout_ = std::chrono::minutes(5);
};

// For threads of one process; also what a server keeps.
class HashStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  bool fetch(const std::string& key, std::string* value) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  bool check(const Keys& keys) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  bool wait_for(const Keys& keys, Millis slice) override;
  void close();  // waits end

 private:
  bool has_all(const Keys& keys) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, std::string> values_;
  bool closed_ = false;
};

class PrefixStore : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store) : prefix_(std::move(prefix)), store_(std::move(store)) {}
  const std::shared_ptr<Store>& underlying() const { return store_; }
  void set(const std::string& key, const std::string& value) override { store_->set(full(key), value); }
  bool fetch(const std::string& key, std::string* value) override { return store_->fetch(full(key), value); }
  int64_t add(const std::string& key, int64_t amount) override { return store_->add(full(key), amount); }
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override {
    return store_->compare_set(full(key), expected, desired);
  }
  bool check(const Keys& keys) override { return store_->check(full(keys)); }
  bool delete_key(const std::string& key) override { return store_->delete_key(full(key)); }
  int64_t num_keys() override { return store_->num_keys(); }
  bool wait_for(const Keys& keys, Millis slice) override { return store_->wait_for(full(keys), slice); }
  std::shared_ptr<Store> clone() override {
    auto inner = store_->clone();
    return inner ? std::make_shared<PrefixStore>(prefix_, inner) : nullptr;
  }
  std::string local_address() override { return store_->local_address(); }
  Millis timeout() const override { return store_->timeout(); }
  void set_timeout(Millis timeout) override { store_->set_timeout(timeout); }

 private:
  std::string full(const std::string& key) const { return prefix_ + "/" + key; }
  Keys full(const Keys& keys) const;

  std::string prefix_;
  std::shared_ptr<Store> store_;
};

// In a file that all processes can lock. With a world size, the last of that many stores to be destroyed removes the file.
class FileStore : public Store {
 public:
  FileStore(std::string path, int64_t world_size);
  ~FileStore() override;
  const std::string& path() const { return path_; }
  void set(const std::string& key, const std::string& value) override;
  bool fetch(const std::string& key, std::string* value) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  bool check(const Keys& keys) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  bool wait_for(const Keys& keys, Millis slice) override;

 private:
  class Locked;

  std::string path_;
  int64_t world_size_;
  std::mutex mutex_;
  int64_t read_ = 0;  // bytes of the file that `values_` knows
  std::unordered_map<std::string, std::string> values_;
};

}  // namespace argand::distributed
