"""What goes into programs and comes out beside tensors: sizes, numbers, containers; the same from a program, its module, its file and its package."""

from __future__ import annotations

import dataclasses
import io
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import pytest

import argand_aten as aten
import argand_autograd  # noqa: F401  (gradients)
from argand_c10 import Module, Parameter, Size
from argand_export import (
    Dim,
    export,
    load,
    load_package,
    package,
    register_dataclass,
    register_pytree_node,
    save,
)

Pair = namedtuple("Pair", ["first", "second"])


@register_dataclass
@dataclasses.dataclass
class Batch:
    image: Any
    mask: Any = None
    rest: Any = None


class Box:
    """A container by hand."""

    def __init__(self, content: Any, label: str) -> None:
        self.content, self.label = content, label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and (self.content, self.label) == (other.content, other.label)


register_pytree_node(
    Box, lambda x: ([x.content], x.label), lambda parts, label: Box(parts[0], label)
)

N = Dim("n")
THREE, FIVE = aten.ones(3, 2), aten.ones(5, 2)


def plain(x: Any) -> Any:
    """With lists in the place of tensors, to be compared."""
    if hasattr(x, "tolist"):
        return x.tolist()
    if type(x) in (tuple, list):
        return [type(x), [plain(v) for v in x]]
    if isinstance(x, Batch):
        return Batch(plain(x.image), plain(x.mask), plain(x.rest))
    if isinstance(x, Box):
        return Box(plain(x.content), x.label)
    if isinstance(x, Pair):
        return Pair(*map(plain, x))
    if isinstance(x, tuple):
        return (type(x), *map(plain, x))
    return type(x)((k, plain(v)) for k, v in x.items()) if isinstance(x, dict) else x


CASES: dict[str, tuple[Any, list[tuple[Any, ...]], Any]] = {
    "a size": (lambda self, x: x.shape[0] * 2, [(THREE,), (FIVE,)], ({0: N},)),
    "sizes and tensors": (
        lambda self, x: (x * 2, x.shape[0] * 2, x.numel(), [x.shape], x.size(1)),
        [(THREE,), (FIVE,)],
        ({0: N},),
    ),
    "two sizes": (
        lambda self, x, y: (x.shape[0] * y.shape[1] + 1, y),
        [(THREE, FIVE), (FIVE, aten.ones(5, 7))],
        ({0: N}, {1: Dim("m")}),
    ),
    "a derived size": (
        lambda self, x: (x.shape[0], x.shape[0] // 2),
        [(aten.ones(4),), (aten.ones(6),)],
        ({0: 2 * N},),
    ),
    "a bound": (
        lambda self, x: max(x.shape[0], 7),
        [(aten.ones(8),), (aten.ones(9),)],
        ({0: Dim("k", min=7)},),
    ),
    "a size in arithmetic": (
        lambda self, x: x * x.shape[0] + x.size(0) // 2 + x / x.shape[0],
        [(THREE,), (FIVE,)],
        ({0: N},),
    ),
    "an argument that nothing reads": (
        lambda self, x, y: y + 1,
        [(THREE, aten.ones(2)), (FIVE, aten.ones(2))],
        ({0: N}, None),
    ),
    "numbers": (
        lambda self, x, k, f, flag, none, text: (x * k + f if flag else x, none, text, k),
        [(THREE, 3, 2.5, True, None, "a")],
        None,
    ),
    "no arguments": (lambda self: aten.arange(3), [()], None),
    "None": (lambda self, x: None, [(THREE,)], None),
    "a named tuple": (
        lambda self, x: {"p": Pair(x + 1, (x.shape[0],)), "d": [Batch(x * 2)]},
        [(THREE,), (FIVE,)],
        ({0: N},),
    ),
    "results of operators": (
        lambda self, x: [x.max(0), {"sorted": x.sort(1)}, x.topk(1)],
        [(THREE,), (FIVE,)],
        ({0: N},),
    ),
    "results of operators as arguments": (
        lambda self, m: m.values * 2 + m.indices,
        [(THREE.max(0),)],
        None,
    ),
    "a dataclass": (
        lambda self, b: Batch(b.image + b.rest[0], rest=[b.image]),
        [(Batch(THREE, rest=[THREE]),), (Batch(FIVE, rest=[FIVE]),)],
        ([{0: N}, [{0: N}]],),
    ),
    "a registered class": (
        lambda self, b: (b.content[0] * 2, b.content[1]),
        [(Box([THREE, THREE], "left"),)],
        None,
    ),
    "an ordered dict": (
        lambda self, d: OrderedDict(z=d["a"] + 1, y=d["b"]),
        [(OrderedDict(a=THREE, b=THREE),)],
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, tmp_path: Path) -> None:
    forward, calls, dynamic = CASES[name]
    made = type("Made", (Module,), {"forward": forward})()
    program = export(made, calls[0], dynamic_shapes=dynamic)
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    package(program, tmp_path / "p.ag2p")
    ways = (program, program.module(), load(file), load_package(tmp_path / "p.ag2p"))
    for call in calls:
        expected = plain(made(*call))
        for way in ways:
            assert plain(way(*call)) == expected


def test_a_size_is_a_size() -> None:
    made = type("Made", (Module,), {"forward": lambda self, x: x.shape})()
    found = export(made, (THREE,), dynamic_shapes=({0: N},))(FIVE)
    assert type(found) is Size and found == (5, 2)


def test_containers_must_be_known() -> None:
    class Unknown:
        def __init__(self, x: Any) -> None:
            self.x = x

    made = type("Made", (Module,), {"forward": lambda self, u: u.x + 1})()
    with pytest.raises(TypeError, match="got Unknown at u"):
        export(made, (Unknown(THREE),))
    with pytest.raises(TypeError, match="expected a dataclass"):
        register_dataclass(Unknown)
    with pytest.raises(ValueError, match="is registered already"):
        register_dataclass(Batch)
    with pytest.raises(TypeError, match="call it as it was exported"):
        made = type("Made", (Module,), {"forward": lambda self, b: b.content + 1})()
        export(made, (Box(THREE, "left"),))(Box(THREE, "right"))


def test_strict_and_not() -> None:
    class Count(Module):
        def forward(self, x: Any) -> Any:
            return x + 1

    for strict in (True, False):
        assert export(Count(), (THREE,), strict=strict)(THREE).tolist() == (THREE + 1).tolist()


def test_a_program_can_be_trained() -> None:
    class Layer(Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(aten.randn(4, 2))
            self.register_buffer("steps", aten.zeros(()))

        def forward(self, x: Any) -> Any:
            self.steps.add_(1)
            return aten.relu(x @ self.weight.t())

    layer = Layer()
    module = export(layer, (THREE,), dynamic_shapes=({0: N},)).module()
    x = aten.randn(5, 2)
    loss = module(x).sum()
    loss.backward()
    (parameter,) = module.parameters()
    assert parameter is layer.weight and module.steps.item() == 1.0
    expected = (x @ layer.weight.t() > 0).to(x.dtype).t() @ x
    assert aten.allclose(parameter.grad, expected)
