"""GuardTree: every kind of guard holds for what was seen, and notices each change."""

import collections
import gc
import sys
import types

import pytest

import argand_autograd as autograd
import argand_c10 as c10
from argand_dynamo import _C
from argand_dynamo.guards import (
    Guard,
    alias_guards,
    shape_guard,
    state_guards,
    storage_guards,
    tensor_guard,
)
from argand_fx.shapes import ShapeEnv
from argand_fx.shapes.from_tensor import from_tensor

X = (("arg", 0),)
Y = (("arg", 1),)


def tree(*guards, **kwargs):
    return _C.GuardTree([Guard(*guard) for guard in guards], **kwargs)


def holds(source, kind, value, arg):
    return tree((source, kind, value)).check((arg,))


class Plain:
    def __init__(self):
        self.width = 3
        self.name = "plain"

    def method(self):
        return self.width


class Slotted:
    __slots__ = ("width",)


class WithProperty:
    runs = 0

    @property
    def width(self):
        WithProperty.runs += 1
        return 1


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (1, [2, True, 1.0, None, "1", 1 << 70]),
        (1 << 70, [1 << 71, 0]),
        (True, [1, False]),
        (0.0, [-0.0, 0, float("nan")]),
        (-0.0, [0.0]),
        ("a", ["b", "ab", b"a"]),
        (b"a", [b"b", "a"]),
        (None, [0, False]),
        ((1, 2), [(1, 2, 3), (1, True), [1, 2], (1,)]),
        ((1.0, (2, "x")), [(1.0, (2, "y")), (1, (2, "x"))]),
        (frozenset({1, 2}), [frozenset({1, 3}), frozenset({True, 2}), {1, 2}]),
        (slice(1, 2), [slice(1, 3), slice(1, True)]),
        (range(3), [range(4)]),
        (1j, [2j, 0.0]),
        (c10.float32, [c10.float64, c10.int32]),
        (c10.device("cpu"), [c10.device("meta")]),
    ],
)
def test_equals_is_exact(value, others):
    check = tree((X, "EQUALS", value))
    assert check.check((value,))
    for other in others:
        assert not check.check((other,)), other


def test_equals_knows_nan_by_its_bits():
    assert holds(X, "EQUALS", float("nan"), float("nan"))


def test_equals_refuses_objects():
    with pytest.raises(TypeError, match="EQUALS guard got .*expected a constant"):
        tree((X, "EQUALS", object()))


def test_type_is_exact():
    class Child(Plain):
        pass

    assert holds(X, "TYPE", Plain, Plain())
    assert not holds(X, "TYPE", Plain, Child())


def test_type_by_name_is_that_type_and_no_namesake():
    check = tree((X, "TYPE", f"{__name__}:Plain"))
    namesake = type("Plain", (), {"__module__": __name__, "__qualname__": "Plain"})
    assert not check.check((namesake(),))
    assert check.check((Plain(),))
    assert not check.check((namesake(),))


def test_identity_is_held_weakly():
    model = Plain()
    check = tree((X, "ID", model))
    assert check.check((model,)) and not check.check((Plain(),))
    assert check.alive
    del model
    gc.collect()
    assert not check.alive
    assert not any(check.check((Plain(),)) for _ in range(100))


def test_attributes_in_the_instance():
    instance = X + (("instance_dict", "width"),)
    check = tree(
        (instance, "EQUALS", 3), (X, "NO_ATTR", "method"), (X, "HAS_INSTANCE_ATTR", "name")
    )
    value = Plain()
    assert check.check((value,))
    value.method = 1
    assert not check.check((value,))
    del value.method
    assert check.check((value,))
    assert value.__dict__ and check.check((value,))  # a dict was made of it
    value.width = 4
    assert not check.check((value,))
    value.width = 3
    del value.name
    assert not check.check((value,))


def test_reading_an_instance_makes_no_dict_and_runs_no_property():
    value = WithProperty()
    assert not holds(X + (("instance_dict", "width"),), "EQUALS", 1, value)
    assert WithProperty.runs == 0
    assert not holds(X + (("instance_dict", "width"),), "EQUALS", 1, Slotted())
    assert not holds(X + (("instance_dict", "width"),), "EQUALS", 1, 5)
    value = Plain()
    size = sys.getsizeof(value)
    assert holds(X + (("instance_dict", "width"),), "EQUALS", 3, value)
    assert sys.getsizeof(value) == size


def test_instance_attribute_in_every_layout():
    class Many:
        pass

    many = Many()
    for i in range(100):
        setattr(many, f"a{i}", i)
    assert [_C.instance_attribute(many, f"a{i}") for i in range(100)] == list(range(100))
    odd = Plain()
    setattr(odd, "".join(["wi", "dth2"]), 7)
    odd.__dict__["".join(["dyn", "amic"])] = 8
    assert _C.instance_attribute(odd, "width2") == 7
    assert _C.instance_attribute(odd, "dynamic") == 8
    assert _C.instance_attribute(odd, "none", "default") == "default"
    module = c10.Module()
    assert _C.instance_attribute(module, "training") is True
    function = lambda: None  # noqa: E731
    function.tag = 5
    assert _C.instance_attribute(function, "tag") == 5
    error = ValueError()
    error.tag = 6
    assert _C.instance_attribute(error, "tag") == 6


def test_slots_are_attributes():
    value = Slotted()
    check = tree((X + (("attr", "width"),), "EQUALS", 1))
    assert not check.check((value,))
    value.width = 1
    assert check.check((value,))


def test_class_attributes():
    class Base:
        scale = 2

        def run(self):
            return 1

    class Child(Base):
        pass

    kind = X + (("type",),)
    check = tree(
        (X, "TYPE", Child),
        (kind, "CLASS_ATTR", ("run", Base.run)),
        (kind, "CLASS_ATTR", ("scale", 2)),
        (kind, "CLASS_ATTR", ("missing",)),
    )
    value = Child()
    assert check.check((value,)) and check.check((value,))
    Base.other = 1  # a new version, the same facts
    assert check.check((value,))
    Child.scale = 3
    assert not check.check((value,))
    Child.scale = 2
    assert check.check((value,))
    original = Base.run
    Base.run = lambda self: 2
    assert not check.check((value,))
    Base.run = original
    assert check.check((value,))
    Base.missing = None
    assert not check.check((value,))


def test_class_attributes_without_a_known_type():
    check = tree((X, "CLASS_ATTR", ("method", Plain.method)))
    assert (
        check.check((Plain,)) and not check.check((WithProperty,)) and not check.check((Plain(),))
    )


def test_containers():
    check = tree(
        (X, "LEN", 2), (X + (("item", 0),), "EQUALS", 1), (X + (("item", -1),), "EQUALS", 2)
    )
    assert check.check(([1, 2],)) and check.check(((1, 2),))
    assert not check.check(([1, 2, 2],)) and not check.check(([1],)) and not check.check((5,))
    keyed = tree((X + (("item", "a"),), "EQUALS", 1), (X, "NO_ITEM", "b"))
    assert keyed.check(({"a": 1},))
    assert not keyed.check(({"a": 2},)) and not keyed.check(({"b": 1},))
    assert not keyed.check(({"a": 1, "b": 1},))


def test_dict_keys_and_their_order():
    check = tree((X, "DICT_KEYS", ("a", 1)))
    assert check.check(({"a": 0, 1: 0},))
    for other in ({1: 0, "a": 0}, {"a": 0}, {"a": 0, True: 0}, {"a": 0, 1: 0, 2: 0}, ["a", 1]):
        assert not check.check((other,)), other
    ordered = collections.OrderedDict(a=0, b=1)
    check = tree((X, "DICT_KEYS", ("a", "b")), (X + (("key", 0),), "EQUALS", "a"))
    assert check.check((ordered,))
    ordered.move_to_end("a")
    assert not check.check((ordered,))
    key = object()
    assert holds(X, "DICT_KEYS", (key,), {key: 1})
    assert not holds(X, "DICT_KEYS", (key,), {object(): 1})
    assert holds(X + (("value", 1),), "EQUALS", 2, {key: 1, int: 2})
    assert not holds(X + (("value", 1),), "EQUALS", 2, {key: 2})


def test_members_of_sets():
    check = tree((X, "MEMBERS", ("a", 1, None)))
    assert check.check(({None, 1, "a"},)) and check.check((frozenset({1, "a", None}),))
    for other in ({"a", 1}, {"a", True, None}, {"a", 1, "b"}, {"a", 1.0, None}, ["a", 1, None], 5):
        assert not check.check((other,)), other


def test_members_of_sets_in_order():
    small, large = {8, 0}, {0, 8}
    for members in (small, large):
        check = tree((X, "DICT_KEYS", tuple(members)))
        for other in (small, frozenset(small), large):
            assert check.check((other,)) == (list(other) == list(members))
        assert not check.check(({8, 0, 1},)) and not check.check(([8, 0],))


def test_items_of_dicts_whatever_a_subclass_does():
    class Other(dict):
        def __getitem__(self, key):
            raise AssertionError(key)

    assert holds(X + (("dict_item", "a"),), "EQUALS", 1, Other(a=1))
    assert not holds(X + (("dict_item", "a"),), "EQUALS", 1, Other(b=1))


def outer():
    captured = 5

    def inner(a, b=2, *, c=3):
        return captured

    return inner


def test_functions():
    f = outer()
    check = tree(
        (X + (("closure", "captured"),), "EQUALS", 5),
        (X + (("default", 0),), "EQUALS", 2),
        (X + (("kwdefault", "c"),), "EQUALS", 3),
        (X, "CODE", f.__code__),
    )
    assert check.check((f,))
    assert check.check((outer(),))
    f.__closure__[0].cell_contents = 6
    assert not check.check((f,))
    f.__closure__[0].cell_contents = 5
    f.__defaults__ = (4,)
    assert not check.check((f,))
    f.__defaults__ = (2,)
    f.__code__ = (lambda a, captured=f: lambda: captured)(0).__code__
    assert not check.check((f,))
    assert not check.check((len,))


def test_methods():
    value = Plain()
    check = tree(
        (X + (("func",),), "ID", Plain.method),
        (X + (("self",), ("instance_dict", "width")), "EQUALS", 3),
        (X, "CODE", Plain.method.__code__),
    )
    assert check.check((value.method,)) and not check.check((value,))
    value.width = 4
    assert not check.check((value.method,))


def test_code_by_hash():
    calls = []

    def hashed(code):
        calls.append(code)
        return code.co_name

    _C.set_code_hash(hashed)
    try:
        check = tree((X, "CODE", "method"))
        assert check.check((Plain.method,)) and check.check((Plain.method,))
        assert calls == [Plain.method.__code__]
        assert not check.check((outer,))
    finally:
        _C.set_code_hash(None)


def test_globals_builtins_modules_and_cells():
    namespace = {"a": 1}
    check = tree(
        ((("global", "a"),), "EQUALS", 1), ((("builtin", "len"),), "ID", len), globals=namespace
    )
    assert check.check(())
    namespace["len"] = len
    assert not check.check(())
    del namespace["len"]
    namespace["a"] = 2
    assert not check.check(())
    del namespace["a"]
    assert not check.check(())
    assert tree(((("module", "sys"), ("attr", "maxsize")), "EQUALS", sys.maxsize)).check(())
    assert not tree(((("module", "no.such"),), "EXISTS", None)).check(())
    cell = types.CellType(3)
    check = tree(((("cell", "v"),), "EQUALS", 3), closure=(cell,), freevars=("v",))
    assert check.check(())
    cell.cell_contents = 4
    assert not check.check(())
    del cell.cell_contents
    assert not check.check(())


def test_function_gives_globals_and_cells():
    f = outer()
    check = tree(
        ((("cell", "captured"),), "EQUALS", 5),
        ((("global", "X"), ("item", 0), ("item", 1)), "EQUALS", 0),
    )
    assert check.check((), f)
    f.__closure__[0].cell_contents = 1
    assert not check.check((), f)
    assert not check.check(())


# ---- tensors -------------------------------------------------------------------------------------------------------------


def matrix(rows=4, columns=6, **kwargs):
    return c10.tensor([[0.0] * columns] * rows, **kwargs)


@pytest.mark.parametrize(
    "other",
    [
        lambda: matrix(5, 6),
        lambda: matrix(4, 7),
        lambda: matrix(dtype=c10.float64),
        lambda: matrix(6, 4).t(),
        lambda: matrix(requires_grad=True),
        lambda: c10.Parameter(matrix(), requires_grad=False),
        lambda: matrix().reshape(24),
        lambda: matrix(4, 12)[:, ::2],
        lambda: None,
        lambda: 3,
    ],
)
def test_tensor_facts(other):
    check = tree(tensor_guard(X, matrix()))
    assert check.check((matrix(),))
    assert not check.check((other(),))


def test_tensor_made_in_inference_mode():
    check = tree(tensor_guard(X, matrix()))
    with autograd.inference_mode():
        value = matrix()
    assert not check.check((value,))


def test_view_of_what_requires_grad():
    base = matrix(requires_grad=True)
    view = base[0]
    check = tree(tensor_guard(X, view))
    assert check.check((view,)) and not check.check((view.detach(),))
    with autograd.no_grad():
        silent = base[0]
    assert tree(tensor_guard(X, silent)).check((silent,))
    assert silent.requires_grad == tree(tensor_guard(X, view)).check((silent,))


def dynamic_guards(tensor, *dims):
    """The guard of a tensor with symbolic sizes."""
    return tree(tensor_guard(X, tensor, from_tensor(tensor, ShapeEnv(), dynamic_dims=dims)))


def test_dynamic_dimensions():
    check = dynamic_guards(matrix(), 0)
    assert check.check((matrix(9, 6),)) and not check.check((matrix(9, 7),))
    check = dynamic_guards(matrix(), 1)
    assert check.check((matrix(4, 9),)) and not check.check((matrix(9, 4).t(),))
    transposed = dynamic_guards(matrix(6, 4).t(), 0)
    assert transposed.check((matrix(6, 4).t(),)) and transposed.check((matrix(6, 9).t(),))
    assert not transposed.check((matrix(5, 4).t(),)) and not transposed.check((matrix(4, 6),))


def test_strides_that_depend_on_no_size_are_compared():
    """Though a dimension of changing size is stepped over faster."""
    column = matrix(4, 1)
    assert not dynamic_guards(column.expand(4, 3), 1).check((column.t().expand(4, 4),))
    windows = matrix().reshape(24).unfold(0, 6, 1)
    check = dynamic_guards(windows, 1)
    assert check.check((windows[:, :3],))
    assert not check.check((windows[:, :3].clone(),)) and not check.check((windows[::2],))


def test_gradient():
    x = matrix(requires_grad=True)
    check = tree((X + (("grad",),), "EQUALS", None))
    assert check.check((x,))
    x.grad = matrix()
    assert not check.check((x,))


def test_aliases():
    a, b = matrix(), matrix()
    same = tree(*alias_guards([(X, a), (Y, a)]))
    assert same.check((b, b)) and not same.check((a, b))
    different = tree(*alias_guards([(X, a), (Y, b)]))
    assert different.check((a, b)) and not different.check((a, a))
    sources = [((("arg", i),), matrix()) for i in range(100)]
    many = tree(*alias_guards(sources))
    tensors = [tensor for _, tensor in sources]
    assert many.check(tuple(tensors))
    assert not many.check((*tensors[:99], tensors[3]))


def test_storages():
    a, b = matrix(), matrix()
    apart = tree(*storage_guards([(X, a), (Y, b)]))
    assert apart.check((b, a))
    assert not apart.check((a, a)) and not apart.check((a, a[1:]))
    together = tree(*storage_guards([(X, a), (Y, a[1:])]))
    assert together.check((b, b[1:]))
    assert not together.check((b, b[2:])) and not together.check((a, b[1:]))
    base = matrix()
    views = [((("arg", i),), base.view(24) if i % 2 else matrix()) for i in range(40)]
    many = tree(*storage_guards(views))
    values = [v for _, v in views]
    assert many.check(tuple(values))
    values[7] = matrix().view(24)
    assert not many.check(tuple(values))


def test_shapes():
    size = {"s0": (X, "size", 0), "s1": (Y, "value", 0)}
    check = tree(shape_guard([("<=", ("+", ("*", 2, "s0"), "s1"), 10), (">", "s0", 1)], size))
    assert check.check((matrix(4), 2))
    assert not check.check((matrix(4), 3)) and not check.check((matrix(1), 0))
    assert not check.check((matrix(4), 2.0)) and not check.check((3, 3))
    assert not check.check((matrix(4), 1 << 70))
    stride = tree(shape_guard([("==", "s0", 6)], {"s0": (X, "stride", 0)}))
    assert stride.check((matrix(),)) and not stride.check((matrix(6, 4).t(),))
    assert not stride.check((c10.tensor(1.0),))
    kind_first = tree(((), "SHAPE", (("==", "s0", 4), {"s0": ("size", X, 0)})))
    assert kind_first.check((matrix(),))


@pytest.mark.parametrize(
    "expression",
    [
        ("==", ("//", -7, "s"), -4),
        ("==", ("%", -7, "s"), 1),
        ("==", ("%", 7, ("-", "s")), -1),
        ("==", ("**", "s", 10), 1024),
        ("==", ("ceildiv", 7, "s"), 4),
        ("==", ("min", 5, "s", 9), 2),
        ("==", ("max", 1, "s"), 2),
        ("==", ("abs", ("-", 1, "s")), 1),
        ("and", ("not", ("==", "s", 3)), ("or", ("<", "s", 0), (">=", "s", 2))),
        ("!=", ("neg", "s"), 2),
    ],
)
def test_shape_arithmetic_is_pythons(expression):
    assert tree(shape_guard([expression], {"s": (X, "value", 0)})).check((2,))


def test_shape_arithmetic_fails_safely():
    for expression in (("==", ("//", 1, "s"), 0), ("<", ("**", 10, ("*", 100, "s")), 1)):
        bound = {"s": (X, "value", 0)}
        assert not tree(shape_guard([expression], bound)).check(
            (0 if expression[0] == "==" else 1,)
        )


# ---- state -----------------------------------------------------------------------------------------------------------------


def test_state_of_the_thread():
    check = tree(*state_guards())
    assert check.check(())
    with autograd.no_grad():
        assert not check.check(())
    with autograd.inference_mode():
        assert not check.check(())
    with c10.ArgandDispatchMode():
        assert not check.check(())
        inside = tree(*state_guards())
        assert inside.check(())
    assert not inside.check(())
    c10.set_default_dtype(c10.float64)
    try:
        assert not check.check(())
    finally:
        c10.set_default_dtype(c10.float32)
    assert check.check(())


# ---- behaviour -------------------------------------------------------------------------------------------------------------


def test_no_exception_is_left_and_none_is_lost():
    class Hostile:
        def __getattr__(self, name):
            raise RuntimeError("hostile")

        def __getitem__(self, key):
            raise RuntimeError("hostile")

        def __len__(self):
            raise RuntimeError("hostile")

        def __eq__(self, other):
            raise RuntimeError("hostile")

        __hash__ = None

    value = Hostile()
    for source, kind, fact in [
        (X + (("attr", "a"),), "EQUALS", 1),
        (X + (("item", 0),), "EQUALS", 1),
        (X + (("len",),), "EQUALS", 1),
        (X + (("grad",),), "EXISTS", None),
        (X, "LEN", 1),
        (X, "EQUALS", 1),
        (X, "NO_ITEM", 1),
        (X, "DICT_KEYS", ()),
        (X, "MEMBERS", ()),
        (X, "TENSOR", tensor_guard(X, matrix()).value),
    ]:
        assert holds(source, kind, fact, value) is False


def test_every_source_may_lead_nowhere():
    for step in [
        ("attr", "a"),
        ("item", 5),
        ("dict_item", 5),
        ("instance_dict", "a"),
        ("closure", "a"),
        ("default", 1),
        ("kwdefault", "a"),
        ("func",),
        ("self",),
        ("key", 3),
        ("value", 3),
        ("len",),
    ]:
        assert not holds(X + (step,), "EXISTS", None, 5), step
    assert not tree((Y, "EXISTS", None)).check((1,))


def test_a_check_may_delete_what_it_looks_at():
    values = []

    class Emptying:
        @property
        def a(self):
            values.clear()
            return 1

    values.extend([Emptying(), [1]])
    check = tree(
        (X + (("item", 0), ("attr", "a")), "EQUALS", 1),
        (X + (("item", 1), ("item", 0)), "EQUALS", 1),
    )
    assert not check.check((values,))


def test_tree_is_collected_with_its_types():
    class Local:
        pass

    Local.tree = tree((X, "TYPE", Local))
    alive = []
    import weakref

    reference = weakref.ref(Local, alive.append)
    del Local
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ((X, "NO_SUCH", 1), "guard kind 'NO_SUCH'"),
        (((("attr", "a"),), "EXISTS", None), "at the beginning of a source"),
        (((("arg", 0), ("arg", 1)), "EXISTS", None), "inside a source"),
        (((("arg",),), "EXISTS", None), "has 1 parts, expected 2"),
        (((("arg", -1),), "EXISTS", None), "expected an index >= 0"),
        ((X + (("attr", 3),), "EXISTS", None), "expected a str"),
        ((X + (("jump", 3),), "EXISTS", None), "source step 'jump'"),
        ((X + (("call", ((), ("name",))),), "EXISTS", None), "source step 'call'"),
        ((X + (("call", ((("source", ()),), ())),), "EXISTS", None), "source step 'call'"),
        ((X + (("call", ((("source", 1),), ())),), "EXISTS", None), "source step 'call'"),
        ((X + (("call", ((("const", 1, "1"),), (1,))),), "EXISTS", None), "source step 'call'"),
        ((X + (("held", ((), ("name",))),), "EXISTS", None), "source step 'held'"),
        (((), "TYPE", int), "empty source"),
        ((X, "MEMBERS", (object,)), "MEMBERS guard got"),
        ((X, "TENSOR", (1, 2)), "TENSOR guard got"),
        ((X, "CLASS_ATTR", 3), "CLASS_ATTR guard got"),
        (((), "SHAPE", (("<", "s9", 1), {})), "a symbol that the guard binds"),
        (((), "SHAPE", (("foo", 1, 1), {})), "one of the operators"),
        (((), "SHAPE", (("<", 1, 1, 1), {})), "two operands"),
        (((), "SHAPE", (("%", 1), {})), "two operands"),
        (((), "SHAPE", (("not", 1, 1), {})), "one operand"),
        (((), "STORAGE", ((X,), (1, 2))), "one number a source"),
    ],
)
def test_malformed_guards_are_refused(guard, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tree(guard)


def test_duplicates_are_checked_once_and_keep_their_index():
    check = tree((X, "TYPE", int), (X, "TYPE", int), (X, "EQUALS", 1))
    assert check.explain((2,))[0] == 2
    assert check.explain((1,)) is None
