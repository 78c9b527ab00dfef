// For extensions that read tensors' memory without the dispatcher: a tensor with the key BATCHED has the memory of one entry and stands for all.
#pragma once

#include "packages/c10/csrc/abi/python_api.h"

namespace argand {

inline bool stands_for_entries(const ArgandTensor* t) { return (t->keys | (t->base ? t->base->keys : 0)) & ARGAND_KEYBIT(ARGAND_KEY_BATCHED); }

// Before the memory of `t`, the tensor of `object`, is read; false + exception. What stands for entries is that of the first from then on, or
// refused.
inline bool may_read_memory(PyObject* object, const ArgandTensor* t, const char* reader) {
  if (!stands_for_entries(t)) return true;
  PyObject* core = PyImport_ImportModule("argand_c10._C");
  PyObject* answer = core ? PyObject_CallMethod(core, "_read_entry", "Os", object, reader) : nullptr;
  Py_XDECREF(core);
  Py_XDECREF(answer);
  return answer;
}

}  // namespace argand
