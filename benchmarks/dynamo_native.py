"""What dynamo's native parts cost: guard checks, calls of compiled functions, and the frame hook.

Each figure is the best of several repetitions, in nanoseconds a call, less the empty loop; "direct" rows are what there is without dynamo.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import argand_c10 as c10
from argand_dynamo import _C
from argand_dynamo.guards import Guard, shape_guard, state_guards, storage_guards, tensor_guard
from argand_fx.shapes import ShapeEnv
from argand_fx.shapes.from_tensor import from_tensor

X, Y = (("arg", 0),), (("arg", 1),)


def measure(function: Callable[..., Any], *args: Any, repetitions: int = 100) -> float:
    """Nanoseconds of `function(*args)`."""

    def loop(f: Callable[..., Any], n: int) -> float:
        start = time.perf_counter()
        for _ in range(n):
            f(*args)
        return time.perf_counter() - start

    n = 1
    while loop(function, n) < 0.002:  # short windows find quiet moments of a busy machine
        n *= 2
    with_it = min(loop(function, n) for _ in range(repetitions))
    without = min(_empty(n) for _ in range(repetitions))
    return (with_it - without) / n * 1e9


def _empty(n: int) -> float:
    start = time.perf_counter()
    for _ in range(n):
        pass
    return time.perf_counter() - start


class Block(c10.Module):
    """A module with a parameter and two settings."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = c10.Parameter(c10.tensor([1.0, 2.0]))
        self.width = 3
        self.mode = "same"

    def forward(self, x: Any) -> Any:
        return x


def twenty_guards() -> tuple[_C.GuardTree, tuple[Any, ...]]:
    """The guards of a small module with two tensor arguments."""
    block, a, b = Block(), c10.tensor([[1.0] * 8] * 4), c10.tensor([1.0] * 8)

    def own(name: str) -> Any:
        return X + (("instance_dict", name),)

    weight = own("_parameters") + (("item", "weight"),)
    tensors: list[tuple[Any, Any]] = [(Y, a), ((("arg", 2),), b), (weight, block.weight)]
    guards = [
        *state_guards(),
        Guard(X, "TYPE", Block),
        Guard(X, "NO_ATTR", "forward"),
        Guard(own("training"), "EQUALS", True),
        Guard(own("width"), "EQUALS", 3),
        Guard(own("mode"), "EQUALS", "same"),
        Guard(own("_parameters"), "DICT_KEYS", ("weight",)),
        Guard(own("_modules"), "LEN", 0),
        Guard(own("_forward_hooks"), "LEN", 0),
        Guard(own("_forward_pre_hooks"), "LEN", 0),
        Guard(X + (("type",),), "CLASS_ATTR", ("forward", Block.forward)),
        Guard((("global", "Block"),), "ID", Block),
        *[tensor_guard(source, tensor) for source, tensor in tensors],
        *storage_guards(tensors),
    ]
    return _C.GuardTree(guards, globals()), (block, a, b)


def many_modules(n: int) -> tuple[_C.GuardTree, tuple[Any, ...]]:
    """Guards of n modules in a list, as those of a large network."""
    blocks = [Block() for _ in range(n)]
    guards: list[Guard] = [*state_guards(), Guard(X, "LEN", n)]
    tensors = []
    for i, block in enumerate(blocks):
        source = X + (("item", i),)
        guards.append(Guard(source, "TYPE", Block))
        guards.append(Guard(source + (("type",),), "CLASS_ATTR", ("forward", Block.forward)))
        guards.append(Guard(source, "NO_ATTR", "forward"))
        guards.append(Guard(source + (("instance_dict", "training"),), "EQUALS", True))
        for hooks in ("_forward_hooks", "_forward_pre_hooks"):
            guards.append(Guard(source + (("instance_dict", hooks),), "LEN", 0))
        weight = source + (("instance_dict", "_parameters"), ("item", "weight"))
        tensors.append((weight, block.weight))
        guards.append(tensor_guard(weight, block.weight))
    guards += storage_guards(tensors)
    return _C.GuardTree(guards), (blocks,)


def plain(x: Any, y: Any) -> Any:
    """The function that is compiled."""
    return x


def python_work(n: int) -> int:
    """Pure Python with calls: what the hook slows down."""
    total = 0
    for i in range(n):
        total += _step(i)
    return total


def _step(i: int) -> int:
    return i + 1


def _row(name: str, nanoseconds: float, note: str = "") -> None:
    print(f"{name:<44}{nanoseconds:>10.0f} ns  {note}")


def guard_rows() -> None:
    """Cost of checking."""
    a, b = c10.tensor([[1.0] * 8] * 4), c10.tensor([1.0] * 8)
    two = _C.GuardTree([tensor_guard(X, a), tensor_guard(Y, b)])
    assert two.check((a, b))
    _row("check: two tensors", measure(two.check, (a, b)))
    dynamic = _C.GuardTree(
        [
            tensor_guard(X, a, from_tensor(a, ShapeEnv(), dynamic_dims=(0,))),
            shape_guard([("<=", ("*", 8, "s0"), 4096), (">=", "s0", 2)], {"s0": (X, "size", 0)}),
        ]
    )
    assert dynamic.check((a,))
    _row("check: one tensor, two size expressions", measure(dynamic.check, (a,)))
    small, args = twenty_guards()
    assert small.explain(args) is None
    _row(
        "check: a module and three tensors",
        measure(small.check, args),
        f"{len(small.guards)} guards",
    )
    large, args = many_modules(160)
    assert large.explain(args) is None
    _row("check: 160 modules", measure(large.check, args), f"{len(large.guards)} guards")


def call_rows() -> None:
    """Cost of calls."""
    a, b = c10.tensor([[1.0] * 8] * 4), c10.tensor([1.0] * 8)
    compiled = _C.CompiledFunction(plain)
    _row("call: the function itself", measure(plain, a, b), "direct")
    _row("call: compiled, without entries", measure(compiled, a, b))
    tree = _C.GuardTree([*state_guards(), tensor_guard(X, a), tensor_guard(Y, b)])
    compiled.add_entry(_C.CacheEntry(tree, lambda x, y: x))
    _row("call: hit, two tensors and the thread's state", measure(compiled, a, b))
    for i in range(7):
        compiled.add_entry(_C.CacheEntry(_C.GuardTree([Guard(X, "EQUALS", i)]), plain))
    compiled(a, b)
    assert compiled.entries[0].guard_tree is tree
    _row("call: hit, most recent of eight entries", measure(compiled, a, b))


def hook_rows() -> None:
    """Cost of the hook."""
    n = 1000
    off = measure(python_work, n) / n
    _row("hook: a Python call, off", off, "direct")
    before = _C.set_frame_callback(None)
    with _C.hook_enabled():
        on = measure(python_work, n) / n
    _row("hook: a Python call, on, no callback", on, f"{on / off:.2f} of off")
    _C.set_frame_callback(lambda function, namespace, closure, args: None)
    with _C.hook_enabled():
        asked = measure(python_work, n) / n
    _row("hook: a Python call, on, asking", asked, f"{asked / off:.2f} of off")
    _C.skip_code(_step.__code__)
    with _C.hook_enabled():
        skipped = measure(python_work, n) / n
    _row("hook: a Python call, on, skipped code", skipped, f"{skipped / off:.2f} of off")
    _C.skip_code(_step.__code__, False)
    _C.set_frame_callback(before)
    after = measure(python_work, n) / n
    _row("hook: a Python call, off again", after, f"{after / off:.2f} of off")

    def switch() -> None:
        _C.set_hook(True)
        _C.set_hook(False)

    _row("hook: on and off again", measure(switch))


def main() -> None:
    """Prints a table."""
    print(f"CPython {sys.version.split()[0]}")
    guard_rows()
    call_rows()
    hook_rows()


if __name__ == "__main__":
    main()
