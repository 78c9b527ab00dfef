"""Operators of users: functions that run as they are, eagerly and in compiled programs, with shapes and gradients that are given apart."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, NoReturn

import argand_c10
from argand.operator_check import opcheck
from argand.operator_definition import Definition, definition_of
from argand.schema_inference import infer_schema
from argand_autograd.batching.users import register_user_rule
from argand_c10 import rules
from argand_c10.errors import DataDependentError
from argand_fx.schema import Argument, parse_schema

__all__ = [
    "CustomOpDef",
    "Library",
    "Tag",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_log = logging.getLogger(__name__)
# Dispatch keys of kernels that compute, as devices; None: all that have no kernel of their own.
_DEVICE_KEYS = {"cpu": "cpu", "cuda": "cuda", "default": None, "compositeexplicitautograd": None}
# Keys of kernels that run before those of devices. `Autocast` is that of CUDA.
_FUNCTIONALITY = re.compile("(Autograd|Autocast)(CPU|CUDA|)")

# What definitions may say of operators. Programs' own are never merged, repeated or dropped whatever they say.
Tag = Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise "
    "nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
)

_RETURNING = frozenset({Tag.inplace, Tag.out})  # what is written is what is returned


class CustomOpDef:
    """An operator that `custom_op` defined; calling it calls the operator."""

    def __init__(
        self, name: str, function: Callable[..., Any], schema: str, tags: Sequence[Tag]
    ) -> None:
        self._definition = Definition(name, schema, tags)
        self._namespace, _, self._name = name.partition("::")
        self._qualname = name
        self._schema = self._definition.schema
        self._init_fn = function
        self._opoverload = self._definition.operator
        self._returns_written = bool(_RETURNING.intersection(tags))
        self.__name__ = self._name
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._opoverload(*args, **kwargs)
        if not self._returns_written:
            return result
        written = self._written(args, kwargs)
        return written[0] if len(written) == 1 else written

    def _written(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        given = self._definition.bound(args, kwargs)
        return tuple(given[name] for name in self._definition.mutated)

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Give the function that computes tensors on these devices (None: on all that have none of their own); a decorator without `fn`."""
        if fn is None:
            return lambda f: self.register_kernel(device_types, f)
        given, fn = fn, self._returning(fn) if self._returns_written else fn
        if device_types is None or isinstance(device_types, str):
            self._definition.register_kernel(device_types, fn)
        else:
            for device in device_types:
                self._definition.register_kernel(device, fn)
        return given

    def _returning(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn`, which must return what it writes; the operator itself has no results."""

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> None:
            result = fn(*args, **kwargs)
            several = result if isinstance(result, tuple) else (result,)
            written = self._written(args, kwargs)
            if [*map(id, several)] != [*map(id, written)]:
                raise RuntimeError(
                    f"{self._qualname}: An operator tagged with torch.Tag.inplace or torch.Tag.out must return what it writes, "
                    f"the arguments {', '.join(self._definition.mutated)} themselves; it returned something else"
                )

        return run

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """In the block a device's tensors are computed by its kernel, or by the function that the operator was made of."""
        disabled = self._definition.disabled
        before = device_type in disabled
        if device_type not in self._definition.device_kernels:
            _log.warning("%s: no kernel was registered for %s", self._qualname, device_type)
        if before != enabled:
            _log.warning(
                "%s: the kernel for %s is %s already",
                self._qualname,
                device_type,
                "enabled" if enabled else "disabled",
            )
        disabled.discard(device_type) if enabled else disabled.add(device_type)
        try:
            yield
        finally:
            disabled.add(device_type) if before else disabled.discard(device_type)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Give the function that makes results of the right sizes, strides and dtypes from tensors without data; compilers call it. Returns `fn`."""
        self._definition.register_fake(fn)
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the gradients.

        Args:
          backward: `backward(ctx, *grads)`, a gradient per positional argument, None where there is none; where a list of
            tensors is taken, a list of gradients. A result that is a list has one list of gradients.
          setup_context: `setup_context(ctx, inputs, output)` keeps in `ctx` what backward needs; with keyword-only arguments
            `setup_context(ctx, inputs, keyword_only_inputs, output)`. It is called by keyword.

        Raises:
          RuntimeError: for an operator that writes into its arguments.
        """
        register_autograd(self, backward, setup_context=setup_context)

    def register_autocast(self, device_type: str, cast_inputs: argand_c10.dtype) -> None:
        """Cast floating-point tensors among the arguments, but those of float64, where autocast is on for their device.

        The operator's kernel runs with autocast off.

        Args:
          device_type: "cpu" or "cuda".
          cast_inputs: to this dtype, whatever that of the region.
        """
        register_autocast(self, device_type, cast_inputs)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Have `vmap` call `func(info, in_dims, *args)` for all entries, which returns results and their dimensions; a decorator without `func`.

        Without a rule `vmap` calls the operator entry by entry. `info` has `batch_size` and `randomness`.
        """
        return register_vmap(self, func)


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

    A name that is defined anew means the new operator from then on.

    Args:
      name: "namespace::name".
      fn: computes new tensors, or writes into its arguments; its annotations give the schema. Without it this is a decorator.
      mutates_args: names of the arguments that it writes into, or "unknown".
      device_types: devices for whose tensors the function is; None: all.
      schema: in place of the annotations, as "(Tensor x, int n) -> Tensor"; its names are those of the arguments.
      tags: of `torch.Tag`, the operator's `tags` besides `pt2_compliant_tag`; compilers neither merge nor repeat nor drop calls in any case.
        With `inplace` or `out` calls return the arguments that are written into, as `fn` does; tensors may then be keyword-only with `out`.

    Returns:
      A `CustomOpDef`, which is called as the function is; also `torch.ops.namespace.name`.
    """
    if fn is None:
        return lambda f: custom_op(
            name, f, mutates_args=mutates_args, device_types=device_types, schema=schema, tags=tags
        )
    given = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
    tags = (Tag.pt2_compliant_tag, *_several(tags))
    arguments = parse_schema(name + given.replace("SymInt", "int")).arguments
    if _RETURNING.intersection(tags):
        _check_returned(name, given, arguments, tags)
        given = f"{given.rpartition('->')[0]}-> ()"  # the operator itself has no results
    if Tag.out not in tags and any(a.kwonly and a.type == "Tensor" for a in arguments):
        raise NotImplementedError(
            f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {name}{given}"
        )
    written = {a.name for a in arguments if a.written}
    if schema is not None and written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema suggests that the op "
            f"mutates {written} which is different from what was provided to us in `mutates_args`. Please make these consistent."
        )
    found = CustomOpDef(name, fn, given, tags)
    found.register_kernel(device_types, fn)
    return found


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """Make an operator of a function that calls Triton kernels, by `wrap_triton`, or operators: `custom_op`.

    What its results look like it finds out by the function itself; where that calls kernels, give it another by `register_fake`.
    """
    if fn is None:
        return lambda f: triton_op(name, f, mutates_args=mutates_args, schema=schema)
    found = custom_op(name, fn, mutates_args=mutates_args, schema=schema)
    found.register_fake(fn)
    return found


def wrap_triton(triton_kernel: Any, /) -> Any:
    """The kernel itself: operators of programs are called as they are.

    Raises:
        RuntimeError: it is not what `triton.jit` or `triton.autotune` makes.
    """
    if not type(triton_kernel).__module__.startswith("triton."):
        raise RuntimeError(
            "wrap_triton only works on functions annotated with triton.jit or triton.autotune"
        )
    return triton_kernel


def _check_returned(
    name: str, schema: str, arguments: Sequence[Argument], tags: Sequence[Tag]
) -> None:
    """Raises for a schema that does not return what an operator with such a tag writes."""
    assert not _RETURNING.issubset(tags), (
        "torch.Tag.inplace and torch.Tag.out are mutually exclusive"
    )
    results = schema.rpartition("->")[2]
    written, returned = [a for a in arguments if a.written], results.count("Tensor")
    if Tag.inplace in tags:
        problem = (
            "mutates_args to contain exactly the first positional argument"
            if written != list(arguments[:1]) or written[0].kwonly
            else "the return annotation to be torch.Tensor"
            if results.strip() != "Tensor"
            else None
        )
    else:
        problem = (
            "at least one mutable keyword-only Tensor argument"
            if not written
            else "mutable arguments to be keyword-only"
            if not all(a.kwonly for a in written)
            else f"the return annotation to match the mutable keyword-only Tensor arguments {tuple(a.name for a in written)}"
            if returned != len(written)
            else None
        )
    if problem is not None:
        tag = "inplace" if Tag.inplace in tags else "out"
        raise ValueError(f"custom_op: torch.Tag.{tag} requires {problem}. Got {name}{schema}")


def _several(tags: Tag | Sequence[Tag] | None) -> tuple[Tag, ...]:
    return () if tags is None else (tags,) if isinstance(tags, Tag) else tuple(tags)


def _named(op: Any) -> Definition:
    return op._definition if isinstance(op, CustomOpDef) else definition_of(op)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    allow_override: bool = True,
) -> Any:
    """`CustomOpDef.register_fake` by name or operator; a decorator without `func`.

    Args:
      lib: accepted; a registration lives as long as the operator.
      allow_override: False: one that was registered before is an error.
    """
    definition = _named(op)
    if definition.fake is not None and not allow_override:
        raise RuntimeError(
            f"register_fake(...): the operator {definition.name} already has a fake impl registered."
        )

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        definition.register_fake(fn)
        return fn

    return register if func is None else register(func)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """`CustomOpDef.register_autograd` by name or operator; `lib` is accepted."""
    definition = _named(op)
    if definition.mutated:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {definition.name} with schema {definition.schema}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    definition.register_gradients(backward, setup_context)


def register_autocast(
    op: Any,
    device_type: str,
    cast_inputs: argand_c10.dtype,
    /,
    *,
    lib: Library | None = None,
) -> None:
    """`CustomOpDef.register_autocast` by name or operator; `lib` is accepted."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    _named(op).register_autocast(device_type, cast_inputs)


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """`CustomOpDef.register_kernel` by name or operator; a decorator without `func`. `lib` is accepted."""
    definition = _named(op)
    return impl(definition.name, "default" if device_types is None else device_types, func, lib=lib)


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """`CustomOpDef.register_vmap` by name or operator; a decorator without `func`. `lib` is accepted."""
    definition = _named(op)

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        register_user_rule(definition.operator.name, rule)
        return rule

    return register if func is None else (register(func), None)[1]


def define(qualname: Any, schema: str, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator whose kernels are given by `impl`.

    Args:
      qualname: "namespace::name".
      schema: "(Tensor x, int n) -> Tensor".
      lib: accepted.
      tags: a `torch.Tag` or several, the operator's `tags`.

    Raises:
      RuntimeError: if it is defined already.
    """
    if isinstance(qualname, Library):  # the older form: (library, schema), a decorator
        name = qualname.define(schema, tags=tags)

        def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
            qualname.impl(name, fn)
            return fn

        return wrap
    if not isinstance(qualname, str):
        raise ValueError(
            f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}"
        )
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"'
        )
    if qualname in rules.definitions:
        raise RuntimeError(
            f"Tried to register an operator ({qualname}{schema}) with the same name and overload name multiple times."
        )
    Definition(qualname, schema, _several(tags))
    return None


def impl(
    qualname: Any,
    types: str | Sequence[str],
    func: Callable[..., Any] | str | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Give an operator's kernel; a decorator without `func`.

    Args:
      qualname: "namespace::name".
      types: devices, "default" (all that have no kernel of their own), or dispatch keys: "CPU", "CUDA", "Meta",
        "CompositeExplicitAutograd", "CompositeImplicitAutograd", and "Autograd" and "AutocastCPU" ("AutogradCUDA"...) for what is
        called in place of the operator where gradients may be recorded, or in an autocast region.
      lib: accepted.
    """
    if isinstance(qualname, Library):  # the older form: (library, name, key), a decorator
        library, key = qualname, func

        def wrap(fn: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(types, fn, key if isinstance(key, str) else "")
            return fn

        return wrap
    definition = _named(qualname)

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for key in (types,) if isinstance(types, str) else types:
            if key.lower() == "compositeimplicitautograd":
                definition.register_body(fn)
            elif key.lower() == "meta":
                register_fake(definition.name, fn)
            elif (match := _FUNCTIONALITY.fullmatch(key)) is not None:
                if match[1] == "Autograd":
                    definition.register_recorded(fn)
                else:
                    definition.register_region(match[2].lower() or "cuda", fn)
            else:
                definition.register_kernel(_device_of(key), fn)
        return fn

    return register(func) if callable(func) else register


def _device_of(key: str) -> str | None:
    """The device whose tensors a dispatch key is for; None: all."""
    if key.lower() in _DEVICE_KEYS:
        return _DEVICE_KEYS[key.lower()]
    try:
        return argand_c10.device(key.lower()).type
    except RuntimeError as error:
        raise RuntimeError(
            f"impl: got the dispatch key {key!r}, expected a device, 'default', 'Meta', 'CompositeExplicitAutograd' or "
            "'CompositeImplicitAutograd'"
        ) from error


class Library:
    """A namespace of operators: `define` makes them, `impl` gives their kernels.

    Args:
      ns: the namespace.
      kind: "DEF", "FRAGMENT" or "IMPL".
      dispatch_key: what `impl` gives kernels for by default.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        if ns == "aten" and kind == "DEF":
            raise RuntimeError(
                "Library: got the namespace 'aten' and kind 'DEF', expected 'FRAGMENT', or a namespace of one's own"
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its name and schema, as "sum(Tensor x) -> Tensor"; returns its name."""
        name, _, rest = schema.partition("(")
        define(f"{self.ns}::{name.strip()}", f"({rest}", lib=self, tags=tags)
        return name.strip()

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Give the kernel for a dispatch key, as `torch.library.impl`; without one `fn` is what the operator is made of."""
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        if with_keyset:
            raise NotImplementedError(
                "Library.impl: got with_keyset=True, expected a kernel of the arguments alone"
            )
        name = op_name if isinstance(op_name, str) else op_name.name
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        impl(f"{self.ns}::{name.rpartition('::')[2]}", key, fn, lib=self)


class _FakeContext:
    """What `get_ctx` returns."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> NoReturn:
        """A size that only the elements tell: graphs hold none, so that the operator runs between two of them."""
        raise DataDependentError(
            "new_dynamic_size: got a result whose size depends on elements, which no graph holds; call the operator outside of "
            "fullgraph=True, or pad its result"
        )


def get_ctx() -> _FakeContext:
    """In a fake: what makes sizes that depend on elements."""
    return _FakeContext()
