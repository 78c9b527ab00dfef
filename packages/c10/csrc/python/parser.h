// Python arguments into ABI values, driven by ArgandArgDesc tables.
#pragma once

#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

enum class Conversion { kOk, kMismatch, kError };  // kError: an exception is set

// Memory and references that one call's values point into.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    if (__builtin_expect(n_held_ || blocks_, 0)) clear();
  }
  void* allocate(size_t nbytes) {  // NULL + MemoryError
    nbytes = (nbytes + 7) & ~size_t{7};
    if (used_ + nbytes <= sizeof inline_) {
      void* p = reinterpret_cast<char*>(inline_) + used_;
      used_ += nbytes;
      return p;
    }
    return allocate_block(nbytes);
  }
  bool hold(PyObject* o);  // steals; false + exception

 private:
  void* allocate_block(size_t nbytes);
  void clear();
  struct Block {
    Block* next;
  };
  Block* blocks_ = nullptr;
  size_t used_ = 0;
  int n_held_ = 0;
  PyObject* held_[4];  // further ones go into a list in held_[0]
  int64_t inline_[64];
};

// One argument. kMismatch leaves no exception.
ArgandDevice with_index(ArgandDevice device);  // one without index becomes the current one of its type
Conversion convert(PyObject* o, const ArgandArgDesc& desc, ArgandValue* out, Arena& arena);
// A run of positional arguments as one list, as in x.view(2, 3).
Conversion convert_varargs(PyObject* const* items, Py_ssize_t n, const ArgandArgDesc& desc, ArgandValue* out, Arena& arena);
Conversion number_of_int(PyObject* o, ArgandValue* out);  // into a value that is all zeros; kError: of more than 64 bits
bool starts_varargs(PyObject* o, const ArgandArgDesc& desc);

// "Tensor", "tuple of ints"...: what an argument should be.
std::string expected_type(const ArgandArgDesc& desc);
// "add(): argument 'other' (position 2) must be Tensor or Number, not str"
std::string mismatch_text(const char* function, const ArgandArgDesc& desc, const char* shown_name, Py_ssize_t position, PyObject* got,
                          bool* wrong_count);

}  // namespace argand::py
