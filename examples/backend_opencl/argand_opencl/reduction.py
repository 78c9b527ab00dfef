"""Reductions, a work-group an output, and scans, a work-item a row; both printed from the registry."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy

import argand_c10
from argand_c10 import Tensor, run_on_cpu
from argand_c10.lowerings import ReductionLowering, ScanLowering
from argand_fx.schema import overload
from argand_opencl.arguments import Arguments, dtype_name, forms, lowerings
from argand_opencl.device import DEVICE_KEY, DEVICE_NAME, Address, launch
from argand_opencl.layout import merge, offsets_text, parameters
from argand_opencl.printer import (
    PRELUDE,
    TYPES,
    Printer,
    Text,
    computed,
    convert,
    load,
    number,
    store,
)

# Work-items that reduce one output together.
GROUP = 64


def _dims(dim: Any, ndim: int) -> list[int]:
    """The dimensions that `dim` names; None and an empty list name all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(ndim))
    dims = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    for d in dims:
        if not -max(ndim, 1) <= d < max(ndim, 1):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but got {d})"
            )
    return sorted({d % ndim for d in dims}) if ndim else []


@lru_cache(maxsize=1024)
def _reduction_source(
    rule: tuple[Any, ...],
    dtype: str,
    converted: str,
    acc: str,
    result: str,
    kept: int,
    reduced: int,
) -> str:
    """`rule`: (init, map, combine, final). The element is converted to `converted`, then mapped in the accumulator's dtype."""
    init, map_element, combine, final = rule
    held = computed(acc)
    kind = TYPES[held][1]
    v = Printer(held)
    element = convert(load(dtype, "in + x + e"), converted)
    mapper = Printer(converted) if acc == "bool" else v
    mapped = convert(map_element(mapper, element if acc == "bool" else convert(element, acc)), held)
    count = convert(Text("count", "int64"), held)
    arguments = [
        f"__global {TYPES[result][0]}* out",
        f"__global const {TYPES[dtype][0]}* in",
        "long count",
        *parameters(["y", "x"], kept, "m"),
        *parameters(["e"], reduced, "n"),
    ]
    joined = combine(v, Text("total", held), Text("one", held)).text
    paired = combine(v, Text("parts[lane]", held), Text("parts[lane + step]", held)).text
    return f"""{PRELUDE}
__kernel void reduce({", ".join(arguments)}) {{
  __local {kind} parts[{GROUP}];
  const int lane = get_local_id(0);
  {offsets_text(["y", "x"], kept, "get_group_id(0)", "m")}
  {kind} total = {number(init, held).text};
  for (long k = lane; k < count; k += {GROUP}) {{
    {offsets_text(["e"], reduced, "k", "n")}
    const {kind} one = {mapped.text};
    total = {joined};
  }}
  parts[lane] = total;
  for (int step = {GROUP // 2}; step; step /= 2) {{
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) parts[lane] = {paired};
  }}
  if (lane == 0) {{ {store(result, "out + y", final(v, Text("parts[0]", held), count))} }}
}}
"""


class Reduction:
    """The functional and `out=` forms of one registered reduction."""

    def __init__(self, name: str, rule: ReductionLowering) -> None:
        self.name, self.rule = name, rule
        self.arguments = Arguments(name)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Tensor | None) -> Tensor:
        bound = self.arguments.read(args, kwargs)
        x: Tensor = bound["self"]
        converted = dtype_name(bound["dtype"] if bound.get("dtype") is not None else x.dtype)
        if converted not in self.rule.accumulators or converted not in TYPES:
            result = run_on_cpu(overload(self.name), *args, **kwargs)
            return result if out is None else out.resize_(result.shape).copy_(result)
        acc, result_dtype = self.rule.accumulators[converted]
        dims = _dims(bound.get("dim"), x.ndim)
        kept = [d for d in range(x.ndim) if d not in dims]
        if self.rule.nonempty and any(x.shape[d] == 0 for d in dims):
            raise IndexError(
                f"{self.name}: expected the reduced dimensions to have elements, got {list(x.shape)}"
            )
        keepdim = bool(bound.get("keepdim"))
        shape = [1 if d in dims else x.shape[d] for d in range(x.ndim) if keepdim or d not in dims]
        if out is None:
            dtype = getattr(argand_c10, result_dtype)
            out = argand_c10._C._empty_strided(shape, None, dtype, DEVICE_NAME)
        else:
            out.resize_(shape)
        written = out.stride() if not keepdim else [out.stride()[d] for d in kept]
        read = [x.stride()[d] for d in kept]
        sizes, (outer, inner) = merge([x.shape[d] for d in kept], [list(written), read])
        spans, (steps,) = merge([x.shape[d] for d in dims], [[x.stride()[d] for d in dims]])
        rule = (self.rule.init, self.rule.map, self.rule.combine, self.rule.final)
        names = (dtype_name(x.dtype), converted, acc, dtype_name(out.dtype))
        source = _reduction_source(rule, *names, len(sizes), len(spans))
        count = int(numpy.prod([x.shape[d] for d in dims], dtype=numpy.int64))
        values = [count, *sizes, *outer, *inner, *spans, *steps]
        launch(
            source,
            "reduce",
            out.numel() * GROUP,
            (Address(out.data_ptr()), Address(x.data_ptr()), *map(numpy.int64, values)),
            GROUP,
        )
        return out

    def functional(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.call(args, kwargs, None)

    def into(self, *args: Any, **kwargs: Any) -> Tensor:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        return self.call(args, kwargs, out)


@lru_cache(maxsize=1024)
def _scan_source(rule: tuple[Any, ...], dtype: str, acc: str, result: str, kept: int) -> str:
    init, combine = rule
    held = computed(acc)
    kind = TYPES[held][1]
    element = convert(load(dtype, "in + x + k * x_step"), held)
    arguments = [
        f"__global {TYPES[result][0]}* out",
        f"__global const {TYPES[dtype][0]}* in",
        "long rows, long count, long y_step, long x_step",
        *parameters(["y", "x"], kept, "m"),
    ]
    joined = combine(Printer(held), Text("total", held), Text("one", held)).text
    return f"""{PRELUDE}
__kernel void scan({", ".join(arguments)}) {{
  if (get_global_id(0) >= rows) return;
  {offsets_text(["y", "x"], kept, "get_global_id(0)", "m")}
  {kind} total = {number(init, held).text};
  for (long k = 0; k < count; k++) {{
    const {kind} one = {element.text};
    total = {joined};
    {store(result, "out + y + k * y_step", Text("total", held))}
  }}
}}
"""


class Scan:
    """The functional form of one registered scan."""

    def __init__(self, name: str, rule: ScanLowering) -> None:
        self.name, self.rule = name, rule
        self.arguments = Arguments(name)

    def functional(self, *args: Any, **kwargs: Any) -> Tensor:
        bound = self.arguments.read(args, kwargs)
        x: Tensor = bound["self"]
        given = bound.get("dtype")
        x = x.to(given) if given is not None and given != x.dtype else x
        if dtype_name(x.dtype) not in self.rule.accumulators or dtype_name(x.dtype) not in TYPES:
            result: Tensor = run_on_cpu(overload(self.name), *args, **kwargs)
            return result
        acc, result_dtype = self.rule.accumulators[dtype_name(x.dtype)]
        dtype = getattr(argand_c10, result_dtype)
        out = argand_c10._C._empty_strided(list(x.shape), None, dtype, DEVICE_NAME)
        dims = _dims(bound["dim"], x.ndim)
        kept = [d for d in range(x.ndim) if d not in dims]
        sizes, (outer, inner) = merge(
            [x.shape[d] for d in kept],
            [[out.stride()[d] for d in kept], [x.stride()[d] for d in kept]],
        )
        rows = int(numpy.prod(sizes, dtype=numpy.int64)) if x.numel() else 0
        span = [(x.shape[d], out.stride()[d], x.stride()[d]) for d in dims] or [(1, 1, 1)]
        rule = (self.rule.init, self.rule.combine)
        source = _scan_source(rule, dtype_name(x.dtype), acc, result_dtype, len(sizes))
        values = [rows, *span[0], *sizes, *outer, *inner]
        addresses = (Address(out.data_ptr()), Address(x.data_ptr()))
        launch(source, "scan", rows, (*addresses, *map(numpy.int64, values)))
        return out


def register() -> list[str]:
    """Gives every printable reduction and scan its kernels; their names."""
    names = []
    for name, rule in lowerings(ReductionLowering):
        operator = Reduction(name, rule)
        argand_c10.register_kernel(name, DEVICE_KEY, operator.functional)
        names.append(name)
        for form, is_inplace in forms(name):
            if not is_inplace:
                argand_c10.register_kernel(form, DEVICE_KEY, operator.into)
                names.append(form)
    for name, rule in lowerings(ScanLowering):
        argand_c10.register_kernel(name, DEVICE_KEY, Scan(name, rule).functional)
        names.append(name)
    return names
