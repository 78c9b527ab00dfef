"""Operators: schemas, argument parsing, error texts, results."""

import copy
import pickle

import c10_operators as ops
import numpy as np
import pytest

import argand_c10 as c10
from argand_c10 import _C

ops.install()


def echo(schema, result=None):
    """An operator whose kernel records its arguments in `calls`."""
    calls = []
    op = c10.define(schema)

    def kernel(*args, **kwargs):
        calls.append((args, kwargs))
        return result if result is not None else c10.tensor(0)

    c10.register_kernel(op.name, "cpu", kernel)
    return op, calls


x = c10.tensor([1.0, 2.0])


def accepted(declared, value):
    """What the kernel sees when `value` is given for an argument declared so; raises TypeError if refused."""
    name = "accept::" + "".join(c if c.isalnum() else "_" for c in declared)
    op, calls = echo(f"{name}({declared} a) -> Tensor")
    op(value)
    return calls[-1][0][0]


# ---- conversions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "declared, value, seen",
    [
        ("Scalar", 3, 3),
        ("Scalar", 2.5, 2.5),
        ("Scalar", True, True),
        ("Scalar", 1j, 1j),
        ("Scalar", np.float32(2.5), 2.5),
        ("Scalar", np.int16(3), 3),
        ("Scalar", np.bool_(True), True),
        ("Scalar", c10.tensor(4), 4),
        ("Tensor|Scalar", 3, 3),
        ("Tensor|Scalar", np.int64(3), 3),
        ("int", 3, 3),
        ("int", np.int32(3), 3),
        ("int", c10.tensor(3), 3),
        ("int?", None, None),
        ("int?", 5, 5),
        ("float", 2, 2.0),
        ("float", np.float64(2.5), 2.5),
        ("float", c10.tensor(2.5), 2.5),
        ("float?", None, None),
        ("bool", True, True),
        ("bool?", None, None),
        ("str", "mean", "mean"),
        ("str", "größe", "größe"),
        ("str?", None, None),
        ("ScalarType", c10.int32, c10.int32),
        ("ScalarType", "float64", c10.float64),
        ("ScalarType", float, c10.float64),
        ("ScalarType", bool, c10.bool),
        ("ScalarType?", None, None),
        ("Device", "cpu", c10.device("cpu", 0)),
        ("Device", c10.device("cpu"), c10.device("cpu", 0)),
        ("Device?", None, None),
        ("int[]", [1, 2], [1, 2]),
        ("int[]", (1, np.int64(2)), [1, 2]),
        ("int[]", c10.Size([3, 4]), [3, 4]),
        ("int[]", [], []),
        ("int[]", list(range(200)), list(range(200))),
        ("int[]?", None, None),
        ("int[2]", 3, [3, 3]),
        ("int[2]", [3], [3, 3]),
        ("int[2]", (3, 4), [3, 4]),
        ("int[1]", 3, [3]),
        ("int[1]", [1, 2, 3], [1, 2, 3]),
        ("float[]", [1, 2.5], [1.0, 2.5]),
        ("bool[]", [True, False], [True, False]),
        ("bool[3]", [True, False, True], [True, False, True]),
        ("Generator?", None, None),
    ],
)
def test_accepts(declared, value, seen):
    got = accepted(declared, value)
    assert got == seen and type(got) is type(seen)


def test_accepts_tensors_and_generators():
    assert accepted("Tensor", x) is x
    assert accepted("Tensor?", None) is None and accepted("Tensor?", x) is x
    assert accepted("Tensor|Scalar", x) is x
    y = c10.tensor(1)
    assert [t is u for t, u in zip(accepted("Tensor[]", [x, y]), [x, y], strict=True)] == [
        True,
        True,
    ]
    assert accepted("Tensor[]", ()) == []
    got = accepted("Tensor?[]", (x, None))
    assert got[0] is x and got[1] is None
    g = c10.Generator()
    assert accepted("Generator?", g) is g


@pytest.mark.parametrize(
    "declared, value, expected",
    [
        ("Tensor", 1, "Tensor, not int"),
        ("Tensor", None, "Tensor, not NoneType"),
        ("Tensor|Scalar", "a", "Tensor or Number, not str"),
        ("Tensor|Scalar", [1], "Tensor or Number, not list"),
        ("Scalar", "1", "Number, not str"),
        ("Scalar", x, "Number, not Tensor"),
        ("int", 1.0, "int, not float"),
        ("int", True, "int, not bool"),
        ("int", c10.tensor(1.0), "int, not Tensor"),
        ("int", np.float32(1), "int, not numpy.float32"),
        ("float", "1", "float, not str"),
        ("float", 1j, "float, not complex"),
        ("bool", 1, "bool, not int"),
        ("bool", np.bool_(False), "bool, not numpy.bool"),
        ("str", b"x", "str, not bytes"),
        ("ScalarType", "float31", "dtype, not str"),
        ("Device", 0.5, "device, not float"),
        ("int[]", [1, True], "tuple of ints, but found element of type bool at pos 1"),
        ("int[]", [1, "a"], "tuple of ints, but found element of type str at pos 1"),
        ("int[]", "ab", "tuple of ints, not str"),
        ("int[2]", [1, 2, "a"], "int or tuple of 2 ints, but found element of type str at pos 2"),
        ("bool[]", [1], "tuple of bools, but found element of type int at pos 0"),
        ("float[]", ["a"], "tuple of floats, but found element of type str at pos 0"),
        ("Tensor[]", [x, 1], "tuple of Tensors, but found element of type int at pos 1"),
        ("Tensor[]", x, "tuple of Tensors, not Tensor"),
        ("Generator", 1, "Generator, not int"),
    ],
)
def test_refuses(declared, value, expected):
    with pytest.raises(TypeError) as error:
        accepted(declared, value)
    assert str(error.value).endswith(f"(): argument 'a' (position 1) must be {expected}")


@pytest.mark.parametrize("value", [[], [1, 2, 3]])
def test_refuses_other_numbers_of_ints(value):
    expected = f"argument 'a' .position 1. must be int or tuple of 2 ints, not {len(value)} ints"
    with pytest.raises(RuntimeError, match=expected):
        accepted("int[2]", value)


def test_integers_that_do_not_fit():
    for declared, value, error in (
        ("int", 2**63, ValueError),
        ("int[]", [1, 2**63], TypeError),
        ("int[2]", 2**63, ValueError),
        ("Scalar", 2**64, OverflowError),
        ("Tensor|Scalar", -(2**63) - 1, OverflowError),
    ):
        with pytest.raises(error, match="64 bits"):
            accepted(declared, value)
    assert accepted("Scalar", 2**63) == accepted("Tensor|Scalar", 2**63) == 2**63
    with pytest.raises(RuntimeError, match="[Dd]evice"):
        accepted("Device", "warp")


# ---- calls -------------------------------------------------------------------------------------------

SCHEMA = 'test::many(Tensor self, int dim=-1, bool keepdim=False, *, float scale=1.5, str mode="none", int[2] pad=0) -> Tensor'
many, many_calls = echo(SCHEMA)


def call(*args, **kwargs):
    many(*args, **kwargs)
    return many_calls[-1]


def test_defaults_are_left_out_for_python():
    assert call(x) == ((x,), {})
    assert call(x, -1, False, scale=1.5, mode="none", pad=(0, 0)) == ((x,), {})
    assert call(x, -1, True) == ((x, -1, True), {})


def test_keywords():
    assert call(x, keepdim=True) == ((x, -1, True), {})
    assert call(x, scale=2, mode="m") == ((x,), {"scale": 2.0, "mode": "m"})
    assert call(input=x, dim=0) == ((x, 0), {})
    assert call(x, axis=2, keepdims=True) == ((x, 2, True), {})
    assert call(x, **{"di" + "m": 3}) == ((x, 3), {})  # a name that is not interned


@pytest.mark.parametrize(
    "args, kwargs, text",
    [
        ((), {}, 'test::many() missing 1 required positional argument: "input"'),
        ((x, 1, True, 4), {}, "test::many() takes 3 positional arguments but 4 were given"),
        ((x,), {"foo": 1}, "test::many() got an unexpected keyword argument 'foo'"),
        ((x, 1), {"dim": 1}, "test::many() got multiple values for argument 'dim'"),
        ((x, "a"), {}, "test::many(): argument 'dim' (position 2) must be int, not str"),
        ((x,), {"mode": 1}, "test::many(): argument 'mode' must be str, not int"),
        ((1,), {}, "test::many(): argument 'input' (position 1) must be Tensor, not int"),
        ((x,), {"out": x}, "test::many() got an unexpected keyword argument 'out'"),
        ((x,), {"dim": 1, "axis": 1}, "test::many() got multiple values for argument 'dim'"),
    ],
)
def test_call_errors(args, kwargs, text):
    with pytest.raises(TypeError) as error:
        many(*args, **kwargs)
    assert str(error.value) == text


def test_positions_of_methods_leave_self_out():
    _C._set_tensor_method("many", many)
    with pytest.raises(TypeError) as error:
        x.many("a")
    assert str(error.value) == "test::many(): argument 'dim' (position 1) must be int, not str"
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        x.many(1, True, 3)
    assert x.many(0) is not None and many_calls[-1] == ((x, 0), {})


def test_varargs():
    make, calls = echo("test::make(int[] size) -> Tensor")
    for args in ((2, 3), ((2, 3),), ([2, 3],), (c10.Size([2, 3]),)):
        make(*args)
        assert calls[-1] == (([2, 3],), {})
    make(-1)
    assert calls[-1] == (([-1],), {})
    make(size=(4,))
    assert calls[-1] == (([4],), {})
    with pytest.raises(
        TypeError,
        match=r"argument 'size' \(position 1\) must be tuple of ints, but found element of type str at pos 1",
    ):
        make(2, "a")
    with pytest.raises(TypeError, match="takes 1 positional argument but 2"):
        make((2, 3), 4)
    with pytest.raises(TypeError, match="but found element of type bool"):
        make([True])


def test_no_varargs_after_a_tensor():
    """Only methods take the numbers one by one there."""
    view, calls = echo("test::view(Tensor self, int[] size) -> Tensor")
    view(x, (2, 3))
    assert calls[-1] == ((x, [2, 3]), {})
    with pytest.raises(
        TypeError, match=r"argument 'size' \(position 2\) must be tuple of ints, not int"
    ):
        view(x, -1)
    with pytest.raises(
        TypeError, match="takes 2 positional arguments but 3|tuple of ints, not int"
    ):
        view(x, 2, 3)


def test_many_arguments_survive():
    names = ", ".join(f"int a{i}" for i in range(50))
    op, calls = echo(f"test::wide({names}) -> Tensor")
    op(*range(50))
    assert calls[-1][0] == tuple(range(50))
    op(**{f"a{i}": i for i in range(50)})
    assert calls[-1][0] == tuple(range(50))


# ---- results -------------------------------------------------------------------------------------------


def test_results():
    y = c10.tensor(1)
    pair, _ = echo("test::pair(Tensor self) -> (Tensor values, Tensor indices)", (x, y))
    result = pair(x)
    assert (
        result.values is x
        and result.indices is y
        and isinstance(result, tuple)
        and len(result) == 2
    )
    values, indices = result
    assert values is x and type(pair(x)) is type(result)
    assert type(result).__name__ == "test::pair" and "return_types" in type(
        result
    ).__module__ + repr(type(result))
    unnamed, _ = echo("test::unnamed(Tensor self) -> (Tensor, Tensor)", (x, y))
    assert type(unnamed(x)) is tuple
    parts, _ = echo("test::parts(Tensor self) -> Tensor[]", [x, y])
    assert type(parts(x)) is tuple and parts(x)[0] is x
    nothing, _ = echo("test::nothing(Tensor self) -> ()")
    assert nothing(x) is None
    for name, value in {"int": 3, "float": 2.5, "bool": True, "Scalar": 1j}.items():
        op, _ = echo(f"test::gives_{name}(Tensor self) -> {name}", value)
        assert op(x) == value and type(op(x)) is type(value)


def test_wrong_results_of_python_kernels():
    pair, _ = echo("test::bad_pair(Tensor self) -> (Tensor, Tensor)", (x,))
    with pytest.raises(TypeError, match="expected a tuple of 2 results"):
        pair(x)
    bad, _ = echo("test::bad(Tensor self) -> Tensor", "text")
    with pytest.raises(TypeError, match="returned str"):
        bad(x)


def test_exceptions_of_kernels_travel():
    op = c10.define("test::raises(Tensor self) -> Tensor")

    def kernel(a):
        raise KeyError("mine")

    c10.register_kernel("test::raises", "cpu", kernel)
    with pytest.raises(KeyError, match="mine"):
        op(x)


# ---- operators as objects ----------------------------------------------------------------------------------


def test_operator_attributes():
    assert many.name == many.__name__ == "test::many" and many.schema == SCHEMA
    assert repr(many) == "<operator 'test::many'>" and isinstance(many, c10.Operator)
    assert many.variants[0].name == "test::many" and many.schemas == (SCHEMA,)
    assert not ops.add.is_composite and not ops.add.is_random
    assert ops.add_.is_inplace and not ops.add.is_inplace and not ops.add.is_view
    assert c10.define("test::a_view(Tensor(a) self) -> Tensor(a)").is_view
    assert c10.find_operator("test::many") is many
    assert "test::many" in c10.operator_names()
    with pytest.raises(LookupError, match="no_such"):
        c10.find_operator("no_such")


def test_operators_copy_and_pickle_by_name():
    assert copy.deepcopy(many) is many and copy.copy(many) is many
    assert pickle.loads(pickle.dumps(many)) is many


def test_operator_in_a_class_is_no_method():
    class Layer:
        act = ops.neg

    assert Layer().act(x).tolist() == [-1.0, -2.0]
    assert x.plus(x).tolist() == [2.0, 4.0]  # on Tensor it is one


@pytest.mark.parametrize(
    "schema, text",
    [
        ("f", "expected '('"),
        ("f(Tensor)", "expected an argument name"),
        ("f(Tensr x) -> Tensor", "expected a type"),
        ("f(Tensor x)", "expected '->'"),
        ("f(Tensor x) -> Tensor junk!", "expected the end"),
        ("f(Tensor x=) -> Tensor", "expected a default"),
        ("f(Device[] x) -> Tensor", "no lists"),
        ('f(str s="a) -> Tensor', "end of a string"),
    ],
)
def test_bad_schemas(schema, text):
    with pytest.raises(ValueError, match="schema: ") as error:
        c10.define(schema)
    assert text in str(error.value) and "column" in str(error.value)


def test_registration_errors():
    with pytest.raises(LookupError, match="define"):
        c10.register_kernel("test::unknown", "cpu", lambda: None)
    with pytest.raises(ValueError, match="dispatch key 'tpu'"):
        c10.register_kernel("test::many", "tpu", lambda: None)
    with pytest.raises(TypeError, match="callable"):
        c10.register_kernel("test::many", "cpu", 3)
    with pytest.raises(RuntimeError, match="another schema"):
        c10.define("test::many(Tensor self) -> Tensor")
    assert c10.define(SCHEMA) is many


def test_an_operator_takes_the_place_of_another():
    first = c10.define("test::again(Tensor x) -> Tensor[]", custom=True)
    c10.register_kernel("test::again", "cpu", lambda x: [x])
    second = c10.define("test::again(Tensor x, int n) -> Tensor[]", custom=True)
    c10.register_kernel("test::again", "cpu", lambda x, n: [x] * n)
    x = c10._C._empty_strided([2], None, c10.float32, "cpu")
    assert [len(first(x)), len(second(x, 3))] == [1, 3] and type(second(x, 3)) is list
    assert c10.find_operator("test::again") is second.default is second is not first
    assert [n for n in c10.operator_names() if n == "test::again"] == ["test::again"]


def test_dispatch_by_device():
    op = c10.define("test::where_am_i(Tensor self) -> Tensor")
    c10.register_kernel("test::where_am_i", "meta", lambda a: c10.tensor([1.0, 2.0], device="meta"))
    assert op(c10.tensor([1.0], device="meta")).is_meta
    with pytest.raises(NotImplementedError, match="no kernel for device 'cpu'"):
        op(x)
    c10.register_kernel(
        "test::where_am_i", "composite", lambda a: c10.tensor("composite" == "composite")
    )
    assert op(x).item() is True and op.is_composite
