"""What a device's code generator is: one subclass of `Backend` a device type, found by the device of what is computed."""

from __future__ import annotations

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from argand_inductor.fuse import Group, Limits
    from argand_inductor.loop_ir import Loop
    from argand_inductor.lowering.tensors import Buffer
    from argand_inductor.options import Options
    from argand_inductor.program import KernelStep, LaunchStep


@dataclass(frozen=True, slots=True)
class Parts:
    """A reduction cut into `count` parts of `length` along dimension `dim`; `whole`: they cover it exactly."""

    dim: int
    count: int
    whole: bool = True


class Backend(ABC):
    """Generates the kernels of one program on one kind of device.

    Attributes:
        rows_fuse: softmax and norms are loops, which fuse with their neighbours, rather than calls of the operators.
        longest_row: elements of a row that kernels hold at once; of longer ones softmax and the losses are called.
    """

    rows_fuse: ClassVar[bool] = False
    longest_row: ClassVar[int] = 0

    def __init__(
        self,
        buffers: Mapping[str, Buffer],
        live: set[str],
        hints: Mapping[str, int],
        options: Options,
    ) -> None:
        self.buffers, self.live, self.hints, self.options = buffers, live, hints, options

    @abstractmethod
    def step(self, group: Group) -> KernelStep | LaunchStep:
        """The step that runs a group and stores those of its buffers that are in `live`."""

    @classmethod
    @abstractmethod
    def parts_of(cls, loop: Loop, hints: Mapping[str, int]) -> Parts | None:
        """How a reduction is cut in two stages, or None to leave it whole."""

    @classmethod
    def limits(cls, options: Options) -> Limits:
        """How large kernels may grow."""
        return options.limits()


# Where the generators are, by device type; other packages add theirs by `register_backend_class`.
_CLASSES: dict[str, str] = {
    "cpu": "argand_inductor.codegen.c:Generator",
    "cuda": "argand_inductor.codegen.triton:Generator",
}


def register_backend_class(device_type: str, where: str) -> None:
    """Let the class at "module:name" generate the code for a type of device."""
    _CLASSES[device_type] = where


def backend_class(device: str) -> type[Backend] | None:
    """The generator for a device such as "cuda:0", None where there is none: operators are called there."""
    where = _CLASSES.get(device.partition(":")[0])
    return None if where is None else _load(where)


@functools.cache
def _load(where: str) -> type[Backend]:
    module, _, name = where.partition(":")
    found: type[Backend] = getattr(importlib.import_module(module), name)
    return found
