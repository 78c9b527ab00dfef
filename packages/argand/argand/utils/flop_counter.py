"""How many floating-point operations matrix products, convolutions and attention take, by module."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Self

from argand.utils._pytree import tree_map
from argand.utils.module_tracker import ModuleTracker
from argand_c10 import Tensor
from argand_c10.modes import ArgandDispatchMode

__all__ = ["FlopCounterMode", "register_flop_formula"]

Shape = Sequence[int]
# Of the arguments, in place of tensors their shapes; `out_shape` is the result's. A product and a sum are two operations.
Formula = Callable[..., int]

flop_registry: dict[str, Formula] = {}


def _name(target: Any) -> str:
    """An operator's name, without the overload's."""
    found = getattr(target, "name", None) or getattr(target, "_name", None) or str(target)
    return str(found).removeprefix("aten.").removeprefix("aten::").partition(".")[0]


def _shapes(values: Any) -> Any:
    return tree_map(lambda v: tuple(v.shape) if isinstance(v, Tensor) else v, values)


def _with_shapes(formula: Formula) -> Formula:
    def of_values(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        return formula(*_shapes(args), out_shape=_shapes(out_val), **_shapes(kwargs))

    return of_values


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Decorator of a function that says how many operations an operator takes.

    Args:
        targets: the operator, or several.
        get_raw: whether it is called with the tensors themselves and `out_val`, instead of shapes and `out_shape`.
    """

    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, list | tuple) else [targets]:
            flop_registry[_name(target)] = formula if get_raw else _with_shapes(formula)
        return formula

    return register


@register_flop_formula(["mm", "bmm", "_int_mm", "_scaled_mm"])
def mm_flop(a: Shape, b: Shape, *args: Any, out_shape: Shape, **kwargs: Any) -> int:
    """Of a matrix product, or a batch of them."""
    return 2 * math.prod(out_shape) * a[-1]


@register_flop_formula("tensordot")
def tensordot_flop(a: Shape, b: Shape, dims: Shape, *args: Any, out_shape: Shape) -> int:
    """Of a product over several dimensions."""
    return 2 * math.prod(out_shape) * math.prod(a[dim] for dim in dims)


@register_flop_formula(["inner", "matmul"])
def matmul_flop(a: Shape, b: Shape, *args: Any, out_shape: Shape, **kwargs: Any) -> int:
    """Of a product of matrices; products with vectors count nothing."""
    return mm_flop(a, b, out_shape=out_shape) if min(len(a), len(b)) > 1 else 0


@register_flop_formula(["addmm", "baddbmm"])
def addmm_flop(c: Shape, a: Shape, b: Shape, *args: Any, out_shape: Shape, **kwargs: Any) -> int:
    """Of a matrix product, or a batch of them, that is added to something."""
    return mm_flop(a, b, out_shape=out_shape)


@register_flop_formula("addbmm")
def addbmm_flop(c: Shape, a: Shape, b: Shape, *args: Any, out_shape: Shape, **kwargs: Any) -> int:
    """Of a batch of matrix products that are added up."""
    return 2 * math.prod(a) * b[-1]


@register_flop_formula("linear")
def linear_flop(x: Shape, weight: Shape, *args: Any, out_shape: Shape, **kwargs: Any) -> int:
    """Of a linear map."""
    return 2 * math.prod(out_shape) * weight[-1]


def _convolution(shape: Shape, weight: Shape) -> int:
    """Each element of `shape`, the side that has the weight's first size as channels, meets the rest of the weight."""
    return 2 * math.prod(shape) * math.prod(weight[1:])


@register_flop_formula(["convolution", "conv1d", "conv2d", "conv3d"])
def conv_flop(
    x: Shape,
    weight: Shape,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    transposed: Any = False,
    *args: Any,
    out_shape: Shape,
    **kwargs: Any,
) -> int:
    """Of a convolution."""
    return _convolution(x if transposed is True else out_shape, weight)


@register_flop_formula(["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"])
def conv_transpose_flop(
    x: Shape, weight: Shape, *args: Any, out_shape: Shape, **kwargs: Any
) -> int:
    """Of a transposed convolution."""
    return _convolution(x, weight)


@register_flop_formula("convolution_backward")
def conv_backward_flop(
    grad: Shape,
    x: Shape,
    weight: Shape,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
    output_mask: Sequence[bool],
    *,
    out_shape: Any = None,
) -> int:
    """Of the gradients of a convolution's input and weight."""
    return sum(output_mask[:2]) * _convolution(grad, weight)


@register_flop_formula(["convolution_grad_input", "convolution_grad_weight"])
def conv_grad_flop(grad: Shape, x: Any, weight: Any, *args: Any, out_shape: Shape) -> int:
    """Of one gradient of a convolution."""
    return _convolution(grad, weight if weight is not None else out_shape)


@register_flop_formula("convolution_backward_grad_output")
def conv_transpose_backward_flop(
    ggi: Any, ggw: Any, ggb: Any, x: Shape, weight: Shape, *args: Any, out_shape: Shape
) -> int:
    """Of what the gradients of a convolution are of its result's, as transposed convolutions need it."""
    return sum(g is not None for g in (ggi, ggw)) * _convolution(out_shape, weight)


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Of attention: of the products of queries and keys, and of scores and values."""
    rows = math.prod(query_shape[:-1])
    return 2 * rows * key_shape[-2] * (query_shape[-1] + value_shape[-1])


@register_flop_formula(["scaled_dot_product_attention", "attention"])
def sdpa_flop(
    query: Shape, key: Shape, value: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Of attention."""
    return sdpa_flop_count(query, key, value)


@register_flop_formula("attention_backward")
def sdpa_backward_flop(
    grad: Shape, query: Shape, key: Shape, value: Shape, *args: Any, out_shape: Any = None
) -> int:
    """Of attention's gradients: the scores once more, then those of values, scores, queries and keys."""
    rows = math.prod(query[:-1])
    return 2 * rows * key[-2] * (3 * query[-1] + 2 * value[-1])


@register_flop_formula(["lstm_layer", "gru_layer", "rnn_layer"])
def recurrent_flop(gates: Shape, hidden: Shape, *args: Any, out_shape: Any = None) -> int:
    """Of a layer's products with its hidden states; those with its input are a linear map."""
    return 2 * math.prod(gates) * hidden[-1]


@register_flop_formula(["lstm_layer_backward", "gru_layer_backward", "rnn_layer_backward"], True)
def recurrent_backward_flop(grad_output: Tensor, *args: Any, out_val: Any) -> int:
    """Of the gradients of a layer's hidden states and weight."""
    gates: Tensor = out_val[0]
    return 4 * gates.numel() * grad_output.shape[-1]


class FlopCounterMode(ArgandDispatchMode):
    """Context manager that counts the floating-point operations of what runs inside, by module.

    Args:
        mods: no more needed: modules are found as they are called.
        depth: how many levels of modules the table shows.
        display: whether the table is printed at the end.
        custom_mapping: formulas of operators, see `register_flop_formula`.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Formula] | None = None,
    ) -> None:
        super().__init__()
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.flop_registry = dict(flop_registry)
        for target, formula in (custom_mapping or {}).items():
            raw = getattr(formula, "_get_raw", False)
            self.flop_registry[_name(target)] = formula if raw else _with_shapes(formula)
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """All that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By the names of modules ("Global": everything) and of operators."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, modules below those they are part of."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit, suffix = _unit(total)
        rows = []
        for name in sorted(self.flop_counts, key=lambda n: (n != "Global", n.split("."))):
            level = name.count(".") + (name != "Global")
            if level <= depth:
                counts = self.flop_counts[name]
                indent = " " * level
                rows.append((indent + name, sum(counts.values())))
                rows += [(f"{indent} - aten.{op}", count) for op, count in counts.items()]
        cells = [("Module", "FLOP", "% Total")]
        for name, count in rows:
            share = f"{count / total:.2%}" if total else "0.00%"
            cells.append((name, f"{count / unit:.3f}{suffix}", share))
        widths = [max(len(cell[i]) for cell in cells) for i in range(3)]
        lines = [
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in cells
        ]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])

    def __enter__(self) -> Self:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table())

    def __argand_dispatch__(
        self, op: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = op(*args, **(kwargs or {}))
        formula = self.flop_registry.get(_name(op))
        count = formula(*args, **(kwargs or {}), out_val=result) if formula is not None else 0
        if count:
            for parent in set(self.mod_tracker.parents):
                self.flop_counts[parent][_name(op)] += count
        return result


def _unit(number: int) -> tuple[float, str]:
    """What numbers as large as this are given in."""
    for exponent, suffix in ((12, "T"), (9, "B"), (6, "M"), (3, "K")):
        if number >= 10**exponent:
            return 10.0**exponent, suffix
    return 1.0, ""
