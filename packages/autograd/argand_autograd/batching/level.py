"""One `vmap` that runs: its entries, and the way of tensors into and out of it.

Inside, a tensor that has the mapped dimension is one `Tensor` that looks like its first entry and stands for all of them. What it is an
entry of, its whole, has the entries along dimension 0. Histories of entries are recorded as those of other tensors, by operators on
entries; histories of wholes, below, by the operators on wholes that these come to.

What one run cannot do for all entries, as branching on values that differ, makes it the run of the first: from there on it goes on with
what it has of that entry, and the others run one by one after it. So the function runs as often as in a loop, and what it writes and
does beside its results happens as often and in that order.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import argand_aten as aten
from argand_autograd import _C
from argand_autograd._tree import flatten
from argand_autograd.grad_mode import no_grad
from argand_c10 import _C as _core
from argand_c10 import Generator, Tensor, random

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = [
    "AtOnce",
    "Draws",
    "EntriesDiffer",
    "Level",
    "NotBatchable",
    "NotForEntries",
    "active_levels",
    "ask_before_reading",
    "first_entry",
    "is_entry",
    "level_of_call",
    "run_again",
    "run_at_once",
    "run_below",
    "run_entries",
    "run_of_loop",
    "runs_at_once",
    "share_memory",
    "shares_history",
    "states_of",
    "text_of_entry",
    "without_second_try",
]


class NotBatchable(BaseException):
    """The function has to run again, once for every entry. Programs that catch exceptions do not catch it."""


class EntriesDiffer(RuntimeError):
    """A rule cannot run for all entries: the operator runs for the first, and so does what follows."""


class NotForEntries(RuntimeError):
    """An operator that entries cannot have, whatever their number."""


class _Thread(threading.local):
    """What runs in a thread.

    Attributes:
        active: the levels that see its calls, the innermost last.
        strict: whether what needs a run for each entry raises.
    """

    active: tuple[Level, ...] = ()
    strict = False


_thread = _Thread()
_numbers = itertools.count(1)
_running: dict[int, Level] = {}  # those of all threads, by number


def is_entry(t: Any) -> bool:
    """Whether a tensor stands for all entries of a `vmap`."""
    return bool(_running) and isinstance(t, Tensor) and _C._level(t) != 0


def share_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have one storage."""
    while is_entry(a):
        a = _C._whole(a)
    while is_entry(b):
        b = _C._whole(b)
    return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


def shares_history(entry: Tensor) -> bool:
    """Whether what a tensor is an entry of has a history, which only operators on the whole record."""
    whole = _C._whole(entry)
    return bool(whole.requires_grad) or (is_entry(whole) and shares_history(whole))


def run_again(what: str) -> NoReturn:
    """Have all entries that run in this thread run one by one, from the beginning of their functions."""
    for level in _thread.active:
        level.failed = True
    raise NotBatchable(
        f"vmap: got {what} of tensors that stand for all entries, expected operators on them"
    )


class Draws:
    """The random numbers of one `vmap`, which in all its runs are the same, if they are to be.

    Attributes:
        randomness: 'error', 'different' or 'same'.
    """

    def __init__(self, randomness: str) -> None:
        self.randomness = randomness
        self._before: dict[int, tuple[Generator, Tensor]] = {}

    def look_at(self, generator: Generator | None) -> None:
        """Before numbers are drawn from it, a default generator in the place of None.

        Raises:
            RuntimeError: where they are an error.
        """
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode; pass randomness='different' or randomness='same'"
            )
        if self.randomness == "same":
            for g, state in states_of(generator):
                self._before.setdefault(id(g), (g, state))

    def rewind(self) -> None:
        """Have the generators draw again what they have drawn."""
        random.set_rng_states(self._before.values())


def states_of(generator: Generator | None) -> list[tuple[Generator, Tensor]]:
    """The state of a generator, of all default ones in the place of None."""
    return random.get_rng_states() if generator is None else [(generator, generator.get_state())]


class Level:
    """What the rules of operators ask about the `vmap` that a call belongs to.

    Attributes:
        number: of a later one, which is further inside, it is larger.
        size: the number of entries that the run is for.
        alone: whether that is the first entry alone, or one of a loop.
        draws: the random numbers.
        failed: whether the function has to run again, also if the program has caught the exception that said so.
        thread: the identifier of the thread that it runs in.
        outer: the levels around it.
        inputs: the wholes that the function has got, but those that it has changed.
    """

    def __init__(self, size: int, draws: Draws, alone: bool = False) -> None:
        self.number = next(_numbers)
        self.size = size
        self.alone = alone
        self.draws = draws
        self.failed = False
        self.thread = threading.get_ident()
        self.outer = _thread.active
        self.inputs: list[Tensor] = []
        self._changed_with_history = False
        self._remembered: list[tuple[Tensor, Tensor]] = []

    def run_alone(self, cause: object) -> None:
        """Make the run that of the first entry, from here on."""
        if self.alone:
            return
        if _thread.strict:
            raise NotBatchable(f"vmap: {cause}")
        if self._changed_with_history:  # that of what would be put back is wrong
            raise NotForEntries(
                f"vmap: {cause}, which takes a run for each entry, after it has changed an argument with gradients in place; change a clone() of it"
            )
        self.alone, self.size = True, 1
        self.restore_inputs(1)

    def remember_inputs(self, written: list[Tensor]) -> None:
        """Before entries are changed, which entries that run after this one still need as they were."""
        if self.alone or not written:
            return
        kept = []
        for whole in self.inputs:
            if not any(share_memory(t, whole) for t in written):
                kept.append(whole)
            elif whole.requires_grad:
                self._changed_with_history = True
            else:
                with no_grad():
                    self._remembered.append((whole, aten.ops.clone(whole)))
        self.inputs = kept

    def restore_inputs(self, first: int) -> None:
        """Have entries from `first` on be what they were."""
        with no_grad():
            for whole, before in self._remembered:
                aten.ops.copy_(
                    aten.ops.slice(whole, 0, first, None), aten.ops.slice(before, 0, first, None)
                )
            self._remembered.clear()

    def has(self, t: Any) -> bool:
        """Whether `t` differs from entry to entry."""
        return isinstance(t, Tensor) and _C._level(t) == self.number

    def _whole(self, t: Tensor) -> Tensor:
        whole = _C._whole(t)
        return aten.ops.slice(whole, 0, 0, 1) if self.alone and whole.shape[0] != 1 else whole

    def of(self, t: Any) -> Any:
        """The whole of an entry, and everything else as it is."""
        return self._whole(t) if self.has(t) else t

    def front(self, t: Any) -> Any:
        """The whole of a tensor, expanded where all entries share it; None stays None."""
        if t is None or not isinstance(t, Tensor):
            return t
        if self.has(t):
            return self._whole(t)
        return aten.ops.expand(aten.ops.unsqueeze(t, 0), [self.size, *t.shape])

    def aligned(self, t: Any, ndim: int) -> Any:
        """As `of`, with the entries' dimensions preceded by others of size 1, `ndim` in all, so that it broadcasts."""
        if not self.has(t):
            return t
        whole = self._whole(t)
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


def active_levels() -> tuple[Level, ...]:
    """The levels that see this thread's calls, the innermost last."""
    return _thread.active


def _see_calls(levels: tuple[Level, ...]) -> None:
    _thread.active = levels
    _C._see_every_call(bool(levels))


def run_below(level: Level, run: Callable[[], Any]) -> Any:
    """What `run` returns, whose calls only the levels around `level` see."""
    before = _thread.active
    _see_calls(level.outer)
    try:
        return run()
    finally:
        _see_calls(before)


@contextmanager
def _run_inside(level: Level) -> Iterator[None]:
    before = _thread.active
    _running[level.number] = level
    _see_calls((*before, level))
    try:
        yield
    finally:
        _see_calls(before)
        del _running[level.number]


def _level_of_entry(number: int) -> Level:
    level = _running.get(number)
    if level is None:
        raise RuntimeError(
            "vmap: got a tensor that stands for the entries of a vmap that has returned, expected results of it; return the tensor from its function"
        )
    if level.thread != threading.get_ident():
        raise RuntimeError(
            "vmap: got a tensor that stands for the entries of a vmap in another thread, expected one of this thread; use it where its function runs"
        )
    return level


def level_of_call(tensors: list[Tensor]) -> Level:
    """The innermost level that a call's tensors belong to."""
    numbers = [_C._level(t) for t in tensors]
    if -1 in numbers:
        run_again("an alias that knows nothing of entries")
    return _level_of_entry(max(numbers))


def ask_before_reading(t: Tensor, what: str, lends: bool = False) -> None:
    """Before what is in the memory of an entry, that of the first, is read as everyone's: if it is not, the run is the first entry's.

    Args:
        t: the entry.
        what: what of it is read, for errors.
        lends: whether the memory is given away, and with it the way of gradients.
    """
    number = _C._level(t)
    if number < 0:
        run_again(what)
    level = _level_of_entry(number)
    if lends and _C.is_grad_enabled() and shares_history(t):
        run_again(f"{what} with gradients from outside")
    whole = level.of(t).detach()
    if _C._level(whole) != 0:
        ask_before_reading(whole, what)
    if lends and level.draws.randomness == "same":  # a compiled program draws unseen
        level.draws.look_at(None)
    if level.alone:
        return
    if lends or not bool(aten.ops.eq(whole, aten.ops.slice(whole, 0, 0, 1)).all()):
        level.run_alone(f"got {what} of tensors that stand for all entries")


def ask_before_recording(inputs: tuple[Any, ...]) -> None:
    """Before a compiled function of entries becomes one node: what they share can have no gradient of all entries by it."""
    for level in active_levels():
        if level.draws.randomness == "same":
            level.draws.look_at(None)
    for t in inputs:
        if isinstance(t, Tensor) and (shares_history(t) if is_entry(t) else t.requires_grad):
            run_again("a compiled function, with gradients from outside,")


def first_entry(t: Tensor, outside: int) -> Tensor:
    """What all entries of the levels beyond the number `outside` share is to take of `t`: that of the first, whose run theirs is from then on."""
    while _C._level(t) > outside:
        level = _level_of_entry(_C._level(t))
        level.run_alone("got backward() to a leaf that all entries share")
        t = aten.ops.select(level.of(t), 0, 0)
    return t


def text_of_entry(t: Tensor) -> str:
    """How an entry prints: as what it is an entry of."""
    number = _C._level(t)
    if number < 0:
        return "BatchedTensor(of no known entries)"
    whole = _C._whole(t)
    level = _running.get(number)
    if level is not None and level.alone:
        return repr(aten.ops.select(whole, 0, 0))
    text = repr(whole).replace("\n", "\n    ")
    depth = "?" if level is None else len(level.outer) + 1
    return f"BatchedTensor(lvl={depth}, bdim=0, value=\n    {text}\n)"


# ---- runs -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class AtOnce:
    """What one run returned.

    Attributes:
        leaves: the result's, with the entries in front of those that differ from entry to entry; of the first entry if `alone`.
        differ: which do.
        structure: the result's, for `unflatten`.
        alone: whether the other entries have to run, too.
    """

    leaves: list[Any]
    differ: list[bool]
    structure: Any
    alone: bool


def run_at_once(
    call: Callable[[list[Any]], Any],
    leaves: list[Any],
    dims: list[int | None],
    size: int,
    draws: Draws,
) -> AtOnce | None:
    """What `call` returns for all entries, or for the first; None where it has to run again for all of them.

    Args:
        call: of the leaves of arguments, as one entry gets them.
        leaves, dims: the arguments, and where each has the entries' dimension; None: nowhere.
        size: the number of entries, more than 0.
        draws: the random numbers.
    """
    level = Level(size, draws)
    fronts = [
        t if d is None else aten.ops.movedim(t, d, 0) if d % t.ndim else t
        for t, d in zip(leaves, dims, strict=True)
    ]
    level.inputs = [t for t, d in zip(fronts, dims, strict=True) if d is not None]
    entries = [t if d is None else level.entry(t) for t, d in zip(fronts, dims, strict=True)]
    try:
        with _run_inside(level):
            found, structure = flatten(call(entries))
            if any(isinstance(t, Tensor) and _C._level(t) < 0 for t in found):
                run_again("a result that knows nothing of entries")
            differ = [level.has(t) for t in found]
            wholes = [level.of(t) for t in found]
        if level.failed:
            raise NotBatchable("vmap: the function has caught what has it run again")
    except NotBatchable:
        if _thread.strict or any(outer.failed for outer in level.outer):
            raise
        draws.rewind()
        level.restore_inputs(0)
        return None
    if level.alone:
        wholes = [aten.ops.select(t, 0, 0) if d else t for t, d in zip(wholes, differ, strict=True)]
    return AtOnce(wholes, differ, structure, level.alone)


def run_of_loop(run: Callable[[], Any], draws: Draws) -> Any:
    """What `run` returns for an entry of its own, after others, whose random numbers it draws again if they are to be the same."""
    draws.rewind()
    with _run_inside(Level(1, draws, alone=True)):
        return run()


def run_entries(
    call: Callable[[list[Any]], tuple[Tensor | None, ...]],
    leaves: list[Any],
    dims: list[int | None],
    size: int,
) -> list[Tensor | None]:
    """The results of all entries, with their dimension in front: at once, or one by one from where that cannot be.

    Args:
        call: returns a tuple of tensors, and of None, which is that result for all.
        leaves, dims, size: as of `run_at_once`.
    """
    draws = Draws("same")
    found = run_at_once(call, leaves, dims, size, draws)
    if found is not None and not found.alone:
        return [
            t if t is None or d else aten.stack([t] * size)
            for t, d in zip(found.leaves, found.differ, strict=True)
        ]
    rows = [] if found is None else [tuple(found.leaves)]
    for i in range(len(rows), size):
        one = [t if d is None else t.select(d, i) for t, d in zip(leaves, dims, strict=True)]
        rows.append(run_of_loop(lambda one=one: call(one), draws))  # type: ignore[misc]
    return [
        None if any(t is None for t in column) else aten.stack(list(column))
        for column in zip(*rows, strict=True)
    ]


def runs_at_once(tensors: list[Any]) -> bool:
    """Whether functions may get tensors that stand for several: not where others take part in calls, nor in compiled code."""
    return not _core._mode_stack() and not _core._has_override(*tensors)


def without_second_try(on: bool) -> None:
    """Has functions that need a run for each entry raise in this thread, for tests of the one run."""
    _thread.strict = on
