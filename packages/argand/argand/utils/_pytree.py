"""Nested containers as their leaves and a description; None is a leaf. PyTorch's private module, which programs use nevertheless."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

__all__ = [
    "Context",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SUPPORTED_NODES",
    "SequenceKey",
    "TreeSpec",
    "arg_tree_leaves",
    "key_get",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

PyTree: TypeAlias = Any
Context: TypeAlias = Any  # what a container needs beside its parts
_Leaf: TypeAlias = Callable[[PyTree], bool] | None


@dataclasses.dataclass(frozen=True, slots=True)
class NodeDef:
    """A class of containers."""

    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten_fn: Callable[[list[Any], Any], Any]
    keys: Callable[[Any], list[KeyEntry]] | None = None  # the parts' places


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
class SequenceKey:
    """The place of a part in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The part."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The place of a part in a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The part."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The place of a part that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The part."""
        return getattr(obj, self.name)


KeyEntry: TypeAlias = Any  # one of those, or what a registered class gives
KeyPath: TypeAlias = tuple[KeyEntry, ...]


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The values of a dict, and its keys."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    """The same with the place of each value."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    """The dict of those values and keys."""
    return dict(zip(context, values, strict=True))


def _places(x: Any) -> list[KeyEntry]:
    return [SequenceKey(i) for i in range(len(x))]


def _keys(x: Any) -> list[KeyEntry]:
    return [MappingKey(key) for key in x]


_LEAF = TreeSpec(None, None, [])


def LeafSpec() -> TreeSpec:  # noqa: N802: PyTorch's class
    """The description of a leaf."""
    return _LEAF


SUPPORTED_NODES: dict[Any, NodeDef] = {
    tuple: NodeDef(lambda x: (x, None), lambda parts, _: tuple(parts), _places),
    list: NodeDef(lambda x: (x, None), lambda parts, _: parts, _places),
    dict: NodeDef(_dict_flatten, _dict_unflatten, _keys),
    OrderedDict: NodeDef(
        lambda x: (x.values(), list(x)),
        lambda parts, keys: OrderedDict(zip(keys, parts, strict=True)),
        _keys,
    ),
    defaultdict: NodeDef(
        lambda x: (x.values(), (x.default_factory, list(x))),
        lambda parts, context: defaultdict(context[0], zip(context[1], parts, strict=True)),
        _keys,
    ),
    deque: NodeDef(lambda x: (x, x.maxlen), lambda parts, maxlen: deque(parts, maxlen), _places),
    namedtuple: NodeDef(
        lambda x: (x, type(x)),
        lambda parts, kind: kind(*parts),
        lambda x: [GetAttrKey(name) for name in x._fields],
    ),
}
_RESULTS = NodeDef(  # of argand.max(x, 0)
    lambda x: (x, type(x)), lambda parts, kind: kind(parts), _places
)


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[KeyEntry, Any]], Any]] | None = None,
) -> None:
    """Let instances of a class be containers.

    Args:
        cls: the class itself; subclasses are not meant.
        flatten_fn: gives the parts of an instance and whatever else it needs.
        unflatten_fn: makes an instance of the two.
        serialized_type_name, to_dumpable_context, from_dumpable_context: accepted.
        flatten_with_keys_fn: as `flatten_fn`, each part with its place, for paths.

    Raises:
        ValueError: it is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"register_pytree_node: got {cls}, which is registered already")
    with_keys = flatten_with_keys_fn
    keys = None if with_keys is None else lambda x: [key for key, _ in with_keys(x)[0]]
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn, keys)


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

    def flatten_with_keys(x: Any) -> tuple[list[tuple[KeyEntry, Any]], list[list[str]]]:
        parts, context = flatten(x)
        return [(GetAttrKey(n), part) for n, part in zip(context[0], parts, strict=True)], context

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys)


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
    register_pytree_node(
        cls, lambda x: ([], x), lambda _, x: x, flatten_with_keys_fn=lambda x: ([], x)
    )


def _get_node_type(tree: Any) -> Any:
    """The key of its class of containers; `namedtuple` of all that it makes."""
    kind = type(tree)
    is_named = kind not in SUPPORTED_NODES and issubclass(kind, tuple) and hasattr(kind, "_fields")
    return namedtuple if is_named else kind


def _node_of(value: Any) -> NodeDef | None:
    node = SUPPORTED_NODES.get(_get_node_type(value))
    if node is None and isinstance(value, tuple) and hasattr(type(value), "n_sequence_fields"):
        return _RESULTS
    return node


def _node_of_spec(spec: TreeSpec) -> NodeDef:
    return SUPPORTED_NODES.get(spec.type, _RESULTS)


def tree_flatten(tree: PyTree, is_leaf: _Leaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the description; what `is_leaf` is true for is not looked into."""
    leaves: list[Any] = []

    def visit(x: Any) -> TreeSpec:
        node = None if is_leaf is not None and is_leaf(x) else _node_of(x)
        if node is None:
            leaves.append(x)
            return _LEAF
        parts, context = node.flatten_fn(x)
        return TreeSpec(_get_node_type(x), context, [visit(part) for part in parts])

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
        return _node_of_spec(spec).unflatten_fn(parts, spec.context)

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
    if node is None or _get_node_type(tree) is not spec.type:
        raise ValueError(f"tree_map: got {type(tree).__name__}, expected {spec.type.__name__}")
    parts, context = node.flatten_fn(tree)
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


def tree_map_only_(
    types: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: _Leaf = None
) -> PyTree:
    """Calls `func` as `tree_map_only` does, and returns `tree`."""
    tree_map_only(types, func, tree, is_leaf=is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: _Leaf = None) -> bool:
    """Whether the predicate is true of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: _Leaf = None) -> bool:
    """Whether the predicate is true of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    types: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: _Leaf = None
) -> bool:
    """Whether the predicate is true of all leaves of these types."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, types))


def tree_any_only(
    types: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: _Leaf = None
) -> bool:
    """Whether the predicate is true of a leaf of these types."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, types))


def tree_is_leaf(tree: PyTree, is_leaf: _Leaf = None) -> bool:
    """Whether it is a leaf."""
    return _node_of(tree) is None or (is_leaf is not None and is_leaf(tree))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of a call's arguments."""
    return tree_leaves((args, kwargs))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: _Leaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves in order, each with the places that lead to it, and the description.

    Raises:
        ValueError: for a container whose class was registered without `flatten_with_keys_fn`.
    """
    found: list[tuple[KeyPath, Any]] = []

    def visit(x: Any, path: KeyPath) -> None:
        node = None if is_leaf is not None and is_leaf(x) else _node_of(x)
        if node is None:
            found.append((path, x))
            return
        if node.keys is None:
            raise ValueError(
                f"tree_flatten_with_path: got {type(x)}, which was registered without flatten_with_keys_fn; "
                "give register_pytree_node one"
            )
        for key, part in zip(node.keys(x), node.flatten_fn(x)[0], strict=True):
            visit(part, (*path, key))

    visit(tree, ())
    return found, tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: _Leaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves in order, each with the places that lead to it."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: _Leaf = None
) -> PyTree:
    """`tree_map` of a function that takes the places that lead to the leaf first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [_parts_at(spec, rest) for rest in rests]
    made = [func(path, x, *given) for (path, x), *given in zip(found, *others, strict=True)]
    return tree_unflatten(made, spec)


def keystr(kp: KeyPath) -> str:
    """The places as in an expression: `['a'][0].b`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What the places lead to."""
    for key in kp:
        obj = key.get(obj)
    return obj
