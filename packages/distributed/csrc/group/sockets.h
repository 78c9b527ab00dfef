// Connections that a library has opened and keeps to itself.
#pragma once

#include <sys/types.h>

#include <map>

namespace argand::distributed {

// Connected stream sockets of this process: descriptor -> inode, which tells a descriptor that was used again.
using Sockets = std::map<int, ino_t>;
Sockets connected_sockets();
// Both directions end: whoever waits for them reads the end of the stream.
void shut_down(const Sockets& sockets);

}  // namespace argand::distributed
