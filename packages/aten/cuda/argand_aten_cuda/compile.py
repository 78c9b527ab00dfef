"""Compiles Triton kernels to code objects. Needs Triton; needs no GPU.

    python -m argand_aten_cuda.compile --module=argand_aten_cuda.kernels.softmax --arch=sm_90 --arch=gfx942 --out=DIR
    python -m argand_aten_cuda.compile --merge part1.sm_90.bin part2.sm_90.bin --out=kernels_sm_90.bin

The first form writes DIR/<last part of the module's name>.<arch>.bin, an archive a module and architecture; the second one joins archives.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from argand_aten_cuda import archive
from argand_aten_cuda.archive import Compiled
from argand_aten_cuda.kernel import Kernel, Variant


def target_of(arch: str) -> Any:
    """Triton's target of "sm_90" or "gfx942".

    Raises:
      ValueError: for another name.
    """
    from triton.backends.compiler import GPUTarget

    if arch.startswith("sm_") and arch[3:].isdigit():
        return GPUTarget("cuda", int(arch[3:]), 32)
    if arch.startswith("gfx"):
        return GPUTarget("hip", arch, 64)
    raise ValueError(f"compile: got architecture '{arch}', expected one as sm_90 or gfx942")


def code_object(source: Any, target: Any, options: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """The code object of a Triton source, and its metadata.

    As `triton.compile`, which besides hashes all of Triton and keeps what every stage gives in files.

    Raises:
      ImportError: when Triton is not installed.
    """
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    backend = make_backend(target)
    parsed = backend.parse_options(options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions, modules = backend.get_codegen_implementation(parsed), backend.get_module_map()
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, source.language)
    metadata = dict(vars(parsed))
    code = source.make_ir(target, parsed, functions, modules, context)
    for lower in stages.values():
        code = lower(code, metadata)
    return code, metadata


def compile_variant(kernel: Kernel, variant: Variant, arch: str) -> Compiled:
    """Compiles one specialization.

    Raises:
      ImportError: when Triton is not installed.
      RuntimeError: when Triton refuses the kernel.
    """
    import triton.language as tl
    from triton.compiler import ASTSource

    target = target_of(arch)
    types = kernel.parameters(variant)
    names = list(kernel.function.arg_names)
    dtypes = {
        n: getattr(tl, "int1" if d == "bool" else d) for n, d in kernel.dtypes(variant).items()
    }
    constants = {n: dtypes[n] if n in dtypes else variant[n] for n in names if n not in types}
    signature = {n: types.get(n, "constexpr") for n in names}
    divisible = kernel.option("divisible", variant)
    source = ASTSource(
        kernel.function,
        signature,
        {(names.index(n),): v for n, v in constants.items()},
        {(names.index(n),): [["tt.divisibility", 16]] for n in divisible},
    )
    options = {
        "enable_fp_fusion": kernel.fp_fusion,
        "num_warps": kernel.option("num_warps", variant),
        "num_stages": kernel.option("num_stages", variant),
    }
    if kernel.max_registers and target.backend == "cuda":
        options["maxnreg"] = kernel.max_registers
    name = kernel.text(variant)
    try:
        image, metadata = code_object(source, target, options)
    except Exception as error:
        raise RuntimeError(f"{name}: Triton could not compile it for {arch}: {error}") from error
    scratch = metadata.get("global_scratch_size", 0)
    if scratch:
        raise RuntimeError(f"{name}: needs {scratch} bytes of global scratch memory, expected none")
    threads = metadata["num_warps"] * target.warp_size
    return Compiled(name, image, metadata["name"], threads, metadata["shared"])


def kernels_of(module: str) -> list[Kernel]:
    """The kernels that a module lists."""
    return list(importlib.import_module(module).KERNELS)


def _compile_module(module: str, archs: list[str], out: Path, full: bool) -> None:
    for arch in archs:
        done = []
        for kernel in kernels_of(module):
            done += [compile_variant(kernel, v, arch) for v in kernel.variants(all_types=full)]
        archive.write(out / f"{module.rsplit('.', 1)[-1]}.{arch}.bin", done, preset=0)


def _merge(parts: list[Path], out: Path) -> None:
    found: list[Compiled] = []
    for part in parts:
        source = archive.Archive(part)
        found += [k for k in map(source.get, source.names()) if k is not None]
    names = [k.name for k in found]
    repeated = {n for n in names if names.count(n) > 1} if len(set(names)) != len(names) else set()
    if repeated:
        raise SystemExit(f"compile: several kernels are named {', '.join(sorted(repeated))}")
    archive.write(out, found)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--arch", action="append", default=[])
    parser.add_argument("--full", action="store_true", help="every dtype, not only the wheel's")
    parser.add_argument("--merge", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    if options.merge:
        _merge(options.merge, options.out)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    for module in options.module:
        _compile_module(module, options.arch, options.out, options.full)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
