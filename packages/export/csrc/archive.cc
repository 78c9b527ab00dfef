#include "packages/export/csrc/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "packages/export/csrc/failure.h"

namespace argand::package {
namespace {

// What an archive may make us allocate for its directory.
constexpr uint64_t kLargestDirectory = 1 << 24;
constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;

template <class T>
T at(const char* p) {
  T value;
  memcpy(&value, p, sizeof value);
  return value;
}

uint32_t crc32(const std::string& data) {
  uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<uint8_t>(c);
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

[[noreturn]] void damaged(const char* what) { fail(ARGAND_PACKAGE_DAMAGED, "%s; expected what argand.export.package wrote", what); }

}  // namespace

Archive::Archive(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {
  struct stat found;
  if (fd_ < 0 || fstat(fd_, &found)) {
    const int number = errno;
    if (fd_ >= 0) close(fd_);
    fail(ARGAND_PACKAGE_UNREADABLE, "%s", strerror(number));
  }
  size_ = static_cast<uint64_t>(found.st_size);
  try {
    read_directory();
  } catch (...) {
    close(fd_);
    throw;
  }
}

Archive::~Archive() { close(fd_); }

void Archive::read(uint64_t offset, void* to, size_t nbytes) const {
  if (offset > size_ || nbytes > size_ - offset) damaged("it is cut off");
  auto* p = static_cast<char*>(to);
  while (nbytes) {
    const ssize_t n = pread(fd_, p, nbytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ARGAND_PACKAGE_UNREADABLE, "%s", strerror(errno));
    if (n == 0) damaged("it is cut off");
    p += n;
    offset += static_cast<uint64_t>(n);
    nbytes -= static_cast<size_t>(n);
  }
}

void Archive::read_directory() {
  // The end record is last; it may have a comment, which ours have not.
  char end[22];
  if (size_ < sizeof end) damaged("it is no zip archive");
  read(size_ - sizeof end, end, sizeof end);
  if (at<uint32_t>(end) != kEnd) damaged("it is no zip archive, or cut off");
  uint64_t nbytes = at<uint32_t>(end + 12), offset = at<uint32_t>(end + 16);
  if (offset == 0xffffffff || nbytes == 0xffffffff || at<uint16_t>(end + 10) == 0xffff) {
    char locator[20], end64[56];
    if (size_ < sizeof end + sizeof locator) damaged("it is cut off");
    read(size_ - sizeof end - sizeof locator, locator, sizeof locator);
    if (at<uint32_t>(locator) != kLocator64) damaged("its directory is damaged");
    read(at<uint64_t>(locator + 8), end64, sizeof end64);
    if (at<uint32_t>(end64) != kEnd64) damaged("its directory is damaged");
    nbytes = at<uint64_t>(end64 + 40);
    offset = at<uint64_t>(end64 + 48);
  }
  if (nbytes > std::min(size_, kLargestDirectory)) damaged("its directory is damaged");
  std::string directory(nbytes, 0);
  read(offset, directory.data(), nbytes);
  read_entries(directory);
}

void Archive::read_entries(const std::string& directory) {
  const char *p = directory.data(), *const end = p + directory.size();
  while (end - p >= 46 && at<uint32_t>(p) == kCentral) {
    const uint16_t method = at<uint16_t>(p + 10), name = at<uint16_t>(p + 28), extra = at<uint16_t>(p + 30), comment = at<uint16_t>(p + 32);
    if (end - p < 46 + name + extra + comment) break;
    Member found = {at<uint32_t>(p + 42), at<uint32_t>(p + 24), at<uint32_t>(p + 16)};
    const char *field = p + 46 + name, *const last = field + extra;
    while (last - field >= 4) {
      const uint16_t id = at<uint16_t>(field), length = at<uint16_t>(field + 2);
      if (last - field < 4 + length) break;
      const char *value = field + 4, *const stop = value + length;
      for (uint64_t* wide : {&found.size, &found.header})
        if (id == 1 && *wide == 0xffffffff && stop - value >= 8) {
          *wide = at<uint64_t>(value);
          value += 8;
        }
      field = stop;
    }
    if (method == 0) members_[std::string(p + 46, name)] = found;
    p += 46 + name + extra + comment;
  }
  if (p != end) damaged("its directory is damaged");
}

const Archive::Member& Archive::member(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) fail(ARGAND_PACKAGE_DAMAGED, "it holds no %s; expected what argand.export.package wrote", name.c_str());
  return found->second;
}

uint64_t Archive::data_offset(const Member& member) const {
  char header[30];
  read(member.header, header, sizeof header);
  if (at<uint32_t>(header) != kLocal) damaged("its directory is damaged");
  const uint64_t offset = member.header + sizeof header + at<uint16_t>(header + 26) + at<uint16_t>(header + 28);
  if (offset > size_ || member.size > size_ - offset) damaged("it is cut off");
  return offset;
}

std::string Archive::content(const std::string& name, uint64_t limit) const {
  const Member& found = member(name);
  const uint64_t offset = data_offset(found);
  if (found.size > limit) fail(ARGAND_PACKAGE_DAMAGED, "its %s claims %llu bytes", name.c_str(), static_cast<unsigned long long>(found.size));
  std::string data(found.size, 0);
  read(offset, data.data(), data.size());
  return data;
}

void Archive::check(const Member& member, const std::string& content) const {
  if (crc32(content) != member.crc) damaged("a checksum differs");
}

}  // namespace argand::package
