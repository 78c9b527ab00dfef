"""Runs kernels in Triton's interpreter, in a Python that has Triton (TRITON_INTERPRET=1 is set).

Reads pickled jobs from stdin and writes a pickled result for each: {"source", "name", "constants", "arrays" (1-D, uint16 for
bfloat16), "types", "scalars", "sizes", "grid"} gives ("ok", the arrays afterwards) or ("error", why). {"what": "address"} gives the address of an
error record, {"what": "errors"} its words, which are 0 afterwards.
"""

from __future__ import annotations

import importlib
import linecache
import math
import os
import pickle
import sys
import traceback
import types
from pathlib import Path
from typing import Any

import numpy as np


def load(job: dict[str, Any]) -> Any:
    """The kernel of a job."""
    file = f"<{job['name']}>"
    linecache.cache[file] = (len(job["source"]), None, job["source"].splitlines(True), file)
    space: dict[str, Any] = {"__name__": job["name"], "__file__": file, "range": whole_range}
    exec(compile(job["source"], file, "exec"), space)
    return space[job["name"]]


def whole_range(*bounds: Any) -> range:
    """`range` over the interpreter's scalars, which are arrays of one element."""
    return range(*(int(b.handle.data.item()) if hasattr(b, "handle") else int(b) for b in bounds))


class Memory:
    """What the interpreter takes for a tensor on a device: a tensor that is its own storage."""

    def __init__(self, array: Any, dtype: Any) -> None:
        self.array, self.dtype = array, dtype

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> Memory:
        return self

    def cpu(self) -> Memory:
        return self

    def new_empty(self, size: int, device: str) -> Memory:
        return Memory(self.array, self.dtype)

    def set_(self, storage: Memory, *geometry: Any) -> None:
        self.array = storage.array

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def stride(self) -> tuple[int, ...]:
        return (1,)

    def copy_(self, other: Memory) -> None:
        assert other.array is self.array


class DeviceLibrary:
    """Functions of CUDA's device library that the tests' kernels call, by NumPy."""

    def __getattr__(self, name: str) -> Any:
        function = {
            "exp": np.exp,
            "log": np.log,
            "tanh": np.tanh,
            "erf": np.vectorize(math.erf, otypes=[np.float64]),
        }[name]

        def call(x: Any) -> Any:
            from triton.runtime.interpreter import TensorHandle

            data = function(x.handle.data).astype(x.handle.data.dtype)
            return type(x)(TensorHandle(data, x.handle.dtype), x.type)

        return call


ERROR = np.zeros(4, np.int64)  # the device's error record


def interpret(job: dict[str, Any]) -> list[Any]:
    import triton.language as tl

    if job.get("what") == "address":
        return [ERROR.ctypes.data]
    if job.get("what") == "errors":
        found = ERROR.tolist()
        ERROR[:] = 0
        return found

    names = {
        "*i1": tl.int1,
        "*u8": tl.uint8,
        "*i8": tl.int8,
        "*i16": tl.int16,
        "*i32": tl.int32,
        "*i64": tl.int64,
    }
    names |= {"*fp16": tl.float16, "*bf16": tl.bfloat16, "*fp32": tl.float32, "*fp64": tl.float64}
    memories = [Memory(a, names[t]) for a, t in zip(job["arrays"], job["types"], strict=True)]
    if job["grid"]:
        load(job)[(job["grid"],)](
            *memories, *job["scalars"], *job["sizes"], **dict(job["constants"])
        )
    return [m.array for m in memories]


def patch_once() -> None:
    """triton.language is patched for good; the interpreter looks for what to patch at every call of a function."""
    from triton.runtime import interpreter

    patch, patched = interpreter._patch_lang, set()

    def once(function: Any) -> Any:
        if id(function.__globals__) not in patched:
            patched.add(id(function.__globals__))
            patch(function)
        return interpreter._LangPatchScope()

    interpreter._patch_lang = once


def main() -> None:
    patch_once()
    library = types.ModuleType("argand_aten_cuda")
    library.__path__ = [str(Path(sys.argv[1], "argand_aten_cuda"))]
    sys.modules["argand_aten_cuda"] = library
    for module in ("math", "device_functions"):
        functions = importlib.import_module(f"argand_aten_cuda.{module}")
        functions.libdevice = DeviceLibrary()  # type: ignore[attr-defined]
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            result = ("ok", interpret(job))
        except Exception:
            result = ("error", traceback.format_exc()[-3000:])
        pickle.dump(result, out)
        out.flush()


if __name__ == "__main__":
    main()
