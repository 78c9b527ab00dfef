#include "packages/distributed/csrc/group/record.h"

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::distributed {

const char* op_name(OpKind kind) {
  static constexpr const char* names[] = {"all_reduce",     "reduce",     "broadcast", "all_gather", "gather", "scatter",
                                          "reduce_scatter", "all_to_all", "barrier",   "send",       "recv"};
  return names[static_cast<int>(kind)];
}

const char* reduce_name(ReduceOp op) {
  static constexpr const char* names[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", ""};
  return names[static_cast<int>(op)];
}

uint64_t Signature::fingerprint() const {
  uint64_t h = hash;
  for (uint64_t part : {static_cast<uint64_t>(kind), static_cast<uint64_t>(reduce), static_cast<uint64_t>(dtype), static_cast<uint64_t>(root)}) {
    h = (h ^ part) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

std::string Signature::text() const {
  std::string out = std::string(op_name(kind)) + "(";
  const char* separator = "";
  int at = 0;
  while (at < n_ints) {
    const int64_t ndim = ints[at++];
    out += std::string(separator) + (dtype < ARGAND_NUM_DTYPES ? kDTypeName[dtype] : "") + "[";
    for (int64_t i = 0; i < ndim && at < n_ints; i++) out += (i ? ", " : "") + std::to_string(ints[at++]);
    out += "]";
    separator = ", ";
  }
  if (n_ints == kMaxInts) out += ", ...";
  if (n_ints == 0 && dtype < ARGAND_NUM_DTYPES) {
    out += kDTypeName[dtype];
    separator = ", ";
  }
  if (reduce != ReduceOp::kNone) {
    out += std::string(separator) + reduce_name(reduce);
    separator = ", ";
  }
  if (root >= 0) out += std::string(separator) + (kind == OpKind::kSend ? "dst=" : "src=") + std::to_string(root);
  return out + ")";
}

std::string Record::text() const {
  std::string out = "#" + std::to_string(seq) + " " + signature.text();
  if (site.file) out += " at " + std::string(site.file) + ":" + std::to_string(site.line);
  return out;
}

}  // namespace argand::distributed
