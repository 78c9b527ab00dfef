"""Loop IR: what is computed for each element of a range of indices, in SSA-like trees over loads.

A `Loop` computes one buffer over the index space `sizes` (its last `reduced` dimensions are summed over, if any). Buffers are read
and written at addresses that are affine in the loop's indices, so that every strided view is an `Access` and no computation.
A `Value` tree is of the computation's dtypes: bool, integers, float32, float64; loads convert 16-bit floats to
float32, and `narrow` brings a float32 to what a 16-bit dtype holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from argand_c10.lowerings import ReductionLowering
from argand_inductor import sizes as sz
from argand_inductor.program import Location
from argand_inductor.sizes import Size

WIDE_UNSIGNED = ("uint16", "uint32", "uint64")
COMPUTE_DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    *WIDE_UNSIGNED,
    "float32",
    "float64",
)
ITEMSIZE = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    "complex64": 8, "complex128": 16, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "uint16": 2, "uint32": 4, "uint64": 8,
}  # fmt: skip
HALF = ("float16", "bfloat16")
# As a read's buffer: the value is the address itself, an int64.
INDEX = "#index"


# Random words that a kernel draws at once.
WORDS = 4096


def random_words(seed: str, counter: str, state: str) -> str:
    """As a read's buffer: the value is the random word of the element whose number is the address, as an int32 with its highest bit
    flipped. `seed`, `counter` and `state` are the program's names of integers (`RandomStep`)."""
    return f"#words:{seed}:{counter}:{state}"


def in_memory(buffer: str) -> bool:
    """Whether a read's buffer is one, and not a way to compute values."""
    return not buffer.startswith("#")


def compute_dtype(dtype: str) -> str:
    """The dtype in which elements of `dtype` are held in registers."""
    return "float32" if dtype in HALF else dtype


class IRError(AssertionError):
    """A loop that breaks the rules of this module: our own bug."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One node. Compared by identity; shared nodes are computed once.

    ops: "load" (detail: index into the loop's reads), "number" (detail: int, float or bool), "size" (detail: Size), "convert" (to dtype), "narrow" (detail: a 16-bit dtype), "total" (of a reduction, in `final`), "count" (of elements reduced), "checked" (an index, and whether it is bad, which the device
    then reports; detail: a Check),
    or a primitive of the registry's element language.
    """

    op: str
    args: tuple[Value, ...]
    dtype: str
    detail: Any = None
    half: str = ""  # a 16-bit dtype that is known to hold the value exactly

    def __str__(self) -> str:
        if self.op == "load":
            return f"r{self.detail}"
        if self.op == "number":
            return repr(self.detail)
        if self.op == "size":
            return str(sz.text(self.detail))
        if self.op in ("total", "count"):
            return self.op
        if self.op in ("convert", "narrow"):
            return f"{self.detail or self.dtype}({self.args[0]})"
        return f"{self.op}({', '.join(map(str, self.args))})"


def number(value: float, dtype: str) -> Value:
    return Value("number", (), dtype, value)


@dataclass(frozen=True, slots=True)
class Check:
    """What a bad index is reported with: the operator by the name that errors say, the dimension, its size, and the program's names of
    two integers (`ReportStep`)."""

    operator: str
    dim: int
    size: int
    record: str
    name: str


@dataclass(frozen=True, slots=True)
class Guard:
    """Which indices an access reads at: those with 0 <= offset + sum(index[d] * strides[d]) < size. Elsewhere it gives 0."""

    strides: tuple[Size, ...]
    offset: Size
    size: Size


@dataclass(frozen=True, slots=True)
class Access:
    """Element `offset + sum(index[d] * strides[d])` of a buffer; one stride a dimension of the loop."""

    buffer: str
    strides: tuple[Size, ...]
    offset: Size = 0
    guard: Guard | None = None

    def mapped(self, function: Callable[[tuple[Size, ...]], Iterable[Size]]) -> Access:
        """In another index space: `function` maps the strides of one space to those of the other."""
        guard = self.guard
        if guard is not None:
            guard = Guard(tuple(function(guard.strides)), guard.offset, guard.size)
        return Access(self.buffer, tuple(function(self.strides)), self.offset, guard)

    def __str__(self) -> str:
        parts = [
            f"i{d}" if s == 1 else f"{sz.text(s)}*i{d}"
            for d, s in enumerate(self.strides)
            if s != 0
        ]
        if self.offset != 0:
            parts.append(str(sz.text(self.offset)))
        text = f"{self.buffer}[{' + '.join(parts) or '0'}]"
        if self.guard is not None:
            text += f" where 0 <= {Access('', self.guard.strides, self.guard.offset)} < {sz.text(self.guard.size)}"
        return text


@dataclass(slots=True)
class Loop:
    """One buffer's computation.

    Attributes:
        write: where the result goes; stride 0 in reduced dimensions.
        dtype: of the buffer (storage).
        sizes: of the index space, reduced dimensions last.
        reads: what `body`'s loads refer to.
        read_dtypes: storage dtypes of the reads.
        body: the element; for reductions the mapped element in the accumulator's dtype.
        reduction: how elements are combined, with `final`, a Value over "total" and "count".
        operators: what this computes, for people.
        device: where the buffer is.
    """

    write: Access
    dtype: str
    sizes: tuple[Size, ...]
    reads: list[Access]
    read_dtypes: list[str]
    body: Value
    reduced: int = 0
    reduction: ReductionLowering | None = None
    final: Value | None = None
    operators: tuple[str, ...] = ()
    location: Location | None = None
    cost: int = 1
    device: str = "cpu"

    @property
    def name(self) -> str:
        return self.write.buffer

    @property
    def fills_gaps(self) -> bool:
        """Whether its rows have gaps behind them, which are to be filled with zeros: the innermost dimension of a kernel must be a row."""
        if self.reduced or len(self.sizes) < 2 or self.write.strides[-1] != 1:
            return False
        size, row = self.sizes[-1], self.write.strides[-2]
        if not isinstance(size, int) or not isinstance(row, int) or row <= size:
            return False
        return self.write.strides == contiguous_strides((*self.sizes[:-1], row))

    @property
    def kept_sizes(self) -> tuple[Size, ...]:
        return self.sizes[: len(self.sizes) - self.reduced]

    def __str__(self) -> str:
        space = ", ".join(str(sz.text(s)) for s in self.kept_sizes)
        over = ", ".join(str(sz.text(s)) for s in self.sizes[len(self.kept_sizes) :])
        lines = [
            f"{self.write}: {self.dtype} for [{space}]"
            + (f" over [{over}]" if self.reduced else "")
        ]
        lines += [
            f"  r{i} = {a}: {d}"
            for i, (a, d) in enumerate(zip(self.reads, self.read_dtypes, strict=True))
        ]
        lines.append(
            f"  {self.body}" if self.final is None else f"  combine {self.body}, then {self.final}"
        )
        return "\n".join(lines)


def walk(value: Value) -> Iterator[Value]:
    """Each node once, arguments first."""
    seen: set[int] = set()
    stack: list[tuple[Value, bool]] = [(value, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((a, False) for a in reversed(node.args))


def fingerprint(value: Value) -> tuple[Any, ...]:
    """What tells a tree from trees that compute something else: equal ones have equal fingerprints."""
    places: dict[int, int] = {}
    nodes: list[tuple[Any, ...]] = []
    for node in walk(value):
        places[id(node)] = len(nodes)
        detail = repr(node.detail) if node.op == "number" else node.detail
        nodes.append((node.op, node.dtype, detail, *[places[id(a)] for a in node.args]))
    return tuple(nodes)


def check(loop: Loop) -> None:
    """Verify the rules above.

    Raises:
        IRError: names the loop and the rule.
    """

    def require(condition: bool, rule: str) -> None:
        if not condition:
            raise IRError(f"loop IR: {rule} in\n{loop}")

    n = len(loop.sizes)
    require(len(loop.write.strides) == n, "the write has one stride a dimension")
    require(all(len(a.strides) == n for a in loop.reads), "a read has one stride a dimension")
    require(len(loop.reads) == len(loop.read_dtypes), "every read has a dtype")
    require(
        all(s == 0 for s in loop.write.strides[n - loop.reduced :]),
        "reduced dimensions are not written along",
    )
    require((loop.reduction is None) == (loop.final is None), "a reduction has a final value")
    for node in walk(loop.body):
        require(node.dtype in COMPUTE_DTYPES, f"{node.dtype} is a dtype of computations")
        if node.op == "load":
            require(node.detail < len(loop.reads), "loads refer to reads")
            require(
                compute_dtype(loop.read_dtypes[node.detail]) == node.dtype,
                "loads have the buffer's dtype",
            )
        require(node.op not in ("total", "count"), "totals belong to the final value")
    result = loop.body if loop.final is None else loop.final
    require(result.dtype == compute_dtype(loop.dtype), "the value has the buffer's dtype")


def contiguous_strides(sizes: Sequence[Size]) -> tuple[Size, ...]:
    strides: list[Size] = []
    step: Size = 1
    for s in reversed(sizes):
        strides.append(step)
        step = step * s
    return tuple(reversed(strides))
