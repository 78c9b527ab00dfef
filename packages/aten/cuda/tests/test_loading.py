"""Where kernels' code comes from, asked by several threads at once."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import emulated
import pytest

pytestmark = pytest.mark.skipif(bool(emulated.missing), reason=emulated.missing)

_SCRIPT = """
import threading, time
import emulated
import argand_aten as aten
import argand_aten_cuda

emulated.start()

def slow(name, architecture):
    time.sleep(0.05)  # without Python's lock
    return emulated._provide(name, architecture)

argand_aten_cuda._C.set_provider(slow)
aten.ones([3], device="cuda")
names = [f"neg_contiguous;T={t};I=i32;BLOCK=1024" for t in ("float32", "int64", "float32", "bfloat16")]
threads = [threading.Thread(target=argand_aten_cuda._C.load_kernel, args=(n, 0)) for n in names]
for t in threads: t.start()
for t in threads: t.join()
print("all done")
"""


def run_script(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=20,
        capture_output=True,
        text=True,
        check=False,
    )


def test_threads_that_load_kernels_do_not_block_each_other() -> None:
    done = run_script(_SCRIPT)
    assert done.stdout == "all done\n", done.stderr


_FIRST = """
import sys
import emulated
import argand_aten as aten
try:
    aten.arange(0, 3, device="cuda")
except NotImplementedError:
    raise
except Exception:
    pass  # the stand-in runs no kernel
print("argand_aten_cuda" in sys.modules)
"""


def test_a_factory_may_be_the_first_to_name_the_device() -> None:
    done = run_script(_FIRST)
    assert done.stdout == "True\n", done.stderr


def test_a_module_without_the_kernel_is_unloaded() -> None:
    import argand_aten as aten
    import argand_aten_cuda

    emulated.start()
    aten.empty([1], device="cuda")
    driver = ctypes.CDLL(emulated.DRIVER)
    name = "neg_contiguous;T=float64;I=i32;BLOCK=1024"
    unloaded = driver.fakeCalls(b"cuModuleUnload")
    driver.fakeFail(b"cuModuleGetFunction", 500, 0)
    with pytest.raises(RuntimeError):
        argand_aten_cuda._C.load_kernel(name, 0)
    assert driver.fakeCalls(b"cuModuleUnload") == unloaded + 1
    driver.fakeFail(b"cuModuleGetFunction", 0, 0)
    argand_aten_cuda._C.load_kernel(name, 0)
    assert driver.fakeCalls(b"cuModuleUnload") == unloaded + 1
