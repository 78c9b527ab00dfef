#include "packages/export/csrc/manifest.h"

#include <algorithm>

#include "packages/export/csrc/failure.h"
#include "packages/export/csrc/tensors.h"

namespace argand::package {
namespace {

constexpr int64_t kVersion = 1;
// A larger bound is none, and a product of two stays below 2^63.
constexpr int64_t kLargest = 1ll << 31;

int64_t small(const Json& number) {
  const int64_t value = number.integer();
  if (value < -kLargest || value > kLargest)
    fail(ARGAND_PACKAGE_DAMAGED, "its manifest is damaged: got %lld in a size", static_cast<long long>(value));
  return value;
}

int index(const Json& number, size_t n, const char* what) {
  const int64_t i = number.integer();
  if (i < -1 || i >= static_cast<int64_t>(n))
    fail(ARGAND_PACKAGE_DAMAGED, "its manifest is damaged: got %s %lld of %zu", what, static_cast<long long>(i), n);
  return static_cast<int>(i);
}

void check_header(const Json& data) {
  const Json* format = data.find("format");
  if (!format || format->text() != "argand-package") fail(ARGAND_PACKAGE_DAMAGED, "it is no package; expected what argand.export.package wrote");
  if (data["version"].integer() != kVersion)
    fail(ARGAND_PACKAGE_DAMAGED, "it has version %lld, expected %lld; package the program again with this release",
         static_cast<long long>(data["version"].integer()), static_cast<long long>(kVersion));
  if (data["abi"].integer() != ARGAND_ABI_VERSION)
    fail(ARGAND_PACKAGE_DAMAGED, "it was made for ABI %lld of argand-c10, this is ABI %d; package the program again with this release",
         static_cast<long long>(data["abi"].integer()), ARGAND_ABI_VERSION);
}

Size read_size(const Json& data, size_t n_dimensions) {
  if (data.kind() == Json::Kind::kInteger) return {-1, 0, data.integer()};
  const auto& parts = data.items();
  if (parts.size() != 3 || small(parts[1]) < 1) fail(ARGAND_PACKAGE_DAMAGED, "its manifest is damaged: got a size that is none");
  return {std::max(0, index(parts[0], n_dimensions, "dimension")), parts[1].integer(), small(parts[2])};
}

Input read_input(const Json& data, size_t n_dimensions) {
  const std::string& kind = data["kind"].text();
  Input input = {kind == "input", data["name"].text(), kind == "constant", dtype_of(data["dtype"].text()), {}, {}};
  for (const Json& size : data["sizes"].items()) input.sizes.push_back(read_size(size, n_dimensions));
  for (const Json& dimension : data["order"].items()) input.order.push_back(static_cast<int>(dimension.integer()));
  std::vector<int> sorted = input.order;
  std::sort(sorted.begin(), sorted.end());
  bool good = sorted.size() == input.sizes.size() && sorted.size() <= ARGAND_MAX_DIMS && input.dtype != ARGAND_DTYPE_NONE;
  for (size_t d = 0; d < sorted.size(); d++) good = good && sorted[d] == static_cast<int>(d);
  if (!input.given)
    for (const Size& size : input.sizes) good = good && size.dimension < 0;
  if (!good) fail(ARGAND_PACKAGE_DAMAGED, "its manifest is damaged: input '%s'", input.name.c_str());
  return input;
}

OperatorLibrary read_operator_library(const Json& data) {
  OperatorLibrary made = {data["library"].text(), data["init"].text(), {}};
  for (const Json& name : data["operators"].items()) made.operators.push_back(name.text());
  if (made.library.find('/') != std::string::npos)
    fail(ARGAND_PACKAGE_DAMAGED, "its manifest is damaged: got a path for the library %s", made.library.c_str());
  return made;
}

}  // namespace

const std::string& Manifest::hash_of(const std::string& file) const {
  const auto found = files.find(file);
  if (found == files.end()) fail(ARGAND_PACKAGE_DAMAGED, "its manifest states no hash of %s", file.c_str());
  return found->second;
}

Manifest read_manifest(std::string_view text) {
  const Json data = Json::parse(text);
  check_header(data);
  Manifest made;
  for (const auto& [name, hash] : data["files"].members()) made.files[name] = hash.text();
  for (const auto& [tier, name] : data["libraries"].members()) made.libraries[tier.empty() ? -1 : tier[0] - '0'] = name.text();
  for (const Json& library : data["operator_libraries"].items()) made.operator_libraries.push_back(read_operator_library(library));
  for (const Json& dimension : data["dimensions"].items()) {
    const Json& high = dimension["high"];
    const bool bounded = !high.is_null() && high.integer() <= kLargest;
    made.dimensions.push_back({dimension["name"].text(), small(dimension["low"]), bounded ? small(high) : -1});
  }
  for (const Json& input : data["inputs"].items()) made.inputs.push_back(read_input(input, made.dimensions.size()));
  for (const Json& target : data["results"].items()) made.results.push_back({index(target, made.inputs.size(), "input")});
  for (const Json& output : data["outputs"].items())
    made.outputs.push_back({index(output["result"], made.results.size(), "result"), output["value"]});
  // Each result goes to one place: it is an owned reference.
  std::vector<int> used(made.results.size());
  for (const Output& output : made.outputs)
    if (output.result >= 0 && (used[static_cast<size_t>(output.result)]++ || made.results[static_cast<size_t>(output.result)].target >= 0))
      fail(ARGAND_PACKAGE_DAMAGED, "its manifest is damaged: a result is used twice");
  made.weights = "weights.safetensors";
  made.constants = "constants.safetensors";
  return made;
}

}  // namespace argand::package
