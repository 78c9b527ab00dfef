"""Element-wise operators: one kernel for each combination of operator, dtypes and number of dimensions, printed at its first call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy

import argand_c10
from argand_c10 import Tensor, run_on_cpu
from argand_c10.lowerings import PointwiseLowering
from argand_c10.rules import rules_of
from argand_fx.schema import overload
from argand_opencl.arguments import Arguments, dtype_name, forms, lowerings
from argand_opencl.device import DEVICE_KEY, DEVICE_NAME, Address, launch
from argand_opencl.layout import broadcast_shape, expanded_strides, merge, offsets_text, parameters
from argand_opencl.printer import (
    PRELUDE,
    TYPES,
    Printer,
    Text,
    Unprintable,
    computed,
    convert,
    load,
    store,
)

_NUMPY = {"float": numpy.float32, "double": numpy.float64, "long": numpy.int64}


def _number_type(dtype: str) -> str:
    """How a number reaches a kernel of a computation in `dtype`."""
    return "double" if computed(dtype).startswith("float") else "long"


@lru_cache(maxsize=4096)
def _source(
    function: Callable[..., Text],
    operands: tuple[tuple[str, str], ...],
    computation: str,
    result: str,
    ndim: int,
) -> str:
    """The program of an element function. `operands`: (dtype in memory, or "" for a number; dtype to convert to)."""
    pointers, numbers, values = [], [], []
    for k, (dtype, wanted) in enumerate(operands):
        if dtype:
            memory = TYPES[dtype][0]
            pointers.append((f"x{k}", f"__global const {memory}* p{k}"))
            values.append(convert(load(dtype, f"p{k} + x{k}"), wanted))
        else:
            kind = _number_type(computation)
            numbers.append(f"{kind} s{k}")
            held = Text(f"s{k}", "float64" if kind == "double" else "int64")
            values.append(convert(held, wanted))
    names = ["y", *(name for name, _ in pointers)]
    value = function(Printer(computation), *values)
    declared = [
        f"__global {TYPES[result][0]}* out",
        *(text for _, text in pointers),
        *numbers,
        "long count",
        *parameters(names, ndim),
    ]
    return f"""{PRELUDE}
__kernel void elementwise({", ".join(declared)}) {{
  if (get_global_id(0) >= count) return;
  {offsets_text(names, ndim, "get_global_id(0)")}
  {store(result, "out + y", value)}
}}
"""


def run(
    function: Callable[..., Text],
    operands: list[tuple[Any, str]],
    computation: str,
    out: Tensor,
) -> Tensor:
    """Computes `out` from operands (tensors of the device, CPU tensors of one element, or numbers; each with the dtype it is
    converted to)."""
    given = []
    for x, wanted in operands:
        on_host = isinstance(x, Tensor) and x.device.type != DEVICE_NAME
        given.append((x.item() if on_host else x, wanted))
    tensors = [x for x, _ in given if isinstance(x, Tensor)]
    if any(x.untyped_storage().data_ptr() == out.untyped_storage().data_ptr() for x in tensors):
        tensors = [_apart(x, out) for x in tensors]
    strides = [expanded_strides(x, out.shape) for x in (out, *tensors)]
    sizes, merged = merge(out.shape, strides)
    key = tuple(
        (dtype_name(x.dtype) if isinstance(x, Tensor) else "", wanted) for x, wanted in given
    )
    source = _source(function, key, computation, dtype_name(out.dtype), len(sizes))
    number = _NUMPY[_number_type(computation)]
    arguments = (
        *(Address(x.data_ptr()) for x in (out, *tensors)),
        *(number(x) for x, _ in given if not isinstance(x, Tensor)),
        numpy.int64(out.numel()),
        *(numpy.int64(n) for values in (sizes, *merged) for n in values),
    )
    launch(source, "elementwise", out.numel(), arguments)
    return out


def _apart(x: Tensor, out: Tensor) -> Tensor:
    """x, or a copy of it where `out` overlaps it otherwise than element on element."""
    same = x.data_ptr() == out.data_ptr() and x.stride() == out.stride() and x.shape == out.shape
    return x if same else x.clone()


def _prints(rule: PointwiseLowering, dtype: str) -> bool:
    """Whether all that the operator needs for a dtype exists in OpenCL C."""
    values = [Text("x", "bool" if n in rule.conditions else computed(dtype)) for n in rule.operands]
    values += [Text("s", computed(dtype)) for _ in rule.scalars]
    try:
        for function in rule.functions.values():
            function(Printer(dtype), *values)
    except Unprintable:
        return False
    return True


def _on_cpu(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor | None) -> Tensor:
    result: Tensor = run_on_cpu(overload(name), *args, **kwargs)
    return result if out is None else out.resize_(result.shape).copy_(result)


class Pointwise:
    """The functional, in-place and `out=` forms of one registered operator."""

    def __init__(self, name: str, rule: PointwiseLowering) -> None:
        self.name, self.rule = name, rule
        self.arguments = Arguments(name)
        rules = rules_of(name)
        assert rules is not None and rules.dtype is not None
        self.result_dtype = rules.dtype
        self.printable = {d for d in rule.dtypes if d in TYPES and _prints(rule, d)}

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor | None) -> Tensor:
        bound = self.arguments.read(args, kwargs)
        rule = self.rule
        values = [bound[name] for name in rule.operands if bound[name] is not None]
        tensors = [x for x in values if isinstance(x, Tensor)]
        shape = broadcast_shape([x.shape for x in tensors])
        given = {k: v for k, v in bound.items() if k in self.arguments.names}
        dtype = self.result_dtype(**given)
        judged = [
            bound[n] for n in rule.operands if n not in rule.conditions and bound[n] is not None
        ]
        computation = dtype_name(dtype if rule.result is None else rule.computation(*judged))
        if computation not in self.printable:
            return _on_cpu(self.name, args, kwargs, out)
        if out is None:
            out = argand_c10._C._empty_strided(list(shape), None, dtype, DEVICE_NAME)
        elif tuple(out.shape) != shape:
            if out is tensors[0] and out is bound[rule.operands[0]]:
                raise RuntimeError(
                    f"{self.name}_: the result has shape {list(shape)}, expected that of self, {list(out.shape)}; "
                    "use the form that is not in-place"
                )
            out.resize_(shape)
        variant = bound[rule.variant] if rule.variant is not None else None
        operands = [
            (bound[n], "bool" if n in rule.conditions else computation) for n in rule.operands
        ]
        operands += [(bound[n], computed(computation)) for n in rule.scalars]
        present = [(x, wanted) for x, wanted in operands if x is not None]
        return run(rule.functions[variant], present, computation, out)

    def functional(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.call(args, kwargs, None)

    def inplace(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.call(args, kwargs, args[0])

    def into(self, *args: Any, **kwargs: Any) -> Tensor:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        return self.call(args, kwargs, out)


def register() -> list[str]:
    """Gives every printable element-wise operator its kernels; their names."""
    names = []
    for name, rule in lowerings(PointwiseLowering):
        operator = Pointwise(name, rule)
        if not operator.printable:
            continue
        argand_c10.register_kernel(name, DEVICE_KEY, operator.functional)
        names.append(name)
        for form, is_inplace in forms(name):
            kernel = operator.inplace if is_inplace else operator.into
            argand_c10.register_kernel(form, DEVICE_KEY, kernel)
            names.append(form)
    return names
