"""Nested containers as their leaves and a description; None is a leaf. PyTorch's private module, which programs use nevertheless."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

__all__ = [
    "PyTree",
    "TreeSpec",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]

PyTree: TypeAlias = Any
_Leaf: TypeAlias = Callable[[PyTree], bool] | None


@dataclasses.dataclass(frozen=True, slots=True)
class _Node:
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[list[Any], Any], Any]


@dataclasses.dataclass(frozen=True)
class TreeSpec:
    """How leaves nest: a container's type, what else it needs, and its parts' descriptions; of a leaf the type is None."""

    type: Any
    context: Any
    children_specs: list[TreeSpec]

    @property
    def num_leaves(self) -> int:
        """How many leaves it takes."""
        return 1 if self.type is None else sum(c.num_leaves for c in self.children_specs)

    @property
    def num_children(self) -> int:
        """How many parts the outermost container has."""
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        """Whether it is one leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The containers with these leaves."""
        return tree_unflatten(leaves, self)


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The place of a part in a mapping."""

    key: Any


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values of a dict, and its keys."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    """The same with the place of each value."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    """The dict of those values and keys."""
    return dict(zip(context, values, strict=True))


_LEAF = TreeSpec(None, None, [])
_nodes: dict[type, _Node] = {
    tuple: _Node(lambda x: (x, None), lambda parts, _: tuple(parts)),
    list: _Node(lambda x: (x, None), lambda parts, _: parts),
    dict: _Node(_dict_flatten, _dict_unflatten),
    OrderedDict: _Node(
        lambda x: (x.values(), list(x)),
        lambda parts, keys: OrderedDict(zip(keys, parts, strict=True)),
    ),
    defaultdict: _Node(
        lambda x: (x.values(), (x.default_factory, list(x))),
        lambda parts, context: defaultdict(context[0], zip(context[1], parts, strict=True)),
    ),
    deque: _Node(lambda x: (x, x.maxlen), lambda parts, maxlen: deque(parts, maxlen)),
}
_NAMEDTUPLE = _Node(lambda x: (x, type(x)), lambda parts, kind: kind(*parts))
_RESULTS = _Node(lambda x: (x, type(x)), lambda parts, kind: kind(parts))  # of argand.max(x, 0)


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
    **_: Any,
) -> None:
    """Let instances of a class be containers.

    Args:
        cls: the class itself; subclasses are not meant.
        flatten_fn: gives the parts of an instance and whatever else it needs.
        unflatten_fn: makes an instance of the two.

    Raises:
        ValueError: it is registered already.
    """
    if cls in _nodes:
        raise ValueError(f"register_pytree_node: got {cls}, which is registered already")
    _nodes[cls] = _Node(flatten_fn, unflatten_fn)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Let instances of a dataclass be containers of their fields; a field that is None is no leaf.

    Args:
        cls: the dataclass, or another class that is made of its fields by name.
        field_names: by default what the dataclass is initialized with.
        drop_field_names: fields with defaults that are left out.
        serialized_type_name: accepted.

    Raises:
        ValueError: `field_names` is missing or is not what the class is initialized with; it is registered already.
    """
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else None
    own = [f.name for f in fields or () if f.init and f.name not in (drop_field_names or ())]
    names = own if field_names is None else field_names
    if (fields is None and field_names is None) or (fields is not None and set(own) != set(names)):
        raise ValueError(
            f"register_dataclass: got field_names={field_names} for {cls}, expected all that it is initialized with"
        )

    def flatten(x: Any) -> tuple[list[Any], list[list[str]]]:
        present = [name for name in names if getattr(x, name) is not None]
        return [getattr(x, n) for n in present], [present, [n for n in names if n not in present]]

    def unflatten(parts: list[Any], context: list[list[str]]) -> Any:
        return cls(**dict(zip(context[0], parts, strict=True)), **dict.fromkeys(context[1]))

    register_pytree_node(cls, flatten, unflatten)


def register_constant(cls: type) -> None:
    """Let instances of a class be containers of nothing, which stay as they are.

    Raises:
        TypeError: the class has no comparison or hash of its own.
        ValueError: it is registered already.
    """
    own = getattr(cls, "__eq__", None), getattr(cls, "__hash__", None)
    if own[0] is object.__eq__ or own[1] is None:
        raise TypeError(
            f"register_constant: got {cls}, expected a class with __eq__ and __hash__ of its own"
        )
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x)


def _node_of(value: Any) -> _Node | None:
    node = _nodes.get(type(value))
    if node is None and isinstance(value, tuple):
        if hasattr(type(value), "_fields"):
            return _NAMEDTUPLE
        if hasattr(type(value), "n_sequence_fields"):
            return _RESULTS
    return node


def _node_of_spec(spec: TreeSpec) -> _Node:
    return _NAMEDTUPLE if spec.type is namedtuple else _nodes.get(spec.type, _RESULTS)


def tree_flatten(tree: PyTree, is_leaf: _Leaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the description; what `is_leaf` is true for is not looked into."""
    leaves: list[Any] = []

    def visit(x: Any) -> TreeSpec:
        node = None if is_leaf is not None and is_leaf(x) else _node_of(x)
        if node is None:
            leaves.append(x)
            return _LEAF
        parts, context = node.flatten(x)
        kind = namedtuple if node is _NAMEDTUPLE else type(x)
        return TreeSpec(kind, context, [visit(part) for part in parts])

    return leaves, visit(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The containers that a description tells of, with these leaves.

    Raises:
        ValueError: for another number of leaves.
    """
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: got {len(given)} leaves, expected {treespec.num_leaves}")
    rest = iter(given)

    def build(spec: TreeSpec) -> Any:
        if spec.type is None:
            return next(rest)
        parts = [build(child) for child in spec.children_specs]
        return _node_of_spec(spec).unflatten(parts, spec.context)

    return build(treespec)


def tree_leaves(tree: PyTree, is_leaf: _Leaf = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: _Leaf = None) -> Iterable[Any]:
    """An iterator of the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: _Leaf = None) -> TreeSpec:
    """The description."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: _Leaf = None
) -> PyTree:
    """The containers with what `func` makes of each leaf, and of the parts of `rests` in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_parts_at(spec, rest) for rest in rests]
    return tree_unflatten([func(*given) for given in zip(leaves, *others, strict=True)], spec)


def _parts_at(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """What `tree` has where `spec` has leaves."""
    if spec.type is None:
        return [tree]
    node = _node_of(tree)
    if node is None or type(tree) is not spec.type:
        raise ValueError(f"tree_map: got {type(tree).__name__}, expected {spec.type.__name__}")
    parts, context = node.flatten(tree)
    found = list(parts)
    if isinstance(tree, dict):  # by key: the order of another dict may differ
        keys = spec.context[1] if spec.type is defaultdict else spec.context
        if set(keys) != set(tree):
            raise ValueError(f"tree_map: got keys {list(tree)}, expected {list(keys)}")
        found = [tree[key] for key in keys]
    elif context != spec.context or len(found) != spec.num_children:
        raise ValueError(f"tree_map: got {len(found)} parts, expected {spec.num_children}")
    return [
        leaf
        for child, part in zip(spec.children_specs, found, strict=True)
        for leaf in _parts_at(child, part)
    ]


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: _Leaf = None
) -> PyTree:
    """Calls `func` as `tree_map` does, and returns `tree`."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    types: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: _Leaf = None
) -> PyTree:
    """`tree_map` over the leaves of these types (a type, several, or a predicate); the others stay."""
    if isinstance(types, type | tuple):
        return tree_map(lambda x: func(x) if isinstance(x, types) else x, tree, is_leaf=is_leaf)
    return tree_map(lambda x: func(x) if types(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: _Leaf = None) -> bool:
    """Whether the predicate is true of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: _Leaf = None) -> bool:
    """Whether the predicate is true of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))
