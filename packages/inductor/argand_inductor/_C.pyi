from collections.abc import Callable
from typing import Any

from argand_c10 import Tensor

class Program:
    path: str
    n_inputs: int
    n_outputs: int
    def __init__(
        self,
        path: str,
        n_inputs: int,
        n_outputs: int,
        constants: tuple[Tensor, ...],
        description: dict[str, Any],
    ) -> None: ...
    @property
    def backend(self) -> str: ...
    def serialize(self) -> dict[str, Any]: ...
    def __call__(self, *inputs: Tensor | int) -> tuple[Any, ...]: ...

class GraphRecorder:
    callable: Callable[..., tuple[Any, ...]]
    recordings: int
    def __init__(
        self, callable: Callable[..., tuple[Any, ...]], device: int, note: Callable[[str], None]
    ) -> None: ...
    def __call__(self, *inputs: Tensor | int) -> tuple[Any, ...]: ...
    @property
    def backend(self) -> str: ...
    def serialize(self) -> dict[str, Any]: ...

def schema_hash(operator: str, /) -> int: ...
def device_arch(device: int, /) -> str: ...
def device_name(device: int, /) -> str: ...
def measure_kernel(
    device: int,
    image: bytes,
    name: str,
    shared: int,
    threads: int,
    grid: int,
    sizes: list[int],
    integers: list[int],
    /,
) -> float: ...
