#include "packages/c10/csrc/threads/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>

#include "packages/c10/csrc/core/config.h"
#include "packages/c10/csrc/threads/denormals.h"

namespace argand::core {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int64_t kSpinNanoseconds = 40000;  // how long an idle thread looks for work before it sleeps
constexpr int64_t kRoundFrom = 1024;         // chunks this long are rounded up to kRoundTo elements: ends on cache-line boundaries
constexpr int64_t kRoundTo = 64;

struct Job {
  ArgandRangeFn fn;
  void* context;
  int64_t begin, end, chunk;
  bool flush_denormals;  // as the caller does
};

// A job's fields are written while `busy` is held and every chunk of the last job is done. `ticket` is generation << 16 | chunks; a chunk belongs to
// whoever writes that generation over an older one in `taken`, and the job stays as it is until all chunks are counted in `done`. Each thread takes
// the chunk of its own number first: what of it is still in its cache from the last job is of use. What one side spins on has a cache line of its
// own.
struct Pool {
  alignas(64) std::atomic<uint32_t> signal{0};  // changes with every job; workers sleep on it
  std::atomic<uint32_t> sleepers{0};
  alignas(64) std::atomic<uint32_t> done{0};  // chunks finished; the caller sleeps on it
  std::atomic<uint32_t> waiting{0};           // 1: the caller sleeps
  alignas(64) std::atomic<uint64_t> ticket{0};
  std::atomic<uint64_t> taken[kMaxThreads]{};
  std::atomic<bool> busy{false};  // a caller is using the pool
  std::atomic<int> threads{0};    // callers included; 0: not yet configured
  std::atomic<int> workers{0};    // started
  Job job{};
};

Pool g_pool;  // trivially destroyed: detached workers may outlive static destructors

__thread bool t_in_parallel __attribute__((tls_model("initial-exec"))) = false;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int n) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, n, nullptr, nullptr, 0);
}

// Spins until ready() or the time is over; whether it became ready. It yields, so that on a busy machine the thread that is
// waited for gets this processor.
template <class Ready>
bool spin(Ready ready) {
  for (int i = 0; i < 64; i++) {
    if (ready()) return true;
    pause();
  }
  const int64_t until = now() + kSpinNanoseconds;
  do {
    sched_yield();
    for (int i = 0; i < 32; i++) {
      if (ready()) return true;
      pause();
    }
  } while (now() < until);
  return ready();
}

// Takes and runs chunks until none is free, its own first.
void run_chunks(Pool& p, uint64_t own) {
  const uint64_t ticket = p.ticket.load(std::memory_order_acquire), generation = ticket >> 16, chunks = ticket & 0xffff;
  for (uint64_t i = 0; i < chunks; i++) {
    const uint64_t index = own + i < chunks ? own + i : own < chunks ? own + i - chunks : i;
    uint64_t last = p.taken[index].load(std::memory_order_relaxed);
    if (last >= generation || !p.taken[index].compare_exchange_strong(last, generation, std::memory_order_acq_rel, std::memory_order_relaxed))
      continue;
    const Job job = p.job;
    if (job.flush_denormals != flushes_denormals()) set_flush_denormals(job.flush_denormals);
    const int64_t begin = job.begin + static_cast<int64_t>(index) * job.chunk;
    job.fn(job.context, begin, begin + job.chunk < job.end ? begin + job.chunk : job.end);
    if (p.done.fetch_add(1, std::memory_order_seq_cst) + 1 == chunks && p.waiting.load(std::memory_order_seq_cst)) futex_wake(p.done, 1);
  }
}

void* worker(void* argument) {
  Pool& p = g_pool;
  const auto id = static_cast<int>(reinterpret_cast<intptr_t>(argument));  // 0 is the first worker
  t_in_parallel = true;
  uint32_t seen = 0;
  while (true) {
    const auto changed = [&] { return p.signal.load(std::memory_order_acquire) != seen; };
    const bool surplus = id + 1 >= num_threads();  // after the pool was made smaller
    if (surplus ? !changed() : !spin(changed)) {
      p.sleepers.fetch_add(1, std::memory_order_seq_cst);
      while (p.signal.load(std::memory_order_seq_cst) == seen) futex_wait(p.signal, seen);
      p.sleepers.fetch_sub(1, std::memory_order_relaxed);
    }
    seen = p.signal.load(std::memory_order_acquire);
    run_chunks(p, static_cast<uint64_t>(id) + 1);
  }
  return nullptr;
}

// A child of fork has no workers and, if another thread was using the pool, a state that nobody will finish.
void after_fork_in_child() {
  Pool& p = g_pool;
  p.ticket = p.ticket >> 16 << 16;  // no chunk is free
  p.done = 0;
  p.waiting = 0;
  p.signal = 0;
  p.sleepers = 0;
  p.busy = false;
  p.workers = 0;
}

void start_workers(Pool& p, int wanted) {  // `busy` is held
  static const int registered = pthread_atfork(nullptr, nullptr, after_fork_in_child);
  (void)registered;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals belong to the program's own threads
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (pthread_t thread; p.workers < wanted; p.workers++) {
    void* id = reinterpret_cast<void*>(static_cast<intptr_t>(p.workers));
    if (pthread_create(&thread, &attributes, worker, id)) break;  // fewer threads then
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void run_on_pool(Pool& p, const Job& job, uint32_t chunks) {  // `busy` is held
  const int helpers = static_cast<int>(chunks) - 1;
  if (p.workers.load(std::memory_order_relaxed) < helpers) start_workers(p, helpers);
  p.job = job;
  p.done.store(0, std::memory_order_relaxed);
  const uint64_t generation = (p.ticket.load(std::memory_order_relaxed) >> 16) + 1;
  p.ticket.store(generation << 16 | chunks, std::memory_order_seq_cst);
  p.signal.fetch_add(1, std::memory_order_seq_cst);
  // A worker not yet counted as asleep sees the signal before it sleeps.
  const int awake = p.workers.load(std::memory_order_relaxed) - static_cast<int>(p.sleepers.load(std::memory_order_seq_cst));
  if (awake < helpers) futex_wake(p.signal, helpers - awake);
  run_chunks(p, 0);
  const auto finished = [&] { return p.done.load(std::memory_order_acquire) == chunks; };
  if (spin(finished)) return;
  p.waiting.store(1, std::memory_order_seq_cst);
  for (uint32_t done; (done = p.done.load(std::memory_order_seq_cst)) != chunks;) futex_wait(p.done, done);
  p.waiting.store(0, std::memory_order_relaxed);
}

}  // namespace

int num_threads() {
  const int n = g_pool.threads.load(std::memory_order_relaxed);
  return n ? n : config().num_threads;
}

void set_num_threads(int n) { g_pool.threads.store(n < 1 ? 1 : n > kMaxThreads ? kMaxThreads : n, std::memory_order_relaxed); }

void parallel_for(int64_t begin, int64_t end, int64_t grain, ArgandRangeFn fn, void* context) {
  if (begin >= end) return;
  const int64_t n = end - begin;
  if (grain < 1) grain = 1;
  const int64_t threads = num_threads();
  Pool& p = g_pool;
  if (n <= grain || threads == 1 || t_in_parallel || p.busy.exchange(true, std::memory_order_acquire)) {
    fn(context, begin, end);
    return;
  }
  int64_t chunk = (n + threads - 1) / threads;
  if (chunk < grain) chunk = grain;
  if (chunk >= kRoundFrom) chunk = (chunk + kRoundTo - 1) / kRoundTo * kRoundTo;
  const auto chunks = static_cast<uint32_t>((n + chunk - 1) / chunk);
  t_in_parallel = true;
  if (chunks > 1)
    run_on_pool(p, Job{fn, context, begin, end, chunk, flushes_denormals()}, chunks);
  else
    fn(context, begin, end);
  t_in_parallel = false;
  p.busy.store(false, std::memory_order_release);
}

}  // namespace argand::core
