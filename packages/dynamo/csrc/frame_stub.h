// Since 3.12 the evaluation loop itself clears and pops a frame, by internal functions that are not exported. A frame is
// ended from outside by letting it run one instruction: RETURN_VALUE of a stub code object, with the result on its stack.
#pragma once

#include <Python.h>
#include <opcode.h>

namespace argand::dynamo {

inline PyCodeObject* stub_code = nullptr;  // no variables; NOP, RETURN_VALUE

inline int init_frames() {
  const char instructions[] = {static_cast<char>(NOP), 0, static_cast<char>(RETURN_VALUE), 0};
  PyCodeObject* empty = PyCode_NewEmpty("<argand_dynamo>", "replaced", 1);
  PyObject* replace = empty ? PyObject_GetAttrString(reinterpret_cast<PyObject*>(empty), "replace") : nullptr;
  PyObject* none = replace ? PyTuple_New(0) : nullptr;
  PyObject* changes =
      none ? Py_BuildValue("{s:y#,s:i,s:y#,s:y#}", "co_code", instructions, static_cast<Py_ssize_t>(sizeof instructions), "co_stacksize", 1,
                           "co_linetable", "", static_cast<Py_ssize_t>(0), "co_exceptiontable", "", static_cast<Py_ssize_t>(0))
           : nullptr;
  if (changes) stub_code = reinterpret_cast<PyCodeObject*>(PyObject_Call(replace, none, changes));
  Py_XDECREF(changes);
  Py_XDECREF(none);
  Py_XDECREF(replace);
  Py_XDECREF(empty);
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
