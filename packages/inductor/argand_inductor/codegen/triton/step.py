"""A fused group as a launch: which shape its kernel has, and the step that runs it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from argand_inductor import sizes as sz
from argand_inductor.codegen.backend import Backend, Parts
from argand_inductor.codegen.groups import comment_of, reuse_pairs, signature
from argand_inductor.codegen.triton import configs
from argand_inductor.codegen.triton.configs import Config
from argand_inductor.codegen.triton.kernel import KernelWriter
from argand_inductor.codegen.triton.values import POINTERS
from argand_inductor.fuse import Group
from argand_inductor.loop_ir import ITEMSIZE, Loop, compute_dtype, in_memory
from argand_inductor.lowering.tensors import Buffer
from argand_inductor.options import Options
from argand_inductor.program import HostScalar, LaunchStep, Location, TritonKernel, kernel_name
from argand_inductor.sizes import Size

HEAD = """import triton
import triton.language as tl
from argand_aten_cuda import conversion, math, random
"""
# The least number of elements for which a second kernel is worth its launch.
_SPLIT_FROM = 1 << 15
# Elements of a row from which on programs handle parts of one row, with no division by its length.
_LONG_ROW = 4096
_PROGRAMS = 4 * configs.PROCESSORS


class Generator(Backend):
    """Makes the kernels of one program; groups with one signature are written once."""

    rows_fuse: ClassVar[bool] = True
    longest_row: ClassVar[int] = configs.PERSISTENT

    def __init__(
        self,
        buffers: Mapping[str, Buffer],
        live: set[str],
        hints: Mapping[str, int],
        options: Options,
    ) -> None:
        super().__init__(buffers, live, hints, options)
        self.made: dict[tuple[Any, ...], tuple[LaunchStep, list[str]]] = {}

    def step(self, group: Group) -> LaunchStep:
        key, names = signature(group, self.buffers, self.live)
        location = next((m.loop.location for m in group.members if m.loop.location), None)
        if key not in self.made:
            self.made[key] = self.generate(group), names
        step, others = self.made[key]
        renamed = dict(zip(others, names, strict=True))
        made = _renamed(step, renamed, location)
        return replace(made, others=tuple(_renamed(o, renamed, location) for o in step.others))

    def generate(self, group: Group) -> LaunchStep:
        """The step of one group, written anew; with autotuning also the other ways to write it."""
        first, *others = self.candidates(group)
        step = self.write(group, *first)
        if self.options.autotunes:
            rest = [self.write(group, *c) for c in others]
            found = {(s.kernel.name, s.grid): s for s in (step, *rest)}
            step = replace(step, others=tuple(list(found.values())[1:]))
        return step

    def write(self, group: Group, config: Config, tiled: int | None) -> LaunchStep:
        device = group.members[0].loop.device
        writer = KernelWriter(group, self.buffers, self.live, device, config, tiled)
        writer.write()
        kernel = _kernel(writer, comment_of(group))
        writes = tuple(a for a in writer.args if a in writer.made)
        return LaunchStep(
            kernel,
            args=tuple(writer.args),
            writes=writes,
            grid=sz.text(writer.grid()),
            scalars=tuple(
                HostScalar(name, self.buffers[name].dtype, sz.text(offset))
                for name, offset in writer.scalars
            ),
            sizes=tuple(sz.text(s) for s in writer.parameters),
            device=device,
            reuse=reuse_pairs(group, self.buffers, writes),
        )

    # ---- shapes

    def candidates(self, group: Group) -> list[tuple[Config, int | None]]:
        """Ways to write a group, the best guess first."""
        sizes, hints = group.sizes, self.hints
        counts = [sz.evaluate(s, hints) for s in sizes]
        kept = math.prod(n for n, r in zip(counts, group.reduced, strict=True) if not r)
        length = math.prod(n for n, r in zip(counts, group.reduced, strict=True) if r)
        known = all(isinstance(s, int) for s, r in zip(sizes, group.reduced, strict=True) if r)
        itemsize = self.itemsize(group)
        if not group.reduces:
            tiled = self.tile_dimension(group, counts)
            gaps = any(m.loop.fills_gaps for m in group.members)
            if tiled is not None and not gaps:
                return [(c, tiled) for c in configs.tiled(counts[tiled], counts[-1], itemsize)]
            if gaps or (len(counts) > 1 and counts[-1] >= _LONG_ROW):
                return [(c, len(counts) - 1) for c in configs.pointwise(kept, itemsize)]
            return [(c, None) for c in configs.pointwise(kept, itemsize)]
        if group.reduced[-1]:
            transposed = self.has_kept_rows(group, counts)
            found = configs.rows(kept, length, known, transposed, itemsize)
        else:
            found = configs.columns(kept, length, known, itemsize)
        return [(c, None) for c in found]

    def itemsize(self, group: Group) -> int:
        """Bytes of the widest operand that varies along the innermost dimension and, in a reduction, along what is reduced."""

        def moves(strides: Sequence[Size]) -> bool:
            along = [s != 0 for s, r in zip(strides, group.reduced, strict=True) if r]
            return bool(strides) and strides[-1] != 0 and (any(along) or not along)

        found = []
        for m in group.members:
            if m.loop.name in self.live and moves(m.write.strides):
                found.append(ITEMSIZE[m.loop.dtype])
            for a in m.reads:
                if in_memory(a.buffer) and a.buffer in self.buffers and moves(a.strides):
                    if a.buffer in self.live or not self.made_inside(group, a.buffer):
                        found.append(ITEMSIZE[self.buffers[a.buffer].dtype])
        return max(found, default=4)

    def made_inside(self, group: Group, buffer: str) -> bool:
        return any(m.loop.name == buffer for m in group.members)

    def tile_dimension(self, group: Group, counts: list[int]) -> int | None:
        """The dimension along which an operand lies in memory where it is not the innermost one and both are long enough."""
        if not counts or counts[-1] < 8:
            return None
        for m in group.members:
            for a in (*m.reads, m.write):
                if not in_memory(a.buffer) or a.strides[-1] in (0, 1):
                    continue
                for d, stride in enumerate(a.strides[:-1]):
                    if stride == 1 and counts[d] >= 8:
                        return d
        return None

    def has_kept_rows(self, group: Group, counts: list[int]) -> bool:
        """Whether an operand lies in memory along a dimension that is kept."""
        return any(
            a.strides[-1] not in (0, 1) and a.strides[d] == 1 and counts[d] >= 8
            for m in group.members
            for a in m.reads
            if in_memory(a.buffer)
            for d, reduced in enumerate(group.reduced)
            if not reduced
        )

    @classmethod
    def parts_of(cls, loop: Loop, hints: Mapping[str, int]) -> Parts | None:
        """Enough parts that every processor has work."""
        kept_dims = len(loop.sizes) - loop.reduced
        counts = [sz.evaluate(s, hints) for s in loop.sizes]
        steps = [sz.evaluate(s, hints) for s in loop.reads[0].strides]
        length, kept = math.prod(counts[kept_dims:]), math.prod(counts[:kept_dims])
        if length * kept < _SPLIT_FROM:
            return None
        d = max(range(kept_dims, len(counts)), key=lambda k: (counts[k] > 1, steps[k], counts[k]))
        inner_kept = min((steps[k] for k in range(kept_dims) if counts[k] > 1), default=1 << 62)
        inner_reduced = min(
            (steps[k] for k in range(kept_dims, len(counts)) if counts[k] > 1), default=1 << 62
        )
        by_columns = inner_kept < inner_reduced
        busy = -(-kept // 64) if by_columns else kept
        least = 64 if by_columns else 4096  # elements of a part along what is reduced
        wanted = min(_PROGRAMS // max(busy, 1), length // least, counts[d])
        if wanted < 4:
            return None
        count = 1 << (wanted.bit_length() - 1)
        return Parts(d, count, sz.divide(loop.sizes[d], count) is not None)


def _renamed(step: LaunchStep, names: Mapping[str, str], location: Location | None) -> LaunchStep:
    """A launch of the same kernel on other tensors."""
    return replace(
        step,
        args=tuple([names[a] for a in step.args]),
        writes=tuple([names[a] for a in step.writes]),
        scalars=tuple([replace(s, name=names[s.name]) for s in step.scalars]),
        reuse=tuple([(names[w], names[r]) for w, r in step.reuse]),
        location=location,
    )


def _kernel(writer: KernelWriter, comment: str) -> TritonKernel:
    config = writer.config
    scalars = [_scalar_type(writer.buffers[name].dtype) for name, _ in writer.scalars]
    signature = [
        *((f"p{i}", POINTERS[writer.buffers[a].dtype]) for i, a in enumerate(writer.args)),
        *((f"v{i}", t) for i, t in enumerate(scalars)),
        *((f"s{i}", "i64") for i in range(len(writer.parameters))),
    ]
    blocks = {"x": config.x, "y": config.y, "r": config.r}
    constants = tuple((a.upper(), blocks[a]) for a in writer.axes)
    lines = [HEAD + "".join(f"{line}\n" for line in sorted(writer.imports))]
    for name, body in writer.functions.values():
        lines += ["", "@triton.jit", f"def {name}(a, b):", *("    " + line for line in body), ""]
    parameters = [name for name, _ in signature] + [
        f"{name}: tl.constexpr" for name, _ in constants
    ]
    body = writer.em.close()
    lines += ["", "@triton.jit", f"def @NAME@({', '.join(parameters)}):"]
    lines += ["    " + line for line in body]
    options = f"# {dict(constants)}, num_warps={config.num_warps}, num_stages={config.num_stages}"
    name, source = kernel_name("\n".join([*lines, options, ""]))
    return TritonKernel(
        name, source, tuple(signature), constants, config.num_warps, config.num_stages, comment
    )


def _scalar_type(dtype: str) -> str:
    held = compute_dtype(dtype)
    return {"float32": "fp32", "float64": "fp64"}.get(held, "i64")
