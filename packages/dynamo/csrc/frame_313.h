// Frames of CPython 3.13.
#pragma once

#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

#include "packages/dynamo/csrc/frame_stub.h"

namespace argand::dynamo {

using Frame = _PyInterpreterFrame;

inline PyCodeObject* frame_code(Frame* frame) { return reinterpret_cast<PyCodeObject*>(frame->f_executable); }
inline PyFunctionObject* frame_function(Frame* frame) { return reinterpret_cast<PyFunctionObject*>(frame->f_funcobj); }
inline PyObject* const* frame_locals(Frame* frame) { return frame->localsplus; }

inline PyObject* end_frame(PyThreadState* thread, Frame* frame, _PyFrameEvalFunction evaluate, PyObject* result) {
  if (!result) {
    frame->instr_ptr = _PyCode_CODE(frame_code(frame)) - 1;  // not started: it gets no place in the traceback
    return evaluate(thread, frame, 1);
  }
  PyObject* code = frame->f_executable;
  leave_result_alone(frame, frame_code(frame)->co_nlocalsplus, result);
  frame->f_executable = Py_NewRef(reinterpret_cast<PyObject*>(stub_code));
  frame->instr_ptr = _PyCode_CODE(stub_code) + 1;
  Py_DECREF(code);
  return evaluate(thread, frame, 0);
}

}  // namespace argand::dynamo
