"""Datasets: what a `DataLoader` draws samples from."""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import argand_aten as aten
from argand_c10 import Generator, Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

SampleT = TypeVar("SampleT", covariant=True)


class Dataset(Generic[SampleT]):
    """Samples by index: a subclass defines `__getitem__`, and `__len__` for the usual samplers."""

    def __getitem__(self, index: Any) -> SampleT:
        raise NotImplementedError(
            f"{type(self).__name__}.__getitem__: not defined; a Dataset subclass must define it"
        )

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[SampleT]):
    """Samples in a stream: a subclass defines `__iter__`.

    With several workers each has a copy; `get_worker_info()` says which part is its own.
    """

    def __iter__(self) -> Iterator[SampleT]:
        raise NotImplementedError(
            f"{type(self).__name__}.__iter__: not defined; an IterableDataset subclass must define it"
        )

    def __add__(self, other: Dataset[Any]) -> ChainDataset[Any]:  # type: ignore[override]
        return ChainDataset([self, other])


def _samples(dataset: Any, indices: list[int]) -> list[Any]:
    """A dataset's samples, by its `__getitems__` if it has one."""
    if not hasattr(dataset, "__getitems__"):
        return [dataset[i] for i in indices]
    samples: list[Any] = dataset.__getitems__(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__: got {len(samples)} samples, expected {len(indices)}"
        )
    return samples


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples are tuples of the rows of tensors with equal first sizes."""

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        sizes = {tensor.shape[0] for tensor in tensors}
        if len(sizes) != 1:
            raise AssertionError(
                f"TensorDataset: got first sizes {[t.shape[0] for t in tensors]}, expected equal ones"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Samples are tuples (or dicts) of the samples of datasets of equal length."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset: expected datasets either as arguments or as keyword arguments"
            )
        self.datasets: Any = args or kwargs
        lengths = {len(d) for d in (args or kwargs.values())}
        if len(lengths) != 1:
            raise ValueError(f"StackDataset: got lengths {sorted(lengths)}, expected equal ones")
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The samples at several indices, of each dataset at once if it can."""
        if isinstance(self.datasets, dict):
            names, columns = tuple(self.datasets), self.datasets.values()
            rows = zip(*(_samples(column, indices) for column in columns), strict=True)
            return [dict(zip(names, row, strict=True)) for row in rows]
        return list(zip(*(_samples(column, indices) for column in self.datasets), strict=True))

    def __len__(self) -> int:
        return int(self._length)


class ConcatDataset(Dataset[SampleT]):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Dataset[SampleT]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: got no datasets, expected at least one")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset: got an IterableDataset; use ChainDataset")
        self.cumulative_sizes: list[int] = []
        total = 0
        for dataset in self.datasets:
            total += len(dataset)  # type: ignore[arg-type]
            self.cumulative_sizes.append(total)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> SampleT:
        if not -len(self) <= index < len(self):
            raise (ValueError if index < 0 else IndexError)(
                f"ConcatDataset: got index {index}, expected one in [{-len(self)}, {len(self)})"
            )
        index %= len(self)
        number = bisect.bisect_right(self.cumulative_sizes, index)
        start = self.cumulative_sizes[number - 1] if number else 0
        return self.datasets[number][index - start]


class ChainDataset(IterableDataset[SampleT]):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[SampleT]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(
                    f"ChainDataset: got {type(dataset).__name__}, expected an IterableDataset"
                )
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


class Subset(Dataset[SampleT]):
    """The samples of a dataset at given indices."""

    def __init__(self, dataset: Dataset[SampleT], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The samples at several of its indices, at once if its dataset can."""
        return _samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[SampleT],
    lengths: Sequence[int | float],
    generator: Generator | None = None,
) -> list[Subset[SampleT]]:
    """Disjoint random subsets.

    Args:
        dataset: to split.
        lengths: sizes that sum to the dataset's, or shares that sum to 1 (what rounding leaves is
            dealt out one by one).
        generator: source of the permutation.
    """
    total = len(dataset)  # type: ignore[arg-type]
    sizes = [int(length) for length in lengths]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9 and total != 1:
        if any(not 0 <= share <= 1 for share in lengths):
            raise ValueError(f"random_split: got shares {list(lengths)}, expected them in [0, 1]")
        sizes = [math.floor(total * share) for share in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"random_split: the subset at index {i} is empty", stacklevel=2)
    if sum(sizes) != total:
        raise ValueError(
            f"random_split: got lengths that sum to {sum(sizes)}, expected the dataset's {total}"
        )
    order = aten.randperm(total, generator=generator).tolist()
    subsets, start = [], 0
    for size in sizes:
        subsets.append(Subset(dataset, order[start : start + size]))
        start += size
    return subsets
