"""Which samples of a data set each rank takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any

from argand_aten import randperm
from argand_c10 import Generator
from argand_distributed.world import get_rank, get_world_size
from argand_nn.data import Sampler


class DistributedSampler(Sampler[int]):
    """Deals a data set's indices out to the ranks: rank r takes every num_replicas-th from r on.

    Args:
        dataset: its length counts.
        num_replicas, rank: by default the default group's.
        shuffle: another order in each epoch; the same on all ranks (`set_epoch`).
        seed: of the order; the same on all ranks.
        drop_last: leave out what does not divide evenly, else repeat samples from the beginning.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.num_replicas = get_world_size() if num_replicas is None else num_replicas
        self.rank = get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"DistributedSampler: got rank {self.rank}, expected 0 to {self.num_replicas - 1}"
            )
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    @property
    def num_samples(self) -> int:
        """How many this rank takes."""
        n = len(self.dataset)
        return n // self.num_replicas if self.drop_last else math.ceil(n / self.num_replicas)

    @property
    def total_size(self) -> int:
        return self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        indices: list[Any] = list(range(n))
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = randperm(n, generator=generator).tolist()
        if n:
            indices = (indices * math.ceil(self.total_size / n))[: self.total_size]
        return iter(indices[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Call before each epoch: shuffling then gives another order."""
        self.epoch = epoch
