"""Which operators a backend cannot run: those without a kernel there, and operators made of others, as far as they call such ones."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.emit_triton import is_generated
from tools.codegen.model import Operator, Registry


def has_cuda_kernel(op: Operator) -> bool:
    """Whether CUDA tensors reach a kernel or a body of the operator itself."""
    return is_made_of_others(op) or op.kind == "view" or "cuda" in op.kernel or is_generated(op)


def is_made_of_others(op: Operator) -> bool:
    return op.kind == "composite" or "composite" in op.kernel


def lacking(registry: Registry, op: Operator) -> Mapping[str, tuple[str, ...]]:
    """Backend -> the operators without a kernel there that a call of `op` may reach: `op` itself, or some that its body calls."""
    found: set[str] = set()
    seen = {op.name}
    waiting = [op]
    while waiting:
        one = waiting.pop()
        if one.lacks is not None:
            found.update(one.lacks.get("cuda", ()))
        elif not has_cuda_kernel(one):
            found.add(one.name)
        elif is_made_of_others(one) and one.body is not None:
            for schema in one.body.calls():
                callee = registry.operators.get(schema.full_name) or registry.operators.get(
                    schema.base_name
                )
                if callee is not None and callee.name not in seen:
                    seen.add(callee.name)
                    waiting.append(callee)
    return {"cuda": tuple(sorted(found))} if found else {}
