"""Operators of users: functions that run as they are, eagerly and in compiled programs, with shapes and gradients that are given apart."""

from __future__ import annotations

import collections.abc
import hashlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import argand_c10
from argand_autograd import Function, no_grad
from argand_c10 import Tensor, rules

__all__ = [
    "CustomOpDef",
    "custom_op",
    "infer_schema",
    "register_autograd",
    "register_fake",
    "register_kernel",
]

_DEVICES = ("cpu", "cuda")
_SCALARS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", int | float | bool: "Scalar", int | float | complex: "Scalar",
    int | float | complex | bool: "Scalar", argand_c10.dtype: "ScalarType", argand_c10.device: "Device",
}  # fmt: skip
_LISTED = ("Tensor", "SymInt", "float", "bool", "Scalar")
_RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")

_defined: dict[str, CustomOpDef] = {}


def _type_name(annotation: Any) -> str | None:
    """An annotation in the words of a schema; None: it has none."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and type(None) in parts:
        inner = _type_name(typing.Union[tuple(p for p in parts if p is not type(None))])  # noqa: UP007
        return None if inner is None or inner.endswith("?") else f"{inner}?"
    if origin in (list, collections.abc.Sequence) and len(parts) == 1:
        inner = _type_name(parts[0])
        return f"{inner}[]" if inner is not None and inner.removesuffix("?") in _LISTED else None
    return None


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of a function by its annotations.

    Args:
      prototype_function: has an annotation for each argument and for its result.
      mutates_args: names of the arguments that it writes into, or "unknown": all tensors.
      op_name: the name at the schema's beginning; without one the schema begins with "(".
      tags: taken and not used.

    Raises:
      ValueError: for a function without annotations, or with types that no schema has.
    """
    signature = inspect.signature(prototype_function)

    def refuse(what: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. "
        )
    try:
        hints = typing.get_type_hints(prototype_function)
    except Exception as error:
        refuse(f"Unsupported type annotation ({error}).")
    mutated = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)
    arguments: list[str] = []
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            refuse("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in arguments:
            arguments.append("*")
        if name not in hints:
            refuse(f"Parameter {name} must have a type annotation.")
        kind = _type_name(hints[name])
        if kind is None:
            refuse(f"Parameter {name} has unsupported type {parameter.annotation}.")
        if kind.startswith("Tensor") if mutated == "unknown" else name in mutated:
            if not kind.startswith("Tensor"):
                refuse(
                    f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
                )
            kind = f"Tensor(a{index}!){kind.removeprefix('Tensor')}"
        default = ""
        if parameter.default is not parameter.empty:
            value = parameter.default
            if isinstance(value, (str, argand_c10.device)):
                default = f'="{value}"'
            elif value is None or isinstance(value, (int, float, bool)):
                default = f"={value}"
            elif isinstance(value, argand_c10.dtype):
                default = f"={value.name}"
            else:
                refuse(f"Parameter {name} has an unsupported default value type {type(value)}.")
        arguments.append(f"{kind} {name}{default}")
    if mutated != "unknown" and (unseen := set(mutated) - signature.parameters.keys()):
        refuse(f"{unseen} in mutates_args were not found in the custom op's signature.")
    if "return" not in hints:
        refuse("No return type annotation was provided. Please add one.")
    returned = hints["return"]
    parts = typing.get_args(returned) if typing.get_origin(returned) is tuple else (returned,)
    kinds = [] if returned is type(None) else [_type_name(p) for p in parts]
    if any(kind not in _RETURNED for kind in kinds):
        refuse(f"Return has unsupported type {returned}.")
    result = str(kinds[0]) if len(kinds) == 1 else f"({', '.join(map(str, kinds))})"
    return f"{op_name or ''}({', '.join(arguments)}) -> {result}"


class CustomOpDef:
    """An operator that `custom_op` defined; calling it calls the operator."""

    def __init__(self, name: str, function: Callable[..., Any], schema: str) -> None:
        self._name = name
        self._fake: Callable[..., Any] | None = None
        self._digest = "0"  # of its code
        self._function: type[Function] | None = None
        self._init_fn = function
        self.__name__ = name.rpartition("::")[2]
        self.__doc__ = function.__doc__
        self._opoverload = argand_c10.define(schema.replace("SymInt", "int"))
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values()
        self._names = [p.name for p in parameters]
        self._defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self._positional = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        self._mutated: list[str] = re.findall(r"Tensor\(\w+!\)\S* (\w+)", schema)
        self._functional: argand_c10.Operator | None = None
        self._has_results = True
        _defined[name] = self
        argand_c10.register_kernel(name, "meta", self._on_meta)
        found = rules.Rules("opaque", self._layouts, self._dtypes)
        if not self._mutated:
            argand_c10.register_kernel(name, "autograd", self._recorded)
            rules.register_rules(lambda: {name: found})
            return
        arguments, _, results = re.sub(r"\(\w+!\)", "", schema.replace("SymInt", "int")).rpartition(
            " -> "
        )
        self._has_results = results != "()"
        argand_c10.register_kernel(
            name, "autograd", self._recorded if self._has_results else self._unrecorded
        )
        several = [r for r in results.strip("()").split(", ") if r] + ["Tensor"] * len(
            self._mutated
        )
        functional = f"{name}_functional"
        written = rules.Rules("composite", composite=self._written)
        result = several[0] if len(several) == 1 else f"({', '.join(several)})"
        self._functional = argand_c10.define(
            f"{arguments.replace(name, functional, 1)} -> {result}"
        )
        rules.register_rules(lambda: {name: written, functional: found})

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, digest = self._function, self._digest
        if (
            not digest.isalnum()  # never: a compiled program that is kept guards what it read
            or function is None
            or len(args) > self._positional
            or not all(name in self._names for name in kwargs)
        ):
            return self._opoverload(*args, **kwargs)
        given = list(args)
        for name in self._names[len(args) :]:
            if name not in kwargs and name not in self._defaults:
                return self._opoverload(*args, **kwargs)  # which says what is missing
            given.append(kwargs[name] if name in kwargs else self._defaults[name])
        return function.apply(*given)

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Give the function that computes tensors on these devices (None: on all); a decorator without `fn`."""
        if fn is None:
            return lambda f: self.register_kernel(device_types, f)
        for device in (
            _DEVICES
            if device_types is None
            else (device_types,)
            if isinstance(device_types, str)
            else device_types
        ):
            argand_c10.register_kernel(self._name, device, self._without_aliases(fn))
            if self._functional is not None:
                argand_c10.register_kernel(self._functional.name, device, self._on_copies(fn))
        return fn

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Give the function that makes results of the right sizes, strides and dtypes from tensors without data; compilers call it. Returns `fn`."""
        held = [cell.cell_contents for cell in getattr(fn, "__closure__", None) or ()]
        known = (getattr(fn, "__defaults__", None), getattr(fn, "__kwdefaults__", None), held)
        told = (
            f"{_digest(getattr(fn, '__code__', None))} {known if hasattr(fn, '__code__') else fn}"
        )
        self._fake, self._digest = fn, hashlib.sha256(told.encode()).hexdigest()
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the gradients.

        Args:
          backward: `backward(ctx, *grads)`, a gradient per positional argument, None where there is none.
          setup_context: `setup_context(ctx, inputs, output)` keeps in `ctx` what backward needs; with keyword-only arguments
            `setup_context(ctx, inputs, keyword_only_inputs, output)`.

        Raises:
          RuntimeError: for an operator that writes into its arguments.
        """
        if self._mutated:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self._name}. Please create a functional operator and register an autograd formula for that."
            )
        operator, count, keywords = (
            self._opoverload,
            self._positional,
            self._names[self._positional :],
        )

        def forward(ctx: Any, *args: Any) -> Any:
            if not keywords:
                output = operator(*args)
                if setup_context is not None:
                    setup_context(ctx=ctx, inputs=args, output=output)
                return output
            named = dict(zip(keywords, args[count:], strict=True))
            output = operator(*args[:count], **named)
            if setup_context is not None:
                setup_context(
                    ctx=ctx, inputs=args[:count], keyword_only_inputs=named, output=output
                )
            return output

        def backward_of_all(ctx: Any, *grads: Any) -> Any:
            found = backward(ctx, *grads)
            return (
                *(found if isinstance(found, (tuple, list)) else (found,)),
                *(None for _ in keywords),
            )

        methods = {"forward": staticmethod(forward), "backward": staticmethod(backward_of_all)}
        self._function = type(self.__name__, (Function,), methods)

    def _without_aliases(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            result = fn(*args, **kwargs)
            seen = {
                t.untyped_storage().data_ptr()
                for t in _tensors((args, tuple(kwargs.values())))
                if t.numel()
            }
            for t in _tensors(result):
                if t.numel() and t.untyped_storage().data_ptr() in seen:
                    raise RuntimeError(
                        f"{self._name} (with implementation in {fn.__module__}): The output of this custom operator (1) must not also be an input to "
                        "this custom operator and (2) may not alias any inputs to this custom operator or other returns; return a clone of it."
                    )
                seen.add(t.untyped_storage().data_ptr())
            return result

        return kernel

    def _on_copies(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """For compiled programs, where nothing is written into: the function on copies of what it writes into, which are results, too."""

        def kernel(*args: Any, **kwargs: Any) -> Any:
            bound = self._signature.bind(*args, **kwargs)
            for name in self._mutated:
                bound.arguments[name] = bound.arguments[name].clone()
            return self._with_written(fn(*bound.args, **bound.kwargs), bound)

        return kernel

    def _with_written(self, result: Any, bound: inspect.BoundArguments) -> Any:
        several = [] if result is None else list(result) if isinstance(result, tuple) else [result]
        several += [bound.arguments[name] for name in self._mutated]
        return several[0] if len(several) == 1 else tuple(several)

    def _written(self, ops: Any, *args: Any, **kwargs: Any) -> Any:
        """What a call that writes is in a compiled program."""
        bound = self._signature.bind(*args, **kwargs)
        assert self._functional is not None
        found = self._functional(*args, **kwargs)
        several = list(found) if isinstance(found, (list, tuple)) else [found]
        for name, value in zip(
            self._mutated, several[len(several) - len(self._mutated) :], strict=True
        ):
            ops.copy_(bound.arguments[name], value)
        results = several[: len(several) - len(self._mutated)]
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def _recorded(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel for tensors that require grad where no gradients were given: an error in backward."""
        return _NoGradients.apply(
            self._name,
            lambda: self._opoverload(*_detached(args), **_detached(kwargs)),
            *_tensors((args, tuple(kwargs.values()))),
        )

    def _unrecorded(self, *args: Any, **kwargs: Any) -> Any:
        """The same for an operator that writes and has no results."""
        with no_grad():
            return self._opoverload(*_detached(args), **_detached(kwargs))

    def _on_meta(self, *args: Any, **kwargs: Any) -> Any:
        if self._fake is None and not self._has_results:
            return None
        if self._fake is None:
            raise NotImplementedError(
                f"{self._name}: There was no fake impl registered for this operator. Please use register_fake to add one, "
                "with which it can be compiled and called with tensors on meta."
            )
        return self._fake(*args, **kwargs)

    def _on_fakes(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The results for a compiler's tensors, those of `_functional` for an operator that writes."""
        from argand_fx.shapes.builder import FakeTensorMode
        from argand_fx.shapes.fake_tensor import FakeTensor

        given = [t for t in _values((args, tuple(kwargs.values()))) if isinstance(t, FakeTensor)]
        mode = FakeTensorMode(
            next((t.builder.shape_env for t in given if t.builder is not None), None)
        )

        def apart(value: Any) -> Any:  # so that what the function calls is not recorded
            if isinstance(value, FakeTensor):
                return FakeTensor(
                    value.shape, value.strides, 0, value.dtype, value.device, builder=mode
                )
            return [apart(v) for v in value] if isinstance(value, (list, tuple)) else value

        bound = self._signature.bind(
            *map(apart, args), **{name: apart(v) for name, v in kwargs.items()}
        )
        result = self._on_meta(*bound.args, **bound.kwargs)
        if self._mutated:
            result = self._with_written(result, bound)
        return list(result) if isinstance(result, tuple) else [result]

    def _layouts(self, *args: Any, **kwargs: Any) -> Any:
        found = tuple(_Layout(t.shape, t.strides) for t in self._on_fakes(*args, **kwargs))
        return found[0] if len(found) == 1 else found

    def _dtypes(self, *args: Any, **kwargs: Any) -> Any:
        found = tuple(t.dtype for t in self._on_fakes(*args, **kwargs))
        return found[0] if len(found) == 1 else found


def _digest(code: types.CodeType | None) -> str:
    """Of what a function's code does, wherever it stands."""
    if code is None:
        return "0"
    constants = [_digest(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    told = (code.co_code, constants, code.co_names, code.co_varnames)
    return hashlib.sha256(repr(told).encode()).hexdigest()


class _Layout(NamedTuple):
    sizes: Sequence[Any]
    strides: Sequence[Any]
    offset: int = 0


class _NoGradients(Function):
    """A call of an operator without gradients."""

    @staticmethod
    def forward(ctx: Any, name: str, call: Callable[[], Any], *tensors: Tensor) -> Any:
        ctx.name = name
        return call()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            f"Trying to backward through {ctx.name} but no autograd formula was registered. Please use register_autograd to add one."
        )


def _values(tree: Any) -> Iterable[Any]:
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from _values(part)
    else:
        yield tree


def _detached(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _detached(value) for name, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_detached(part) for part in tree]
    return tree.detach() if isinstance(tree, Tensor) else tree


def _tensors(tree: Any) -> Iterable[Tensor]:
    return (t for t in _values(tree) if isinstance(t, Tensor))


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function, which runs as it is, in compiled programs too.

    Args:
      name: "namespace::name".
      fn: computes new tensors, or writes into its arguments; its annotations give the schema. Without it this is a decorator.
      mutates_args: names of the arguments that it writes into, or "unknown".
      device_types: devices for whose tensors the function is; None: all.
      schema: in place of the annotations, as "(Tensor x, int n) -> Tensor".
      tags: taken and not used.

    Returns:
      A `CustomOpDef`, which is called as the function is.
    """
    if fn is None:
        return lambda f: custom_op(
            name, f, mutates_args=mutates_args, device_types=device_types, schema=schema, tags=tags
        )
    namespace, _, short = name.partition("::")
    if not namespace or not short or "." in name:
        raise ValueError(f"Expected `name` to be of the form {{namespace}}::{{name}}, got {name!r}")
    given = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
    found = CustomOpDef(name, fn, name + given.strip())
    found.register_kernel(device_types, fn)
    return found


def _definition(op: str | CustomOpDef) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if op not in _defined:
        raise ValueError(
            f"got the name {op!r}, expected that of an operator which custom_op has defined"
        )
    return _defined[op]


def register_fake(op: str | CustomOpDef, func: Callable[..., Any] | None = None, /) -> Any:
    """`CustomOpDef.register_fake` by name; a decorator without `func`."""
    return _definition(op).register_fake if func is None else _definition(op).register_fake(func)


def register_autograd(
    op: str | CustomOpDef,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
) -> None:
    """`CustomOpDef.register_autograd` by name."""
    _definition(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(
    op: str | CustomOpDef,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
) -> Any:
    """`CustomOpDef.register_kernel` by name; a decorator without `func`."""
    return _definition(op).register_kernel(device_types, func)
