"""What guards and their failures say."""

import pytest

import argand_c10 as c10
from argand_dynamo import _C
from argand_dynamo.guards import (
    Guard,
    describe_guard,
    describe_guards,
    describe_source,
    portable,
    shape_guard,
    state_guards,
    tensor_guard,
)

X = (("arg", 0),)


def function(x, config):
    return x


CODE = function.__code__


def why(guard, *args):
    found = _C.GuardTree([guard]).explain(args, function)
    assert found is not None and found[0] == 0
    return found[1]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (X, "argument 'x'"),
        (
            (("arg", 1), ("instance_dict", "layers"), ("item", 0), ("attr", "w")),
            "argument 'config.layers[0].w'",
        ),
        ((("global", "settings"), ("item", "lr")), "global 'settings['lr']'"),
        ((("cell", "scale"),), "closed-over variable 'scale'"),
        ((("arg", 0), ("type",)), "argument 'type(x)'"),
        ((("module", "math"), ("attr", "pi")), "module 'math.pi'"),
        ((("arg", 7),), "argument '#7'"),
    ],
)
def test_sources(source, text):
    assert describe_source(source, CODE) == text


def test_failures_name_the_users_variable():
    x = c10.tensor([[1.0, 2.0]] * 5)
    facts = tensor_guard(X, x)
    assert (
        why(facts, c10.tensor([[1.0, 2.0]] * 7))
        == "argument 'x': size of dimension 0 is 7, expected 5"
    )
    assert why(facts, x.t()) == "argument 'x': size of dimension 0 is 2, expected 5"
    assert why(facts, x.double() if hasattr(x, "double") else c10.tensor([[1, 2]] * 5)).startswith(
        "argument 'x': dtype is "
    )
    assert why(facts, x[0]) == "argument 'x': number of dimensions is 1, expected 2"
    assert why(facts, None).startswith("argument 'x' is None, expected a Tensor of ")
    assert why(facts, c10.Parameter(x)) == "argument 'x' is a Parameter, expected a Tensor"
    assert why(facts, c10.tensor([[1.0, 2.0]] * 5, requires_grad=True)) == (
        "argument 'x': requires_grad is True, expected False"
    )
    assert why(Guard(X, "EQUALS", 3), 4) == "argument 'x' is 4, expected 3"
    assert why(Guard(X, "TYPE", int), "s") == "argument 'x' is a str, expected a int"
    assert why(Guard(X, "LEN", 2), [1]) == "argument 'x' has length 1, expected 2"
    assert why(Guard(X, "DICT_KEYS", ("a",)), {"b": 1}) == (
        "argument 'x' has the keys ('b',), expected ('a',)"
    )
    assert why(Guard(X, "MEMBERS", ("a",)), {"b"}) == (
        "argument 'x' has the members {'b'}, expected {'a'}"
    )
    assert (
        why(Guard(X + (("attr", "real2"),), "EXISTS", None), 1) == "argument 'x.real2' is missing"
    )
    assert why(Guard((("global", "CODE"),), "EQUALS", 3)).startswith(
        "global 'CODE' is <code object"
    )
    assert "gradients are off" in why(Guard((), "GRAD_MODE", False))


def test_shape_failures_give_the_sizes():
    bound = {"s0": (X, "size", 0), "s1": ((("arg", 1),), "value", 0)}
    guard = shape_guard([("<=", ("+", ("*", 2, "s0"), "s1"), 10), (">", "s1", 0)], bound)
    assert why(guard, c10.tensor([1.0] * 7), 1) == (
        "sizes: x.size(0) is 7, config is 1, expected ((2 * x.size(0)) + config) <= 10"
    )
    assert why(guard, c10.tensor([1.0]), -1) == "sizes: config is -1, expected config > 0"


def test_every_kind_has_a_description():
    x = c10.tensor([1.0])
    guards = [
        tensor_guard(X, x),
        Guard(X, "TYPE", int),
        Guard(X, "ID", x),
        Guard(X, "EQUALS", 1),
        Guard(X, "LEN", 1),
        Guard(X, "DICT_KEYS", ("a",)),
        Guard(X, "MEMBERS", ("a",)),
        Guard(X, "NO_ATTR", "a"),
        Guard(X, "HAS_INSTANCE_ATTR", "a"),
        Guard(X, "NO_ITEM", "a"),
        Guard(X, "CODE", CODE),
        Guard(X, "CLASS_ATTR", ("a",)),
        Guard(X, "EXISTS", None),
        Guard(X, "ALIAS", (("arg", 1),)),
        Guard((), "DISTINCT", (X, (("arg", 1),))),
        Guard((), "STORAGE", ((X, (("arg", 1),)), (0, 0))),
        shape_guard([("<", "s0", 5)], {"s0": (X, "size", 0)}),
        *state_guards(),
    ]
    lines = describe_guards(guards, CODE).splitlines()
    assert len(lines) == len(guards) and all(lines)
    assert describe_guard(guards[16], CODE) == "x.size(0) < 5"
    assert lines[13] == "argument 'x' is the same tensor as argument 'config'"


class Holder:
    @property
    def width(self):
        return 1

    @staticmethod
    def make():
        return 1

    @classmethod
    def build(cls):
        return 1

    def method(self):
        return 1


def test_portable_guards_hold_as_the_originals():
    def hashed(code):
        return f"hash of {code.co_qualname}"

    kind = X + (("type",),)
    names = ("width", "make", "build", "method")
    guards = [Guard(kind, "CLASS_ATTR", (name, vars(Holder)[name])) for name in names]
    guards += [Guard(X + (("type",), ("attr", "method")), "CODE", Holder.method.__code__)]
    assert _C.GuardTree(guards).check((Holder(),))
    result = portable(guards, hashed)
    assert [g.kind for g in result] == ["CODE", "ID", "ID", "CLASS_ATTR", "CODE"]
    _C.set_code_hash(hashed)
    try:
        again = _C.GuardTree(result)
        assert again.check((Holder(),)) and again.check((Holder(),))
        original = Holder.width
        Holder.width = property(lambda self: 2)
        try:
            assert not again.check((Holder(),))
        finally:
            Holder.width = original
    finally:
        _C.set_code_hash(None)
