// What goes wrong between processes.
#pragma once

#include <stdexcept>
#include <string>

namespace argand::distributed {

enum class DistErrorKind { kBackend, kNetwork, kStore, kTimeout };

struct DistError : std::runtime_error {
  DistError(DistErrorKind k, const std::string& message) : std::runtime_error(message), kind(k) {}
  DistErrorKind kind;
};

}  // namespace argand::distributed
