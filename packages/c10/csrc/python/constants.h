// layout and memory_format objects.
#pragma once

#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

extern PyObject* strided_layout;
extern PyObject* contiguous_format;
extern PyObject* preserve_format;
extern PyObject* channels_last;
extern PyObject* channels_last_3d;
extern PyTypeObject* layout_type;
extern PyTypeObject* memory_format_type;
int init_constants(PyObject* module);

}  // namespace argand::py
