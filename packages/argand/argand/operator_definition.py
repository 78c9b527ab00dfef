"""Operators that programs define: their kernels, what compilers know of them, and their gradients."""

from __future__ import annotations

import functools
import itertools
import re
import types
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import argand_aten as aten
import argand_c10
from argand_autograd import Function, no_grad
from argand_autograd.amp import autocast, is_autocast_enabled
from argand_c10 import Tensor, rules
from argand_c10.code_digest import hash_code
from argand_c10.errors import UnsupportedError
from argand_dynamo import disable
from argand_dynamo.trust import is_trusted
from argand_fx.schema import schema_of

__all__ = ["Definition", "clones", "definition_of", "tensors_in"]

_DEVICES = ("cpu", "cuda")
# The namespace of the forms without writes, which compiled programs call.
_FUNCTIONAL = "argand_functional"
_process, _tokens = uuid.uuid4().hex, itertools.count()


class _Slot:
    """Stands for a tensor."""


class Definition:
    """An operator by its full name and schema; defined anew it takes the place of the one of its name.

    Attributes:
        name: "namespace::name".
        schema: as it was given, from the first bracket.
        operator: what is called.
        tags: what the program says of it.
        fake, body, setup_context, backward: as registered, or None.
        device_kernels: the function that computes on a device, by its name; under None that for all others.
        disabled: devices for which the first function runs all the same.
        regions: what is called in autocast regions of a device type, by its name.
        version, has_formula: see `argand_c10.rules.Definition`.
    """

    def __init__(self, name: str, schema: str, tags: Sequence[Any] = ()) -> None:
        namespace, _, short = name.partition("::")
        if not namespace or not short or "::" in short or "." in short:
            raise ValueError(
                f"Expected `name` to be of the form {{namespace}}::{{name}}, got {name!r}"
            )
        plain = schema.strip().replace("SymInt", "int")
        self.name = name
        self.schema = schema.strip()
        self.tags = tuple(tags)
        self.fake: Callable[..., Any] | None = None
        self.body: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.has_formula = False
        self.device_kernels: dict[str | None, Callable[..., Any]] = {}
        self.disabled: set[str | None] = set()
        self.regions: dict[str, Callable[..., Any]] = {}
        self.operator = argand_c10.define(f"{name}{plain}", custom=True)
        parsed = schema_of(self.operator)
        self.arguments = parsed.arguments
        self.results, self.result_types = parsed.results, parsed.result_types
        self.several = parsed.results > 1
        defaults = [(a.name, a.default) for a in parsed.arguments]
        self.positional = defaults[: parsed.positional]
        self.keyword_only = defaults[parsed.positional :]
        self.mutated = [parsed.arguments[i].name for i in parsed.written]
        self.functional: argand_c10.Operator | None = None
        self.first_kernel: Callable[..., Any] | None = None
        self.renew()
        argand_c10.register_kernel(name, "meta", self.on_meta)
        argand_c10.register_kernel(name, "autograd", self.recorded)
        derivative = _Underivable(name, len(defaults), self.results)
        if self.mutated:
            twin = self._define_functional(plain)
            body = rules.Rules("composite", composite=self._written)
            found = rules.Rules("opaque", fake=self._fake_functional, derivative=derivative)
            rules.register_rules(lambda: {name: body, twin: found})
        else:
            found = rules.Rules("opaque", fake=self.on_meta, derivative=derivative)
            rules.register_rules(lambda: {name: found})
        rules.definitions[name] = self
        vars(aten.ops).setdefault(namespace, _Namespace(namespace))
        if isinstance(members := vars(aten.ops)[namespace], _Namespace):
            setattr(members, short, self.operator)

    def renew(self) -> None:
        """Note that what compiled programs know of it has changed."""
        regions = tuple((kind, _told(fn)) for kind, fn in self.regions.items())
        self.version = (
            f"{self.schema} {_told(self.fake)} {_told(self.body)} {self.has_formula} {regions}"
        )

    # Kernels -----------------------------------------------------------------------------------

    def register_kernel(self, device: str | None, fn: Callable[..., Any]) -> None:
        """Let `fn` compute on a device, None: on all that have no function of their own."""
        if device is not None and not any(a.type in ("Tensor", "Device") for a in self.arguments):
            raise ValueError(
                "Functions without tensor inputs are required to have a `device: torch.device` argument"
            )
        self.device_kernels[device] = fn
        if self.first_kernel is None:
            self.first_kernel = fn
        for one in _DEVICES if device is None else (device,):
            argand_c10.register_kernel(self.name, one, self._kernel(one))
            if self.functional is not None:
                argand_c10.register_kernel(self.functional.name, one, self._on_copies(one))

    def register_fake(self, fn: Callable[..., Any]) -> None:
        """Let `fn` make the results for tensors without data."""
        self.fake = fn
        self.renew()

    def register_body(self, fn: Callable[..., Any]) -> None:
        """Let it be what `fn` calls, gradients included."""
        self.body = fn
        self.renew()
        for key in ("composite", "autograd", "meta"):
            argand_c10.register_kernel(self.name, key, fn)
        body = rules.Rules("composite", composite=self._run_body)
        rules.register_rules(lambda: {self.name: body})

    def register_gradients(
        self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None
    ) -> None:
        """Let `backward` be the formula of its gradients."""
        self.backward, self.setup_context, self.has_formula = backward, setup_context, True
        self.renew()

    def register_recorded(self, fn: Callable[..., Any]) -> None:
        """Call `fn` in place of the operator where gradients may be recorded."""
        self.recorded, self.has_formula = fn, True  # type: ignore[method-assign]
        self.renew()
        argand_c10.register_kernel(self.name, "autograd", fn)

    def register_region(self, kind: str, fn: Callable[..., Any]) -> None:
        """Call `fn` in place of the operator in autocast regions of a device type."""
        self.regions[kind] = fn
        self.renew()
        argand_c10.register_kernel(self.name, "autocast", self._in_region)

    def register_autocast(self, kind: str, dtype: argand_c10.dtype) -> None:
        """Cast floating-point arguments to `dtype` in autocast regions of a device type, whose kernels run outside of it."""

        def cast(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return [cast(y) for y in x]
            eligible = isinstance(x, Tensor) and x.is_floating_point() and x.device.type == kind
            return x.to(dtype) if eligible and x.dtype != argand_c10.float64 else x

        def lowered(*args: Any, **kwargs: Any) -> Any:
            with autocast(kind, enabled=False):
                return self.operator(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})

        self.register_region(kind, lowered)

    def _in_region(self, *args: Any, **kwargs: Any) -> Any:
        kinds = {t.device.type for t in tensors_in((args, tuple(kwargs.values())))}
        for kind, fn in self.regions.items():
            if kind in kinds and is_autocast_enabled(kind):
                return fn(*args, **kwargs)
        return NotImplemented

    def _run_body(self, ops: Any, *args: Any, **kwargs: Any) -> Any:
        """The body of now: compilers keep the function of an operator's rules."""
        assert self.body is not None
        return self.body(*args, **kwargs)

    def _run(self, device: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        key = device if device in self.device_kernels else None
        fn = self.first_kernel if key in self.disabled else self.device_kernels.get(key)
        if fn is None:
            raise NotImplementedError(
                f"{self.name}: got tensors on {device}, for which there is no kernel; give one with register_kernel"
            )
        return fn(*args, **kwargs)

    def _kernel(self, device: str) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            result = self._typed(self._run(device, args, kwargs))
            self._check_aliases((args, tuple(kwargs.values())), result)
            return result

        return _plain(kernel)

    def _typed(self, result: Any) -> Any:
        """A kernel's result as what the schema says."""
        if not self.several:
            return _as_type(self.name, self.result_types[0], result) if self.results else None
        if not isinstance(result, (tuple, list)) or len(result) != self.results:
            raise TypeError(
                f"{self.name}: got {type(result).__name__} from its kernel, expected a tuple of {self.results} results"
            )
        return tuple(map(functools.partial(_as_type, self.name), self.result_types, result))

    def _check_aliases(self, given: Any, result: Any) -> None:
        seen = {t.untyped_storage().data_ptr() for t in tensors_in(given) if t.numel()}
        for t in tensors_in(result):
            if t.numel() and t.untyped_storage().data_ptr() in seen:
                module = getattr(self.first_kernel, "__module__", None)
                raise RuntimeError(
                    f"{self.name} (with implementation in {module}): The output of this custom operator (1) must not also be an input to "
                    "this custom operator and (2) may not alias any inputs to this custom operator or other returns; return a clone of it."
                )
            if t.numel():
                seen.add(t.untyped_storage().data_ptr())

    def on_meta(self, *args: Any, **kwargs: Any) -> Any:
        """The results for tensors without data."""
        if self.fake is not None:
            return self.fake(*args, **kwargs)
        if self.results == 0:
            return None
        raise NotImplementedError(
            f"There was no fake impl registered for {self.name}. This is necessary for compile and export to work, and for tensors on "
            "meta; please use register_fake to add one."
        )

    # Without writes ------------------------------------------------------------------------------

    def _define_functional(self, plain: str) -> str:
        """The operator that returns, after the results, what this one writes."""
        arguments, _, results = re.sub(r"\(\w+!\)", "", plain).rpartition("->")
        written = ["Tensor[]" if a.is_list else "Tensor" for a in self.arguments if a.written]
        several = [r for r in results.strip().strip("()").split(", ") if r] + written
        result = several[0] if len(several) == 1 else f"({', '.join(several)})"
        twin = f"{_FUNCTIONAL}::{self.name}"
        self.functional = argand_c10.define(f"{twin}{arguments.strip()} -> {result}", custom=True)
        return twin

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """All arguments by name."""
        bound = dict((*self.positional, *self.keyword_only))
        bound.update(zip(list(bound), args, strict=False))
        bound.update(kwargs)
        return bound

    def _split(self, bound: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        values = list(bound.values())
        n = len(self.positional)
        return values[:n], dict(zip(list(bound)[n:], values[n:], strict=True))

    def _with_written(self, result: Any, bound: dict[str, Any]) -> Any:
        several = list(result) if self.several else [result] * self.results
        several += [bound[name] for name in self.mutated]
        return several[0] if len(several) == 1 else tuple(several)

    def _on_copies(self, device: str) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            bound = self.bound(args, kwargs)
            for name in self.mutated:
                bound[name] = clones(bound[name])
            given, keywords = self._split(bound)
            result = self._typed(self._run(device, given, keywords))
            self._check_aliases(tuple(bound.values()), result)
            return self._with_written(result, bound)

        return _plain(kernel)

    def _fake_functional(self, *args: Any, **kwargs: Any) -> Any:
        return self._with_written(self.on_meta(*args, **kwargs), self.bound(args, kwargs))

    def _written(self, ops: Any, *args: Any, **kwargs: Any) -> Any:
        """What a call that writes is in a compiled program."""
        bound, n = self.bound(args, kwargs), self.results
        assert self.functional is not None
        found = self.functional(*args, **kwargs)
        several = list(found) if n + len(self.mutated) > 1 else [found]
        for name, value in zip(self.mutated, several[n:], strict=True):
            targets, contents = (
                [x] if not isinstance(x, (list, tuple)) else x for x in (bound[name], value)
            )
            for target, content in zip(targets, contents, strict=True):
                if target is not None:
                    ops.copy_(target, content)
        return None if n == 0 else several[0] if n == 1 else tuple(several[:n])

    # Gradients -------------------------------------------------------------------------------------

    def recorded(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with tensors that require grad; compilers follow this function."""
        if self.results == 0:
            with no_grad():
                return self.operator(*_detached(args), **_detached(kwargs))
        named = dict(kwargs)
        rest = self.positional[len(args) :]
        inputs = [*args, *[named.get(name, default) for name, default in rest]]
        keywords = {name: named.get(name, default) for name, default in self.keyword_only}
        call = _Call(self, _emptied(inputs), keywords)
        tensors = _Recorded.apply(call, *_flat_tensors(inputs))
        found = _filled(call.results, tensors)
        return tuple(found) if self.several else found[0]


class _Call:
    """A call whose gradients are recorded: arguments and results, without tensors."""

    def __init__(self, definition: Definition, inputs: list[Any], keywords: dict[str, Any]) -> None:
        self.definition = definition
        self.inputs = inputs
        self.keywords = keywords
        self.results: list[Any] = []


class _Recorded(Function):
    """A call of an operator, with its gradients; those of what it writes into are as before."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Tensor) -> Any:
        definition = call.definition
        ctx._call = call
        inputs, keywords = tuple(_filled(call.inputs, tensors)), call.keywords
        if definition.mutated:
            output = definition.operator(*_detached(inputs), **_detached(keywords))
        else:
            output = definition.operator(*inputs, **keywords)
        if definition.setup_context is not None:
            needs = ctx.needs_input_grad
            ctx.needs_input_grad = tuple(_filled(call.inputs, needs[1:], False))
            if definition.keyword_only:
                definition.setup_context(
                    ctx=ctx, inputs=inputs, keyword_only_inputs=keywords, output=output
                )
            else:
                definition.setup_context(ctx=ctx, inputs=inputs, output=output)
            ctx.needs_input_grad = needs
        results = list(output) if definition.several else [output]
        call.results = _emptied(results)
        return tuple(_flat_tensors(results))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call = ctx._call
        definition = call.definition
        if definition.backward is None:
            raise RuntimeError(_no_formula(definition.name))
        needs = ctx.needs_input_grad
        ctx.needs_input_grad = tuple(_filled(call.inputs, needs[1:], False))
        try:
            found = definition.backward(ctx, *_filled(call.results, grads, None))
        finally:
            ctx.needs_input_grad = needs
        return (None, *_in_places(definition.name, call.inputs, found))


def _in_places(name: str, inputs: Sequence[Any], found: Any) -> list[Any]:
    """What a formula returned, as gradients of the tensors among the inputs."""
    if not isinstance(found, tuple):
        found = (found,)
    n = len(inputs)
    if len(found) < n or any(g is not None for g in found[n:]):
        raise RuntimeError(
            f"the autograd formula of {name} returned an incorrect number of gradients (expected {n}, got {len(found)})"
        )
    result: list[Any] = []
    for given, grad in zip(inputs, found, strict=False):
        if given is _Slot:
            result.append(grad)
        elif isinstance(given, list):
            grads = [None] * len(given) if grad is None else grad
            if len(grads) != len(given):
                raise RuntimeError(
                    f"Expected the return from backward to be of the same structure as the inputs. Got: {len(grads)} gradients for a list of {len(given)}"
                )
            result += [g for g, x in zip(grads, given, strict=True) if x is _Slot]
    return result


def _plain(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel, not to be traced where a compiled function calls it after a graph break."""
    found: Callable[..., Any] = disable(kernel)
    return found


def _emptied(values: Sequence[Any]) -> list[Any]:
    """The values with `_Slot` in place of tensors."""
    return [
        _emptied(v) if isinstance(v, (list, tuple)) else _Slot if isinstance(v, Tensor) else v
        for v in values
    ]


def _flat_tensors(values: Sequence[Any]) -> list[Tensor]:
    found = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(v)
        elif isinstance(v, (list, tuple)):
            found += _flat_tensors(v)
    return found


def _filled(values: Sequence[Any], entries: Sequence[Any], other: Any = _Slot) -> list[Any]:
    """The values with these in the places of tensors, and in those of everything else `other`, if it is given."""
    return _fill(values, list(entries), other)


def _fill(values: Sequence[Any], left: list[Any], other: Any) -> list[Any]:
    found: list[Any] = []
    for v in values:
        if v is _Slot:
            found.append(left.pop(0))
        elif isinstance(v, list) and (other is _Slot or any(x is _Slot for x in v)):
            found.append(_fill(v, left, other))
        else:
            found.append(v if other is _Slot else other)
    return found


class _Underivable:
    """The gradient rule of operators whose gradients are not a graph's to derive: they run as they are."""

    def __init__(self, name: str, arguments: int, results: int) -> None:
        self.name = name
        self.differentiable = (range(arguments), range(results))

    def __call__(self, *args: Any) -> Any:
        raise UnsupportedError(_no_formula(self.name))


class _Namespace:
    """The operators of a namespace by name, as in `torch.ops.mylib`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")


def _no_formula(name: str) -> str:
    return f"Trying to backward through {name} but no autograd formula was registered. Please use register_autograd to add one."


_NUMBERS: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": (int, float),
    "Scalar": (int, float, complex),
}


def _as_type(name: str, kind: str, value: Any) -> Any:
    """A result as of a type of schemas; tensors of one element are numbers too."""
    if kind == "Tensor" and isinstance(value, Tensor):
        return value
    if kind == "Tensor[]" and isinstance(value, (list, tuple)):
        return [_as_type(name, "Tensor", x) for x in value]
    if kind in _NUMBERS:
        number = value.item() if isinstance(value, Tensor) else value
        if kind == "int" and isinstance(value, Tensor):
            return int(number)
        if isinstance(number, _NUMBERS[kind]):
            return float(number) if kind == "float" else number
    raise RuntimeError(f"{name}: Unable to cast {value!r}, which its kernel returned, to {kind}")


def tensors_in(tree: Any) -> Iterator[Tensor]:
    """The tensors in nested lists and tuples."""
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from tensors_in(part)
    elif isinstance(tree, Tensor):
        yield tree


def _detached(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _detached(value) for name, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_detached(part) for part in tree]
    return tree.detach() if isinstance(tree, Tensor) else tree


def clones(value: Any) -> Any:
    """The value with copies of its tensors."""
    if isinstance(value, (list, tuple)):
        return [clones(v) for v in value]
    return value.clone() if isinstance(value, Tensor) else value


def _is_installed(module: str | None) -> bool:
    """Whether what a module holds changes with an installed version alone, which stored programs name."""
    return is_trusted(module) or (module or "").partition(".")[0] == "numpy"


def _told(value: Any, outer: tuple[Any, ...] = ()) -> str:
    """What tells a function, or a value that it reads, from others; what has no such text is told from everything."""
    if value is None or isinstance(
        value, (bool, int, float, complex, str, bytes, argand_c10.dtype, argand_c10.device)
    ):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple):
        return f"({', '.join([_told(v, outer) for v in value])})"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)) and (
        _is_installed(value.__module__) or value in outer
    ):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, types.FunctionType):
        held = (value.__defaults__, tuple((value.__kwdefaults__ or {}).items()), *_read(value))
        return f"{hash_code(value.__code__)} {_told(held, (*outer, value))}"
    return f"{type(value).__name__} {next(_tokens)} of {_process}"


def _read(function: types.FunctionType) -> Iterator[Any]:
    """The values of cells and globals that a function names, and of attributes of modules among them."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not set yet
            yield cell
    names = sorted(_names(function.__code__))
    for name in names:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        yield value
        if isinstance(value, types.ModuleType) and not _is_installed(value.__name__):
            yield from (vars(value)[n] for n in names if n in vars(value))


def _names(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def definition_of(op: Any) -> Definition:
    """By "namespace::name", or the operator."""
    name = op if isinstance(op, str) else getattr(op, "name", None)
    found = rules.definitions.get(name) if isinstance(name, str) else None
    if not isinstance(found, Definition):
        raise ValueError(
            f"got {op!r}, expected the name of an operator which custom_op or define has defined"
        )
    return found
