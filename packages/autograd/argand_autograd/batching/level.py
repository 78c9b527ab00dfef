"""One `vmap` that runs: its entries, and the way of tensors into and out of it.

Inside, a tensor that has the mapped dimension is one `Tensor` that looks like its first entry and stands for all of them. What it is an
entry of, its whole, has the entries along dimension 0. Histories of entries are recorded as those of other tensors, by operators on
entries; histories of wholes, below, by the operators on wholes that these come to.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import argand_aten as aten
from argand_autograd import _C
from argand_autograd._tree import flatten, unflatten
from argand_c10 import _C as _core
from argand_c10 import Generator, Tensor, random, tensor, uint8

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = [
    "Level",
    "NotBatchable",
    "default_states",
    "give_up",
    "is_entry",
    "drawn",
    "level_of_call",
    "refuse_random",
    "told",
    "restore_states",
    "run_at_once",
    "runs_at_once",
    "share_memory",
    "shares_history",
    "try_at_once",
    "watch_entries",
    "without_second_try",
]


class NotBatchable(BaseException):
    """The function does what one run for all entries cannot: it has to run entry by entry. Programs that catch exceptions do not catch it."""


class _Threads(threading.local):
    """The levels that run in this thread, by their numbers; who is told of operators that run entry by entry; whether functions may."""

    def __init__(self) -> None:
        self.levels: dict[int, Level] = {}
        self.watcher: Callable[[str], None] | None = None
        self.strict = False


_threads = _Threads()
_numbers = itertools.count(1)
States = list[tuple[Generator, list[int]]]


def default_states() -> States:
    """The default generators and their states, which differ once numbers are drawn."""
    return [(generator, state.tolist()) for generator, state in random.get_rng_states()]


def restore_states(states: States) -> None:
    """Have the generators draw what they drew from there."""
    random.set_rng_states((g, tensor(state, dtype=uint8)) for g, state in states)


def share_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have one storage."""
    while is_entry(a):
        a = _C._whole(a)
    while is_entry(b):
        b = _C._whole(b)
    return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


def is_entry(t: Any) -> bool:
    """Whether a tensor stands for all entries of a `vmap`."""
    return bool(_threads.levels) and isinstance(t, Tensor) and _C._level(t) != 0


def shares_history(entry: Tensor) -> bool:
    """Whether what a tensor is an entry of has a history, which only operators on the whole record."""
    whole = _C._whole(entry)
    return bool(whole.requires_grad) or (is_entry(whole) and shares_history(whole))


def give_up(what: str) -> NoReturn:
    """Have the innermost `vmap` run entry by entry."""
    for level in _threads.levels.values():
        level.failed = True
    raise NotBatchable(
        f"vmap: got {what} of tensors that stand for all entries, expected operators on them"
    )


class Level:
    """What the rules of operators ask about the `vmap` that a call belongs to.

    Attributes:
        number: of a later one, which is further inside, it is larger.
        size: the number of entries.
        randomness: 'error', 'different' or 'same'.
        failed: whether one run is not enough, also if the program has caught the exception that said so.
        states: of the generators, after the last draw that a rule has made for all entries.
    """

    def __init__(self, size: int, randomness: str) -> None:
        self.number = next(_numbers)
        self.size = size
        self.randomness = randomness
        self.failed = False
        self.states = default_states()

    def has(self, t: Any) -> bool:
        """Whether `t` differs from entry to entry."""
        return isinstance(t, Tensor) and _C._level(t) == self.number

    def of(self, t: Any) -> Any:
        """The whole of an entry, and everything else as it is."""
        return _C._whole(t) if self.has(t) else t

    def front(self, t: Any) -> Any:
        """The whole of a tensor, expanded where all entries share it; None stays None."""
        if t is None or not isinstance(t, Tensor):
            return t
        if self.has(t):
            return _C._whole(t)
        return aten.ops.expand(aten.ops.unsqueeze(t, 0), [self.size, *t.shape])

    def aligned(self, t: Any, ndim: int) -> Any:
        """As `of`, with the entries' dimensions preceded by others of size 1, `ndim` in all, so that it broadcasts."""
        if not self.has(t):
            return t
        whole = _C._whole(t)
        for _ in range(ndim - t.ndim):
            whole = aten.ops.unsqueeze(whole, 1)
        return whole

    def entry(self, whole: Any, base: Tensor | None = None) -> Any:
        """The inverse of `of`, for results of operators; a view of the entry `base`."""
        if isinstance(whole, Tensor):
            return _C._make_batched(whole, self.number, base)
        if isinstance(whole, tuple | list):
            return tuple(self.entry(w, base) for w in whole)
        return whole

    def places(self) -> Tensor:
        """The numbers of the entries, (size,)."""
        return aten.arange(self.size)


def agree(t: Tensor) -> bool:
    """Whether a tensor that stands for entries is the same in all of them: those of the first, which are read, are everyone's."""
    if _C._level(t) < 0:
        return False
    whole = _C._whole(t).detach()
    if _C._level(whole) != 0 and not agree(whole):
        return False
    first = aten.ops.slice(whole, 0, 0, 1)
    return bool(aten.ops.eq(whole, first).all())


def watch_entries(watcher: Callable[[str], None] | None) -> Callable[[str], None] | None:
    """Has `watcher` told the name of every operator that this thread runs entry by entry for want of a rule; who was told before."""
    before, _threads.watcher = _threads.watcher, watcher
    return before


def told(name: str) -> None:
    """Of an operator that runs entry by entry."""
    if _threads.watcher is not None:
        _threads.watcher(name)


def level_of_call(tensors: list[Tensor]) -> Level:
    """The innermost level that a call's tensors belong to."""
    numbers = [_C._level(t) for t in tensors]
    if -1 in numbers:
        give_up("an alias that knows nothing of entries")
    level = _threads.levels.get(max(numbers))
    if level is None:
        raise RuntimeError(
            "vmap: got a tensor that stands for the entries of a vmap that has returned, expected results of it; return the tensor from its function"
        )
    return level


@contextmanager
def _running(level: Level) -> Iterator[None]:
    outer: Any = None

    def refuse(t: Tensor) -> None:
        if _C._level(t) != 0 and not agree(t):
            give_up("the elements")
        if outer is not None:
            outer(t)

    outer = _core._exchange_reader(refuse)
    _threads.levels[level.number] = level
    try:
        yield
    finally:
        del _threads.levels[level.number]
        _core._exchange_reader(outer)


def run_at_once(
    call: Callable[[list[Any]], Any],
    leaves: list[Any],
    dims: list[int | None],
    size: int,
    randomness: str,
) -> tuple[Any, list[bool]]:
    """What `call` returns for all entries, with their dimension in front; and which leaves of it have that dimension.

    Args:
        call: of the leaves of arguments, as one entry gets them.
        leaves, dims: the arguments, and where each has the entries' dimension; None: nowhere.
        size: the number of entries, more than 0.
        randomness: what random numbers are, as `vmap` has it.

    Raises:
        NotBatchable: the function needs a run for each entry. Generators are as they were.
    """
    level = Level(size, randomness)
    before = level.states
    entries = [
        t if d is None else level.entry(aten.ops.movedim(t, d, 0) if d % t.ndim else t)
        for t, d in zip(leaves, dims, strict=True)
    ]
    try:
        with _running(level):
            result = call(entries)
            found, structure = flatten(result)
            held = [level.has(t) for t in found]
            wholes = [level.of(t) for t in found]
        if level.failed:
            raise NotBatchable("vmap: the function has asked for the elements of its tensors")
        if any(
            isinstance(t, Tensor) and not h and _C._level(t) < 0
            for t, h in zip(found, held, strict=True)
        ):
            raise NotBatchable("vmap: a result knows nothing of entries")
        if default_states() != level.states and randomness != "same":
            if randomness == "error":
                refuse_random()
            raise NotBatchable("vmap: numbers were drawn for no entry")
    except BaseException:
        restore_states(before)
        raise
    return unflatten(structure, wholes), held


def runs_at_once(tensors: list[Any]) -> bool:
    """Whether functions may get tensors that stand for several: not where others take part in calls, nor in compiled code."""
    return not _core._mode_stack() and not _core._has_override(*tensors)


def try_at_once(
    call: Callable[[list[Any]], Any],
    leaves: list[Any],
    dims: list[int | None],
    size: int,
    randomness: str = "same",
) -> tuple[Any, list[bool]] | None:
    """What `run_at_once` returns; None where the function needs a run for each entry, which also says what errors there are."""
    try:
        return run_at_once(call, leaves, dims, size, randomness)
    except NotBatchable:
        if _threads.strict:
            raise
    except Exception:
        if _threads.strict:
            raise
    return None


def without_second_try(on: bool) -> None:
    """Has functions that need a run for each entry raise in this thread, for tests of the one run."""
    _threads.strict = on


def refuse_random() -> NoReturn:
    """Raises where random numbers are an error."""
    raise RuntimeError(
        "vmap: called random operation while in randomness error mode; pass randomness='different' or randomness='same'"
    )


def drawn(level: Level, draw: Callable[[], Any]) -> Any:
    """What `draw` returns, which draws different numbers for every entry."""
    if default_states() != level.states:
        give_up("random numbers without entries beside those")
    result = draw()
    level.states = default_states()
    return result
