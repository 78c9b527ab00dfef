#include "packages/distributed/csrc/group/sockets.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>

namespace argand::distributed {

namespace {

// 0 where it is no socket.
ino_t socket_inode(int fd) {
  struct stat facts;
  return ::fstat(fd, &facts) == 0 && S_ISSOCK(facts.st_mode) ? facts.st_ino : 0;
}

}  // namespace

Sockets connected_sockets() {
  Sockets out;
  DIR* folder = ::opendir("/proc/self/fd");
  if (!folder) return out;
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    const ino_t inode = entry->d_name[0] == '.' ? 0 : socket_inode(fd);
    sockaddr_storage peer;
    socklen_t length = sizeof peer;
    if (inode && ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 && (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
      out[fd] = inode;
  }
  ::closedir(folder);
  return out;
}

void shut_down(const Sockets& sockets) {
  for (const auto& [fd, inode] : sockets)
    if (socket_inode(fd) == inode) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace argand::distributed
