"""Epilogues: a group that reads the result of a matrix product or convolution runs on each part of it right after that is computed.

The part is then still in the caches, and if nobody else reads the result it is never stored as a whole. An operator hands over parts
that are whole *rows* of its result (the last dimension of a product, the spatial dimensions of a convolution), and the group's
kernel runs over the units of those rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argand_inductor import sizes as sz
from argand_inductor.codegen.c.kernel import units_of
from argand_inductor.fuse import FULL, Fuser, Group, refine
from argand_inductor.loop_ir import ITEMSIZE, contiguous_strides
from argand_inductor.lowering.graph import ExternCall, Reservation
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.sizes import Size

# Leading dimensions of the result that a row is one index of, by operator; negative ones count from the end.
_ROWS = {"mm": 1, "addmm": 1, "bmm": 2, "linear": -1, "convolution": 2}
_DTYPES = ("float32", "float64")
# Of a matrix product: the argument whose last dimension is summed over, how long that may be, and from which length on the result has
# to be larger in proportion.
_FACTOR = {"mm": 0, "addmm": 1, "bmm": 0, "linear": 0}
MAX_DEPTH, DEPTH = 512, 128


@dataclass(slots=True)
class Epilogue:
    """A call and the group that reads its result part by part: `units` units of the group's kernel compute `row` elements."""

    call: ExternCall
    group: Group
    row: Size
    units: Size

    @property
    def result(self) -> str:
        """The name of the call's result."""
        (name,) = self.call.outputs
        return str(name)


def fuse_epilogues(
    fuser: Fuser, calls: Mapping[int, ExternCall | Reservation], buffers: Mapping[str, Buffer]
) -> dict[int, Epilogue]:
    """Join what is legal and pays, the latest calls first, so that a sum of two results runs on the later one's parts.

    Args:
        fuser: its groups lose those that become epilogues.
        calls: the units that are no groups.
        buffers: of the graph, by name.

    Returns:
        The epilogues by the unit of their call, which has taken in the unit of the group.
    """
    found: dict[int, Epilogue] = {}
    for unit in sorted(calls, reverse=True):
        call = calls[unit]
        if not isinstance(call, ExternCall) or call.operator not in _ROWS:
            continue
        result = buffers[str(call.outputs[0])]
        if not pays(call, result, fuser):
            continue
        for reader in sorted(fuser.users[unit]):
            group = fuser.groups.get(reader)
            if group is None or fuser.lies_between(unit, reader):
                continue
            made = fit(call, result, group, fuser.hints)
            if made is not None:
                fuser.absorb(unit, reader)
                found[unit] = made
                break
    return found


def pays(call: ExternCall, result: Buffer, fuser: Fuser) -> bool:
    """Whether a call is worth cutting into parts: see "Epilogues" in docs/notes/loops.md."""
    if result.device != "cpu" or result.dtype not in _DTYPES:
        return False
    depth = 1
    if call.operator in _FACTOR:
        depth = sz.evaluate(call.args[_FACTOR[call.operator]].sizes[-1], fuser.hints)
    size = ITEMSIZE[result.dtype] * sz.evaluate(result.numel(), fuser.hints)
    return depth <= MAX_DEPTH and size >= fuser.limits.epilogue_bytes * max(1, depth / DEPTH)


def fit(
    call: ExternCall, result: Buffer, group: Group, hints: Mapping[str, int]
) -> Epilogue | None:
    """The group as the call's epilogue, or None if its units do not compute rows of the result one after the other."""
    lead = _ROWS[call.operator] % len(result.sizes)
    rows, row = sz.product(result.sizes[:lead]), sz.product(result.sizes[lead:])
    if result.strides != contiguous_strides(result.sizes) or 1 in (rows, row):
        return None
    refined = refine(group, rows, row)
    if refined is None:
        return None
    made, trailing = refined
    strides = contiguous_strides(made.sizes)
    reads = [(m, a) for m in made.members for a in m.reads if a.buffer == result.name]
    if any((m.level, a.strides, a.offset, a.guard) != (FULL, strides, 0, None) for m, a in reads):
        return None
    units = units_of(made, trailing, hints)
    return None if units is None else Epilogue(call, made, row, units)
