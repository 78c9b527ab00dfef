// The frame hook (PEP 523): while it is on in a thread, each new Python frame of the thread is shown to a callback that may
// give a function to run instead. It slows all Python code by a third, so it is on only around what needs it.
#pragma once

#include "packages/dynamo/csrc/binding.h"

namespace argand::dynamo {

inline constinit thread_local bool hook_is_on = false;

// Turns the hook of this thread on or off; returns what it was.
bool set_hook(bool on);

// Off for a scope: compiled code and the compiler itself are not looked at.
class HookPause {
 public:
  HookPause() : was_on_(hook_is_on) {
    if (__builtin_expect(was_on_, 0)) set_hook(false);
  }
  ~HookPause() {
    if (__builtin_expect(hook_is_on != was_on_, 0)) set_hook(was_on_);
  }
  HookPause(const HookPause&) = delete;
  HookPause& operator=(const HookPause&) = delete;

 private:
  bool was_on_;
};

extern PyMethodDef hook_functions[];
int init_frame_hook(PyObject* module);

}  // namespace argand::dynamo
