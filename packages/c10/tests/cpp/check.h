// Checks for the C++ test programs: a failed one says where and ends the program with status 1.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "packages/c10/csrc/abi/tensor.h"

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

#define CHECK_EQ(a, b)                                                                                                            \
  do {                                                                                                                            \
    auto a_ = (a);                                                                                                                \
    auto b_ = (b);                                                                                                                \
    if (!(a_ == static_cast<decltype(a_)>(b_))) {                                                                                 \
      fprintf(stderr, "%s:%d: CHECK_EQ failed: %s is %lld, %s is %lld\n", __FILE__, __LINE__, #a, static_cast<long long>(a_), #b, \
              static_cast<long long>(b_));                                                                                        \
      exit(1);                                                                                                                    \
    }                                                                                                                             \
  } while (0)

// `status` must be the error `kind`, whose message contains `text`.
#define CHECK_FAILS(status, kind, text) check_fails(__FILE__, __LINE__, (status), (kind), (text))
inline void check_fails(const char* file, int line, int status, int kind, const char* text) {
  int last = 0;
  const char* message = argand::api->last_error(&last);
  if (status == kind && last == kind && strstr(message, text)) return;
  fprintf(stderr, "%s:%d: got status %d and error %d '%s', expected error %d with '%s'\n", file, line, status, last, message, kind, text);
  exit(1);
}

// body() must throw argand::Error of `kind` with `text` in its message.
template <class Body>
void check_throws(const char* file, int line, int kind, const char* text, Body&& body) {
  try {
    body();
  } catch (const argand::Error& e) {
    if (e.kind == kind && e.message.find(text) != std::string::npos) return;
    fprintf(stderr, "%s:%d: got error %d '%s', expected error %d with '%s'\n", file, line, e.kind, e.message.c_str(), kind, text);
    exit(1);
  }
  fprintf(stderr, "%s:%d: got no error, expected error %d with '%s'\n", file, line, kind, text);
  exit(1);
}
#define CHECK_THROWS(kind, text, ...) check_throws(__FILE__, __LINE__, (kind), (text), [&] { __VA_ARGS__; })

#define RUN(test)          \
  do {                     \
    printf("%s\n", #test); \
    fflush(stdout);        \
    test();                \
  } while (0)
