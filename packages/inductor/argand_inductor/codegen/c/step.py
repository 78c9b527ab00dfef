"""A fused group as a step of the program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from argand_inductor import sizes as sz
from argand_inductor.codegen.backend import Backend, Parts
from argand_inductor.codegen.c.kernel import KernelWriter
from argand_inductor.codegen.groups import comment_of, reuse_pairs, signature
from argand_inductor.fuse import Group
from argand_inductor.loop_ir import Loop
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.options import Options
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


class Generator(Backend):
    """Makes the kernels of one program; groups with one signature are written once."""

    def __init__(
        self,
        buffers: Mapping[str, Buffer],
        live: set[str],
        hints: Mapping[str, int],
        options: Options,
    ) -> None:
        super().__init__(buffers, live, hints, options)
        self.made: dict[tuple[Any, ...], tuple[KernelStep, list[str]]] = {}

    def step(self, group: Group) -> KernelStep:
        """The step that runs a group and stores those of its buffers that are in `live`."""
        key, names = signature(group, self.buffers, self.live)
        location = next((m.loop.location for m in group.members if m.loop.location), None)
        if key not in self.made:
            self.made[key] = generate_kernel(group, self.buffers, self.live, self.hints), names
        step, others = self.made[key]
        renamed = dict(zip(others, names, strict=True))
        return replace(
            step,
            args=tuple([renamed[a] for a in step.args]),
            writes=tuple([renamed[a] for a in step.writes]),
            reuse=tuple([(renamed[w], renamed[r]) for w, r in step.reuse]),
            location=location,
        )

    @classmethod
    def parts_of(cls, loop: Loop, hints: Mapping[str, int]) -> Parts | None:
        """Equal parts where there is too little else to do at once, or where walking through whole rows suits the memory better."""
        kept = len(loop.sizes) - loop.reduced
        steps = [sz.evaluate(s, hints) for s in loop.reads[0].strides]
        counts = [sz.evaluate(s, hints) for s in loop.sizes]
        rows, columns = math.prod(counts[kept:]), math.prod(counts[:kept])
        d = max(range(kept, len(counts)), key=lambda k: (steps[k], counts[k]))
        inner_kept = min((steps[k] for k in range(kept) if counts[k] > 1), default=1 << 62)
        by_columns = inner_kept < min(
            (steps[k] for k in range(kept, len(counts)) if counts[k] > 1), default=1 << 62
        )
        if rows * columns < 1 << 16 or (columns >= 8 and not by_columns):
            return None
        least = 32 if by_columns else 4096  # elements of a part
        for parts in range(32, 1, -1):
            if (
                rows >= parts * least
                and counts[d] > parts
                and sz.divide(loop.sizes[d], parts) is not None
            ):
                return Parts(d, parts)
        return None


def generate_kernel(
    group: Group, buffers: Mapping[str, Buffer], live: set[str], hints: Mapping[str, int]
) -> KernelStep:
    """The step of one group, written anew."""
    writer = KernelWriter(group, buffers, live, hints)
    body, extent, grain = writer.write()
    head = ["ARGAND_KERNEL_ARGS;"]
    head += [f"char* const p{k} = (char*)args->buffers[{k}];" for k in range(len(writer.args))]
    head += [f"const long s{k} = args->sizes[{k}];" for k in range(len(writer.parameters))]
    if writer.stream_used:
        body.append("argand_stream_end();")
    name, source = kernel_name("ARGAND_KERNEL(@NAME@) {\n" + indent([*head, *body]) + "\n}\n")
    writes = tuple(a for a in writer.args if a in writer.made)
    draws = "argand_random_words(" in source
    return KernelStep(
        KernelSource(
            name, source, (HEADER, RANDOM_HEADER) if draws else (HEADER,), comment_of(group)
        ),
        args=tuple(writer.args),
        writes=writes,
        sizes=tuple(sz.text(s) for s in writer.parameters),
        extent=sz.text(extent),
        grain=grain,
        reuse=reuse_pairs(group, buffers, writes),
    )
