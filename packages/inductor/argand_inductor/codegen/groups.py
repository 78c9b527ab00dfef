"""What every code generator asks of a fused group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argand_inductor.fuse import Group
from argand_inductor.loop_ir import ITEMSIZE, Access, fingerprint, in_memory
from argand_inductor.lowering.tensors import Buffer


def signature(
    group: Group, buffers: Mapping[str, Buffer], live: set[str]
) -> tuple[tuple[Any, ...], list[str]]:
    """(what tells a kernel from kernels with other text, its buffers in order of first occurrence)."""
    places: dict[str, int] = {}

    def place(access: Access) -> tuple[Any, ...]:
        buffer = access.buffer
        if not in_memory(buffer):
            return (buffer, access.strides, access.offset, access.guard)
        at = places.setdefault(buffer, len(places))
        known = buffers[buffer]
        return (
            at,
            known.dtype,
            known.device,
            known.row(),
            access.strides,
            access.offset,
            access.guard,
        )

    parts: list[Any] = [tuple(group.sizes), tuple(group.reduced)]
    for m in group.members:
        loop = m.loop
        parts.append(
            (
                m.level, loop.dtype, loop.name in live, loop.cost, id(loop.reduction), place(m.write),
                tuple([place(a) for a in m.reads]), fingerprint(loop.body),
                None if loop.final is None else fingerprint(loop.final),
            )
        )  # fmt: skip
    return tuple(parts), list(places)


def reuse_pairs(
    group: Group, buffers: Mapping[str, Buffer], writes: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Results that may take the memory of an input: every access of the input is the result's own, in one pass."""
    if group.reduces:
        return ()
    accesses: dict[str, list[Access]] = {}
    for m in group.members:
        for a in m.reads:
            accesses.setdefault(a.buffer, []).append(a)
    pairs = []
    for m in group.members:
        if m.loop.name not in writes:
            continue
        for buffer, reads in accesses.items():
            if not in_memory(buffer):
                continue
            same = all(
                (a.strides, a.offset, a.guard) == (m.write.strides, m.write.offset, None)
                for a in reads
            )
            if (
                same
                and buffer not in writes
                and ITEMSIZE[buffers[buffer].dtype] == ITEMSIZE[m.loop.dtype]
            ):
                pairs.append((m.loop.name, buffer))
    return tuple(pairs)


def comment_of(group: Group) -> str:
    """What readers see above a kernel: its operators."""
    return "\n".join(f"{m.loop.name} = {', '.join(m.loop.operators)}" for m in group.members)
