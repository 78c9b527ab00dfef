// The one place that knows CPython's frames: what a frame that has not started runs, and how to end it with a ready result.
// Each version of CPython has its file; Py_BUILD_CORE is defined around the one internal header that they need.
#pragma once

#include <Python.h>

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
#include "packages/dynamo/csrc/frame_311.h"
#elif PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030d0000
#include "packages/dynamo/csrc/frame_312.h"
#elif PY_VERSION_HEX >= 0x030d0000 && PY_VERSION_HEX < 0x030e0000
#include "packages/dynamo/csrc/frame_313.h"
#else
#error "frame.h: frames are known for CPython 3.11, 3.12 and 3.13; add a frame file for this version"
#endif

// Every frame file defines, in argand::dynamo:
//   PyCodeObject* frame_code(Frame*)            borrowed
//   PyFunctionObject* frame_function(Frame*)    borrowed
//   PyObject* const* frame_locals(Frame*)       parameters first, cells not made yet
//   PyObject* end_frame(PyThreadState*, Frame*, _PyFrameEvalFunction, PyObject* result)
//     ends a frame that was never started with `result` (stolen), or with the current exception if that is NULL
//   int init_frames()
