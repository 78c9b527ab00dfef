// Thread-local error state behind ArgandApi::set_error and last_error.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <string>

#include "packages/c10/csrc/abi/argand.h"

namespace argand::core {

int set_error(int kind, const char* message);
const char* last_error(int* kind);

// Sets the thread's error from a printf format and returns `kind`; without memory for the text, ARGAND_OUT_OF_MEMORY_ERROR.
__attribute__((format(printf, 2, 3))) int error(ArgandErrorKind kind, const char* format, ...);

std::string shape_text(int32_t ndim, const int64_t* values);  // "[2, 3]"
std::string bytes_text(uint64_t nbytes);                      // "123 bytes", "1.50 GiB"

}  // namespace argand::core
