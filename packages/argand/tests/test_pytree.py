"""`argand.utils._pytree`: leaves and descriptions of nested containers."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import argand
from argand.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "tree, leaves",
    [
        (3, [3]),
        (None, [None]),
        ([1, (2, {"b": 3, "a": [None]})], [1, 2, 3, None]),
        (Point(1, [2]), [1, 2]),
        (OrderedDict(b=1, a=2), [1, 2]),
        (defaultdict(list, {"k": 1}), [1]),
        (deque([1, 2], maxlen=3), [1, 2]),
        ([], []),
    ],
)
def test_flatten_and_unflatten(tree, leaves):
    found, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(found, spec)
    assert found == leaves and again == tree and type(again) is type(tree)
    assert spec.num_leaves == len(leaves) and spec == pytree.tree_structure(tree)
    with pytest.raises(ValueError, match="leaves"):
        spec.unflatten([*leaves, 0])


def test_maps():
    assert pytree.tree_map(lambda x: x + 1, {"a": (1, 2)}) == {"a": (2, 3)}
    assert pytree.tree_map(lambda x, y: (x, y), {"a": 1, "b": 2}, {"b": [4], "a": 3}) == {
        "a": (1, 3),
        "b": (2, [4]),
    }
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a", 2.0]) == [-1, "a", 2.0]
    assert pytree.tree_map_only(lambda x: x == "a", str.upper, [1, "a"]) == [1, "A"]
    assert pytree.tree_leaves([(1, 2), [3]], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    assert pytree.tree_all(bool, [1, [2]]) and pytree.tree_any(bool, [0, [2]])
    for other in ([1, 2, 3], (1, 2), 1):
        with pytest.raises(ValueError, match="tree_map"):
            pytree.tree_map(max, [1, 2], other)
    with pytest.raises(ValueError, match="keys"):
        pytree.tree_map(max, {"a": 1}, {"b": 1})


def test_registered_classes_are_containers():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda parts, _: Pair(*parts))
    doubled = pytree.tree_map(lambda x: 2 * x, [Pair(1, (2,))])[0]
    assert (doubled.a, doubled.b) == (2, (4,))
    with pytest.raises(ValueError, match="registered already"):
        pytree.register_pytree_node(Pair, None, None)


def test_named_results() -> None:
    results = argand.max(argand.tensor([1.0, 3.0]), 0)
    leaves, spec = pytree.tree_flatten(results)
    assert [x.item() for x in leaves] == [3, 1]
    assert spec.type is type(results)
    again = pytree.tree_map(lambda x: x + 1, results)
    assert type(again) is type(results)
    assert again.values.item() == 4
    assert pytree.tree_structure(Point(1, 2)).type is namedtuple
    assert pytree.tree_structure(Point(1, 2)).context is Point


def test_parts_of_dicts():
    d = {"b": 1, "a": 2}
    assert pytree._dict_flatten(d) == ([1, 2], ["b", "a"])
    assert pytree._dict_flatten_with_keys(d)[0][1] == (pytree.MappingKey("a"), 2)
    assert pytree._dict_unflatten(*pytree._dict_flatten(d)) == d


def test_dataclasses_and_constants():
    @dataclasses.dataclass
    class Point:
        x: int
        y: int | None = None

    @dataclasses.dataclass(frozen=True)
    class Unit:
        name: str

    pytree.register_dataclass(Point)
    pytree.register_constant(Unit)
    tree = {"a": Point(1), "b": [Point(2, 3), Unit("m")]}
    assert pytree.tree_leaves(tree) == [1, 2, 3]
    assert pytree.tree_map(lambda x: x + 1, tree) == {"a": Point(2), "b": [Point(3, 4), Unit("m")]}
    with pytest.raises(ValueError, match="register_dataclass: got field_names=None"):
        pytree.register_dataclass(dict)
    with pytest.raises(TypeError, match="__eq__ and __hash__"):
        pytree.register_constant(type("Plain", (), {}))
