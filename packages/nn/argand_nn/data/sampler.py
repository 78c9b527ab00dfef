"""Samplers: the order in which a `DataLoader` draws samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import argand_aten as aten
from argand_c10 import Generator, float64

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "draw_seed",
]

IndexT = TypeVar("IndexT", covariant=True)


def draw_seed(generator: Generator | None = None) -> int:
    """A seed below 2**62 from `generator`, or from the default one."""
    return int(aten.randint(0, 1 << 62, (1,), generator=generator).item())


class Sampler(Generic[IndexT]):
    """Base class: a subclass defines `__iter__`, the indices of one epoch, and mostly `__len__`."""

    def __iter__(self) -> Iterator[IndexT]:
        raise NotImplementedError(
            f"{type(self).__name__}.__iter__: not defined; a Sampler subclass must define it"
        )


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... to the end of the dataset."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Args:
        data_source: the dataset.
        replacement: draw each index independently instead of permuting.
        num_samples: indices an epoch; the dataset's length by default.
        generator: source of randomness; a new seed from the default generator each epoch if None.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: got replacement {replacement!r}, expected a bool")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                f"RandomSampler: got num_samples {self.num_samples!r}, expected a positive integer"
            )

    @property
    def num_samples(self) -> int:
        """Indices an epoch."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(draw_seed())
        size, count = len(self.data_source), self.num_samples
        if size == 0:
            raise ValueError(f"RandomSampler: got {count} samples of an empty data_source to draw")
        if self.replacement:
            yield from aten.randint(0, size, (count,), generator=generator).tolist()
            return
        while count > 0:
            yield from aten.randperm(size, generator=generator).tolist()[:count]
            count -= size

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for place in aten.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities in proportion to weights."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"WeightedRandomSampler: got num_samples {num_samples!r}, expected a positive integer"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"WeightedRandomSampler: got replacement {replacement!r}, expected a bool"
            )
        self.weights = aten.as_tensor(weights, dtype=float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"WeightedRandomSampler: got weights of shape {list(self.weights.shape)}, expected 1-d"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = aten.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of another sampler; the last may be shorter or dropped."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"BatchSampler: got batch_size {batch_size!r}, expected a positive integer"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: got drop_last {drop_last!r}, expected a bool")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        if self.drop_last:
            return count // self.batch_size
        return -(-count // self.batch_size)
