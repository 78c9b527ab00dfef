"""Dispatch modes."""

import threading

import c10_operators as ops
import pytest

import argand_c10 as c10
from argand_c10 import ArgandDispatchMode, Tensor
from argand_c10.modes import current_modes

ops.install()
x = c10.tensor([1.0, 2.0])


class Log(ArgandDispatchMode):
    def __init__(self):
        self.calls = []

    def __argand_dispatch__(self, op, types, args=(), kwargs=None):
        self.calls.append((op.name, types, args, kwargs))
        return op(*args, **kwargs)


def test_mode_sees_calls():
    with Log() as log:
        y = x + 1
        assert current_modes() == [log]
    x + 2
    assert y.tolist() == [2.0, 3.0] and len(log.calls) == 1 and current_modes() == []
    name, types, args, kwargs = log.calls[0]
    assert (
        name == "test::add"
        and types == (Tensor,)
        and args[0] is x
        and args[1] == 1
        and kwargs == {}
    )


def test_inner_mode_first_then_the_one_around():
    order = []

    class Named(Log):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __argand_dispatch__(self, op, types, args=(), kwargs=None):
            order.append(self.name)
            return super().__argand_dispatch__(op, types, args, kwargs)

    with Named("outer"), Named("inner"):
        x + 1
    assert order == ["inner", "outer"]


def test_mode_replaces_results():
    class Replace(ArgandDispatchMode):
        def __argand_dispatch__(self, op, types, args=(), kwargs=None):
            return c10.tensor([7.0])

    with Replace():
        assert (x + 1).tolist() == [7.0]
    assert (x + 1).tolist() == [2.0, 3.0]


def test_default_handler_calls_on():
    with ArgandDispatchMode():
        assert (x + 1).tolist() == [2.0, 3.0]


def test_subclass_types_are_listed():
    class Sub(Tensor):
        pass

    with Log() as log:
        ops.add(x.as_subclass(Sub), x)
    assert log.calls[0][1] == (Sub, Tensor)


def test_exceptions_leave_modes_in_order():
    class Fails(ArgandDispatchMode):
        def __argand_dispatch__(self, op, types, args=(), kwargs=None):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        with Log(), Fails():
            x + 1
    assert current_modes() == [] and (x + 1).tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match="returned object"):

        class Bad(ArgandDispatchMode):
            def __argand_dispatch__(self, op, types, args=(), kwargs=None):
                return object()

        with Bad():
            x + 1


def test_wrong_order_is_refused():
    a, b = Log(), Log()
    a.__enter__()
    b.__enter__()
    with pytest.raises(RuntimeError, match="another order"):
        a.__exit__(None, None, None)
    b.__exit__(None, None, None)
    a.__exit__(None, None, None)


def test_modes_belong_to_threads():
    seen = []
    with Log() as log:
        thread = threading.Thread(target=lambda: seen.append((x + 1).tolist()))
        thread.start()
        thread.join()
    assert seen == [[2.0, 3.0]] and log.calls == []
