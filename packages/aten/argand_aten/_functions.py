"""Functions whose arguments do not fit a schema."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Literal, overload

from argand_aten._operators import ops
from argand_aten.contraction_path import contraction_path
from argand_c10 import Size, Tensor
from argand_c10.errors import DTypeError, require_tensors

__all__ = [
    "allclose",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "detach_",
    "einsum",
    "equal",
    "get_device",
    "is_conj",
    "is_distributed",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "lu",
    "meshgrid",
    "nonzero",
    "split_copy",
    "split_with_sizes_copy",
    "tensordot",
    "unbind_copy",
]


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and equal elements (NaN equals nothing)."""
    for x in (input, other):
        if not isinstance(x, Tensor):
            raise TypeError(f"equal: got {type(x).__name__}, expected a Tensor")
    # Elements that cannot be NaN equal themselves.
    exact = not (input.is_floating_point() or input.is_complex())
    if input is other and exact and input.device.type == "cpu":
        return True
    return input.shape == other.shape and bool(ops.all(ops.eq(input, other)))


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether |input - other| <= atol + rtol * |other| for all elements."""
    return bool(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)))


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids from vectors, given one by one or as one list; `indexing` is "ij" (the default) or "xy"."""
    return ops.meshgrid(_listed(tensors), indexing=indexing or "ij")


def _listed(tensors: tuple[Any, ...]) -> list[Any]:
    """Tensors that were given one by one, or as one list."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


def atleast_1d(*tensors: Any) -> Any:
    """A view of a tensor with at least one dimension; of several tensors (or a list), a tuple of such views."""
    return ops.atleast_1d(tensors[0] if len(tensors) == 1 else tensors)


def atleast_2d(*tensors: Any) -> Any:
    """A view of a tensor with at least two dimensions; of several tensors (or a list), a tuple of such views."""
    return ops.atleast_2d(tensors[0] if len(tensors) == 1 else tensors)


def atleast_3d(*tensors: Any) -> Any:
    """A view of a tensor with at least three dimensions; of several tensors (or a list), a tuple of such views."""
    return ops.atleast_3d(tensors[0] if len(tensors) == 1 else tensors)


def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given matrices on its diagonal, zeros elsewhere; vectors count as rows."""
    return ops.block_diag(list(tensors))


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Views of all tensors, expanded to their common shape."""
    return ops.broadcast_tensors(list(tensors))


def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples with one element of each vector, one a row."""
    return ops.cartesian_prod(_listed(tensors))


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of the given shapes (ints or sequences of ints) have in common.

    Raises:
      RuntimeError: where sizes differ and neither is 1.
    """
    found: list[int] = []
    for shape in shapes:
        sizes = [shape] if isinstance(shape, int) else list(shape)
        found = [1] * (len(sizes) - len(found)) + found
        for i, n in enumerate(sizes, len(found) - len(sizes)):
            if n < 0:
                raise ValueError(f"broadcast_shapes: got the size {n}, expected none below 0")
            if n != found[i] and 1 not in (n, found[i]):
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    f"got {', '.join(str(s) for s in shapes)}"
                )
            found[i] = n if found[i] == 1 else found[i]
    return Size(found)


@overload
def nonzero(
    input: Tensor, *, out: Tensor | None = None, as_tuple: Literal[False] = False
) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The indices of the nonzero elements: one row each, or with `as_tuple` one tensor per dimension."""
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero: got out= with as_tuple=True, expected one of them")
        return ops.nonzero_tuple(input)
    return ops.nonzero(input) if out is None else ops.nonzero(input, out=out)


def _written(
    results: tuple[Tensor, ...], out: Sequence[Tensor] | None, name: str
) -> tuple[Tensor, ...] | None:
    """`results`; or None after they were written into `out`."""
    if out is None:
        return results
    if len(out) != len(results):
        raise RuntimeError(
            f"{name}: expected an out= argument of size {len(results)}, got size {len(out)}"
        )
    for target, result in zip(out, results, strict=True):
        ops.clone(result, out=target)
    return None


def unbind_copy(
    input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of what `unbind` gives; with `out`, they are written into these tensors."""
    return _written(ops.unbind_copy(input, dim), out, "unbind_copy")


def split_copy(
    input: Tensor, split_size: int, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of what `split` gives; with `out`, they are written into these tensors."""
    return _written(ops.split_copy(input, split_size, dim), out, "split_copy")


def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of what `split_with_sizes` gives; with `out`, they are written into these tensors."""
    return _written(
        ops.split_with_sizes_copy(input, split_sizes, dim), out, "split_with_sizes_copy"
    )


def detach_(input: Tensor) -> Tensor:
    """Forgets the tensor's history, in place."""
    if type(input) is not Tensor:
        require_tensors("detach_", input=input)
    return input.detach_()


def is_conj(input: Tensor) -> bool:
    """False: conjugates are computed at once."""
    if type(input) is not Tensor:
        require_tensors("is_conj", input=input)
    return False


def is_distributed(input: Tensor) -> bool:
    """False: a tensor lies in one place."""
    if type(input) is not Tensor:
        require_tensors("is_distributed", input=input)
    return False


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    if type(input) is not Tensor:
        require_tensors("is_inference", input=input)
    return input.is_inference()


def is_neg(input: Tensor) -> bool:
    """False: negatives are computed at once."""
    if type(input) is not Tensor:
        require_tensors("is_neg", input=input)
    return False


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not zero.

    Raises:
      RuntimeError: when there is not exactly one element.
    """
    if type(input) is not Tensor:
        require_tensors("is_nonzero", input=input)
    if input.numel() != 1:
        found = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(
            f"is_nonzero: got a tensor with {found}, expected one: its truth is ambiguous"
        )
    return bool(input.item() != 0)


def is_signed(input: Tensor) -> bool:
    """Whether the tensor's dtype has negative numbers."""
    if type(input) is not Tensor:
        require_tensors("is_signed", input=input)
    return input.dtype.is_signed


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    require_tensors("is_same_size", input=input, other=other)
    return input.shape == other.shape


def get_device(input: Tensor) -> int:
    """The index of the tensor's device; -1 for the CPU."""
    if type(input) is not Tensor:
        require_tensors("get_device", input=input)
    return input.get_device()


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Products of `a` and `b` summed over pairs of dimensions.

    Args:
      dims: how many of the last dimensions of `a` and the first of `b`, or two lists of dimensions (also as a tensor of two rows).

    Raises:
      RuntimeError: when the dimensions do not fit.
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, (tuple, list)):
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot: got dims={dims} for tensors of {a.ndim} and {b.ndim} dimensions, expected 0 to the fewer"
            )
        first, second = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    if out is not None:
        return ops.tensordot(a, b, first, second, out=out)
    return ops.tensordot(a, b, first, second)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the cheapest order, as linalg.multi_dot of a list."""
    return (
        ops.chain_matmul(list(matrices))
        if out is None
        else ops.chain_matmul(list(matrices), out=out)
    )


_DISTANCE_MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _DISTANCE_MODES[0]) -> Tensor:
    """The p-norm distances of all pairs of rows of (..., P, M) and (..., R, M), as (..., P, R).

    Args:
      compute_mode: "use_mm_for_euclid_dist" takes a matrix product for p = 2, "donot_use_mm_for_euclid_dist" differences, which are more exact;
        "use_mm_for_euclid_dist_if_necessary" the product where there are more than 25 rows.

    Raises:
      ValueError: for another mode.
    """
    if compute_mode not in _DISTANCE_MODES:
        raise ValueError(
            f"cdist: got compute_mode {compute_mode!r}, expected one of {', '.join(_DISTANCE_MODES)}"
        )
    return ops.cdist(x1, x2, p, _DISTANCE_MODES.index(compute_mode))


def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, ...]:
    """L and U in one matrix and LAPACK's row exchanges, as linalg.lu_factor, of singular matrices too; with `get_infos` also LAPACK's status of each."""
    found = ops.linalg_lu_factor_ex(A, pivot=pivot)
    result = found if get_infos else tuple(found)[:2]
    if out is None:
        return result
    if len(out) != len(result):
        raise TypeError(f"lu: got {len(out)} tensors as out, expected {len(result)}")
    for to, value in zip(out, result, strict=True):
        to.resize_(value.shape).copy_(value)
    return out


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products by Einstein's convention; three or more operands in the order that the package opt_einsum finds, where it is installed,
    else from left to right.

    Args:
      equation: as "bij,bjk->bik"; "..." stands for broadcast dimensions; without "->" the result has the indices that
        occur once, in alphabetical order.
      operands: tensors, or one list of tensors. Without an equation each operand is followed by the list of its indices (numbers from 0 to 51, or
        ... for broadcast dimensions), at the end perhaps those of the result: einsum(a, [0, 1], b, [1, 2], [0, 2]).

    Raises:
      ValueError: without operands, or for an index that is not a number from 0 to 51.
      RuntimeError: when the equation does not fit the operands.
    """
    if not operands:
        raise ValueError(
            "einsum: got no operands, expected an equation and tensors, or tensors and lists of indices"
        )
    if isinstance(equation, Tensor):
        equation, operands = _equation((equation, *operands))
    elif not isinstance(equation, str):
        raise TypeError(
            f"einsum: got {type(equation).__name__} as the equation, expected str; or tensors and lists of indices in turn"
        )
    operands = tuple(_listed(operands))
    if not operands:
        raise ValueError("einsum: got an empty list of operands, expected tensors")
    for x in operands:
        if not isinstance(x, Tensor):
            recorded = getattr(type(x), "__argand_function__", None)
            if recorded is not None:
                return recorded(einsum, (type(x),), (equation, *operands), {})  # type: ignore[no-any-return]
            raise TypeError(f"einsum: got {type(x).__name__} as an operand, expected a tensor")
    names, output, labels = _parsed(equation, tuple([x.ndim for x in operands]))
    size: dict[str, int] = dict.fromkeys(labels, 1)
    held = dict.fromkeys(labels, 0)  # how many of left_over have more than one entry there
    left_over = [_aligned(x, n, labels) for x, n in zip(operands, names, strict=True)]
    for x in left_over:
        for c, n in zip(labels, x.shape, strict=True):
            if n != 1:
                if size[c] != 1 and size[c] != n:
                    raise RuntimeError(f"einsum: index '{c}' has sizes {size[c]} and {n}")
                size[c] = n
                held[c] += 1
    for i, j in contraction_path(names, output, [x.shape for x in operands]):
        x, y = left_over[i], left_over[j]
        left_over = [rest for k, rest in enumerate(left_over) if k not in (i, j)]
        inner: list[int] = []
        of_one: tuple[list[int], list[int]] = [], []  # what one factor alone sums, taken before
        for d in range(len(output), len(labels)):
            wide = x.shape[d] != 1, y.shape[d] != 1
            held[labels[d]] -= all(wide)
            if any(wide) and held[labels[d]] == 1:
                held[labels[d]] = 0
                (inner if all(wide) else of_one[wide[1]]).append(d)
        x, y = (
            ops.sum(t, dims, True) if dims else t for t, dims in zip((x, y), of_one, strict=True)
        )
        left_over.append(_contract(x, y, inner))
    total = left_over[0]
    if len(labels) == len(output):
        return total
    if len(operands) > 1:
        return ops.view(total, total.shape[: len(output)])
    return ops.sum(total, [*range(len(output), len(labels))])


@functools.lru_cache(maxsize=256)
def _parsed(equation: str, ranks: tuple[int, ...]) -> tuple[list[str], str, str]:
    """The index names of each operand and of the result, and these with what is summed behind them, for operands of so many dimensions."""
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise RuntimeError(
            f"einsum: got {len(ranks)} operands, expected {len(terms)} as in '{equation}'"
        )
    names = [_expand(term, rank, equation) for term, rank in zip(terms, ranks, strict=True)]
    ellipsis = max(sum(1 for n in term if n >= "\ue000") for term in names)
    dots = _dots(ellipsis)
    if "->" in equation:
        output = right.replace("...", dots, 1)
    else:
        every = "".join(names)
        output = dots + "".join(sorted(c for c in every if every.count(c) == 1 and c not in dots))
    for c in output:
        if not any(c in n for n in names):
            raise RuntimeError(f"einsum: output index '{c}' of '{equation}' is in no operand")
        if output.count(c) > 1:
            raise RuntimeError(f"einsum: output index '{c}' of '{equation}' appears more than once")
    summed = sorted(
        {c for n in names for c in n if c not in output}, key=lambda c: (c not in dots, c)
    )
    return names, output, output + "".join(summed)


def _equation(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    terms = []
    for indices in [*given[1::2], *(given[-1:] if len(given) % 2 else [])]:
        if isinstance(indices, Tensor) or not isinstance(indices, (list, tuple)):
            raise RuntimeError(
                f"einsum: got {type(indices).__name__} for indices of an operand, expected a list of numbers; or give an equation first"
            )
        term = ""
        for i in indices:
            if i is not ... and not (isinstance(i, int) and 0 <= i < 52):
                kind = ValueError if isinstance(i, int) else TypeError
                raise kind(f"einsum: got the index {i!r}, expected a number from 0 to 51 or ...")
            term += "..." if i is ... else chr((65 if i < 26 else 71) + i)
        terms.append(term)
    count = len(given) // 2
    return ",".join(terms[:count]) + ("->" + terms[count] if len(given) % 2 else ""), given[
        : 2 * count : 2
    ]


def _dots(n: int) -> str:
    """Names of the last n dimensions of "...": private characters, one a dimension."""
    return "".join([chr(0xE000 + k) for k in range(64 - n, 64)])


def _expand(term: str, rank: int, equation: str) -> str:
    """The index names of an operand of so many dimensions, with names for "..."."""
    head, dots, tail = term.partition("...")
    for c in head + tail:
        if not (c.isascii() and c.isalpha()):
            raise RuntimeError(
                f"einsum: got the index '{c}' in '{equation}', expected letters and one '...' a term"
            )
    n = rank - len(head) - len(tail)
    if n < 0 or (n > 0 and not dots):
        raise RuntimeError(
            f"einsum: operand of {rank} dimensions does not fit '{term}' in '{equation}'"
        )
    return head + _dots(n) + tail


def _aligned(x: Tensor, names: str, labels: str) -> Tensor:
    """The operand with one dimension for each label, in their order; repeated indices are its diagonal."""
    place: dict[str, int] = {}
    j = 0
    for c in names:
        if c in place:
            i = place[c]
            if x.shape[i] != x.shape[j]:
                raise RuntimeError(
                    f"einsum: index '{c}' of one operand has sizes {x.shape[i]} and {x.shape[j]}"
                )
            x = ops.movedim(ops.diagonal(x, 0, i, j), -1, i)
        else:
            place[c] = j
            j += 1
    for c in labels:
        if c not in place:
            x = ops.unsqueeze(x, -1)
            place[c] = j
            j += 1
    return ops.permute(x, [place[c] for c in labels])


def _contract(x: Tensor, y: Tensor, inner: list[int]) -> Tensor:
    """The product of aligned operands, summed over the dimensions `inner`, which stay as dimensions of size 1: one batched matrix multiplication."""
    if not inner:
        return ops.mul(x, y)
    both: list[int] = []
    only_x: list[int] = []
    only_y: list[int] = []
    for d, (n, m) in enumerate(zip(x.shape, y.shape, strict=True)):
        if d not in inner:
            (both if n != 1 and m != 1 else only_x if n != 1 else only_y).append(d)
    if (
        only_x and only_y and only_y[-1] < only_x[0]
    ):  # then the product lies as the result is asked for
        x, y, only_x, only_y = y, x, only_y, only_x
    rows, columns = math.prod(x.shape[d] for d in only_x), math.prod(y.shape[d] for d in only_y)
    batch, depth = math.prod(x.shape[d] for d in both), math.prod(x.shape[d] for d in inner)
    left = ops.permute(x, both + only_x + inner + only_y).reshape([batch, rows, depth])
    right = ops.permute(y, both + inner + only_y + only_x).reshape([batch, depth, columns])
    try:
        product = ops.bmm(left, right)
    except DTypeError as error:
        raise DTypeError(f"einsum:{str(error).partition(':')[2]}") from None
    order = both + only_x + inner + only_y
    sizes = [
        *(x.shape[d] for d in both + only_x),
        *(1 for _ in inner),
        *(y.shape[d] for d in only_y),
    ]
    return ops.permute(ops.view(product, sizes), [order.index(d) for d in range(x.ndim)])
