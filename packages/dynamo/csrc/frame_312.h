// Frames of CPython 3.12.
#pragma once

#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

#include "packages/dynamo/csrc/frame_stub.h"

namespace argand::dynamo {

using Frame = _PyInterpreterFrame;

inline PyCodeObject* frame_code(Frame* frame) { return frame->f_code; }
inline PyFunctionObject* frame_function(Frame* frame) { return reinterpret_cast<PyFunctionObject*>(frame->f_funcobj); }
inline PyObject* const* frame_locals(Frame* frame) { return frame->localsplus; }

inline PyObject* end_frame(PyThreadState* thread, Frame* frame, _PyFrameEvalFunction evaluate, PyObject* result) {
  if (!result) return evaluate(thread, frame, 1);
  PyCodeObject* code = frame->f_code;
  leave_result_alone(frame, code->co_nlocalsplus, result);
  frame->f_code = reinterpret_cast<PyCodeObject*>(Py_NewRef(stub_code));
  frame->prev_instr = _PyCode_CODE(stub_code);  // the one before the next
  Py_DECREF(code);
  return evaluate(thread, frame, 0);
}

}  // namespace argand::dynamo
