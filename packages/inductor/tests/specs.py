"""Hand-written programs for tests of what comes after the scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from argand_inductor.program import (
    BufferSpec,
    Expr,
    KernelSource,
    KernelStep,
    Location,
    TensorSpec,
    kernel_name,
)

LOCATION: Location = ("model.py", 12, "forward")


def pointwise(body: str, n_inputs: int, c_type: str = "float") -> KernelSource:
    """A kernel out[i] = body(a0, a1, ...) over a flat range."""
    loads = " ".join(
        f"const {c_type} a{k} = (({c_type}*)args->buffers[{k}])[i];" for k in range(n_inputs)
    )
    name, source = kernel_name(
        "ARGAND_KERNEL(@NAME@) {\n"
        "  ARGAND_KERNEL_ARGS;\n"
        f"  {c_type}* out = ({c_type}*)args->buffers[{n_inputs}];\n"
        f"  for (int64_t i = begin; i < end; i++) {{ {loads} out[i] = {body}; }}\n"
        "}\n"
    )
    return KernelSource(name, source)


def product(sizes: Sequence[Expr]) -> Expr:
    if all(isinstance(s, int) for s in sizes):
        n = 1
        for s in sizes:
            n *= int(s)
        return n
    return "*".join(f"({s})" for s in sizes)


def strides_of(sizes: Sequence[Expr]) -> tuple[Expr, ...]:
    return tuple(product(sizes[i + 1 :]) for i in range(len(sizes)))


def tensor(name: str, *sizes: Expr, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(name, dtype, sizes, strides_of(sizes))


def buffer(*sizes: Expr, dtype: str = "float32") -> BufferSpec:
    return BufferSpec(dtype, sizes, strides_of(sizes))


def step(body: str, *names: str, sizes: Sequence[Expr], reuse: bool = False) -> KernelStep:
    """names: what is read, then what is written."""
    *reads, out = names
    return KernelStep(
        pointwise(body, len(reads)),
        names,
        (out,),
        (),
        product(sizes),
        16384,
        tuple((out, name) for name in reads) if reuse else (),
        LOCATION,
    )
