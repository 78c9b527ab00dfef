#include "packages/export/csrc/tensors.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "packages/export/csrc/failure.h"
#include "packages/export/csrc/json.h"

namespace argand::package {
namespace {

const struct {
  const char *name, *stored;  // stored: the file format's name
  int64_t size;
} kDTypes[ARGAND_NUM_DTYPES] = {{"bool", "BOOL", 1},
                                {"uint8", "U8", 1},
                                {"int8", "I8", 1},
                                {"int16", "I16", 2},
                                {"int32", "I32", 4},
                                {"int64", "I64", 8},
                                {"float16", "F16", 2},
                                {"bfloat16", "BF16", 2},
                                {"float32", "F32", 4},
                                {"float64", "F64", 8},
                                {"complex64", "C64", 8},
                                {"complex128", "", 16},
                                {"float8_e4m3fn", "F8_E4M3", 1},
                                {"float8_e5m2", "F8_E5M2", 1},
                                {"uint16", "U16", 2},
                                {"uint32", "U32", 4},
                                {"uint64", "U64", 8}};

struct Entry {
  std::string name;
  int dtype;
  std::vector<int64_t> sizes;
  uint64_t begin, end;
};

Entry read_entry(const std::string& name, const Json& data, uint64_t nbytes) {
  Entry entry = {name, 0, {}, 0, 0};
  const std::string& dtype = data["dtype"].text();
  while (entry.dtype < ARGAND_NUM_DTYPES && dtype != kDTypes[entry.dtype].stored) entry.dtype++;
  if (entry.dtype == ARGAND_NUM_DTYPES || dtype.empty()) fail(ARGAND_PACKAGE_DAMAGED, "tensor '%s' has no dtype that is known", name.c_str());
  uint64_t wanted = static_cast<uint64_t>(item_size(entry.dtype));
  for (const Json& size : data["shape"].items()) {
    entry.sizes.push_back(size.integer());
    if (size.integer() < 0 || __builtin_mul_overflow(wanted, static_cast<uint64_t>(size.integer()), &wanted) || wanted > nbytes)
      fail(ARGAND_PACKAGE_DAMAGED, "tensor '%s' is larger than its file", name.c_str());
  }
  const auto& offsets = data["data_offsets"].items();
  if (offsets.size() != 2 || entry.sizes.size() > ARGAND_MAX_DIMS) fail(ARGAND_PACKAGE_DAMAGED, "tensor '%s' is damaged", name.c_str());
  entry.begin = static_cast<uint64_t>(offsets[0].integer());
  entry.end = static_cast<uint64_t>(offsets[1].integer());
  if (entry.end - entry.begin != wanted) fail(ARGAND_PACKAGE_DAMAGED, "tensor '%s' has other bytes than its shape needs", name.c_str());
  return entry;
}

TensorRef read_data(const ArgandApi* api, const Archive& archive, const Entry& entry, uint64_t offset, Sha256& hash) {
  ArgandTensor* t = nullptr;
  check_status(api, api->tensor_empty(static_cast<int32_t>(entry.sizes.size()), entry.sizes.data(), entry.dtype, ARGAND_DEVICE(ARGAND_CPU, 0), &t));
  TensorRef made(api, t);
  const size_t nbytes = entry.end - entry.begin;
  auto* const data = static_cast<char*>(t->data);
  constexpr size_t kPart = 1 << 20;  // hashed while it lies in the caches
  for (size_t at = 0; at < nbytes; at += kPart) {
    const size_t n = std::min(kPart, nbytes - at);
    archive.read(offset + at, data + at, n);
    hash.update(data + at, n);
  }
  if (entry.dtype == ARGAND_BOOL)
    for (size_t i = 0; i < nbytes; i++)
      if (data[i] & ~1) fail(ARGAND_PACKAGE_DAMAGED, "tensor '%s' of dtype bool has bytes other than 0 and 1", entry.name.c_str());
  return made;
}

}  // namespace

int dtype_of(const std::string& name) {
  for (int i = 0; i < ARGAND_NUM_DTYPES; i++)
    if (name == kDTypes[i].name) return i;
  return ARGAND_DTYPE_NONE;
}

int64_t item_size(int dtype) { return kDTypes[dtype].size; }

void check_status(const ArgandApi* api, int status) {
  int kind = status;
  if (status) throw Failure{status, api->last_error(&kind)};
}

std::map<std::string, TensorRef> read_tensors(const ArgandApi* api, const Archive& archive, const std::string& name, const std::string& digest) {
  const Archive::Member& member = archive.member(name);
  uint64_t offset = archive.data_offset(member), length = 0;
  if (member.size >= 8) archive.read(offset, &length, 8);
  if (member.size < 8 || length > std::min<uint64_t>(member.size - 8, 100 << 20)) fail(ARGAND_PACKAGE_DAMAGED, "its %s is damaged", name.c_str());
  std::string header(length, 0);
  archive.read(offset + 8, header.data(), length);
  const uint64_t nbytes = member.size - 8 - length;
  std::vector<Entry> entries;
  const Json described = Json::parse(header);
  for (const auto& [key, value] : described.members())
    if (key != "__metadata__") entries.push_back(read_entry(key, value, nbytes));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  Sha256 hash;
  hash.update(&length, 8);
  hash.update(header.data(), length);
  offset += 8 + length;
  uint64_t at = 0;
  std::map<std::string, TensorRef> found;
  for (const Entry& entry : entries) {
    if (entry.begin != at) fail(ARGAND_PACKAGE_DAMAGED, "its %s is damaged: tensors do not follow one another", name.c_str());
    found[entry.name] = read_data(api, archive, entry, offset + at, hash);
    at = entry.end;
  }
  if (at != nbytes || hash.hex() != digest) fail(ARGAND_PACKAGE_DAMAGED, "its %s differs from the hash in its manifest", name.c_str());
  return found;
}

}  // namespace argand::package
