"""Elementwise operators: on the values alone, or on the elements of two tensors that meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_autograd.sparse.coordinates import at, coalesce, keys_of, merged, sparse_sizes, summed
from argand_autograd.sparse.tensor import SparseTensor, implements, make
from argand_c10 import Tensor, result_type

# Compilers run these functions as they are.
__argand_plain__ = True
__all__: list[str] = []

Number = int | float | complex
# What gives 0 for 0, and so changes the values alone.
_KEEP_ZERO = (
    "abs absolute sign sgn sqrt sin tan asin arcsin atan arctan sinh tanh asinh arcsinh atanh arctanh expm1 log1p floor ceil round trunc fix "
    "frac relu erf erfinv deg2rad rad2deg signbit isnan isinf isposinf isneginf nan_to_num square"
).split()


def _on_values(name: str) -> None:
    operator: Callable[..., Tensor] = getattr(aten, name)

    def apply(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        x = coalesce(self)
        return x._like(operator(x._values(), *args, **kwargs))

    def apply_in_place(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        if not self.is_coalesced():
            raise RuntimeError(f"{name}_ requires coalesced input")
        return self._become(apply(self, *args, **kwargs))

    implements(name)(apply)
    implements(name + "_")(apply_in_place)


for _name in _KEEP_ZERO:
    _on_values(_name)


@implements("neg", "negative")
def neg(self: SparseTensor) -> SparseTensor:
    return self._like(-self._values())


@implements("neg_", "negative_")
def neg_(self: SparseTensor) -> SparseTensor:
    return self._become(neg(self))


@implements("positive", "real", "conj", "resolve_conj", "resolve_neg", "conj_physical")
def same(self: SparseTensor) -> SparseTensor:
    return self._like(self._values().conj()) if self.is_complex() else self


@implements("pow")
def power(self: SparseTensor, exponent: Any) -> SparseTensor:
    if not isinstance(exponent, Number):
        raise NotImplementedError(
            "pow: got a tensor as the exponent of a sparse tensor, expected a number"
        )
    if exponent == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"
        )
    x = coalesce(self)
    return x._like(x._values() ** exponent)


# ---- sums ---------------------------------------------------------------------------------------------
@implements("add")
def add(self: Any, other: Any, *, alpha: Number = 1) -> Tensor:
    if not isinstance(other, SparseTensor):
        if isinstance(other, Tensor) and isinstance(self, Number):
            self, other = other, self
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if not isinstance(self, SparseTensor):
        return _add_to_dense(self, other, alpha)
    if self.shape != other.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}"
        )
    if self.sparse_dim() != other.sparse_dim():
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same density, but 'self' has "
            f"{self.sparse_dim()} sparse dimensions while 'other' has {other.sparse_dim()} sparse dimensions"
        )
    dtype = result_type(self._values(), other._values())
    mine, others = self._values().to(dtype), other._values().to(dtype)
    others = others if alpha == 1 else others * alpha
    if mine.is_cpu and self._values().is_contiguous() and other._values().is_contiguous():
        indices, here, there = merged(self, other)
        values = aten.index_add(summed(mine, here, indices.shape[1]), 0, there, others)
        return make(indices, values, self.shape, self.is_coalesced() and other.is_coalesced())
    indices = aten.cat([self._indices(), other._indices()], 1)
    result = make(indices, aten.cat([mine, others]), self.shape)
    # Sums of sums do not grow without end.
    return coalesce(result) if result._nnz() > result.numel() else result


def _check_dense_sizes(dense: Any, sparse: SparseTensor) -> None:
    size = list(dense.shape) if isinstance(dense, Tensor) else []
    if size != list(sparse.shape):
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {size} while other has size "
            f"{list(sparse.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )


def _add_to_dense(dense: Any, sparse: SparseTensor, alpha: Number) -> Tensor:
    _check_dense_sizes(dense, sparse)
    dtype = result_type(dense, sparse._values())
    return _added(dense.to(dtype).clone(), sparse, alpha)


def _added(dense: Tensor, sparse: SparseTensor, alpha: Number) -> Tensor:
    """The elements of `sparse` added to `dense` in place."""
    indices, values = sparse._indices(), sparse._values().to(dense.dtype)
    if indices.shape[0] == 1:
        return dense.index_add_(0, indices[0], values, alpha=alpha)
    values = values if alpha == 1 else values * alpha
    if indices.shape[0] == 0:
        return dense.add_(values.sum(0))
    keys_of(indices, sparse_sizes(sparse))  # refuses coordinates that would count from the end
    return dense.index_put_(tuple(indices.unbind(0)), values, accumulate=True)


@implements("add_")
def add_(self: Any, other: Any, *, alpha: Number = 1) -> Tensor:
    if isinstance(self, SparseTensor):
        result = add(self, other, alpha=alpha)
        return self._become(_in_dtype(result, self))
    _check_dense_sizes(self, other)
    return _added(self, other, alpha)


def _in_dtype(x: Any, target: Tensor) -> SparseTensor:
    result: SparseTensor = x if x.dtype == target.dtype else x._like(x._values().to(target.dtype))
    return result


@implements("sub", "subtract")
def sub(self: Any, other: Any, *, alpha: Number = 1) -> Tensor:
    return add(self, other, alpha=-alpha)


@implements("sub_", "subtract_")
def sub_(self: Any, other: Any, *, alpha: Number = 1) -> Tensor:
    return add_(self, other, alpha=-alpha)


# ---- products -----------------------------------------------------------------------------------------
def _is_scalar(value: Any) -> bool:
    return isinstance(value, Number) or (
        isinstance(value, Tensor) and not isinstance(value, SparseTensor) and value.dim() == 0
    )


@implements("mul", "multiply")
def mul(self: Any, other: Any) -> Tensor:
    x, factor = (self, other) if isinstance(self, SparseTensor) else (other, self)
    return _scaled(x, factor)


def _scaled(x: SparseTensor, factor: Any) -> SparseTensor:
    if _is_scalar(factor):
        return x._like(x._values() * factor)
    if isinstance(factor, SparseTensor):
        return _mul_sparse(x, factor)
    if factor.dim() > x.dim() or aten.broadcast_shapes(x.shape, factor.shape) != x.shape:
        raise RuntimeError(
            f"mul: got a sparse tensor of shape {list(x.shape)} and a dense one of shape {list(factor.shape)}, "
            "expected one that can be expanded to the former; pass x.to_dense()"
        )
    return x._like(x._values() * at(factor.expand(x.shape), x._indices()))


def _mul_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            f"mul: got sparse tensors of shapes {list(a.shape)} and {list(b.shape)} with {a.sparse_dim()} and "
            f"{b.sparse_dim()} sparse dimensions, expected equal ones"
        )
    exact = a.is_coalesced() and b.is_coalesced()
    # The places of one that is not coalesced stay as they are.
    probe, source = (b, a) if not b.is_coalesced() else (a, b)
    found, values = values_at(source, probe)
    product = probe._values() * values
    indices = probe._indices()
    if exact:
        chosen = aten.nonzero(found)[:, 0]
        indices, product = indices.index_select(1, chosen), product.index_select(0, chosen)
    return make(indices, product, a.shape, exact)


def values_at(source: SparseTensor, probe: SparseTensor) -> tuple[Tensor, Tensor]:
    """Whether `source` has an element at each place of `probe`, and its value, else 0."""
    source = coalesce(source)
    sizes = sparse_sizes(probe)
    known, wanted = keys_of(source._indices(), sizes), keys_of(probe._indices(), sizes)
    values = source._values()
    if known.shape[0] == 0:
        shape = [wanted.shape[0], *values.shape[1:]]
        return wanted < 0, aten.zeros(shape, dtype=values.dtype, device=values.device)
    places = aten.clamp(aten.searchsorted(known, wanted), max=known.shape[0] - 1)
    found = known.index_select(0, places) == wanted
    mask = found.reshape([-1] + [1] * (values.dim() - 1))
    return found, aten.where(mask, values.index_select(0, places), aten.zeros_like(values[:1]))


@implements("mul_", "multiply_")
def mul_(self: Tensor, other: Any) -> Tensor:
    if not isinstance(self, SparseTensor):
        return self.mul_(other.to_dense())
    if _is_scalar(other):
        self._values().mul_(other)
        return self._coalesced_(self._nnz() < 2)
    return self._become(_in_dtype(_scaled(self, other), self))


def _check_divisor(self: Any, other: Any) -> None:
    if not isinstance(self, SparseTensor) or not _is_scalar(other):
        shape = list(other.shape) if isinstance(other, Tensor) else []
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)"
        )


@implements("div", "divide", "true_divide")
def div(self: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    _check_divisor(self, other)
    if rounding_mode is not None:
        self = coalesce(self)
    return self._like(aten.div(self._values(), other, rounding_mode=rounding_mode))  # type: ignore[no-any-return]


@implements("floor_divide")
def floor_divide(self: Any, other: Any) -> Tensor:
    return div(self, other, rounding_mode="floor")


@implements("div_", "divide_", "true_divide_")
def div_(self: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    _check_divisor(self, other)
    if rounding_mode is not None:
        return self._become(div(self, other, rounding_mode=rounding_mode))  # type: ignore[no-any-return]
    self._values().div_(other)
    return self  # type: ignore[no-any-return]


@implements("sparse_mask")
def sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask: got shapes {list(self.shape)} and {list(mask.shape)}, expected equal ones"
        )
    if isinstance(self, SparseTensor):
        return mask._like(values_at(self, mask)[1])
    return mask._like(at(self, mask._indices()))
