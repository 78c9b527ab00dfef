"""Autocast while tracing: the state as the traced program has it, and the casts, which become nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import argand_c10
from argand_aten import _C as aten_native
from argand_autograd.amp import dtype_in_region, keeps_casts, without_regions
from argand_dynamo.control_graphs import OwnGraph
from argand_fx.shapes import FakeTensor, GraphBuilder

__all__ = ["Autocast"]

_WIDE = argand_c10.float64
_FULL = argand_c10.float32


class Autocast:
    """Casts the tensors of operators as the kernels of the dispatch key AUTOCAST do (packages/aten/csrc/autocast.cc).

    Attributes:
        entry: the thread's state when tracing began.
        state: where the trace has come to.
    """

    def __init__(self) -> None:
        self.entry = self.state = aten_native.autocast_state()
        # Cast weights by (fake, dtype, version, whether gradients are recorded); they keep the fakes.
        self._weights: dict[Any, FakeTensor] = {}

    def is_on(self, kind: str) -> bool:
        """Whether the trace is in a region of this device type."""
        return dtype_in_region(self.state, aten_native.device_type_number(kind)) is not None

    def clear(self) -> None:
        """Forget the cast weights."""
        self._weights.clear()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """No casts for a while."""
        outer, self.state = self.state, without_regions(self.state)
        try:
            yield
        finally:
            self.state = outer

    def __call__(
        self, builder: GraphBuilder, policies: tuple[str, str], values: list[Any]
    ) -> list[Any] | None:
        """The arguments as the operator gets them; None where its device type is in no region."""
        tensors = [x for v in values for x in (v if type(v) is list else (v,))]
        tensors = [x for x in tensors if type(x) is FakeTensor]
        kind = max((_number(x) for x in tensors), default=None)
        lower = None if kind is None else dtype_in_region(self.state, kind)
        if lower is None:
            return None
        policy = policies[0 if kind == 0 else 1]
        if policy == "none":
            return values
        eligible = [x for x in tensors if _number(x) == kind and x.dtype.is_floating_point]
        target = lower if policy == "lower" else _FULL
        if policy == "promote" and all(x.dtype is not _FULL for x in eligible):
            target = lower

        def cast(x: Any) -> Any:
            if type(x) is list:
                return [cast(y) for y in x]
            if type(x) is not FakeTensor or x.dtype in (target, _WIDE):
                return x
            if not x.dtype.is_floating_point or _number(x) != kind:
                return x
            return self._cast(builder, x, target, target is lower)

        return [cast(v) for v in values]

    def _cast(
        self, builder: GraphBuilder, x: FakeTensor, dtype: argand_c10.dtype, keep: bool
    ) -> FakeTensor:
        weight = x.dtype is _FULL and x.requires_grad and x._leaf and x.base is None
        key = (x, dtype, x.storage.version, builder.grad_enabled)
        if keep and weight and keeps_casts(self.state):
            known = self._weights.get(key)
            if known is None:
                # Once, whatever loop or branch asks for it first.
                outermost = builder.outermost if isinstance(builder, OwnGraph) else builder
                known = self._weights[key] = _to(outermost, x, dtype)
            return known
        return _to(builder, x, dtype)


def _to(builder: GraphBuilder, x: FakeTensor, dtype: argand_c10.dtype) -> FakeTensor:
    made: FakeTensor = builder.call(argand_c10.find_operator("_to_copy"), (x,), {"dtype": dtype})
    return made


def _number(x: FakeTensor) -> int:
    number: int = aten_native.device_type_number(x.device.type)
    return number
