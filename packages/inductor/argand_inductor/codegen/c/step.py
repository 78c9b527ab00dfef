"""A fused group as a step of the program."""

from __future__ import annotations

from collections.abc import Mapping

from argand_inductor import sizes as sz
from argand_inductor.codegen.c.kernel import KernelWriter
from argand_inductor.fuse import Group
from argand_inductor.loop_ir import ITEMSIZE, Access, in_memory
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.program import KernelSource, KernelStep, kernel_name

HEADER = "argand_inductor/codegen/c/argand_vec.h"
RANDOM_HEADER = "argand_inductor/codegen/c/argand_random.h"


def indent(lines: list[str]) -> str:
    """C with two spaces a brace."""
    text: list[str] = []
    depth = 1
    for line in "\n".join(lines).split("\n"):
        line = line.strip()
        opens, closes = line.count("{"), line.count("}")
        depth -= max(0, closes - opens)
        text.append("  " * depth + line)
        depth += max(0, opens - closes)
    return "\n".join(text)


def generate_kernel(
    group: Group, buffers: Mapping[str, Buffer], live: set[str], hints: Mapping[str, int]
) -> KernelStep:
    """The step that runs a group and stores those of its buffers that are in `live`."""
    writer = KernelWriter(group, buffers, live, hints)
    body, extent, grain = writer.write()
    head = ["ARGAND_KERNEL_ARGS;"]
    head += [f"char* const p{k} = (char*)args->buffers[{k}];" for k in range(len(writer.args))]
    head += [f"const long s{k} = args->sizes[{k}];" for k in range(len(writer.parameters))]
    if writer.stream_used:
        body.append("argand_stream_end();")
    name, source = kernel_name("ARGAND_KERNEL(@NAME@) {\n" + indent([*head, *body]) + "\n}\n")
    members = [m for m in group.members]
    comment = "\n".join(f"{m.loop.name} = {', '.join(m.loop.operators)}" for m in members)
    writes = tuple(a for a in writer.args if a in writer.made)
    includes = (HEADER, RANDOM_HEADER) if "argand_random_words(" in source else (HEADER,)
    return KernelStep(
        KernelSource(name, source, includes, comment),
        tuple(writer.args), writes, tuple(sz.text(s) for s in writer.parameters), sz.text(extent), grain,
        reuse_pairs(group, live, buffers, writes), next((m.loop.location for m in members if m.loop.location), None),
    )  # fmt: skip


def reuse_pairs(
    group: Group, live: set[str], buffers: Mapping[str, Buffer], writes: tuple[str, ...]
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
