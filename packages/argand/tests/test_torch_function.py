"""`__torch_function__`, and `torch.overrides` for functions that take part in it."""

import threading

import pytest

import argand as torch
from argand.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    wrap_torch_function,
)


class Logged(torch.Tensor):
    """Every call keeps the class, as the documentation of PyTorch's has it."""

    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


class Scaled:
    """No tensor: an identity matrix times a number."""

    handled: dict = {}

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in cls.handled:
            return NotImplemented
        return cls.handled[func](*args, **(kwargs or {}))


Scaled.handled[torch.mean] = lambda x: x.value
x, logged = torch.ones(2), torch.ones(2).as_subclass(Logged)


def test_a_subclass_takes_part_and_keeps_its_class():
    Logged.calls.clear()
    result = torch.add(x, logged)
    assert type(result) is Logged and result.tolist() == [2.0, 2.0]
    assert Logged.calls == [torch.add]
    assert type(logged + 1) is Logged and type(torch.nn.functional.relu(logged)) is Logged
    assert [type(part) for part in logged.chunk(2)] == [Logged, Logged]


def test_objects_that_are_no_tensors():
    assert torch.mean(Scaled(3)) == 3
    with pytest.raises(TypeError, match="no implementation found"):
        torch.add(Scaled(3), x)


class Foreign:
    """As the tensors of another library, which call what they do not know with themselves."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_objects_that_hand_calls_back():
    for call in (lambda: torch.add(Foreign(), x), lambda: x + Foreign(), lambda: Foreign() + x):
        with pytest.raises(TypeError, match="Foreign"):
            call()


def test_compiled_functions_leave_it_to_the_class():
    def double(x):
        return x * 2

    result = torch.compile(double)(logged)
    assert type(result) is Logged and result.tolist() == [2.0, 2.0]


def scale(x, factor=1):
    if has_torch_function_unary(x):
        return handle_torch_function(scale, (x,), x, factor=factor)
    return x * factor


@wrap_torch_function(lambda x, y=None: (x, y))
def first(x, y=None):
    return x


def test_functions_of_a_library():
    assert scale(x, 3).tolist() == [3.0, 3.0]
    Logged.calls.clear()
    assert type(scale(logged, 3)) is Logged and Logged.calls == [scale]
    assert type(first(x, logged)) is Logged and first(x) is x
    Scaled.handled[first] = lambda x, y: "handled"
    assert first(x, Scaled(1)) == "handled"
    with pytest.raises(TypeError, match="no implementation found"):
        scale(Scaled(1))


def test_what_has_torch_function():
    parameter = torch.nn.Parameter(x)
    assert not has_torch_function((x, parameter, 1, None)) and has_torch_function([x, logged])
    assert has_torch_function_variadic(1, Scaled(1)) and not has_torch_function_variadic()
    assert is_tensor_like(x) and is_tensor_like(logged) and is_tensor_like(Scaled(1))
    assert not is_tensor_like(1) and not is_tensor_like([x])


class Told(TorchFunctionMode):
    """Notes the calls, and makes them."""

    def __init__(self):
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, types))
        return func(*args, **(kwargs or {}))


def test_modes_are_asked_about_every_call():
    outer, inner = Told(), Told()
    with outer:
        with inner:
            assert has_torch_function_unary(x)
            results = torch.add(x, 1), x[0], torch.ones(2), x.sum(), torch.cat([x, x]), x[:1]
            x[0] = 1.0
        assert (x * 2).tolist() == [2.0, 2.0]
    assert [r.tolist() for r in results] == [[2.0, 2.0], 1.0, [1.0, 1.0], 2.0, [1.0] * 4, [1.0]]
    functions = [func for func, types in inner.calls]
    getter, setter = torch.Tensor.__getitem__, torch.Tensor.__setitem__
    assert functions == [torch.add, getter, torch.ones, torch.sum, torch.cat, getter, setter]
    assert outer.calls == [*inner.calls, (torch.mul, ())]
    assert not has_torch_function_unary(x) and x.neg().tolist() == [-1.0, -1.0]
    assert len(inner.calls) == 7


def test_modes_and_classes():
    class Refusing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    mode = Told()
    with mode:
        assert type(logged + x) is Logged
        assert torch.mean(Scaled(3)) == 3
        assert scale(x, 3).tolist() == [3.0, 3.0]
    assert mode.calls[:2] == [(torch.add, (Logged,)), (torch.mean, (Scaled,))]
    assert mode.calls[2] == (scale, ())
    with Refusing():
        assert torch.mean(Scaled(3)) == 3
        with pytest.raises(TypeError, match="no implementation found"):
            torch.add(x, 1)
    with pytest.raises(NotImplementedError), TorchFunctionMode():
        torch.add(x, 1)
    assert torch.add(x, 1).tolist() == [2.0, 2.0]


def test_modes_belong_to_a_thread():
    mode, results = Told(), []
    with mode:
        thread = threading.Thread(target=lambda: results.append(x + 1))
        thread.start()
        thread.join()
        with pytest.raises(ValueError), mode:
            raise ValueError
        assert torch.neg(x) is not None
    assert results[0].tolist() == [2.0, 2.0] and [func for func, _ in mode.calls] == [torch.neg]


def test_compiled_programs_ask_no_modes():
    mode = Told()
    with mode:
        assert torch.compile(lambda x: (x + 1).relu())(x).tolist() == [2.0, 2.0]
    assert mode.calls == []


def test_functions_that_can_be_taken_over():
    import inspect

    from argand import overrides

    found = overrides.get_overridable_functions()
    assert torch.add in found[torch] and torch.fft.fft in found[torch.fft]
    assert (
        torch.nn.functional.relu_ in found[torch.nn.functional] and torch.add in found[torch.Tensor]
    )
    assert torch.compile not in found[torch]
    assert torch.compile in overrides.get_ignored_functions()
    assert overrides.resolve_name(torch.linalg.det) in ("argand.det", "argand.linalg.det")
    assert overrides.resolve_name(torch.add) == "argand.add"
    item = torch.Tensor.__getitem__
    assert overrides.resolve_name(item) == "argand.Tensor.__getitem__"
    assert overrides.resolve_name(torch.compile) is None is overrides.resolve_name(3)
    assert overrides.is_tensor_method_or_property(torch.ops.add_)
    assert overrides.is_tensor_method_or_property(torch.Tensor.grad.__get__)
    assert not overrides.is_tensor_method_or_property(torch.stack)
    dummy = overrides.get_testing_overrides()[torch.softmax]
    assert dummy(x, 0) == -1 and list(inspect.signature(dummy).parameters) == [
        "input",
        "dim",
        "dtype",
    ]


def test_calls_are_of_functions_that_can_be_taken_over():
    from argand import overrides

    every = [f for named in overrides.get_overridable_functions().values() for f in named]
    Logged.calls.clear()
    _ = -(logged + 1)[0] * logged.exp().sum() + torch.fft.fft(logged).real.sum()
    _ = torch.nn.functional.relu(logged).add_(1)
    assert Logged.calls and all(any(f is g for g in every) for f in Logged.calls)
