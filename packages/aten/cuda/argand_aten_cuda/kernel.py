"""The description of a Triton kernel: its parameters, and the specializations that are compiled.

A specialization is named by text: the kernel's name, then its types and its constants in declared order, as in
`softmax_forward;T=bfloat16;BLOCK=1024`. C++ looks it up by that name (csrc/launch.h).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# A specialization's types and constants, by name.
Variant = Mapping[str, Any]

# Argand's dtype names (and the integer types of sizes) -> Triton's.
TRITON_TYPES: Mapping[str, str] = {
    "bool": "i1", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "fp16",
    "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "i32": "i32", "i64": "i64", "u32": "u32", "u64": "u64",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "fp32": "fp32", "fp64": "fp64", "complex64": "fp32", "complex128": "fp64",  # complex: of the parts
}  # fmt: skip

# What a type of a kernel may stand for.
FLOATING = ("float32", "bfloat16", "float16", "float64")
REAL = (*FLOATING, "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class Kernel:
    """A Triton kernel with every specialization that may be asked for.

    Attributes:
        function: the @triton.jit function; the kernel has its name.
        signature: parameter -> type, in the function's order, without its constants: "*float32" or "fp32", "i32", "i64" as they are, and
            names of `types` and of what `derived` gives, alone ("I") or as a pointer ("*T"); "=T": a number for elements of T, in a register; "!T": the constexpr that is Triton's
            dtype of that name.
        types: name -> the dtypes it may stand for. The first ones in `default` are compiled into the wheel.
        constants: constexpr parameter -> the values that are compiled into the wheel; other values are compiled when they are asked for.
        default: type name -> dtypes that are compiled into the wheel; absent: float32 and bfloat16 of the ones it may stand for, or
            the first one where it may be neither.
        num_warps: warps of a block, or a function of the variant.
        num_stages: as in Triton, or a function of the variant.
        max_registers: of a thread, so that several blocks share a multiprocessor; None: as many as Triton wants.
        derived: further type names of a variant, from its types and constants.
        fp_fusion: whether products and sums may be fused. Not where other devices compute the same bits.
        divisible: parameters (pointers: addresses) that are multiples of 16, or a function of the variant.
        wheel: whether the variant is compiled into the wheel, beyond what `default` and `constants` say.
    """

    function: Any
    signature: Mapping[str, str]
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    constants: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    default: Mapping[str, Sequence[str]] = field(default_factory=dict)
    derived: Callable[[Variant], Mapping[str, str]] | None = None
    num_warps: int | Callable[[Variant], int] = 4
    num_stages: int | Callable[[Variant], int] = 3
    max_registers: int | None = None
    divisible: Sequence[str] | Callable[[Variant], Sequence[str]] = ()
    fp_fusion: bool = False
    wheel: Callable[[Variant], bool] | None = None

    @property
    def name(self) -> str:
        return str(self.function.__name__)

    def variants(self, all_types: bool = False) -> Iterator[dict[str, Any]]:
        """The specializations of the wheel; `all_types`: of every dtype."""
        choices: list[list[tuple[str, Any]]] = []
        for name, allowed in self.types.items():
            dtypes = allowed if all_types else self.default.get(name, _usual(allowed))
            choices.append([(name, d) for d in dtypes])
        choices += [[(name, v) for v in values] for name, values in self.constants.items()]
        for choice in itertools.product(*choices):
            variant = dict(choice)
            if all_types or self.wheel is None or self.wheel(variant):
                yield variant

    def text(self, variant: Variant) -> str:
        """The name of a specialization."""
        return ";".join([self.name, *(f"{n}={variant[n]}" for n in (*self.types, *self.constants))])

    def parse(self, text: str) -> dict[str, Any]:
        """The variant that a name stands for.

        Raises:
          ValueError: when it does not name a specialization of this kernel.
        """
        name, *parts = text.split(";")
        found = dict(part.split("=", 1) for part in parts)
        if name != self.name or list(found) != [*self.types, *self.constants]:
            expected = ";".join([self.name, *(f"{n}=..." for n in (*self.types, *self.constants))])
            raise ValueError(f"kernel: got '{text}', expected '{expected}'")
        for n, allowed in self.types.items():
            if found[n] not in allowed:
                raise ValueError(
                    f"{name}: got {n}={found[n]}, expected one of {', '.join(allowed)}"
                )
        return {n: v if n in self.types else _constant(v) for n, v in found.items()}

    def parameters(self, variant: Variant) -> dict[str, str]:
        """Parameter -> Triton's type, for the parameters that are no constants."""
        names: dict[str, Any] = {**variant, **(self.derived(variant) if self.derived else {})}
        types: dict[str, str] = {}
        for parameter, t in self.signature.items():
            if t.startswith("!"):
                continue
            mark, base = (t[0], t[1:]) if t[0] in "*=" else ("", t)
            dtype = str(names.get(base, base))
            types[parameter] = number_type(dtype) if mark == "=" else mark + TRITON_TYPES[dtype]
        return types

    def dtypes(self, variant: Variant) -> dict[str, str]:
        """Constexpr parameter -> name of the Triton dtype that it stands for, as "float32"."""
        names: dict[str, Any] = {**variant, **(self.derived(variant) if self.derived else {})}
        return {
            p: str(names.get(t[1:], t[1:])) for p, t in self.signature.items() if t.startswith("!")
        }

    def option(self, what: str, variant: Variant) -> Any:
        """`num_warps`, `num_stages` or `divisible` of a variant."""
        value = getattr(self, what)
        return value(variant) if callable(value) else value


def number_type(dtype: str) -> str:
    """The register type of a number that is used with elements of `dtype`."""
    if dtype in ("float64", "complex128"):
        return "fp64"
    return "fp32" if dtype in ("float16", "bfloat16", "float32", "complex64") else "i64"


def _usual(allowed: Sequence[str]) -> Sequence[str]:
    common = [d for d in allowed if d in ("float32", "bfloat16")]
    return common or allowed[:1]


def _constant(text: str) -> int | bool | str:
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return text
