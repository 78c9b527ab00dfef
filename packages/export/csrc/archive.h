// Files in a zip that are stored without compression.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "packages/export/csrc/sha256.h"

namespace argand::package {

// Failures are of kind ARGAND_PACKAGE_DAMAGED or ARGAND_PACKAGE_UNREADABLE.
class Archive {
 public:
  struct Member {
    uint64_t header, size;  // offset of the local header; bytes
    uint32_t crc;
  };

  explicit Archive(const char* path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  const Member& member(const std::string& name) const;
  uint64_t data_offset(const Member& member) const;
  void read(uint64_t offset, void* to, size_t nbytes) const;
  std::string content(const std::string& name, uint64_t limit) const;
  void check(const Member& member, const std::string& content) const;  // against the checksum that the archive states

 private:
  void read_directory();
  void read_entries(const std::string& directory);

  int fd_;
  uint64_t size_ = 0;
  std::map<std::string, Member> members_;
};

}  // namespace argand::package
