"""`SparseTensor`: a tensor as the coordinates and values of the elements that are not 0 (layout `sparse_coo`).

It is a tensor on the meta device for everything below Python, with the dispatch key of sparse tensors: no kernel computes with
elements that are not there. Its operators, which the modules beside this one register, are made of differentiable ones on coordinates and values.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import argand_c10 as c10
from argand_autograd._C import is_grad_enabled
from argand_c10 import _C, Tensor
from argand_c10.printing import sparse_text

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["SparseTensor", "implements", "make", "run_operator"]

_F = TypeVar("_F", bound=Callable[..., Any])
_OPERATORS: dict[str, Callable[..., Any]] = {}


def implements(*names: str) -> Callable[[_F], _F]:
    """Registers a function as what operators of these names do with sparse tensors."""

    def register(function: _F) -> _F:
        for name in names:
            _OPERATORS[name] = function
        return function

    return register


def unsupported(name: str, remedy: str = "pass x.to_dense()") -> NoReturn:
    """Refuses an operator."""
    raise NotImplementedError(
        f"{name}: got a tensor of layout sparse_coo, expected strided ones; {remedy}"
    )


def run_operator(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operator does with arguments of which some are sparse."""
    name: str = op.__name__.partition(".")[0]
    function = _OPERATORS.get(name)
    if function is None:
        unsupported(name)
    out = kwargs.pop("out", None)
    result = function(*args, **kwargs)
    if out is None:
        return result
    if isinstance(out, SparseTensor) and isinstance(result, SparseTensor):
        return out._become(result)
    if isinstance(out, SparseTensor) or isinstance(result, SparseTensor):
        raise RuntimeError(
            f"{name}: got out= of layout {out.layout}, expected {result.layout}, that of the result"
        )
    return out.resize_(result.shape).copy_(result)


def make(
    indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False
) -> SparseTensor:
    """A sparse tensor of int64 indices (sparse dimensions, elements) and values (elements, *dense dimensions), unchecked."""
    made = Tensor._make_sparse(SparseTensor, _carrier(size, values.dtype))
    made._hold(indices, values, coalesced)
    return made


def _carrier(size: Sequence[int], dtype: c10.dtype) -> Tensor:
    return _C._empty_strided(tuple(size), None, dtype, "meta")


class SparseTensor(Tensor):
    """A tensor of layout `sparse_coo`; `type(x)` is this class, all else is as for a `Tensor`."""

    _coo: tuple[Tensor, Tensor, bool]

    def _hold(self, indices: Tensor, values: Tensor, coalesced: bool) -> None:
        # Fewer than two elements have no order and no doubles.
        self._coo = (indices, values, coalesced or indices.shape[1] < 2)

    def _become(self, other: SparseTensor, resize: bool = False) -> SparseTensor:
        """Take over the elements of another tensor of the same dtype, and of the same shape or with `resize` its shape."""
        if (other.shape != self.shape and not resize) or other.dtype != self.dtype:
            raise RuntimeError(
                f"got a result of shape {list(other.shape)} and {other.dtype} for a sparse tensor of "
                f"shape {list(self.shape)} and {self.dtype}, expected the same"
            )
        if self.requires_grad and self.is_leaf and is_grad_enabled():
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        if other.shape != self.shape:
            Tensor.set_(self, _carrier(other.shape, other.dtype))
        self._coo = other._coo
        return self

    @classmethod
    def __torch_function__(
        cls,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return run_operator(func, args, dict(kwargs or {}))

    # ---- what it is ----------------------------------------------------------------------------------
    @property
    def layout(self) -> c10.layout:
        """`sparse_coo`."""
        return c10.sparse_coo

    is_sparse = property(lambda self: True)
    is_meta = property(lambda self: self._coo[1].is_meta)
    is_cpu = property(lambda self: self._coo[1].is_cpu)
    is_cuda = property(lambda self: self._coo[1].is_cuda)
    device = property(lambda self: self._coo[1].device)
    _version = property(lambda self: self._coo[1]._version)

    def get_device(self) -> int:
        return self._coo[1].get_device()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False

    def stride(self, dim: int | None = None) -> Any:
        return (0,) * self.dim() if dim is None else 0

    def _indices(self) -> Tensor:
        """The coordinates (sparse dimensions, elements), also of a tensor with doubles."""
        return self._coo[0]

    def _values(self) -> Tensor:
        """The values (elements, *dense dimensions), also of a tensor with doubles."""
        return self._coo[1]

    def _nnz(self) -> int:
        """How many elements there are, doubles included."""
        return self._coo[0].shape[1]

    def _dimI(self) -> int:
        return self.sparse_dim()

    def _dimV(self) -> int:
        return self.dense_dim()

    def sparse_dim(self) -> int:
        return self._coo[0].shape[0]

    def dense_dim(self) -> int:
        return self._coo[1].dim() - 1

    def is_coalesced(self) -> bool:
        """Whether the coordinates are known to be in order and without doubles."""
        return self._coo[2]

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        self._coo = (*self._coo[:2], coalesced)
        return self

    def indices(self) -> Tensor:
        """The coordinates, of a coalesced tensor alone."""
        self._check_coalesced("indices")
        return self._coo[0]

    def values(self) -> Tensor:
        """The values, of a coalesced tensor alone."""
        self._check_coalesced("values")
        return self._coo[1]

    def _check_coalesced(self, name: str) -> None:
        if not self._coo[2]:
            raise RuntimeError(
                f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
            )

    def sparse_resize_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
        """Another size, with the same elements; with other numbers of dimensions only where there are none."""
        same = (sparse_dim, dense_dim) == (self.sparse_dim(), self.dense_dim())
        if not same and self._nnz():
            raise RuntimeError(
                f"sparse_resize_: got {sparse_dim} sparse and {dense_dim} dense dimensions for a tensor with elements, expected "
                f"{self.sparse_dim()} and {self.dense_dim()}"
            )
        if same and (
            any(new < old for new, old in zip(size, self.shape, strict=True))
            or list(size[sparse_dim:]) != list(self.shape[sparse_dim:])
        ):
            if self._nnz():
                raise RuntimeError(
                    f"sparse_resize_: got the size {list(size)} for a tensor of shape {list(self.shape)} with elements, expected "
                    "sparse dimensions that do not shrink, and the same dense ones"
                )
            same = False
        if not same:
            return self.sparse_resize_and_clear_(size, sparse_dim, dense_dim)
        return self._become(make(*self._coo[:2], size, self._coo[2]), resize=True)

    def sparse_resize_and_clear_(
        self, size: Sequence[int], sparse_dim: int, dense_dim: int
    ) -> SparseTensor:
        """Another size, without elements."""
        if sparse_dim + dense_dim != len(size):
            raise RuntimeError(
                f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}"
            )
        indices = self._coo[0].new_zeros([sparse_dim, 0])
        values = self._coo[1].detach().new_zeros([0, *size[sparse_dim:]])
        return self._become(make(indices, values, size, coalesced=True), resize=True)

    def resize_as_sparse_(self, the_template: SparseTensor) -> SparseTensor:
        """The size of another sparse tensor."""
        dims = the_template.sparse_dim(), the_template.dense_dim()
        return self.sparse_resize_(list(the_template.shape), *dims)

    # ---- gradients: those of the values --------------------------------------------------------------
    def _like(self, values: Tensor) -> SparseTensor:
        """The same places with other values."""
        return make(self._coo[0], values, self.shape, self._coo[2])

    def _gradient(self, values: Tensor) -> SparseTensor:
        """The gradient from that of the values: of doubles, which all have that of their sum, it holds one."""
        return self._like(values) if self._coo[2] else _OPERATORS["_without_doubles"](self, values)

    @property
    def requires_grad(self) -> bool:
        return self._coo[1].requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._coo[1].requires_grad = value

    @property
    def grad(self) -> Tensor | None:
        grad = self._coo[1].grad
        return None if grad is None else self._gradient(grad)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._coo[1].grad = None if value is None else self._values_of(value)

    grad_fn = property(lambda self: self._coo[1].grad_fn)
    is_leaf = property(lambda self: self._coo[1].is_leaf)
    retains_grad = property(lambda self: self._coo[1].retains_grad)
    data = property(lambda self: self.detach(), lambda self, value: self._become(value))

    def _values_of(self, other: Tensor) -> Tensor:
        """What another tensor has at this one's places."""
        if isinstance(other, SparseTensor) and other._coo[0] is self._coo[0]:
            return other._coo[1]
        values: Tensor = other.sparse_mask(self)._values()
        return values

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._coo[1].requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        self._coo[1].retain_grad()

    def detach_(self) -> SparseTensor:
        self._coo[1].detach_()
        return self

    def backward(self, gradient: Tensor | None = None, *args: Any, **kwargs: Any) -> None:
        given = None if gradient is None else self._values_of(gradient)
        self._coo[1].backward(given, *args, **kwargs)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        def on_values(grad: Tensor) -> Tensor | None:
            changed = hook(self._gradient(grad))
            return None if changed is None else self._values_of(changed)

        return self._coo[1].register_hook(on_values)

    # ---- conversions ---------------------------------------------------------------------------------
    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """All elements, as a strided tensor; doubles are added."""
        if dtype is not None:
            raise RuntimeError(
                "to_dense: got a dtype, expected None for a sparse tensor; use .to()"
            )
        dense: Tensor = _OPERATORS["to_dense"](self)
        return dense

    def coalesce(self) -> SparseTensor:
        """The tensor with coordinates in order and doubles added; itself where it is so already."""
        result: SparseTensor = _OPERATORS["coalesce"](self)
        return result

    def transpose_(self, dim0: int, dim1: int) -> SparseTensor:
        return self._become(_OPERATORS["transpose"](self, dim0, dim1), resize=True)

    def t_(self) -> SparseTensor:
        return self._become(_OPERATORS["t"](self), resize=True)

    swapaxes_ = swapdims_ = transpose_

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is None:
            module, _, name = Tensor.type(self._coo[1]).rpartition(".")
            return f"{module}.sparse.{name}"
        return Tensor.type(self, dtype, non_blocking)

    def contiguous(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("contiguous: got a tensor of layout sparse_coo, expected a strided one")

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.numpy()

    def _no_memory(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "a tensor of layout sparse_coo has no memory of its own; take that of its values()"
        )

    nbytes = property(_no_memory)
    data_ptr = untyped_storage = storage_offset = set_ = __dlpack__ = _no_memory

    def tolist(self) -> NoReturn:
        unsupported("tolist")

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self.to_dense().item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    # ---- printing, copying, pickling -----------------------------------------------------------------
    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return sparse_text(self, *self._coo[:2])

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        indices, values, coalesced = self._coo
        return _rebuild, (
            indices,
            values.detach(),
            tuple(self.shape),
            coalesced,
            self.requires_grad,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if id(self) not in memo:
            indices, values, coalesced = self._coo
            memo[id(self)] = make(
                copy.deepcopy(indices, memo), copy.deepcopy(values, memo), self.shape, coalesced
            )
        copied: SparseTensor = memo[id(self)]
        return copied

    def __copy__(self) -> SparseTensor:
        return make(*self._coo[:2], self.shape, self._coo[2])


def _rebuild(
    indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool, requires_grad: bool
) -> SparseTensor:
    """A tensor from what `__reduce_ex__` recorded."""
    return make(indices, values.requires_grad_(requires_grad), size, coalesced)


def _from_engine(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Operators that no Python code called."""
    if (
        op.name == "contiguous"
    ):  # a gradient that is its leaf's alone, which has no use for an expanded one
        (x,) = args
        return x if x._coo[1].is_contiguous() else _OPERATORS["clone"](x)
    return run_operator(op, args, kwargs)


c10.register_fallback("sparse", _from_engine)
