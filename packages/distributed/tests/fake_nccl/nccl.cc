// A stand-in for NCCL on the stand-in for the CUDA driver: device memory is host memory, streams run at once, ranks are processes of this
// host that pass messages through shared memory. Sums, products, minima and maxima of the types that the tests use.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kRanks = 4;
constexpr size_t kBytes = 1 << 16;  // of one message

struct Mailbox {
  std::atomic<int> full;
  char data[kBytes];
};
struct Shared {
  Mailbox boxes[kRanks][kRanks];  // [from][to]
};

struct UniqueId {
  char internal[128];
};
struct Comm {
  Shared* shared;
  int size, rank;
};

size_t item(int dtype) {
  static constexpr size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[dtype];
}

void put(Comm* c, int to, const void* data, size_t n) {
  Mailbox& box = c->shared->boxes[c->rank][to];
  while (box.full.load()) sched_yield();
  std::memcpy(box.data, data, n);
  box.full = 1;
}
void take(Comm* c, int from, void* data, size_t n) {
  Mailbox& box = c->shared->boxes[from][c->rank];
  while (!box.full.load()) sched_yield();
  std::memcpy(data, box.data, n);
  box.full = 0;
}

template <class T>
void combine(void* into, const void* other, size_t n, int op) {
  T *a = static_cast<T*>(into), *end = a + n;
  const T* b = static_cast<const T*>(other);
  for (; a < end; a++, b++) *a = op == 1 ? *a * *b : op == 2 ? std::max(*a, *b) : op == 3 ? std::min(*a, *b) : *a + *b;
}
void combine(void* into, const void* other, size_t n, int dtype, int op) {
  switch (dtype) {
    case 0:
      return combine<int8_t>(into, other, n, op);
    case 1:
      return combine<uint8_t>(into, other, n, op);
    case 2:
      return combine<int32_t>(into, other, n, op);
    case 4:
      return combine<int64_t>(into, other, n, op);
    case 7:
      return combine<float>(into, other, n, op);
    default:
      return combine<double>(into, other, n, op);
  }
}
void average(void* x, size_t n, int dtype, int size) {
  if (dtype == 7)
    for (size_t i = 0; i < n; i++) static_cast<float*>(x)[i] /= static_cast<float>(size);
  if (dtype == 8)
    for (size_t i = 0; i < n; i++) static_cast<double*>(x)[i] /= size;
}

// What rank `r` gives is at parts(r); this rank's result is all of them combined.
int combine_all(Comm* c, const char* own, char* result, size_t n, int dtype, int op) {
  const size_t bytes = n * item(dtype);
  std::vector<char> sum(own, own + bytes), part(bytes);
  for (int r = 0; r < c->size; r++) {
    if (r == c->rank) continue;
    take(c, r, part.data(), bytes);
    combine(sum.data(), part.data(), n, dtype, op);
  }
  if (op == 4) average(sum.data(), n, dtype, c->size);
  std::memcpy(result, sum.data(), bytes);
  return 0;
}

struct Message {
  Comm* comm;
  int peer;
  const void* from;
  void* into;
  size_t bytes;
};
int g_depth = 0;
std::vector<Message> g_messages;

int exchange(Message m) {
  g_messages.push_back(m);
  if (g_depth) return 0;
  for (const Message& one : g_messages)
    if (one.from) put(one.comm, one.peer, one.from, one.bytes);
  for (const Message& one : g_messages)
    if (one.into) take(one.comm, one.peer, one.into, one.bytes);
  g_messages.clear();
  return 0;
}

}  // namespace

EXPORT int ncclGetVersion(int* version) {
  *version = 22800;
  return 0;
}
EXPORT const char* ncclGetErrorString(int) { return "stand-in error"; }
EXPORT int ncclGetUniqueId(UniqueId* id) {
  std::snprintf(id->internal, sizeof id->internal, "/argand-fake-nccl-%d-%p", getpid(), static_cast<void*>(id));
  return 0;
}
EXPORT int ncclCommInitRank(Comm** comm, int size, UniqueId id, int rank) {
  const int fd = shm_open(id.internal, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || size > kRanks || ftruncate(fd, sizeof(Shared)) != 0) return 2;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  *comm = new Comm{static_cast<Shared*>(memory), size, rank};
  char token = 0;
  for (int r = 0; r < size; r++)
    if (r != rank) put(*comm, r, &token, 1);
  for (int r = 0; r < size; r++)
    if (r != rank) take(*comm, r, &token, 1);
  if (rank == 0) shm_unlink(id.internal);
  return 0;
}
EXPORT int ncclCommDestroy(Comm* comm) {
  munmap(comm->shared, sizeof(Shared));
  delete comm;
  return 0;
}
EXPORT int ncclCommAbort(Comm* comm) { return ncclCommDestroy(comm); }
EXPORT int ncclCommGetAsyncError(Comm*, int* result) { return *result = 0; }
EXPORT int ncclAllReduce(const void* send, void* receive, size_t n, int dtype, int op, Comm* c, void*) {
  for (int r = 0; r < c->size; r++)
    if (r != c->rank) put(c, r, send, n * item(dtype));
  return combine_all(c, static_cast<const char*>(send), static_cast<char*>(receive), n, dtype, op);
}
EXPORT int ncclReduce(const void* send, void* receive, size_t n, int dtype, int op, int root, Comm* c, void*) {
  if (c->rank == root) return combine_all(c, static_cast<const char*>(send), static_cast<char*>(receive), n, dtype, op);
  put(c, root, send, n * item(dtype));
  return 0;
}
EXPORT int ncclBroadcast(const void* send, void* receive, size_t n, int dtype, int root, Comm* c, void*) {
  const size_t bytes = n * item(dtype);
  if (c->rank != root) return take(c, root, receive, bytes), 0;
  for (int r = 0; r < c->size; r++)
    if (r != root) put(c, r, send, bytes);
  if (receive != send) std::memcpy(receive, send, bytes);
  return 0;
}
EXPORT int ncclAllGather(const void* send, void* receive, size_t n, int dtype, Comm* c, void*) {
  const size_t bytes = n * item(dtype);
  for (int r = 0; r < c->size; r++) put(c, r, send, bytes);
  for (int r = 0; r < c->size; r++) take(c, r, static_cast<char*>(receive) + bytes * r, bytes);
  return 0;
}
EXPORT int ncclReduceScatter(const void* send, void* receive, size_t n, int dtype, int op, Comm* c, void*) {
  const size_t bytes = n * item(dtype);
  const char* parts = static_cast<const char*>(send);
  for (int r = 0; r < c->size; r++)
    if (r != c->rank) put(c, r, parts + bytes * r, bytes);
  return combine_all(c, parts + bytes * c->rank, static_cast<char*>(receive), n, dtype, op);
}
EXPORT int ncclSend(const void* send, size_t n, int dtype, int peer, Comm* c, void*) { return exchange({c, peer, send, nullptr, n * item(dtype)}); }
EXPORT int ncclRecv(void* receive, size_t n, int dtype, int peer, Comm* c, void*) { return exchange({c, peer, nullptr, receive, n * item(dtype)}); }
EXPORT int ncclGroupStart() {
  g_depth++;
  return 0;
}
EXPORT int ncclGroupEnd() {
  if (--g_depth || g_messages.empty()) return 0;
  const Message last = g_messages.back();
  g_messages.pop_back();
  return exchange(last);
}
