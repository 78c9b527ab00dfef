"""Compiles Triton kernels in a process of its own: started as a script by a Python that has Triton, without other packages.
Its argument is the folder with the package whose functions kernels call.

Reads pickled jobs from stdin until its end and writes a pickled result for each: ("ok", image, shared bytes, threads) or
("error", why). The process imports neither PyTorch, which Triton would, nor this package.
"""

from __future__ import annotations

import linecache
import os
import pickle
import sys
import traceback
import types
from pathlib import Path
from typing import Any


def load(name: str, source: str) -> Any:
    """The function of a module's text; Triton reads its lines back."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {"__name__": name, "__file__": file}
    exec(compile(source, file, "exec"), space)
    return space[name]


def target_of(arch: str) -> Any:
    """Triton's target of "sm_90" or "gfx942"."""
    from triton.backends.compiler import GPUTarget

    if arch.startswith("sm_"):
        return GPUTarget("cuda", int(arch[3:]), 32)
    return GPUTarget("hip", arch, 64)


def compile_kernel(job: dict[str, Any]) -> tuple[str, bytes, int, int]:
    """The device code of a kernel, and what a launch needs to know of it."""
    import triton
    from triton.compiler import ASTSource

    target = target_of(job["arch"])
    signature = {name: kind for name, kind in job["signature"]}
    constants = {}
    for name, value in job["constants"]:
        constants[(len(signature),)] = value
        signature[name] = "constexpr"
    aligned = {
        (i,): [["tt.divisibility", 16]]
        for i, kind in enumerate(signature.values())
        if kind.startswith("*")
    }
    made = triton.compile(
        ASTSource(load(job["name"], job["source"]), signature, constants, aligned),
        target=target,
        options={
            "num_warps": job["num_warps"],
            "num_stages": job["num_stages"],
            "enable_fp_fusion": False,
        },
    )
    image = made.asm["cubin" if target.backend == "cuda" else "hsaco"]
    metadata = made.metadata
    if getattr(metadata, "global_scratch_size", 0):
        raise RuntimeError("the kernel wants scratch memory, which launches do not give")
    return "ok", image, int(metadata.shared), int(metadata.num_warps) * target.warp_size


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what compilers print is no result
    sys.modules["torch"] = None  # type: ignore[assignment]
    library = types.ModuleType(
        "argand_aten_cuda"
    )  # its functions for kernels, without the package around them
    library.__path__ = [str(Path(sys.argv[1], "argand_aten_cuda"))]
    sys.modules["argand_aten_cuda"] = library
    import triton  # noqa: F401  (while there is nothing else to do)

    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            result: tuple[Any, ...] = compile_kernel(job)
        except Exception:
            result = ("error", traceback.format_exc()[-2000:])
        pickle.dump(result, out)
        out.flush()


if __name__ == "__main__":
    main()
