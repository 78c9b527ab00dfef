"""Process groups: how they are made, named and found."""

from __future__ import annotations

import datetime
import itertools
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argand_c10 import Tensor, agreement
from argand_distributed import _C, nccl
from argand_distributed.agreement import Choices
from argand_distributed.rendezvous import rendezvous

DEFAULT_TIMEOUT: Final = datetime.timedelta(minutes=30)
_LEAVE_SECONDS: Final = 10.0  # that a rank waits for the others before it closes its connections
_BACKENDS: Final = ("gloo", "nccl")


class Backend:
    """Names of backends."""

    GLOO: Final = "gloo"
    NCCL: Final = "nccl"


class ProcessGroup:
    """Some of the ranks, and the connections among them."""

    def __init__(
        self,
        name: str,
        ranks: Sequence[int],
        global_rank: int,
        backends: dict[str, Any],
        store: _C.Store,
    ) -> None:
        self.group_name = name
        self.ranks = list(ranks)
        self.backends = backends  # device type -> backend
        self.store = store
        self.plans: set[str] = (
            set()
        )  # of compiled programs that were compared with the other ranks'
        self._rank = self.ranks.index(global_rank)

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._rank

    def size(self) -> int:
        return len(self.ranks)

    @property
    def name(self) -> str:
        return self.group_name

    def backend_for(self, tensor: Tensor, op: str) -> Any:
        """The backend for a tensor's device, or Gloo for a device without one of its own (through CPU memory)."""
        kind = tensor.device.type
        found = self.backends.get(kind) or (self.backends.get("cpu") if kind != "meta" else None)
        if found is None:
            raise RuntimeError(
                f"{op}: got a tensor on {tensor.device}, expected one on "
                f"{' or '.join(self.backends)}; the process group has no backend for it: "
                'init_process_group("cpu:gloo,cuda:nccl") gives both'
            )
        return found

    def any_backend(self) -> Any:
        return next(iter(self.backends.values()))

    def default_device(self) -> str:
        """Where objects travel."""
        return "cpu" if "cpu" in self.backends else next(iter(self.backends))

    def __repr__(self) -> str:
        return f"ProcessGroup({self.group_name!r}, ranks={self.ranks}, rank={self._rank})"


class _NonMember:
    """Stands for a group that this process is not in."""

    def __repr__(self) -> str:
        return "GroupMember.NON_GROUP_MEMBER"


class GroupMember:
    NON_GROUP_MEMBER: Final = _NonMember()


@dataclass
class _World:
    """What a process knows of the others."""

    rank: int = -1
    size: int = -1
    store: _C.Store | None = None
    monitor_store: _C.Store | None = (
        None  # a connection of its own, so that waits elsewhere do not delay it
    )
    default: ProcessGroup | None = None
    groups: dict[str, ProcessGroup] = field(default_factory=dict)
    backend: str = ""
    timeout: datetime.timedelta = DEFAULT_TIMEOUT
    numbers: itertools.count[int] = field(default_factory=itertools.count)


_world = _World()
_generation = itertools.count()


class group:
    """`group.WORLD`: the default group, None before it exists."""

    WORLD: ProcessGroup | None = None


def is_available() -> bool:
    return True


def is_backend_available(backend: str) -> bool:
    """Whether a backend of this name can be used here."""
    return {"gloo": is_gloo_available, "nccl": is_nccl_available}.get(
        backend.lower(), lambda: False
    )()


def is_mpi_available() -> bool:
    return False


def is_ucc_available() -> bool:
    return False


def get_pg_count() -> int:
    """How many groups this process is in."""
    return len(_world.groups)


def is_gloo_available() -> bool:
    return True


def is_nccl_available() -> bool:
    """NVIDIA's library was found (it is loaded by the first group that uses it)."""
    return nccl.find_library() is not None


def is_initialized() -> bool:
    return _world.default is not None


def is_torchelastic_launched() -> bool:
    """This process was started by `argand-run`."""
    return "ARGAND_RUN_ID" in os.environ


def default_group() -> ProcessGroup:
    if _world.default is None:
        raise ValueError(
            "the default process group has not been initialized; call init_process_group first"
        )
    return _world.default


def resolve(given: ProcessGroup | None) -> ProcessGroup:
    """A group argument: None is the default group."""
    return default_group() if given is None else given


def is_member(given: ProcessGroup | _NonMember | None) -> bool:
    return not isinstance(given, _NonMember)


def _parse_backends(text: str | None) -> dict[str, str]:
    """ "gloo", "nccl" or "cpu:gloo,cuda:nccl" as device type -> backend. None: Gloo, and NCCL where it can be used."""
    if not text or text == "undefined":
        return {"cpu": "gloo", "cuda": "nccl"} if nccl.is_usable() else {"cpu": "gloo"}
    parts = text.lower().split(",")
    if ":" not in text:
        parts = [f"{'cuda' if text.lower() == 'nccl' else 'cpu'}:{text.lower()}"]
    backends = dict(part.split(":", 1) for part in parts)
    for device, name in backends.items():
        if (
            name not in _BACKENDS
            or device not in ("cpu", "cuda")
            or (device, name) == ("cpu", "nccl")
        ):
            raise ValueError(
                f"init_process_group: got backend {text!r}, expected 'gloo', 'nccl' or "
                "'cpu:gloo,cuda:nccl'"
            )
    return backends


def _own_address(store: _C.Store) -> str:
    """This host's address, as others reach it: the one by which it reached the store, else its name's."""
    return store._local_address() or socket.gethostname()


def _connect(
    name: str, ranks: Sequence[int], kinds: dict[str, str], timeout: datetime.timedelta
) -> ProcessGroup:
    """The group of `ranks`, of which this process is one, with every backend connected."""
    assert _world.store is not None
    assert _world.monitor_store is not None
    store = _C.PrefixStore(name, _world.store)
    rank = list(ranks).index(_world.rank)
    backends: dict[str, Any] = {}
    for device, kind in kinds.items():
        own = _C.PrefixStore(kind, store)
        watched = _C.PrefixStore(f"{name}/{kind}/watch", _world.monitor_store)
        if kind == "gloo":
            backends[device] = _C.gloo_group(
                name,
                rank,
                len(ranks),
                list(ranks),
                timeout,
                os.environ.get("GLOO_SOCKET_IFNAME", ""),
                "" if os.environ.get("GLOO_SOCKET_IFNAME") else _own_address(_world.store),
                own,
                watched,
            )
        else:
            backends[device] = nccl.connect(name, rank, list(ranks), timeout, own, watched)
    made = ProcessGroup(name, ranks, _world.rank, backends, store)
    _C.register_group(made.any_backend())
    _world.groups[name] = made
    return made


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: datetime.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: _C.Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes the default process group; every process calls it.

    Args:
        backend: "gloo" (CPU tensors), "nccl" (CUDA tensors) or "cpu:gloo,cuda:nccl"; None: all that can be used.
        init_method: where the processes meet: "env://" (the default: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE), "tcp://host:port",
            "file:///path".
        timeout: of every collective, by default 30 minutes.
        world_size, rank: of this process; from the environment by default.
        store: instead of `init_method`.
        group_name: part of the keys in the store.
        pg_options, device_id: accepted for programs that pass them; a device is the tensor's.

    Raises:
        ValueError: the arguments do not say who this process is, or there is a group already.
        DistNetworkError, DistStoreError: the other processes could not be reached in time.
    """
    if _world.default is not None:
        raise ValueError(
            "init_process_group: the default process group exists already; destroy_process_group ends it"
        )
    if store is not None and init_method is not None:
        raise ValueError("init_process_group: got store and init_method, expected one of them")
    kinds = _parse_backends(backend)
    limit = timeout or DEFAULT_TIMEOUT
    if store is None:
        store, rank, world_size = rendezvous(init_method or "env://", rank, world_size, limit)
    elif rank < 0 or world_size < 1:
        raise ValueError("init_process_group: with a store, rank and world_size are needed")
    store.set_timeout(limit)
    # A second group of the same processes must not find the keys of the first.
    prefix = f"{group_name or 'default'}{next(_generation)}"
    _world.store = _C.PrefixStore(prefix, store)
    clone = store._clone()
    if isinstance(clone, _C.TCPStore):
        clone._set_answer_limit(datetime.timedelta(seconds=2))
    _world.monitor_store = _C.PrefixStore(prefix, clone if clone is not None else store)
    _world.rank, _world.size, _world.timeout = rank, world_size, limit
    _world.backend = backend or ",".join(f"{d}:{k}" for d, k in kinds.items())
    try:
        _world.default = _connect("default", range(world_size), kinds, limit)
    except BaseException:
        _reset()
        raise
    group.WORLD = _world.default
    agreement.share_by(Choices(_world.store, rank))


def _reset() -> None:
    global _world
    _world = _World()
    group.WORLD = None
    agreement.share_by(None)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> Any:
    """A group of some ranks (default: all). Every process of the default group calls it, in the same order, members or not.

    Returns:
        The group; GroupMember.NON_GROUP_MEMBER where this process is not in it.
    """
    world = default_group()
    members = sorted(range(world.size()) if ranks is None else ranks)
    if (
        len(set(members)) != len(members)
        or not members
        or members[0] < 0
        or members[-1] >= world.size()
    ):
        raise ValueError(
            f"new_group: got ranks {list(ranks or [])}, expected different ones of 0 to {world.size() - 1}"
        )
    number = next(_world.numbers)
    if _world.rank not in members:
        return GroupMember.NON_GROUP_MEMBER
    # By local agreement only the members call, so a number that counts all calls would differ from rank to rank.
    name = f"{group_desc or 'group'}:{number}"
    if use_local_synchronization:
        name = f"{group_desc or 'group'}:{'-'.join(map(str, members))}:{sum(g.ranks == members for g in _world.groups.values())}"
    kinds = _parse_backends(backend or _world.backend)
    return _connect(name, members, kinds, timeout or _world.timeout)


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of `group_size` neighbouring ranks each, by default those of a node. Returns this process's, and all."""
    world = resolve(group)
    size = group_size or int(os.environ.get("LOCAL_WORLD_SIZE", world.size()))
    if world.size() % size:
        raise ValueError(
            f"new_subgroups: got group_size {size}, expected a divisor of {world.size()} ranks"
        )
    lists = [world.ranks[first : first + size] for first in range(0, world.size(), size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """A group for each list of global ranks; no rank is in two. Returns this process's (None: it is in no list), and all."""
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if not every or len(set(every)) != len(every):
        raise ValueError(
            f"new_subgroups_by_enumeration: got {ranks_per_subgroup_list}, expected lists in which no rank appears twice"
        )
    groups = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    return next((g for g in groups if is_member(g)), None), groups


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group, or all of them. Waits a while for the other ranks, which may still receive what this one has sent."""
    ended = list(_world.groups.values()) if group is None or group is _world.default else [group]
    for one in reversed(ended):
        _leave(one)
        _C.unregister_group(one.group_name)
        for backend in one.backends.values():
            backend.stop()
        _world.groups.pop(one.group_name, None)
    if group is None or group is _world.default:
        _reset()


def _leave(one: ProcessGroup) -> None:
    try:
        if one.store.add("left", 1) == one.size():
            one.store.set("all left", b"1")
        if any(backend.is_dead() for backend in one.backends.values()):
            return
        one.store.wait(["all left"], datetime.timedelta(seconds=_LEAVE_SECONDS))
        # The process that serves the store goes last.
        if one.rank() == 0:
            deadline = datetime.timedelta(seconds=_LEAVE_SECONDS)
            one.store.wait([f"gone/{r}" for r in range(1, one.size())], deadline)
        else:
            one.store.set(f"gone/{one.rank()}", b"1")
    except _C.DistError:
        pass


def get_rank(group: Any = None) -> int:
    """This process's rank in the group; -1 if it is not in it."""
    return resolve(group).rank() if is_member(group) else -1


def get_world_size(group: Any = None) -> int:
    """The number of ranks of the group; -1 if this process is not in it."""
    return resolve(group).size() if is_member(group) else -1


def get_backend(group: ProcessGroup | None = None) -> str:
    names = sorted({backend.backend for backend in resolve(group).backends.values()})
    return names[0] if len(names) == 1 else "undefined"


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Global ranks of the group's ranks."""
    return list(resolve(group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    return resolve(group).ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in the group of a global rank; ValueError if it is not in it."""
    ranks = resolve(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"rank {global_rank} is not in {resolve(group)}")
    return ranks.index(global_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this host, as the launcher gave it."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "get_node_local_rank: LOCAL_RANK is not set; start by argand-run, or give fallback_rank"
        )
    return fallback_rank


def find_group(name: str) -> ProcessGroup:
    """A group by its name."""
    if name not in _world.groups:
        raise ValueError(
            f"process group {name!r} does not exist here; call init_process_group, or new_group, on every rank first"
        )
    return _world.groups[name]


def flight_records(group: ProcessGroup | None = None) -> list[dict[str, Any]]:
    """The last 2,048 collectives, and as many sends and receives, of this process in the group, oldest first.

    Each has `seq` (the same on all ranks for collectives), `op`, `call` (with shapes and dtypes), `file` and `line` of the user's
    call, `state` (queued, running, done, failed) and `seconds`.
    """
    return [r for backend in resolve(group).backends.values() for r in backend.records()]
