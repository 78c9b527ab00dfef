"""Random programs of kernels, operators, views and symbols compute what their steps say one by one."""

from __future__ import annotations

import random
from typing import Any

from specs import step, strides_of, tensor

import argand_aten as A
import argand_c10 as c10
from argand_inductor.artifact.make import make_program
from argand_inductor.program import (
    AliasStep,
    Buf,
    BufferSpec,
    Expr,
    ExternStep,
    KernelStep,
    ProgramSpec,
    Sym,
)

SHAPES: tuple[tuple[Expr, ...], ...] = ((6,), ("s0",), ("s0", 3), (4, 5), (0, 3), ("s0", "s0"))
UNARY = {"a0 + 1": lambda a: a + 1, "a0 * 2": lambda a: a * 2, "a0 < 0 ? 0 : a0": A.relu}
BINARY = {"a0 + a1": lambda a, b: a + b, "a0 * a1": lambda a, b: a * b}


class Maker:
    """Builds a program, and beside it the function that evaluates its steps with operators."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.shapes: dict[str, tuple[Expr, ...]] = {}
        self.buffers: dict[str, BufferSpec] = {}
        self.steps: list[Any] = []
        self.actions: list[Any] = []
        self.inputs = []
        for i, shape in enumerate(SHAPES):
            self.shapes[f"x{i}"] = shape
            self.inputs.append(tensor(f"x{i}", *shape))

    def fresh(self, shape: tuple[Expr, ...], strides: tuple[Expr, ...] | None = None) -> str:
        name = f"b{len(self.buffers)}"
        self.shapes[name] = shape
        self.buffers[name] = BufferSpec(
            "float32", shape, strides_of(shape) if strides is None else strides
        )
        return name

    def contiguous(self) -> list[str]:
        return [
            name
            for name, shape in self.shapes.items()
            if name not in self.buffers or self.buffers[name].strides == strides_of(shape)
        ]

    def kernel(self) -> None:
        a = self.rng.choice(self.contiguous())
        same = [n for n in self.contiguous() if self.shapes[n] == self.shapes[a]]
        b = self.rng.choice(same)
        names, table = ((a,), UNARY) if self.rng.random() < 0.5 else ((a, b), BINARY)
        body, function = self.rng.choice(list(table.items()))
        out = self.fresh(self.shapes[a])
        made: KernelStep = step(
            body, *names, out, sizes=self.shapes[a], reuse=self.rng.random() < 0.7
        )
        self.steps.append(made)
        self.actions.append((out, lambda env, n=names, f=function: f(*(env[k] for k in n))))

    def operator(self) -> None:
        a = self.rng.choice(list(self.shapes))
        out = self.fresh(self.shapes[a])
        self.steps.append(
            ExternStep("add", (Buf(a), Sym("s0") if self.rng.random() < 0.5 else 0.5, 1), (out,))
        )
        other = self.steps[-1].args[1]
        is_symbol = isinstance(other, Sym)
        self.actions.append(
            (
                out,
                lambda env, a=a: A.add(env[a], env["s0"] if is_symbol else 0.5).contiguous(),
            )
        )

    def flatten(self) -> None:
        """A view through an operator whose result shares memory."""
        name = self.rng.choice([n for n in self.contiguous() if len(self.shapes[n]) == 2])
        a, b = self.shapes[name]
        size: Expr = a * b if isinstance(a, int) and isinstance(b, int) else f"{a}*{b}"
        out = self.fresh((size,))
        arg = (Sym(size) if isinstance(size, str) else size,)
        self.steps.append(ExternStep("view", (Buf(name), arg), (out,)))
        self.actions.append((out, lambda env, n=name: env[n].reshape(-1)))

    def transpose(self) -> None:
        """A view described by the program, copied by an operator."""
        name = self.rng.choice([n for n in self.contiguous() if len(self.shapes[n]) == 2])
        a, b = self.shapes[name]
        view = self.fresh((b, a), (1, b))
        self.steps.append(AliasStep(view, name))
        self.actions.append((view, lambda env, n=name: env[n].t()))
        out = self.fresh((b, a))
        self.steps.append(ExternStep("clone", (Buf(view), None), (out,)))
        self.actions.append((out, lambda env, n=view: env[n].contiguous()))
        if self.rng.random() < 0.5:
            self.kernel()

    def row(self) -> None:
        """A view that only a kernel reads: an address."""
        name = self.rng.choice([n for n in self.contiguous() if self.shapes[n] == (4, 5)])
        view = self.fresh((5,))
        self.steps.append(AliasStep(view, name, 10))
        self.actions.append((view, lambda env, n=name: env[n][2]))

    def build(self, n: int) -> ProgramSpec:
        makers = [self.kernel, self.kernel, self.kernel, self.operator]
        makers += [self.flatten, self.transpose, self.row]
        for _ in range(n):
            self.rng.choice(makers)()
        outputs = self.rng.sample(list(self.buffers), min(4, len(self.buffers)))
        return ProgramSpec(
            tuple(self.inputs),
            tuple(Buf(name) for name in outputs),
            tuple(self.steps),
            self.buffers,
        )


def test_random_programs() -> None:
    for seed in (*range(40), 122):
        maker = Maker(seed)
        spec = maker.build(4 + seed % 60)
        program = make_program(spec)
        for s0 in (2, 7, 1):
            shapes = [tuple(s0 if s == "s0" else int(s) for s in shape) for shape in SHAPES]
            given = [A.randn(*shape) for shape in shapes]
            env: dict[str, Any] = {f"x{i}": t for i, t in enumerate(given)}
            env["s0"] = s0
            for name, action in maker.actions:
                env[name] = action(env)
            before = c10.cpu.memory_allocated()
            got = program(*given)
            for out, value in zip(spec.outputs, got, strict=True):
                assert isinstance(out, Buf)
                assert A.equal(value, env[out.name]), f"seed {seed}, s0 {s0}, {out.name}"
            del got, value
            assert c10.cpu.memory_allocated() == before
