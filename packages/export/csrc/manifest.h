// What a package says of itself, checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "packages/c10/csrc/abi/argand.h"
#include "packages/export/csrc/json.h"

namespace argand::package {

// A size: `factor * dimension + offset`, or fixed (dimension -1, the size in `offset`).
struct Size {
  int dimension;
  int64_t factor, offset;
};

struct Dimension {
  std::string name;
  int64_t low, high;  // high -1: any
};

// A tensor that the library takes.
struct Input {
  bool given;        // by the caller; else the package's own
  std::string name;  // as the caller writes it, or the tensor's name in a file
  bool constant;     // in constants.safetensors, not weights.safetensors
  int dtype;
  std::vector<Size> sizes;
  std::vector<int> order;  // dimensions by stride, the largest first; dense
};

// A value that the library gives: the caller's, or what an input becomes.
struct Result {
  int target;  // an input that takes it as content; -1: the caller's
};

// A value that the caller gets.
struct Output {
  int result;  // number among the results; -1: `value`
  Json value;
};

// A library with operators that the program calls.
struct OperatorLibrary {
  std::string library, init;  // its SONAME; its function that registers them
  std::vector<std::string> operators;
};

struct Manifest {
  std::map<std::string, std::string> files;  // to hash
  std::map<int, std::string> libraries;      // by tier
  std::vector<OperatorLibrary> operator_libraries;
  std::vector<Dimension> dimensions;
  std::vector<Input> inputs;
  std::vector<Result> results;
  std::vector<Output> outputs;
  std::string weights, constants;  // names of files

  const std::string& hash_of(const std::string& file) const;
};

// Throws Failure where the text is no manifest of this version, or contradicts itself.
Manifest read_manifest(std::string_view text);

}  // namespace argand::package
