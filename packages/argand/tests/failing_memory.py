"""Lets the allocations of this thread fail, from any one on."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

_SOURCE = r"""
#include <errno.h>
#include <stddef.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t), *__libc_memalign(size_t, size_t);
static __thread long left __attribute__((tls_model("initial-exec"))) = -1;  // allocations that succeed still; -1: all do
static int fails(void) {
  if (left < 0) return 0;
  if (left == 0) return errno = ENOMEM;
  left--;
  return 0;
}
void* malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
int posix_memalign(void** p, size_t alignment, size_t n) {
  if (fails() || !(*p = __libc_memalign(alignment, n))) return ENOMEM;
  return 0;
}
long fail_after(long n) {
  const long was = left;
  left = n;
  return was;
}
"""


def build(folder: Path) -> Path:
    """Compiles the library that a process must preload."""
    source, library = folder / "failing.c", folder / "libfailing.so"
    source.write_text(_SOURCE)
    compiler = os.environ.get("ARGAND_CC", "gcc").split()
    subprocess.check_call(
        [*compiler, "-O1", "-fno-builtin", "-shared", "-fPIC", "-o", str(library), str(source)]
    )
    return library


def fail_after(n: int) -> int:
    """`n` allocations of this thread succeed, those after them fail; -1: all succeed. Returns how many were left of the last `n`."""
    return _set(n)


try:
    _set = ctypes.CDLL(None).fail_after
    _set.argtypes, _set.restype = [ctypes.c_long], ctypes.c_long
except AttributeError:  # not preloaded

    def _set(n: int) -> int:
        raise RuntimeError("fail_after: preload the library of build()")
