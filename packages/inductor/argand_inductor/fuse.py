"""Fusion: groups of loops that run as one kernel over one index space.

A group's space is a list of dimensions, outermost first, some of them reduced. A *full* member runs over the whole space, a *kept*
member over the dimensions that are not reduced; a value flows from one member to another in registers when both address its
buffer alike, and then the buffer is not read again (and not written, if nobody else needs it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from argand_inductor import sizes as sz
from argand_inductor.loop_ir import INDEX, WORDS, Access, Loop, in_memory
from argand_inductor.sizes import Size

FULL, KEPT = "full", "kept"
_ANY = None  # as a dimension's flag: reduced or not


@dataclass(slots=True)
class Member:
    """A loop in a group; `write` and `reads` have one stride a dimension of the group's space."""

    loop: Loop
    level: str
    write: Access
    reads: list[Access]


@dataclass(slots=True)
class Group:
    """A kernel in the making. `reduced` says which dimensions are reduced; `members` are in the order of computation."""

    index: int
    sizes: list[Size]
    reduced: list[bool]
    members: list[Member]

    def written(self) -> dict[str, Member]:
        return {m.loop.name: m for m in self.members}

    def external_reads(self) -> list[str]:
        """Buffers that come from outside, in order of first use."""
        own = self.written()
        return list(
            dict.fromkeys(
                a.buffer
                for m in self.members
                for a in m.reads
                if a.buffer not in own and in_memory(a.buffer)
            )
        )

    @property
    def reduces(self) -> bool:
        return any(self.reduced)

    @property
    def device(self) -> str:
        return self.members[0].loop.device


# ---- index spaces ------------------------------------------------------------------------------------------------------


def _order_key(strides: Iterable[Size], hints: Mapping[str, int]) -> list[int]:
    return [abs(sz.evaluate(s, hints)) for s in strides]


def normalize(loop: Loop, hints: Mapping[str, int], index: int = 0) -> Group:
    """The group of one loop: dimensions in the order of memory, neighbours joined where every access allows it."""
    n = len(loop.sizes)
    kept = n - loop.reduced
    main = loop.write
    if loop.reduced and loop.reads:
        main = max(loop.reads, key=lambda a: sum(1 for s in a.strides if s != 0))
    keys = _order_key(main.strides, hints)
    second = _order_key(loop.write.strides, hints)
    dims = [d for d in range(n) if loop.sizes[d] != 1]
    dims.sort(key=lambda d: (-keys[d], -second[d]))

    def ordered(strides: tuple[Size, ...]) -> list[Size]:
        return [strides[d] for d in dims]

    reads = [a.mapped(ordered) for a in loop.reads]
    write = loop.write.mapped(ordered)
    member = Member(loop, FULL, write, reads)
    group = Group(index, [loop.sizes[d] for d in dims], [d >= kept for d in dims], [member])
    collapse(group)
    return group


def collapse(group: Group) -> None:
    """Join neighbouring dimensions that every access of every member walks through as one."""
    d = 0
    while d + 1 < len(group.sizes):
        inner = group.sizes[d + 1]
        joins = group.reduced[d] == group.reduced[d + 1] and all(
            strides[d] == strides[d + 1] * inner
            for m in group.members
            for a in (m.write, *m.reads)
            for strides in ((a.strides,) if a.guard is None else (a.strides, a.guard.strides))
        )
        if not joins:
            d += 1
            continue
        group.sizes[d : d + 2] = [group.sizes[d] * inner]
        del group.reduced[d]
        for m in group.members:
            m.write = _without(m.write, d)
            m.reads = [_without(a, d) for a in m.reads]


def _without(access: Access, d: int) -> Access:
    return access.mapped(lambda strides: strides[:d] + strides[d + 1 :])


@dataclass(slots=True)
class _Space:
    sizes: list[Size]
    flags: list[bool | None]


def unify(
    a: _Space, b: _Space
) -> tuple[list[Size], list[bool | None], list[list[Size]], list[list[Size]]] | None:
    """A common refinement: (sizes, flags, factors of each dimension of a, of b), or None where there is none."""
    i, j = len(a.sizes) - 1, len(b.sizes) - 1
    of_a: list[list[Size]] = [[] for _ in a.sizes]
    of_b: list[list[Size]] = [[] for _ in b.sizes]
    sizes: list[Size] = []
    flags: list[bool | None] = []
    left_a: Size = a.sizes[i] if i >= 0 else 1
    left_b: Size = b.sizes[j] if j >= 0 else 1
    while i >= 0 and j >= 0:
        if left_a == left_b:
            piece, next_a, next_b = left_a, None, None
        elif (quotient := sz.divide(left_a, left_b)) is not None:
            piece, next_a, next_b = left_b, quotient, None
        elif (quotient := sz.divide(left_b, left_a)) is not None:
            piece, next_a, next_b = left_a, None, quotient
        else:
            return None
        fa, fb = a.flags[i], b.flags[j]
        if fa is not None and fb is not None and fa != fb:
            return None
        sizes.append(piece)
        flags.append(fb if fa is None else fa)
        of_a[i].append(piece)
        of_b[j].append(piece)
        if next_a is None:
            i -= 1
            left_a = a.sizes[i] if i >= 0 else 1
        else:
            left_a = next_a
        if next_b is None:
            j -= 1
            left_b = b.sizes[j] if j >= 0 else 1
        else:
            left_b = next_b
    if i >= 0 or j >= 0:
        return None
    factors = [f[::-1] for f in of_a], [f[::-1] for f in of_b]
    return sizes[::-1], flags[::-1], factors[0], factors[1]


def _split(strides: Sequence[Size], factors: Sequence[Sequence[Size]]) -> list[Size]:
    """Strides after splitting each dimension into factors, outermost first."""
    made: list[Size] = []
    for stride, parts in zip(strides, factors, strict=True):
        steps: list[Size] = []
        step = stride
        for p in reversed(parts):
            steps.append(step)
            step = step * p
        made += reversed(steps)
    return made


def _refine(members: list[Member], factors: Sequence[Sequence[Size]]) -> list[Member]:
    def mapped(a: Access) -> Access:
        return a.mapped(lambda strides: _split(strides, factors))

    return [Member(m.loop, m.level, mapped(m.write), [mapped(a) for a in m.reads]) for m in members]


def _spread(members: list[Member], reduced: Sequence[bool], level: str) -> list[Member]:
    """Members over the kept dimensions, put into a space that also has reduced ones."""

    def spread(strides: tuple[Size, ...]) -> list[Size]:
        own = iter(strides)
        return [0 if r else next(own) for r in reduced]

    def mapped(a: Access) -> Access:
        return a.mapped(spread)

    return [Member(m.loop, level, mapped(m.write), [mapped(a) for a in m.reads]) for m in members]


def _join_full(a: Group, b: Group) -> Group | None:
    """Both over the same elements."""
    free_a, free_b = not a.reduces, not b.reduces
    found = unify(
        _Space(a.sizes, [_ANY] * len(a.sizes) if free_a else list(a.reduced)),
        _Space(b.sizes, [_ANY] * len(b.sizes) if free_b else list(b.reduced)),
    )
    if found is None:
        return None
    sizes, flags, of_a, of_b = found
    members = _refine(a.members, of_a) + _refine(b.members, of_b)
    return Group(a.index, sizes, [bool(f) for f in flags], members)


def _join_kept(a: Group, b: Group) -> Group | None:
    """b (which reduces nothing) over the dimensions that a keeps; result in a's order of members."""
    if not a.reduces or b.reduces:
        return None
    kept = [s for s, r in zip(a.sizes, a.reduced, strict=True) if not r]
    found = unify(_Space(kept, [False] * len(kept)), _Space(b.sizes, [False] * len(b.sizes)))
    if found is None:
        return None
    _, _, of_kept, of_b = found
    pieces = iter(of_kept)
    factors = [[s] if r else next(pieces) for s, r in zip(a.sizes, a.reduced, strict=True)]
    reduced = [r for f, r in zip(factors, a.reduced, strict=True) for _ in f]
    sizes = [s for f in factors for s in f]
    members = _refine(a.members, factors) + _spread(_refine(b.members, of_b), reduced, KEPT)
    return Group(a.index, sizes, reduced, members)


def refine(group: Group, rows: Size, row: Size) -> tuple[Group, int] | None:
    """The group with a boundary of dimensions where `rows` indices of `row` elements each meet, and how many dimensions a row has."""
    found = unify(_Space(group.sizes, list(group.reduced)), _Space([rows, row], [_ANY, _ANY]))
    if found is None:
        return None
    sizes, flags, factors, (_, of_row) = found
    members = _refine(group.members, factors)
    return Group(group.index, sizes, [bool(f) for f in flags], members), len(of_row)


def join(a: Group, b: Group) -> Group | None:
    """The union of two groups, a's members first, or None where values cannot flow in registers between them."""
    for made in (_join_full(a, b), _join_kept(a, b), _swapped(_join_kept(b, a), len(b.members))):
        if made is not None and _flows(made) and _keeps_rows(made):
            return made
    return None


def _keeps_rows(group: Group) -> bool:
    """Whether rows that have gaps behind them are the innermost dimension, and nothing outside of them is reduced."""
    rows = [m.loop.sizes[-1] for m in group.members if m.loop.fills_gaps]
    return not rows or (not any(group.reduced[:-1]) and all(n == group.sizes[-1] for n in rows))


def _swapped(group: Group | None, first: int) -> Group | None:
    if group is not None:
        group.members = group.members[first:] + group.members[:first]
    return group


def _flows(group: Group) -> bool:
    """Whether each read of a member's buffer is of the element that the member computes at the same index."""
    made: dict[str, Member] = {}
    names = {m.loop.name for m in group.members}
    for m in group.members:
        for a in m.reads:
            if a.buffer not in names:
                continue
            source = made.get(a.buffer)
            if source is None or source.write != a:
                return False
            reduction = source.loop.reduction is not None
            if m.level == KEPT and source.level == FULL and not reduction:
                return False
        made[m.loop.name] = m
    return True


# ---- the choice of what to join ---------------------------------------------------------------------------------------------


# Of a result that would leave the caches before it is read: see docs/notes/loops.md.
EPILOGUE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How large kernels may grow, and the least bytes of a call's result whose reader becomes an epilogue."""

    members: int = 96
    cost: int = 4000
    buffers: int = 24
    epilogue_bytes: int = EPILOGUE_BYTES


def draws(group: Group) -> bool:
    """Whether a member reads random words."""
    return any(
        not in_memory(a.buffer) and a.buffer != INDEX for m in group.members for a in m.reads
    )


def fits(size: Size, limit: int) -> bool:
    return isinstance(size, int) and size <= limit


# Groups that are looked at because they read the same buffer: the latest ones.
_NEIGHBOURS = 6


class Fuser:
    """Groups loops greedily, in program order: each joins the group with which it shares most memory traffic.

    Units that are no loops (operator calls) take part as dependencies only. `add_call` and `add_loop` must be called in
    program order.

    Attributes:
        groups: of loops, by unit.
        ancestors: of each unit, the set of units that it depends on, as bits.
        users: of each unit, those that depend on it directly.
    """

    def __init__(self, hints: Mapping[str, int], limits: Limits | None = None) -> None:
        self.hints = hints
        self.limits = limits or Limits()
        self.groups: dict[int, Group] = {}
        self.ancestors: dict[int, int] = {}
        self.users: dict[int, set[int]] = {}
        self.makers: dict[str, int] = {}
        self.readers: dict[str, list[int]] = {}
        self.joined: dict[int, int] = {}
        self.next_index = 0
        self.last_ordered: int | None = None

    def unit(self, index: int) -> int:
        """The unit that a unit has become part of."""
        while index in self.joined:
            index = self.joined[index]
        return index

    def _new_unit(self, dependencies: Iterable[int]) -> int:
        index = self.next_index
        self.next_index += 1
        found = 0
        for d in dependencies:
            found |= self.ancestors[d] | 1 << d
            self.users[d].add(index)
        self.ancestors[index] = found
        self.users[index] = set()
        return index

    def _dependencies(self, reads: Iterable[str]) -> set[int]:
        return {self.unit(self.makers[b]) for b in reads if b in self.makers}

    def add_call(
        self,
        reads: Iterable[str],
        makes: Iterable[str],
        writes: Iterable[str],
        ordered: bool = False,
    ) -> int:
        """An operator call as a unit of its own; `writes` are buffers that existed before. Ordered calls keep their order."""
        reads, writes = list(reads), list(writes)
        dependencies = self._dependencies(reads)
        if ordered and self.last_ordered is not None:
            dependencies.add(self.last_ordered)
        for b in writes:
            dependencies |= {self.unit(r) for r in self.readers.get(b, [])}
        index = self._new_unit(dependencies)
        if ordered:
            self.last_ordered = index
        for b in reads:
            self.readers.setdefault(b, []).append(index)
        for b in (*makes, *writes):
            self.makers[b] = index
        return index

    def add_loop(self, loop: Loop) -> None:
        """A loop: into the best group, or one of its own; then groups that it connects are joined."""
        reads = list(dict.fromkeys(a.buffer for a in loop.reads if a.buffer != INDEX))
        dependencies = self._dependencies(reads)
        index = self._new_unit(dependencies)
        self.groups[index] = normalize(loop, self.hints, index)
        self.makers[loop.name] = index
        candidates = set(dependencies)
        for b in reads:
            others = self.readers.setdefault(b, [])
            candidates |= {self.unit(r) for r in others[-_NEIGHBOURS:]}
            others.append(index)
        shared = {c: self.shared_bytes(c, index) for c in candidates if c in self.groups}
        for candidate in sorted(shared, key=lambda c: (-shared[c], c)):
            current, other = self.unit(index), self.unit(candidate)
            if other != current and self.shared_bytes(other, current) > 0:
                self.try_join(other, current)

    def shared_bytes(self, a: int, b: int) -> int:
        """Traffic that a kernel for both saves; 0 where there is none."""
        if a not in self.groups or b not in self.groups:
            return 0
        one, other = self.groups[a], self.groups[b]
        touched = {x.buffer: x for m in one.members for x in (m.write, *m.reads)}
        total = 0
        for buffer in {x.buffer for m in other.members for x in m.reads if x.buffer != INDEX} & set(
            touched
        ):
            total += 1 + self.volume(one, touched[buffer])
        return total

    def volume(self, group: Group, access: Access) -> int:
        moving = [s for s, stride in zip(group.sizes, access.strides, strict=True) if stride != 0]
        return sz.evaluate(sz.product(moving), self.hints)

    def try_join(self, a: int, b: int) -> bool:
        """Join group b into group a, unless another unit lies between them."""
        first, second = (b, a) if self.ancestors[a] >> b & 1 else (a, b)
        if not self.ancestors[second] >> first & 1:
            first, second = min(a, b), max(a, b)
        if self.lies_between(first, second):
            return False
        one, other = self.groups[first], self.groups[second]
        if one.device != other.device:
            return False
        made = join(one, other)
        if made is None or not self.worthwhile(made, one, other):
            return False
        self.absorb(first, second)
        made.index = first
        self.groups[first] = made
        return True

    def lies_between(self, first: int, second: int) -> bool:
        """Whether another unit needs the first and is needed by the second."""
        above = self.ancestors[second]
        return any(u != second and above >> u & 1 for u in self.users[first])

    def worthwhile(self, made: Group, one: Group, other: Group) -> bool:
        """Whether the joined kernel stays within the limits and no reduction loses its order of memory."""
        if (
            len(made.members) > self.limits.members
            or sum(m.loop.cost for m in made.members) > self.limits.cost
        ):
            return False
        if len(made.external_reads()) + len(made.members) > 4 * self.limits.buffers:
            return False
        if draws(made) and made.reduced[-1:] == [True] and not fits(made.sizes[-1], WORDS):
            return False
        linked = set(one.written()) & {a.buffer for m in other.members for a in m.reads}
        if linked:
            return True
        # Only shared inputs: worth it when both read one of them in the same order.
        if (one.reduces or other.reduces) and (one.reduced, one.sizes) != (
            other.reduced,
            other.sizes,
        ):
            return False
        n = len(one.members)
        first = {a for m in made.members[:n] for a in m.reads if in_memory(a.buffer)}
        return any(a in first for m in made.members[n:] for a in m.reads)

    def absorb(self, first: int, second: int) -> None:
        """Unit `first` takes in group `second`; whatever depends on either now depends on all that both depend on."""
        both = 1 << first | 1 << second
        above = (self.ancestors[first] | self.ancestors.pop(second)) & ~both
        self.ancestors[first] = above
        self.users[first] = (self.users[first] | self.users.pop(second)) - {first, second}
        for unit, mask in self.ancestors.items():
            if mask & both:
                self.ancestors[unit] = mask & ~(1 << second) | 1 << first | above
        for users in self.users.values():
            if second in users:
                users.discard(second)
                users.add(first)
        del self.groups[second]
        self.joined[second] = first
