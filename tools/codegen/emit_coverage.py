"""Emits the coverage page: which operators have which backends, dtypes, derivatives, and what the compiler makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.codegen import dtypes
from tools.codegen.emit_cpp_cuda import cuda_dtypes
from tools.codegen.emit_cpp_kernels import row_dtypes
from tools.codegen.emit_tests import counted
from tools.codegen.emit_triton import is_generated
from tools.codegen.model import Operator, Registry

HEAD = """# Coverage

Generated from the operator registry, the compiler's tables and the example backend's ({operators} operators; those that codegen derives for gradients are left out).
A cell names the dtypes. *parts*: the operator is made of others, and goes where they go. *view*: it moves no element, for every dtype. `-`: no kernel; the call raises an error that
names the operator, the device and what to do.

* **CPU**, **CUDA**: kernels of this project; those of CUDA run on NVIDIA GPUs of compute capability 8.0, 9.0 and 10.0, matrix products and convolutions through cuBLASLt and cuDNN.
  *CPU*: runs there on copies (LAPACK's decompositions, CTC, some samplers), and says so once; so do calls in dtypes that a cell of CUDA does not name.
* **HIP** (gfx942): the same Triton kernels, **compiled, not run**.
* **OpenCL**: the example backend outside the tree (`examples/backend_opencl`); for what it lacks it goes to the CPU and back. It does without
  uint16, uint32 and uint64, which *all* and *integral* do not count there.
* **gradient**: the arguments that are differentiated; *parts*: through its parts.
* **compiled**: *fused* with its neighbours into generated kernels, *decomposed* into other operators, or *called* as it is (on complex numbers: always).

Of {tests:,} generated tests the registry skips {skipped} ({percent:.1f}%), each with its reason; an operator that skips all of them counts with every test that it would have.

Short names: {names}.
"""
SHORT = {
    "bool": "b", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128",
    "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
_PARTS, _VIEW, _HOST, _NONE = "*parts*", "*view*", "*CPU*", "-"


def is_made_of_others(op: Operator) -> bool:
    return op.kind == "composite" or "composite" in op.kernel


# The dtypes of backends that leave some out, which their columns do not count.
_NARROWER = tuple(d for d in dtypes.DTYPES if d not in dtypes.WIDE_UNSIGNED)


def dtypes_text(found: Sequence[str], known: Sequence[str] = dtypes.DTYPES) -> str:
    """Names of sets where they fit, short names for the rest; `known`: what the backend has at all."""
    found = [d for d in found if d in known]
    if not found:
        return _NONE
    if set(found) == set(known):
        return "all"
    words: list[str] = []
    for name in ("boolean", "integral", "floating", "complex"):
        members = [d for d in dtypes.DTYPE_SETS[name] if d in known]
        here = [d for d in members if d in found]
        if len(here) == len(members) > 1:
            words.append(name)
        else:
            words += [SHORT[d] for d in here]
    return " ".join(words)


def _without_kernel(op: Operator) -> str | None:
    """What to say of operators that need no kernel of a backend."""
    if op.kind == "view":
        return _VIEW
    return _PARTS if is_made_of_others(op) else None


def cpu_cell(op: Operator) -> str:
    return _without_kernel(op) or dtypes_text(row_dtypes(op))


def cuda_cell(op: Operator) -> str:
    if "cuda" in op.kernel:
        libraries = op.family == "convolution"  # cuDNN, which has no integers
        return dtypes_text(
            [d for d in row_dtypes(op) if not libraries or dtypes.is_differentiable(d)]
        )
    return _without_kernel(op) or (dtypes_text(cuda_dtypes(op)) if is_generated(op) else _HOST)


def hip_cell(op: Operator) -> str:
    """Contractions are calls of NVIDIA's libraries."""
    cell = _NONE if op.kind == "contraction" else cuda_cell(op)
    return _NONE if cell == _HOST else cell


def gradient_cell(op: Operator) -> str:
    if op.kind == "composite" and not op.grad:
        return _PARTS
    return ", ".join(a for d in op.grad if not d.is_none for a in d.args) or _NONE


def compiled_cell(op: Operator, facts: Mapping[str, Any]) -> str:
    name = op.schema.full_name
    if name in facts["decomposed"]:
        return "decomposed"
    if (
        op.kind in ("pointwise", "view")
        or op.reduce is not None
        or op.scan is not None
        or name in facts["lowered"]
    ):
        return "fused"
    return _PARTS if op.kind == "composite" else "called"


def opencl_cell(op: Operator, facts: Mapping[str, Any]) -> str:
    found = facts["opencl"].get(op.schema.full_name)
    if found is not None:
        return dtypes_text([d for d in row_dtypes(op) if d in found], _NARROWER)
    return _without_kernel(op) or "on the CPU"


def emit_coverage(registry: Registry, facts: Mapping[str, Any]) -> str:
    """The page; `facts` is what docs/coverage_facts.py writes."""
    public = [
        op for op in registry.operators.values() if op.backward_of is None and not op.is_inplace
    ]
    names = ", ".join(f"{short} {name}" for name, short in SHORT.items())
    tests, skipped = counted(registry)
    text = HEAD.format(
        operators=len(public),
        names=names,
        tests=tests,
        skipped=skipped,
        percent=100 * skipped / tests,
    )
    for family in registry.families:
        ops = [op for op in public if op.family == family]
        if not ops:
            continue
        text += f"\n## {family}\n\n| operator | CPU | CUDA | HIP: compiled, not run | OpenCL (example) | gradient | compiled |\n"
        text += "|---|---|---|---|---|---|---|\n"
        for op in ops:
            cells = (
                f"`{op.schema.full_name}`", cpu_cell(op), cuda_cell(op), hip_cell(op), opencl_cell(op, facts), gradient_cell(op),
                compiled_cell(op, facts),
            )  # fmt: skip
            text += f"| {' | '.join(cells)} |\n"
    return text
