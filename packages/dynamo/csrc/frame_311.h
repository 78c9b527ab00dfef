// Frames of CPython 3.11.
#pragma once

#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace argand::dynamo {

using Frame = _PyInterpreterFrame;

inline PyCodeObject* frame_code(Frame* frame) { return frame->f_code; }
inline PyFunctionObject* frame_function(Frame* frame) { return frame->f_func; }
inline PyObject* const* frame_locals(Frame* frame) { return frame->localsplus; }
inline int init_frames() { return 0; }

// Whoever pushed the frame clears and pops it once the evaluation function has returned.
inline PyObject* end_frame(PyThreadState*, Frame*, _PyFrameEvalFunction, PyObject* result) { return result; }

}  // namespace argand::dynamo
