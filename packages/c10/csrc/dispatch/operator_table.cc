#include "packages/c10/csrc/dispatch/operator_table.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "packages/c10/csrc/core/errors.h"

namespace argand::core {
namespace {

// Open addressing with linear probing, at most half full. Readers see a slot empty or complete.
struct Slots {
  explicit Slots(size_t n) : mask(n - 1), slot(new std::atomic<ArgandOperator*>[n]()) {}
  size_t mask;
  std::atomic<ArgandOperator*>* slot;
};

struct Table {
  std::mutex mutex;  // writers only
  std::atomic<Slots*> slots{new Slots(2048)};
  std::vector<ArgandOperator*> all;
  std::vector<Slots*> retired;  // readers may still be in an outgrown array: kept forever

  Table();
};

Table& table() {
  static Table* t = new Table;
  return *t;
}

Table::Table() {
  pthread_atfork([] { table().mutex.lock(); }, [] { table().mutex.unlock(); }, [] { table().mutex.unlock(); });
}

size_t hash_name(const char* name) {  // FNV-1a
  uint64_t h = 14695981039346656037ull;
  for (; *name; name++) h = (h ^ static_cast<unsigned char>(*name)) * 1099511628211ull;
  return static_cast<size_t>(h ^ (h >> 32));
}

void insert(Slots* s, ArgandOperator* op) {  // in the place of one of its name
  size_t i = hash_name(op->name) & s->mask;
  while (const ArgandOperator* other = s->slot[i].load(std::memory_order_relaxed)) {
    if (strcmp(other->name, op->name) == 0) break;
    i = (i + 1) & s->mask;
  }
  s->slot[i].store(op, std::memory_order_release);
}

char* copy_text(const char* text) {
  const size_t n = strlen(text) + 1;
  return static_cast<char*>(memcpy(new char[n], text, n));
}

}  // namespace

ArgandOperator* op_find(const char* name) {
  if (!name) return nullptr;
  const Slots* s = table().slots.load(std::memory_order_acquire);
  for (size_t i = hash_name(name) & s->mask;; i = (i + 1) & s->mask) {
    ArgandOperator* op = s->slot[i].load(std::memory_order_acquire);
    if (!op || strcmp(op->name, name) == 0) return op;
  }
}

int op_register(const char* name, const char* schema, uint64_t schema_hash, uint16_t n_args, uint16_t n_rets, uint16_t flags, ArgandOperator** out) {
  if (!name || !*name || !schema) return error(ARGAND_VALUE_ERROR, "op_register: got an empty name or no schema; expected both");
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  ArgandOperator* old = op_find(name);
  if (old && !(flags & ARGAND_OP_CUSTOM)) {
    if (old->schema_hash != schema_hash)
      return error(ARGAND_RUNTIME_ERROR,
                   "op_register: operator '%s' is already registered with another schema: got '%s', expected '%s'; install packages of one "
                   "release, or give the operator another name",
                   name, schema, old->schema);
    *out = old;
    return 0;
  }
  auto* op = new ArgandOperator{};
  op->name = copy_text(name);
  op->schema = copy_text(schema);
  op->schema_hash = schema_hash;
  op->n_args = n_args;
  op->n_rets = n_rets;
  op->flags = flags;
  Slots* s = t.slots.load(std::memory_order_relaxed);
  if ((t.all.size() + 1) * 2 > s->mask) {
    auto* bigger = new Slots((s->mask + 1) * 2);
    for (ArgandOperator* each : t.all) insert(bigger, each);
    t.retired.push_back(s);
    t.slots.store(bigger, std::memory_order_release);
    s = bigger;
  }
  insert(s, op);
  if (old) {
    *std::find(t.all.begin(), t.all.end(), old) = op;
  } else {
    t.all.push_back(op);
  }
  *out = op;
  return 0;
}

int op_set_kernel(ArgandOperator* op, ArgandDispatchKey key, ArgandKernel kernel, void* key_data) {
  if (!op || static_cast<unsigned>(key) >= ARGAND_NUM_KEYS)
    return error(ARGAND_VALUE_ERROR, "op_set_kernel: got %s and dispatch key %d; expected a registered operator and a key below %d",
                 op ? op->name : "no operator", static_cast<int>(key), static_cast<int>(ARGAND_NUM_KEYS));
  std::lock_guard<std::mutex> lock(table().mutex);
  if (key == ARGAND_KEY_CPU) __atomic_store_n(&op->epilogue, nullptr, __ATOMIC_RELEASE);
  __atomic_store_n(&op->key_data[key], key_data, __ATOMIC_RELEASE);
  __atomic_store_n(&op->kernels[key], kernel, __ATOMIC_RELEASE);
  return 0;
}

int op_set_epilogue(ArgandOperator* op, ArgandEpilogueKernel kernel) {
  if (!op || op->n_rets != 1)
    return error(ARGAND_VALUE_ERROR, "op_set_epilogue: got %s; expected a registered operator with one result", op ? op->name : "no operator");
  std::lock_guard<std::mutex> lock(table().mutex);
  __atomic_store_n(&op->epilogue, kernel, __ATOMIC_RELEASE);
  return 0;
}

size_t op_list(const ArgandOperator** out, size_t capacity) {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  for (size_t i = 0; i < t.all.size() && i < capacity; i++) out[i] = t.all[i];
  return t.all.size();
}

}  // namespace argand::core
