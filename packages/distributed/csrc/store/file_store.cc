// A log of assignments in one file: <u32 key length> <u32 value length, or kDeleted> <key> <value>, appended under a lock of the file.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "packages/distributed/csrc/store/store.h"

namespace argand::distributed {

int64_t parse_count(const std::string& key, const std::string& text);

namespace {

constexpr uint32_t kDeleted = 0xffffffffu;
constexpr Millis kPoll{5};
constexpr const char* kGone = "/stores destroyed";

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw DistError(DistErrorKind::kStore, "FileStore: cannot " + std::string(what) + " " + path + ": " + std::strerror(errno) +
                                             "; give a path in a folder that every process can write");
}

}  // namespace

// The file, open and locked, with everything others have written read.
class FileStore::Locked {
 public:
  explicit Locked(FileStore& store) : store_(store), guard_(store.mutex_) {
    fd_ = ::open(store.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) fail(store.path_, "open");
    while (::flock(fd_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      ::close(fd_);
      fail(store.path_, "lock");
    }
    read();
  }
  ~Locked() { ::close(fd_); }

  void append(const std::string& key, const std::string* value) {
    const uint32_t head[2] = {static_cast<uint32_t>(key.size()), value ? static_cast<uint32_t>(value->size()) : kDeleted};
    std::string bytes(reinterpret_cast<const char*>(head), sizeof head);
    bytes += key;
    if (value) bytes += *value;
    if (::pwrite(fd_, bytes.data(), bytes.size(), store_.read_) != static_cast<ssize_t>(bytes.size())) fail(store_.path_, "write");
    read();
  }

 private:
  void read() {
    for (;;) {
      uint32_t head[2];
      if (::pread(fd_, head, sizeof head, store_.read_) != sizeof head) return;
      const bool deleted = head[1] == kDeleted;
      std::string bytes(head[0] + (deleted ? 0 : head[1]), '\0');
      if (::pread(fd_, bytes.data(), bytes.size(), store_.read_ + sizeof head) != static_cast<ssize_t>(bytes.size())) return;
      store_.read_ += static_cast<int64_t>(sizeof head + bytes.size());
      std::string key = bytes.substr(0, head[0]);
      if (deleted) {
        store_.values_.erase(key);
      } else {
        store_.values_[std::move(key)] = bytes.substr(head[0]);
      }
    }
  }

  FileStore& store_;
  std::lock_guard<std::mutex> guard_;
  int fd_;
};

FileStore::FileStore(std::string path, int64_t world_size) : path_(std::move(path)), world_size_(world_size) { Locked opened(*this); }

FileStore::~FileStore() {
  if (world_size_ <= 0) return;
  try {
    if (add(kGone, 1) == world_size_) ::unlink(path_.c_str());
  } catch (const DistError&) {  // the folder is gone: so is the file
  }
}

void FileStore::set(const std::string& key, const std::string& value) { Locked(*this).append(key, &value); }

bool FileStore::fetch(const std::string& key, std::string* value) {
  Locked locked(*this);
  auto found = values_.find(key);
  if (found == values_.end()) return false;
  *value = found->second;
  return true;
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  Locked locked(*this);
  auto found = values_.find(key);
  const int64_t sum = (found == values_.end() ? 0 : parse_count(key, found->second)) + amount;
  const std::string text = std::to_string(sum);
  locked.append(key, &text);
  return sum;
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  Locked locked(*this);
  auto found = values_.find(key);
  if (found == values_.end() && !expected.empty()) return expected;
  if (found != values_.end() && found->second != expected) return found->second;
  locked.append(key, &desired);
  return desired;
}

bool FileStore::check(const Keys& keys) {
  Locked locked(*this);
  for (const auto& key : keys)
    if (!values_.count(key)) return false;
  return true;
}

bool FileStore::delete_key(const std::string& key) {
  Locked locked(*this);
  if (!values_.count(key)) return false;
  locked.append(key, nullptr);
  return true;
}

int64_t FileStore::num_keys() {
  Locked locked(*this);
  return static_cast<int64_t>(values_.size() - values_.count(kGone));
}

bool FileStore::wait_for(const Keys& keys, Millis slice) {
  const auto deadline = Clock::now() + slice;
  while (!check(keys)) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace argand::distributed
