#include "packages/c10/csrc/core/errors.h"

#include <cstdio>
#include <new>

#include "packages/c10/csrc/abi/linalg_error.h"

namespace argand::core {
namespace {

struct LastError {
  int kind = ARGAND_OK;
  std::string message;
};

LastError& state() {
  static thread_local LastError last;
  return last;
}

}  // namespace

int set_error(int kind, const char* message) {
  if (kind <= ARGAND_OK || kind > ARGAND_LINALG_ERROR) kind = ARGAND_INTERNAL_ERROR;
  LastError& last = state();
  try {
    last.message = message ? message : "";
  } catch (const std::bad_alloc&) {
    kind = ARGAND_OUT_OF_MEMORY_ERROR;
    last.message = "out of memory";  // fits a string without memory of its own
  }
  return last.kind = kind;
}

const char* last_error(int* kind) {
  const LastError& last = state();
  if (kind) *kind = last.kind;
  return last.message.c_str();
}

int error(ArgandErrorKind kind, const char* format, ...) {
  char text[4096];  // on the stack: there may be no memory for a string
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return set_error(kind, text);
}

std::string shape_text(int32_t ndim, const int64_t* values) {
  std::string s = "[";
  for (int32_t i = 0; i < ndim; i++) s += (i ? ", " : "") + std::to_string(values[i]);
  return s + "]";
}

std::string bytes_text(uint64_t nbytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (nbytes < 1024) return std::to_string(nbytes) + " bytes";
  double value = static_cast<double>(nbytes);
  int unit = -1;
  while (value >= 1024 && unit < 5) {
    value /= 1024;
    unit++;
  }
  char buffer[32];
  snprintf(buffer, sizeof buffer, "%.2f %s", value, kUnits[unit]);
  return buffer;
}

}  // namespace argand::core
