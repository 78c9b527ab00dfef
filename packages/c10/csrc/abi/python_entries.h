// For extensions that read tensors' memory without the dispatcher: a tensor with the key BATCHED has the memory of one entry and stands for all.
#pragma once

#include "packages/c10/csrc/abi/python_api.h"

namespace argand {

inline bool stands_for_entries(const ArgandTensor* t) { return (t->keys | (t->base ? t->base->keys : 0)) & ARGAND_KEYBIT(ARGAND_KEY_BATCHED); }

// False + exception for a tensor that stands for entries: the vmap that runs then calls its function once an entry.
inline bool is_alone(const ArgandTensor* t, const char* reader) {
  if (!stands_for_entries(t)) return true;
  PyObject* modes = PyImport_ImportModule("argand_c10.modes");
  Py_XDECREF(modes ? PyObject_CallMethod(modes, "refuse_entry", "s", reader) : nullptr);
  Py_XDECREF(modes);
  return false;
}

}  // namespace argand
