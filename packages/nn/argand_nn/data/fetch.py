"""Fetching one batch from a dataset, in the loader's process or in a worker's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

__all__ = ["Fetcher", "make_fetcher"]

# Takes the indices of a batch; raises StopIteration when a stream has ended.
Fetcher = Callable[[Any], Any]


def make_fetcher(
    dataset: Any,
    is_iterable: bool,
    auto_collation: bool,
    collate_fn: Callable[[Any], Any],
    drop_last: bool,
) -> Fetcher:
    """The function that makes batches of `dataset`."""
    if is_iterable:
        stream = iter(dataset)

        def fetch_next(indices: Any) -> Any:
            if not auto_collation:
                return collate_fn(next(stream))
            samples = list(itertools.islice(stream, len(indices)))
            if not samples or (drop_last and len(samples) < len(indices)):
                raise StopIteration
            return collate_fn(samples)

        return fetch_next

    def fetch(indices: Any) -> Any:
        if not auto_collation:
            return collate_fn(dataset[indices])
        get_items = getattr(dataset, "__getitems__", None)
        if get_items is not None:
            return collate_fn(get_items(indices))
        return collate_fn([dataset[index] for index in indices])

    return fetch
