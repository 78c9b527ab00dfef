// What is thrown inside of the library and becomes a status at its boundary.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

#include "packages/export/csrc/argand_package.h"

namespace argand::package {

struct Failure {
  int kind;
  std::string text;
};

[[noreturn]] __attribute__((format(printf, 2, 3))) inline void fail(int kind, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw Failure{kind, text};
}

}  // namespace argand::package
