"""__argand_function__: types that take over calls."""

import c10_operators as ops
import pytest

import argand_c10 as c10
from argand_c10 import Tensor

ops.install()


class Recorder(Tensor):
    calls = []

    @classmethod
    def __argand_function__(cls, op, types, args=(), kwargs=None):
        cls.calls.append((op, types, args, kwargs))
        return "recorded"


class Proxy:
    """No tensor at all."""

    @classmethod
    def __argand_function__(cls, op, types, args=(), kwargs=None):
        return ("proxy", op.name, len(args), kwargs)


class Refuses:
    @classmethod
    def __argand_function__(cls, op, types, args=(), kwargs=None):
        return NotImplemented


x = c10.tensor([1.0, 2.0])
recorder = x.as_subclass(Recorder)


def test_subclass_takes_over():
    Recorder.calls.clear()
    assert ops.add(recorder, x) == "recorded" and ops.add(x, other=recorder) == "recorded"
    assert (
        recorder + 1 == "recorded" and 1 + recorder == "recorded" and recorder.plus(2) == "recorded"
    )
    assert (recorder == x) == "recorded" and -recorder == "recorded"
    op, types, args, kwargs = Recorder.calls[0]
    assert (
        op is ops.add
        and types == (Recorder,)
        and args[0] is recorder
        and args[1] is x
        and kwargs == {}
    )
    assert Recorder.calls[1][3].keys() == {"other"}
    assert all(call[0] is not None for call in Recorder.calls)


def test_method_and_function_are_one_operator():
    Recorder.calls.clear()
    recorder.plus(1)
    assert Recorder.calls[0][0] is ops.add


def test_indexing_goes_through():
    Recorder.calls.clear()
    assert recorder[0] == "recorded" and x[recorder] == "recorded" and x[0, recorder] == "recorded"
    x[0] = 1.0
    x[0:1] = recorder
    names = [call[0].__name__ for call in Recorder.calls]
    assert names == ["__getitem__"] * 3 + ["__setitem__"]


def test_proxies_that_are_no_tensors():
    assert ops.add(x, Proxy()) == ("proxy", "test::add", 2, {})
    assert ops.add([Proxy()], x)[0] == "proxy"  # also inside of lists
    assert x + Proxy() == ("proxy", "test::add", 2, {})
    assert Proxy.__argand_function__ is not None


def test_order_subclasses_first():
    seen = []

    class Base(Tensor):
        @classmethod
        def __argand_function__(cls, op, types, args=(), kwargs=None):
            seen.append(cls)
            return NotImplemented

    class Derived(Base):
        pass

    with pytest.raises(TypeError, match="no implementation found for <operator 'test::add'>"):
        ops.add(x.as_subclass(Base), x.as_subclass(Derived))
    assert seen == [Derived, Base]
    seen.clear()
    assert ops.add(x.as_subclass(Base), recorder) == "recorded" and seen == [Base]


def test_refusal_names_the_types():
    with pytest.raises(TypeError, match="__torch_function__.*Refuses"):
        ops.add(x, Refuses())


def test_none_switches_overrides_off():
    class Plain(Tensor):
        __argand_function__ = None

    result = ops.add(x.as_subclass(Plain), 1)
    assert type(result) is Tensor and result.tolist() == (ops.array(x) + 1).tolist()
    assert type(ops.add(c10.Parameter(x, requires_grad=False), 1)) is Tensor


def test_plain_subclass_gives_tensors():
    class Plain(Tensor):
        pass

    assert type(x.as_subclass(Plain) + 1) is Tensor


def test_super_calls_and_converts():
    class Logged(Tensor):
        log = []

        @classmethod
        def __argand_function__(cls, op, types, args=(), kwargs=None):
            cls.log.append(op.name)
            return super().__argand_function__(op, types, args, kwargs or {})

    y = x.as_subclass(Logged) + 1
    assert type(y) is Logged and Logged.log == ["test::add"]
    assert y.tolist() == (ops.array(x) + 1).tolist()


def test_disable():
    with c10.DisableArgandFunction():
        assert type(ops.add(recorder, 1)) is Tensor
        with c10.DisableArgandFunction():
            pass
        assert type(ops.add(recorder, 1)) is Tensor
    assert ops.add(recorder, 1) == "recorded"


def test_factories():
    make = c10.define("test::make(int n, *, ScalarType? dtype=None, Device? device=None) -> Tensor")
    c10.register_kernel(
        "test::make",
        "cpu",
        lambda n, **options: c10._C._empty_strided([n], None, c10.float32, "cpu"),
    )
    calls = []
    before = c10._C._override_factories(lambda *call: calls.append(call) or "made")
    try:
        assert before is None and make(3, device="cpu") == "made"
        assert calls == [(make, (3,), {"device": "cpu"})]
    finally:
        c10._C._override_factories(before)
    assert make(3).shape == (3,)


def test_exceptions_leave_overrides_enabled():
    class Fails(Tensor):
        @classmethod
        def __argand_function__(cls, op, types, args=(), kwargs=None):
            return super().__argand_function__(op, types, args + (1, 2, 3), kwargs)

    with pytest.raises(TypeError, match="positional"):
        x.as_subclass(Fails) + 1
    assert ops.add(recorder, 1) == "recorded"
