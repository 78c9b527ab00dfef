"""Where tensors of a graph live: buffers, and strided views of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from argand_inductor import sizes as sz
from argand_inductor.loop_ir import Access, contiguous_strides
from argand_inductor.sizes import Size


@functools.cache
def dtype_name(dtype: Any) -> str:
    """ "float32" of a dtype object."""
    return str(dtype).rpartition(".")[2]


@functools.cache
def device_name(device: Any) -> str:
    """ "cpu" of a device object."""
    return str(device)


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A strided view of a buffer; `offset` in elements from the buffer's first one."""

    buffer: str
    dtype: str
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size = 0

    def broadcast(self, sizes: tuple[Size, ...]) -> Access:
        """Reads as a tensor of the given (broadcast) sizes."""
        missing = len(sizes) - len(self.sizes)
        strides: list[Size] = [0] * missing
        for own, stride, wanted in zip(self.sizes, self.strides, sizes[missing:], strict=True):
            strides.append(0 if own == 1 and wanted != 1 else stride)
        return Access(self.buffer, tuple(strides), self.offset)

    def access(self) -> Access:
        return Access(self.buffer, self.strides, self.offset)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of its own: an input, a constant or an intermediate, dense unless it is an input. `columns`: where not 0,
    rows have that many elements and what lies behind them up to the next row, behind the last one too, is its memory and holds zeros."""

    name: str
    dtype: str
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    device: str = "cpu"
    columns: int = 0

    def whole(self) -> TensorRef:
        return TensorRef(self.name, self.dtype, self.sizes, self.strides)

    def is_whole(self, ref: TensorRef) -> bool:
        """Whether a reference has exactly this tensor's geometry."""
        return ref == self.whole()

    def row(self) -> int | None:
        """Elements from row to row of a row-major tensor, where all of them are its memory."""
        n = self.sizes[-1] if self.sizes else None
        if isinstance(n, int) and self.strides == contiguous_strides(self.sizes):
            return n
        return padded_row(self.sizes, self.strides) if self.columns else None

    def numel(self) -> Size:
        return sz.product(self.sizes)


def geometry(fake: Any) -> tuple[tuple[Size, ...], tuple[Size, ...], Size]:
    """(sizes, strides, offset in its storage) of a fake tensor."""
    return (
        tuple(sz.of(s) for s in fake.shape),
        tuple(sz.of(s) for s in fake.stride()),
        sz.of(fake.storage_offset()),
    )


def is_tensor(value: Any) -> bool:
    """Whether a node's value is a (fake) tensor."""
    return hasattr(value, "storage_offset") and hasattr(value, "dtype")


def is_dense(sizes: tuple[Size, ...], strides: tuple[Size, ...]) -> bool:
    """Whether elements fill their memory without gaps or overlaps, for every value of the symbols."""
    dims = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    expected: Size = 1
    while dims:
        found = next((d for d in dims if d[1] == expected), None)
        if found is None:
            return any(size == 0 for size, _ in dims)
        dims.remove(found)
        expected = expected * found[0]
    return True


def padded_row(sizes: tuple[Size, ...], strides: tuple[Size, ...]) -> int | None:
    """Elements from row to row of a row-major tensor whose rows have gaps behind them; None for other layouts."""
    if len(sizes) < 2 or not all(isinstance(s, int) for s in (*sizes, *strides)):
        return None
    row = int(str(strides[-2]))
    if strides[-1] != 1 or row <= int(str(sizes[-1])):
        return None
    return row if strides == contiguous_strides((*sizes[:-1], row)) else None


def can_be_made(sizes: tuple[Size, ...], strides: tuple[Size, ...]) -> bool:
    """Whether a loop's result may have this layout."""
    return is_dense(sizes, strides) or padded_row(sizes, strides) is not None


def contiguous(name: str, dtype: str, sizes: tuple[Size, ...]) -> Buffer:
    return Buffer(name, dtype, sizes, contiguous_strides(sizes))
