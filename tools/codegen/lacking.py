"""What a backend cannot run: operators without a kernel there, dtypes that kernels do not take, and operators that call such ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.codegen.emit_cpp_cuda import cuda_dtypes
from tools.codegen.emit_cpp_kernels import row_dtypes
from tools.codegen.emit_triton import is_generated
from tools.codegen.model import Lacks, Operator, Registry


def is_made_of_others(op: Operator) -> bool:
    return op.kind == "composite" or "composite" in op.kernel


def missing_dtypes(op: Operator) -> tuple[str, ...]:
    """The operator's dtypes that its CUDA kernels do not take. Kernels that are written by hand are taken to take all, and what has none
    runs on the CPU."""
    if not is_generated(op) or is_made_of_others(op) or op.kind == "view" or "cuda" in op.kernel:
        return ()
    return tuple(d for d in row_dtypes(op) if d not in cuda_dtypes(op))


def lacking(registry: Registry, op: Operator) -> Lacks:
    """Backend -> operator -> the dtypes that it has no kernel for there, for `op` and what its body and its derivatives may call."""
    found: dict[str, set[str]] = {}
    seen = {op.name}
    waiting = [op]
    while waiting:
        one = waiting.pop()
        if one.lacks is None:
            known: Mapping[str, tuple[str, ...]] = {one.name: missing_dtypes(one)}
        else:
            known = one.lacks.get("cuda", {})
        for name, dtypes in known.items():
            found.setdefault(name, set()).update(dtypes)
        for callee in _called(registry, one):
            if callee.name not in seen:
                seen.add(callee.name)
                waiting.append(callee)
    lacks = {name: tuple(sorted(dtypes)) for name, dtypes in sorted(found.items()) if dtypes}
    return {"cuda": lacks} if lacks else {}


def _called(registry: Registry, op: Operator) -> Iterator[Operator]:
    """Operators of an index say themselves what they lack, and have no bodies here."""
    bodies = [d.body for d in op.grad] + [op.body if is_made_of_others(op) else None]
    for body in bodies:
        for schema in body.calls() if body is not None else ():
            names = (schema.full_name, schema.base_name)
            yield from (registry.operators[n] for n in names if n in registry.operators)
