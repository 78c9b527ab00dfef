// Since 3.12 the evaluation loop itself clears and pops a frame, by internal functions that are not exported. A frame is
// ended from outside by letting it run one instruction: RETURN_VALUE of a stub code object, with the result on its stack.
#pragma once

#include <Python.h>
#include <opcode.h>

#include "packages/dynamo/csrc/binding.h"

namespace argand::dynamo {

inline PyCodeObject* stub_code = nullptr;  // no variables; NOP, RETURN_VALUE

inline int init_frames() {
  const char instructions[] = {static_cast<char>(NOP), 0, static_cast<char>(RETURN_VALUE), 0};
  Ref empty(reinterpret_cast<PyObject*>(PyCode_NewEmpty("<argand_dynamo>", "replaced", 1)));
  Ref replace(empty ? PyObject_GetAttrString(empty.get(), "replace") : nullptr);
  Ref code(PyBytes_FromStringAndSize(instructions, sizeof instructions)), none(PyBytes_FromStringAndSize("", 0)), no_args(PyTuple_New(0));
  if (!replace || !code || !none || !no_args) return -1;
  Ref changes(
      Py_BuildValue("{s:O,s:i,s:O,s:O}", "co_code", code.get(), "co_stacksize", 1, "co_linetable", none.get(), "co_exceptiontable", none.get()));
  if (changes) stub_code = reinterpret_cast<PyCodeObject*>(PyObject_Call(replace.get(), no_args.get(), changes.get()));
  return stub_code ? 0 : -1;
}

// Drops the frame's variables and leaves `result` (stolen) alone on its stack. Every frame has room for one value.
template <class Frame>
void leave_result_alone(Frame* frame, int n_locals, PyObject* result) {
  for (int i = 0; i < n_locals; i++) {
    PyObject* value = frame->localsplus[i];
    frame->localsplus[i] = nullptr;
    Py_XDECREF(value);
  }
  frame->localsplus[0] = result;
  frame->stacktop = 1;
}

}  // namespace argand::dynamo
