"""Mappings and references that do not keep objects, by their identity: tensors compare element by element."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Generic, Self, TypeVar

from argand_c10 import Tensor

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]

ValueT = TypeVar("ValueT")


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to others of the same object, and hashed by its identity."""

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, key: Any, callback: Any = None) -> WeakIdRef:
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        mine, theirs = self(), other()
        if mine is None or theirs is None:
            return self is other
        return mine is theirs


class WeakIdKeyDictionary(MutableMapping[Any, ValueT], Generic[ValueT]):
    """Values by objects that it does not keep: an entry goes with its key.

    Args:
        dict: entries to begin with.
        ref_type: the class of the references.
    """

    def __init__(
        self, dict: Mapping[Any, ValueT] | None = None, ref_type: type[WeakIdRef] = WeakIdRef
    ) -> None:
        self.ref_type = ref_type
        self.data: _References = {}
        me = weakref.ref(self)

        def forget(reference: WeakIdRef) -> None:
            mapping = me()
            if mapping is not None:
                mapping.data.pop(reference, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> ValueT:
        value: ValueT = self.data[self.ref_type(key)]
        return value

    def __setitem__(self, key: Any, value: ValueT) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # no object that can be referred to weakly
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return sum(reference() is not None for reference in list(self.data))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self) -> WeakIdKeyDictionary[ValueT]:
        """Another one with the same entries."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __or__(self, other: Any) -> WeakIdKeyDictionary[ValueT]:
        if not isinstance(other, Mapping):
            return NotImplemented
        merged = self.copy()
        merged |= other
        return merged

    def __ror__(self, other: Any) -> WeakIdKeyDictionary[ValueT]:
        if not isinstance(other, Mapping):
            return NotImplemented
        merged = type(self)(other, self.ref_type)
        merged |= self
        return merged

    def keyrefs(self) -> list[WeakIdRef]:
        """References to the keys, some of which may be gone by the time they are asked."""
        return list(self.data)


_References = dict[WeakIdRef, Any]
WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: called, it gives the tensor, or None where it is gone."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"TensorWeakRef: got {type(tensor).__name__}, expected a Tensor")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
