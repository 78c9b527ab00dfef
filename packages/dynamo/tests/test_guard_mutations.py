"""Random object graphs: guards on all of their facts hold, and notice every single change."""

import copy
import random

import pytest

import argand_c10 as c10
from argand_dynamo import _C
from argand_dynamo.guards import Guard, describe_failure, storage_guards, tensor_guard

X = (("arg", 0),)


class Node:
    """An object with attributes of its own."""


def tensor(rng):
    sizes = [rng.randint(1, 3) for _ in range(rng.randint(0, 3))]
    value = c10.tensor(0.5)
    for n in reversed(sizes):
        value = [value.tolist()] * n if isinstance(value, c10.Tensor) else [value] * n
    made = value if isinstance(value, c10.Tensor) else c10.tensor(value)
    return made.requires_grad_() if rng.random() < 0.3 else made


def build(rng, depth):
    kinds = ["int", "float", "str", "none", "tensor"]
    if depth:
        kinds += ["list", "tuple", "dict", "object"] * 2
    kind = rng.choice(kinds)
    if kind in ("list", "tuple"):
        items = [build(rng, depth - 1) for _ in range(rng.randint(0, 4))]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        keys = rng.sample(["a", "b", "c", 0, 1, 2.5, None], rng.randint(0, 4))
        return {key: build(rng, depth - 1) for key in keys}
    if kind == "object":
        node = Node()
        for name in rng.sample(["p", "q", "r", "s"], rng.randint(0, 4)):
            setattr(node, name, build(rng, depth - 1))
        return node
    if kind == "tensor":
        return tensor(rng)
    return {
        "int": rng.randint(-(2**40), 2**40),
        "float": rng.random(),
        "str": rng.choice(["x", "yy", ""]),
        "none": None,
    }[kind]


def visit(value, source, guards, tensors, places, replace):
    """Collects guards of everything below `value`, and (description, change, undo) of everything that can change."""
    if replace is not None:
        places.append((source, value, replace))
    if isinstance(value, c10.Tensor):
        guards.append(tensor_guard(source, value))
        tensors.append((source, value))
        return
    guards.append(Guard(source, "TYPE", type(value)))
    if isinstance(value, (list, tuple)):
        guards.append(Guard(source, "LEN", len(value)))
        for i, item in enumerate(value):
            change = (
                None
                if isinstance(value, tuple)
                else (lambda new, v=value, i=i: v.__setitem__(i, new))
            )
            visit(item, source + (("item", i),), guards, tensors, places, change)
    elif isinstance(value, dict):
        guards.append(Guard(source, "DICT_KEYS", tuple(value)))
        for key, item in value.items():
            visit(
                item, source + (("item", key),), guards, tensors, places,
                lambda new, v=value, k=key: v.__setitem__(k, new),
            )  # fmt: skip
    elif isinstance(value, Node):
        for name in ("p", "q", "r", "s"):
            if not hasattr(value, name):
                guards.append(Guard(source, "NO_ATTR", name))
                continue
            visit(
                getattr(value, name), source + (("instance_dict", name),), guards, tensors, places,
                lambda new, v=value, n=name: setattr(v, n, new),
            )  # fmt: skip
    else:
        guards.append(Guard(source, "EQUALS", value))


def others(rng, value):
    """Values that a guard on `value` must tell from it."""
    if isinstance(value, c10.Tensor):
        yield value.double()
        yield value.detach() if value.requires_grad else value.detach().requires_grad_()
        yield c10.tensor([[[[1.0]]]])
        yield None
    elif isinstance(value, bool) or value is None:
        yield 0
    elif isinstance(value, int):
        yield value + 1
        yield float(value)
    elif isinstance(value, float):
        yield -value
        yield str(value)
    elif isinstance(value, str):
        yield value + "z"
        yield value.encode()
    elif isinstance(value, list):
        yield [*value, 0]
        yield tuple(value)
    elif isinstance(value, tuple):
        yield (*value, 0)
        yield list(value)
    elif isinstance(value, dict):
        yield {**value, "extra": 1}
        if len(value) > 1:
            yield dict(reversed(value.items()))
    else:
        changed = copy.copy(value)
        free = [name for name in ("p", "q", "r", "s") if not hasattr(value, name)]
        if free:
            setattr(changed, free[0], 1)
            yield changed
        yield object()


@pytest.mark.parametrize("seed", range(150))
def test_every_change_is_noticed(seed):
    rng = random.Random(seed)
    holder = [build(rng, 4)]
    guards, tensors, places = [], [], []
    visit(holder[0], X, guards, tensors, places, lambda new: holder.__setitem__(0, new))
    guards += storage_guards(tensors)
    rng.shuffle(guards)
    check = _C.GuardTree(guards)
    assert check.explain((holder[0],)) is None
    for source, value, replace in rng.sample(places, min(len(places), 25)):
        for other in others(rng, value):
            replace(other)
            index, text = check.explain((holder[0],))
            assert not check.check((holder[0],)) and text, (source, value, other)
            assert 0 <= index < len(guards)
            replace(value)
            assert check.check((holder[0],)), (source, value, other)


@pytest.mark.parametrize("seed", range(30))
def test_exchanged_tensors_are_noticed(seed):
    rng = random.Random(1000 + seed)
    base = c10.tensor([[float(i) for i in range(4)] for _ in range(4)])
    pool = [base, base[0], base[1], base.clone(), base.clone()[0]]
    chosen = [rng.choice(pool) for _ in range(4)]
    sources = [X + (("item", i),) for i in range(4)]
    guards = storage_guards(list(zip(sources, chosen, strict=True)))
    check = _C.GuardTree(guards)
    assert check.check((chosen,))

    def pattern(values):
        """Which values are one object or share memory, and where they lie in it."""
        storages = [_C.storage_id(v) for v in values]
        return [
            (
                [values[i] is values[j] for j in range(i)],
                [storages[i] == storages[j] for j in range(i)],
                values[i].storage_offset() if storages.count(storages[i]) > 1 else None,
            )
            for i in range(4)
        ]

    for _ in range(30):
        other = [rng.choice(pool) for _ in range(4)]
        holds = check.check((other,))
        if pattern(other) == pattern(chosen):
            assert holds
        elif [p[:2] for p in pattern(other)] != [p[:2] for p in pattern(chosen)]:
            assert not holds, (pattern(other), pattern(chosen))


def test_descriptions_survive_strange_values():
    class Strange:
        def __repr__(self):
            raise RuntimeError

    text = describe_failure(Guard(X, "EQUALS", 1), True, Strange())
    assert text.startswith("argument '#0' is <") and text.endswith("expected 1")
