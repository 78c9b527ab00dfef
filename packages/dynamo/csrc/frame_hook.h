// The frame hook (PEP 523): while it is on in a thread, each new Python frame of the thread is shown to a callback that may
// give a function to run instead. It slows all Python code by a third, so it is on only around what needs it.
#pragma once

#include "packages/dynamo/csrc/binding.h"

namespace argand::dynamo {

inline constinit thread_local bool hook_is_on = false;

// Whoever had the hook of this thread turned on, for the callback to know; borrowed, NULL if nobody said.
inline constinit thread_local PyObject* hook_owner = nullptr;

// Turns the hook of this thread on or off; returns what it was.
bool set_hook(bool on);

// Off for a scope: compiled code and the compiler itself are not looked at.
class HookPause {
 public:
  HookPause() : owner_(hook_owner), was_on_(hook_is_on) {
    if (__builtin_expect(was_on_, 0)) set_hook(false);
  }
  ~HookPause() {
    if (__builtin_expect(hook_is_on != was_on_, 0)) set_hook(was_on_);
    hook_owner = owner_;
  }
  // On after all, for `owner`, until the end of the scope. The owner must live that long.
  void resume(PyObject* owner) {
    hook_owner = owner;
    set_hook(true);
  }
  HookPause(const HookPause&) = delete;
  HookPause& operator=(const HookPause&) = delete;

 private:
  PyObject* owner_;
  bool was_on_;
};

extern PyMethodDef hook_functions[];
int init_frame_hook(PyObject* module);

}  // namespace argand::dynamo
