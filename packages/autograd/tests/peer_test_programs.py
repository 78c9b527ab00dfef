"""Random programs of views, in-place changes and arithmetic: the same gradients, or the same refusals, as the peer's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

import argand_autograd
import argand_c10

STEPS = 12

# What the peer refuses and this library does: a view that was made before its base got a history by an in-place change
# can be changed itself; a source of copy_ may have leading dimensions of size 1.
ONLY_THEIRS = (
    "a leaf Variable that requires grad",
    "match the broadcast shape",
)


class Machine:
    """Runs a program, written as tuples, on one library; tensors are named by their place in `pool`."""

    def __init__(self, make: Any, grad: Any, leaves: list[np.ndarray]) -> None:
        self.grad = grad
        self.leaves = [make(a) for a in leaves]
        self.pool = [x * 1 for x in self.leaves]
        self.pool.append(make(np.full((2, 3), 0.5)).detach())

    def run(self, step: tuple[Any, ...]) -> str | None:
        """The error, if the step failed."""
        name, i, *rest = step
        t = self.pool[i]
        try:
            if name in ("add", "mul", "sub"):
                self.pool.append(getattr(t, name)(self.pool[rest[0]]))
            elif name in ("sin", "tanh", "exp", "t", "detach", "clone"):
                self.pool.append(getattr(t, name)())
            elif name in ("add_", "mul_", "copy_"):
                getattr(t, name)(self.pool[rest[0]])
            elif name in ("sin_", "tanh_", "zero_"):
                getattr(t, name)()
            elif name == "scale_":
                t.mul_(rest[0])
            elif name == "fill":
                t[0] = rest[0]
            elif name == "store":
                t[0] = self.pool[rest[0]][0]
            elif name == "select":
                self.pool.append(t[rest[0]])
            elif name == "slice":
                self.pool.append(t[rest[0] :])
            elif name == "flatten":
                self.pool.append(t.reshape(-1))
            elif name == "unsqueeze":
                self.pool.append(t.unsqueeze(0))
            elif name == "expand":
                self.pool.append(t.unsqueeze(0).expand(2, *t.shape))
            else:
                raise AssertionError(name)
        except (RuntimeError, IndexError) as error:
            return str(error)
        return None

    def gradients(self, weights: list[float]) -> Any:
        """Gradients of all leaves of a weighted sum of all tensors, or the error."""
        total = None
        for t, w in zip(self.pool, weights, strict=True):
            if t.requires_grad:
                term = (t * w).sum()
                total = term if total is None else total + term
        if total is None:
            return None
        try:
            first = self.grad(total, self.leaves, create_graph=True, allow_unused=True)
            again = None
            for g in first:
                if g is not None and g.requires_grad:
                    again = (g * g).sum() if again is None else again + (g * g).sum()
            second = (None,) * len(self.leaves)
            if again is not None and again.requires_grad:
                second = self.grad(again, self.leaves, allow_unused=True)
            return [
                None if g is None else np.asarray(g.detach().tolist()) for g in (*first, *second)
            ]
        except RuntimeError as error:
            return (
                "modified by an inplace" if "modified by an inplace" in str(error) else str(error)
            )


def random_step(chance: random.Random, size: int) -> tuple[Any, ...]:
    i, j = chance.randrange(size), chance.randrange(size)
    kind = chance.random()
    if kind < 0.25:
        return (chance.choice(["add", "mul", "sub"]), i, j)
    if kind < 0.35:
        return (chance.choice(["sin", "tanh", "t", "detach", "clone"]), i)
    if kind < 0.6:
        return chance.choice(
            [
                ("select", i, 0),
                ("slice", i, 1),
                ("flatten", i),
                ("unsqueeze", i),
                ("expand", i),
                ("t", i),
            ]
        )
    if kind < 0.8:
        return (chance.choice(["add_", "mul_", "copy_"]), i, j)
    return chance.choice(
        [
            ("sin_", i),
            ("tanh_", i),
            ("zero_", i),
            ("scale_", i, 1.5),
            ("fill", i, 0.25),
            ("store", i, j),
        ]
    )


def refused_by_peer_alone(step: tuple[Any, ...], pool: list[Any]) -> bool:
    """Steps in which this library is meant to differ: it keeps `x.mul_(x)` differentiable, and never fills a tensor
    that overlaps itself."""
    t = pool[step[1]]
    if step[0] in ("zero_", "fill"):
        return any(n > 1 and s == 0 for n, s in zip(t.shape, t.stride(), strict=True))
    if step[0] in ("add_", "mul_", "copy_", "store"):
        return t.untyped_storage().data_ptr() == pool[step[2]].untyped_storage().data_ptr()
    return False


def same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None or isinstance(ours, str) or isinstance(theirs, str):
        return type(ours) is type(theirs) and (not isinstance(ours, str) or ours == theirs)
    for a, b in zip(ours, theirs, strict=True):
        zero_a = a is None or not np.any(a)
        zero_b = b is None or not np.any(b)
        if zero_a != zero_b:
            return False
        if not zero_a and not np.allclose(a, b, rtol=1e-9, atol=1e-11, equal_nan=True):
            return False
    return True


@pytest.mark.parametrize("block", range(8))
def test_random_programs(block: int) -> None:
    agreed = 0
    for seed in range(block * 250, (block + 1) * 250):
        chance = random.Random(seed)
        numbers = np.random.default_rng(seed)
        leaves = [numbers.standard_normal((2, 3)), numbers.standard_normal((3,))]

        ours = Machine(
            lambda a: argand_c10.tensor(a.tolist(), dtype=argand_c10.float64, requires_grad=True),
            argand_autograd.grad,
            leaves,
        )
        theirs = Machine(lambda a: torch.tensor(a, requires_grad=True), torch.autograd.grad, leaves)
        program: list[tuple[Any, ...]] = []
        diverged = False
        for _ in range(STEPS):
            step = random_step(chance, len(ours.pool))
            if refused_by_peer_alone(step, theirs.pool):
                continue
            a, b = ours.run(step), theirs.run(step)
            if a is None and b is not None and any(text in b for text in ONLY_THEIRS):
                diverged = True
                break
            assert (a is None) == (b is None), (seed, program, step, a, b)
            if a is None:
                program.append(step)
        if diverged:
            continue
        for x, y in zip(ours.pool, theirs.pool, strict=True):
            assert np.allclose(x.tolist(), y.tolist(), rtol=1e-12, equal_nan=True), (seed, program)
            assert x.requires_grad == y.requires_grad and x.is_leaf == y.is_leaf, (seed, program)
        weights = [chance.uniform(0.5, 1.5) for _ in ours.pool]
        a, b = ours.gradients(weights), theirs.gradients(weights)
        assert same(a, b), (seed, program, a, b)
        agreed += a is not None and not isinstance(a, str)
    assert agreed > 50  # most programs have gradients to compare
