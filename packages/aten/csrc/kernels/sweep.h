// Parallel passes over memory in alternating directions: what one pass touched last is still in the caches when the next one
// begins there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "packages/c10/csrc/abi/tensor.h"

namespace argand {

// The direction of one pass over so many bytes. A calling thread's passes take turns.
class Sweep {
 public:
  explicit Sweep(int64_t bytes) {
    static thread_local bool last = false;
    if (bytes >= kFromBytes) backward_ = last = !last;
  }
  bool backward() const { return backward_; }

  // f(begin, end) on disjoint ranges of [0, units) in parallel. A thread takes its part in pieces of about kPieceBytes, in the
  // pass's direction; inside a piece f goes forward, as prefetchers like it.
  template <class F>
  void run(int64_t units, int64_t grain, int64_t bytes_per_unit, F&& f) const {
    if (!backward_) return parallel_for(0, units, grain, std::forward<F>(f));
    int64_t piece = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, bytes_per_unit));
    if (piece >= kAligned) piece -= piece % kAligned;
    parallel_for(0, units, grain, [&](int64_t begin, int64_t end) {
      for (int64_t b; end > begin; end = b) {
        b = begin + (end - begin - 1) / piece * piece;
        f(b, end);
      }
    });
  }

 private:
  static constexpr int64_t kFromBytes = 1 << 20;  // less stays in a core's own cache whichever way it is passed
  static constexpr int64_t kPieceBytes = 256 << 10;
  static constexpr int64_t kAligned = 64;  // units
  bool backward_ = false;
};

// One pass of its own.
template <class F>
void parallel_sweep(int64_t units, int64_t grain, int64_t bytes_per_unit, F&& f) {
  Sweep(units * bytes_per_unit).run(units, grain, bytes_per_unit, std::forward<F>(f));
}

}  // namespace argand
