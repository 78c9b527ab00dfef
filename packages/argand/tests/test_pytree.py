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


def test_named_tuples_side_by_side():
    assert pytree.tree_map(int.__add__, Point(1, 2), Point(10, 20)) == Point(11, 22)
    with pytest.raises(ValueError, match="got tuple"):
        pytree.tree_map(int.__add__, Point(1, 2), (10, 20))


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


def test_paths():
    tree = {
        "x": [1, (2, 3)],
        "n": Point(4, 5),
        "o": OrderedDict(k=6),
        "d": deque([7]),
        "dd": defaultdict(int, {3: 8}),
    }
    found, spec = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in found] == [
        "['x'][0]",
        "['x'][1][0]",
        "['x'][1][1]",
        "['n'].x",
        "['n'].y",
        "['o']['k']",
        "['d'][0]",
        "['dd'][3]",
    ]
    assert all(pytree.key_get(tree, path) == leaf for path, leaf in found)
    assert spec == pytree.tree_structure(tree)
    assert pytree.tree_map_with_path(
        lambda path, x, y: (pytree.keystr(path), x + y), [1, {"a": 2}], [10, {"a": 20}]
    ) == [("[0]", 11), {"a": ("[1]['a']", 22)}]
    assert pytree.tree_leaves_with_path([[1]], is_leaf=lambda x: x == [1]) == [
        ((pytree.SequenceKey(0),), [1])
    ]


def test_paths_into_registered_classes():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    class Open(Box):
        pass

    pytree.register_pytree_node(Box, lambda b: ([b.inside], None), lambda parts, _: Box(*parts))
    pytree.register_pytree_node(
        Open,
        lambda b: ([b.inside], None),
        lambda parts, _: Open(*parts),
        flatten_with_keys_fn=lambda b: ([(pytree.GetAttrKey("inside"), b.inside)], None),
    )
    assert pytree.tree_leaves_with_path([Open(3)]) == [
        ((pytree.SequenceKey(0), pytree.GetAttrKey("inside")), 3)
    ]
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_flatten_with_path(Box(1))


def test_only():
    tree = [1, {"a": "b"}, (2.0,)]
    assert pytree.tree_all_only(int, lambda x: x == 1, tree)
    assert pytree.tree_any_only((int, float), lambda x: x == 2, tree)
    assert not pytree.tree_any_only(str, lambda x: x == "c", tree)
    seen = []
    assert pytree.tree_map_only_(float, seen.append, tree) is tree and seen == [2.0]
    assert pytree.tree_is_leaf(3) and not pytree.tree_is_leaf([])
    assert pytree.arg_tree_leaves(1, [2], a=3) == [1, 2, 3]


def test_flattening_by_hand():
    """As libraries do that have leaves of their own."""
    for tree in ([1, 2], Point(1, 2), OrderedDict(a=1)):
        node = pytree.SUPPORTED_NODES[pytree._get_node_type(tree)]
        parts, context = node.flatten_fn(tree)
        assert node.unflatten_fn(list(parts), context) == tree
        spec = pytree.TreeSpec(
            pytree._get_node_type(tree), context, [pytree.LeafSpec() for _ in tree]
        )
        assert pytree.tree_unflatten(list(node.flatten_fn(tree)[0]), spec) == tree
    assert pytree._get_node_type(3) not in pytree.SUPPORTED_NODES
