"""How tensors print: as PyTorch prints them. Values are read straight from memory, so that no operator is needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from argand_c10 import _C
from argand_c10._C import Tensor
from argand_c10.parameter import Buffer, Parameter

__all__ = [
    "PrintOptions",
    "get_printoptions",
    "set_printoptions",
    "show_entries_by",
    "sparse_text",
    "tensor_text",
]


@dataclass(frozen=True)
class PrintOptions:
    """How tensors print.

    Attributes:
        precision: digits after the decimal point.
        threshold: tensors with more elements are abbreviated.
        edgeitems: how many entries an abbreviated dimension shows at either end.
        linewidth: characters in a line.
        sci_mode: scientific notation always (True), never (False), or where it helps (None).
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()
_entries_text: Callable[[Tensor], str] | None = None


def show_entries_by(text_of: Callable[[Tensor], str]) -> None:
    """Sets what makes the `repr` of a tensor that stands for all entries of a dimension."""
    global _entries_text
    _entries_text = text_of


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print. What is None stays as it is, but `sci_mode`, where None means "where it helps".

    Args:
        profile: start from "default", "short" or "full".

    Raises:
        ValueError: for an unknown profile.
    """
    global _options
    base = _options
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(
                f"set_printoptions: got profile {profile!r}, expected one of {', '.join(_PROFILES)}"
            )
        base = _PROFILES[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems}
    given["linewidth"] = linewidth
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    _options = replace(base, sci_mode=sci_mode, **changes)


def get_printoptions() -> PrintOptions:
    """The options in use."""
    return _options


Formatter = Callable[[Any], str]


def _flatten(nested: Any, depth: int) -> list[Any]:
    for _ in range(depth - 1):
        nested = [entry for part in nested for entry in part]
    return nested if depth else [nested]


def _float_formatter(values: list[float], options: PrintOptions) -> tuple[Formatter, int]:
    """One style for all values: integers with a point, fixed or scientific notation; and its width."""
    sizes = [abs(v) for v in values if math.isfinite(v) and v != 0]
    integral = all(v == math.floor(v) for v in sizes)
    low, high = (min(sizes), max(sizes)) if sizes else (0.0, 0.0)
    wide_range = bool(sizes) and (high / low > 1000.0 or high > 1.0e8)
    scientific = wide_range or (not integral and low < 1.0e-4)
    if options.sci_mode is not None and sizes:
        scientific = options.sci_mode
    precision = options.precision

    def text(value: float) -> str:
        if scientific:
            return f"{value:.{precision}e}"
        if integral:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{precision}f}"

    widths = [len(text(v)) for v in values if math.isfinite(v) and v != 0]
    return text, max(widths, default=1)


def _formatter(values: list[Any], options: PrintOptions) -> tuple[Formatter, int]:
    if values and isinstance(values[0], complex):
        real, real_width = _float_formatter([v.real for v in values], options)
        imag, imag_width = _float_formatter([v.imag for v in values], options)

        def complex_text(value: complex) -> str:
            imaginary = imag(value.imag)
            sign = "" if imaginary[0] == "-" else "+"
            return real(value.real).rjust(real_width) + sign + imaginary + "j"

        return complex_text, real_width + imag_width + 1
    if values and isinstance(values[0], float):
        plain, width = _float_formatter(values, options)
    else:
        plain, width = str, max((len(str(v)) for v in values), default=1)
    return lambda value: plain(value).rjust(width), width


def _row(entries: list[str], width: int, indent: int, options: PrintOptions) -> str:
    per_line = max(1, math.floor((options.linewidth - indent) / (width + 2)))
    lines = [entries[i : i + per_line] for i in range(0, len(entries), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _nested_text(
    nested: Any,
    sizes: tuple[int, ...],
    indent: int,
    show: Formatter,
    width: int,
    options: PrintOptions,
    edge: int,
) -> str:
    if not sizes:
        return show(nested)
    cut = edge > 0 and sizes[0] > 2 * edge
    if len(sizes) == 1:
        entries = [show(v) for v in nested]
        if cut:
            entries.insert(edge, " ...")
        return _row(entries, width, indent, options)
    parts = [_nested_text(p, sizes[1:], indent + 1, show, width, options, edge) for p in nested]
    if cut:
        parts.insert(edge, "...")
    separator = "," + "\n" * (len(sizes) - 1) + " " * (indent + 1)
    return "[" + separator.join(parts) + "]"


def _contents(tensor: Tensor, indent: int, options: PrintOptions) -> str:
    edge = options.edgeitems if tensor.numel() > options.threshold else 0
    nested = _C._edge_list(tensor, edge)
    values = _flatten(nested, tensor.dim())
    show, width = _formatter(values, options)
    return _nested_text(nested, tuple(tensor.shape), indent, show, width, options, edge).lstrip()


def _suffixes(tensor: Tensor) -> list[str]:
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view made in no_grad whose base has another history by now
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        name = getattr(grad_fn, "name", None)
        return [f"grad_fn=<{name() if callable(name) else type(grad_fn).__name__}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def tensor_text(tensor: Tensor, contents: str | None = None) -> str:
    """The `repr` of a tensor; `contents` replaces the values."""
    if _entries_text is not None and _C._stands_for_entries(tensor):
        return _entries_text(tensor)
    options = _options
    prefix = (
        "tensor(" if type(tensor) in (Tensor, Parameter, Buffer) else type(tensor).__name__ + "("
    )
    default = _C.get_default_dtype()
    implied = {_C.int64, _C.bool, default, default.to_complex()}
    suffixes: list[str] = []
    if not tensor.is_cpu:
        suffixes.append(f"device='{tensor.device}'")
    if contents is not None:
        text = contents
    elif tensor.is_meta:
        suffixes.append(f"size={tuple(tensor.shape)}")
        text = "..."
    elif tensor.numel() == 0:
        if tensor.dim() != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        implied = {default}
        text = "[]"
    else:
        text = _contents(tensor, len(prefix), options)
    if tensor.dtype not in implied or tensor.is_meta and tensor.dtype != default:
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes += _suffixes(tensor)
    return _joined(prefix + text, suffixes, len(prefix), options)


def _joined(text: str, suffixes: list[str], indent: int, options: PrintOptions) -> str:
    """Suffixes go onto the last line while it has room, else onto a line of their own."""
    last_line = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if last_line + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            last_line = indent + len(suffix)
        else:
            text += ", " + suffix
            last_line += len(suffix) + 2
    return text + ")"


def sparse_text(tensor: Tensor, indices: Tensor, values: Tensor) -> str:
    """The `repr` of a sparse tensor of these coordinates and values."""
    options = _options
    prefix = "tensor("
    new_line = ",\n" + " " * len(prefix)
    suffixes = [] if tensor.is_cpu else [f"device='{tensor.device}'"]
    suffixes += [f"size={tuple(tensor.shape)}", f"nnz={indices.shape[1]}"]
    default = _C.get_default_dtype()
    if tensor.dtype not in {_C.int64, _C.bool, default, default.to_complex()}:
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={tensor.layout}")
    suffixes += _suffixes(tensor)
    parts = (_part_text("indices", indices, options), _part_text("values", values, options))
    text = prefix + new_line.join([*parts, suffixes[0]])
    return _joined(text, suffixes[1:], len(prefix), options)


def _part_text(name: str, part: Tensor, options: PrintOptions) -> str:
    prefix = f"{name}=tensor("
    if part.numel() == 0 or part.is_meta:
        return f"{prefix}{'...' if part.is_meta else '[]'}, size={tuple(part.shape)})"
    return prefix + _contents(part, len("tensor(") + len(prefix), options) + ")"
