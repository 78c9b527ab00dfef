"""`opcheck`: whether an operator does what was registered for it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import argand_autograd
from argand.operator_definition import Definition, clones, definition_of, tensors_in
from argand_c10 import Tensor

__all__ = ["opcheck"]


class OpCheckError(AssertionError):
    """What a check found."""


def _copied(tree: Any) -> Any:
    """Leaves of their own with the same elements."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(_copied, tree))
    if isinstance(tree, dict):
        return {name: _copied(value) for name, value in tree.items()}
    return (
        tree.detach().clone().requires_grad_(tree.requires_grad)
        if isinstance(tree, Tensor)
        else tree
    )


def _same(a: Any, b: Any) -> bool:
    x, y = list(tensors_in(a)), list(tensors_in(b))
    return all(
        s.shape == t.shape and bool(((s == t) | ((s != s) & (t != t))).all())
        for s, t in zip(x, y, strict=True)
    )


def _check_schema(definition: Definition, args: Any, kwargs: Any, close: Any) -> None:
    """Exactly what the schema says is written into, and results are new tensors."""
    given, named = _copied(args), _copied(kwargs)
    with argand_autograd.no_grad():
        results = definition.operator(*given, **named)
    before, after = definition.bound(args, kwargs), definition.bound(given, named)
    for name, value in after.items():
        if name not in definition.mutated and not _same(before[name], value):
            raise OpCheckError(
                f"{definition.name}: Argument {name} is not defined as mutable but was mutated"
            )
    storages = {t.untyped_storage().data_ptr() for t in tensors_in(list(after.values()))}
    if any(t.numel() and t.untyped_storage().data_ptr() in storages for t in tensors_in([results])):
        raise OpCheckError(
            f"{definition.name}: a result shares memory with an argument, which the schema does not say"
        )


def _check_autograd(definition: Definition, args: Any, kwargs: Any, close: Any) -> None:
    """Gradients come from a formula: without one, results of tensors that require grad say so in backward."""
    if definition.has_formula or not any(t.requires_grad for t in tensors_in(list(args))):
        return
    results = definition.operator(*_copied(args), **_copied(kwargs))
    made = [t for t in tensors_in([results]) if t.requires_grad]
    if made:
        raise OpCheckError(
            f"{definition.name}: got tensors that require grad and no autograd formula; give one with register_autograd"
        )


def _facts(tree: Any) -> list[Any]:
    return [(tuple(t.shape), t.stride(), t.dtype, t.device) for t in tensors_in([tree])]


def _check_fake(definition: Definition, args: Any, kwargs: Any, close: Any) -> None:
    """The fake's results have the sizes, strides, dtypes and devices of the kernel's."""
    from argand_fx.shapes import FakeTensorMode

    mode = FakeTensorMode()

    def fakes(tree: Any) -> Any:
        if isinstance(tree, (list, tuple)):
            return type(tree)(map(fakes, tree))
        return mode.from_tensor(tree) if isinstance(tree, Tensor) else tree

    with argand_autograd.no_grad():
        real = definition.operator(*_copied(args), **_copied(kwargs))
        fake = mode.call(definition.operator, fakes(args), {k: fakes(v) for k, v in kwargs.items()})
    several = list(fake) if isinstance(fake, (list, tuple)) else [] if fake is None else [fake]
    found = [(tuple(t.shape), t.stride(), t.dtype, t.device) for t in several]
    if found != _facts(real):
        raise OpCheckError(
            f"{definition.name}: the fake's results (sizes, strides, dtype, device) are {found}, the kernel's {_facts(real)}"
        )


def _check_compiled(definition: Definition, args: Any, kwargs: Any, close: Any) -> None:
    """Compiled with symbolic sizes, results, what is written into and gradients are those of eager execution."""
    import argand

    def run(call: Callable[..., Any]) -> tuple[Any, ...]:
        given, named = _copied(args), _copied(kwargs)
        leaves = [t for t in tensors_in([*given, *named.values()]) if t.requires_grad]
        inner = clones(given)  # leaves that require grad cannot be written into
        results = call(*inner, **named)
        made = [t for t in tensors_in([results]) if t.requires_grad]
        if made and leaves:
            argand_autograd.backward([t.abs().sum() for t in made])
        return list(tensors_in([results])), list(tensors_in(inner)), [t.grad for t in leaves]

    compiled = argand.compile(
        lambda *given, **named: definition.operator(*given, **named),
        fullgraph=True, dynamic=True, backend="aot_eager",
    )  # fmt: skip
    expected, found = run(definition.operator), run(compiled)
    for what, a, b in zip(("result", "argument", "gradient"), expected, found, strict=True):
        for x, y in zip(a, b, strict=True):
            if (x is None) != (y is None):
                raise OpCheckError(
                    f"{definition.name}: one of two {what}s, eager and compiled, is None"
                )
            if x is not None:
                close(x, y, what)


_CHECKS = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd,
    "test_faketensor": _check_fake,
    "test_aot_dispatch_dynamic": _check_compiled,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Test an operator of `custom_op` or `define` on sample arguments.

    Args:
        op: the operator, its `CustomOpDef` or its name.
        args, kwargs: its arguments, with tensors that require grad where gradients shall be compared.
        test_utils: which of "test_schema" (it writes into what its schema says and returns new tensors),
            "test_autograd_registration", "test_faketensor" (the fake fits the kernel) and "test_aot_dispatch_dynamic"
            (compiled it is what it is eagerly) to run.
        raise_exception: raise what is found first.
        atol, rtol: how close results have to be, by default as in `torch.testing.assert_close`.

    Returns:
        "SUCCESS" or the exception, by test.
    """
    import argand.testing

    definition = definition_of(getattr(op, "_qualname", op))

    def close(x: Tensor, y: Tensor, what: str) -> None:
        argand.testing.assert_close(
            y,
            x,
            atol=atol,
            rtol=rtol,
            equal_nan=True,
            msg=lambda text: f"{definition.name}: {what}: {text}",
        )

    found: dict[str, Any] = {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        if name not in _CHECKS:
            raise ValueError(
                f"opcheck: got {name!r} in test_utils, expected some of {tuple(_CHECKS)}"
            )
        try:
            _CHECKS[name](definition, args, kwargs or {}, close)
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            found[name] = error
    return found
