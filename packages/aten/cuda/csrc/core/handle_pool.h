// A library's handles, each of one stream of one device and used by one thread at a time.
#pragma once

#include <mutex>
#include <vector>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::cuda {

// `Handle` is cheap to copy; `Tag` tells pools of one type apart. A thread keeps what it took until it ends, when others may take it. Handles are
// never destroyed: at the end of the process the device may be gone.
template <class Tag, class Handle>
class HandlePool {
 public:
  // The calling thread's for the stream, which belongs to the device; make(stream) gives a new one, with the stream set.
  template <class Make>
  static Handle get(int device, void* stream, Make&& make) {
    static thread_local Taken taken;
    for (const Entry& e : taken.entries)
      if (e.device == device && e.stream == stream) return e.handle;
    taken.entries.reserve(taken.entries.size() + 1);  // nothing below may fail once a handle is taken
    Entry entry;
    if (!take(device, stream, &entry)) entry = {device, stream, make(stream)};
    taken.entries.push_back(entry);
    return entry.handle;
  }

 private:
  struct Entry {
    int device;
    void* stream;
    Handle handle;
  };
  struct Free {
    std::mutex mutex;
    std::vector<Entry> entries;
  };
  struct Taken {
    std::vector<Entry> entries;
    ~Taken() {
      Free& f = free();
      const std::lock_guard<std::mutex> lock(f.mutex);
      f.entries.insert(f.entries.end(), entries.begin(), entries.end());
    }
  };

  static Free& free() {
    static Free* const f = new Free;  // outlives every thread
    return *f;
  }
  static bool take(int device, void* stream, Entry* found) {
    Free& f = free();
    const std::lock_guard<std::mutex> lock(f.mutex);
    for (Entry& e : f.entries)
      if (e.device == device && e.stream == stream) {
        *found = e;
        e = f.entries.back();
        f.entries.pop_back();
        return true;
      }
    return false;
  }
};

}  // namespace argand::cuda
