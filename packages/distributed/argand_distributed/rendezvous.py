"""Where processes meet: env://, tcp:// and file:// give a store, a rank and the number of ranks."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from urllib.parse import parse_qs, urlparse

from argand_distributed import _C

Met = tuple[_C.Store, int, int]


def _number(name: str, given: int, query: dict[str, list[str]], variable: str | None) -> int:
    """`given`, or the URL's, or the environment's."""
    if given >= 0:
        return given
    if name in query:
        return int(query[name][0])
    if variable and variable in os.environ:
        return int(os.environ[variable])
    raise ValueError(
        f"init_process_group: got no {name}, expected it as an argument"
        + (
            f", or in the environment variable {variable}; argand-run sets it"
            if variable
            else f", or as ?{name}= in the URL"
        )
    )


def _tcp(host: str, port: int, rank: int, size: int, timeout: datetime.timedelta) -> Met:
    # Under the launcher the store is the launcher's, and survives any worker.
    served = os.environ.get("ARGAND_RUN_SERVES_STORE") == "1"
    store = _C.TCPStore(host, port, size, rank == 0 and not served, timeout, False)
    if not served:
        return store, rank, size
    # One store serves all attempts of a run.
    return _C.PrefixStore(f"attempt{os.environ['ARGAND_RESTART_COUNT']}", store), rank, size


def _env(
    rest: str, query: dict[str, list[str]], rank: int, size: int, timeout: datetime.timedelta
) -> Met:
    rank = _number("rank", rank, query, "RANK")
    size = _number("world_size", size, query, "WORLD_SIZE")
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ValueError(
            f"init_process_group: env:// needs the environment variable {missing[0]}; argand-run sets it"
        )
    return _tcp(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), rank, size, timeout)


def _address(
    rest: str, query: dict[str, list[str]], rank: int, size: int, timeout: datetime.timedelta
) -> Met:
    parsed = urlparse(f"tcp://{rest}")
    if not parsed.hostname or parsed.port is None:
        raise ValueError(f"init_process_group: got tcp://{rest}, expected tcp://host:port")
    rank = _number("rank", rank, query, None)
    size = _number("world_size", size, query, None)
    store = _C.TCPStore(parsed.hostname, parsed.port, size, rank == 0, timeout, False)
    return store, rank, size


def _file(
    rest: str, query: dict[str, list[str]], rank: int, size: int, timeout: datetime.timedelta
) -> Met:
    if not rest.startswith("/"):
        raise ValueError(f"init_process_group: got file://{rest}, expected file:///absolute/path")
    rank = _number("rank", rank, query, None)
    size = _number("world_size", size, query, None)
    store = _C.FileStore(rest, size)
    store.set_timeout(timeout)
    return store, rank, size


_METHODS: dict[str, Callable[..., Met]] = {"env": _env, "tcp": _address, "file": _file}


def rendezvous(
    url: str,
    rank: int = -1,
    world_size: int = -1,
    timeout: datetime.timedelta = datetime.timedelta(minutes=30),
) -> Met:
    """The store of an address, this process's rank and the number of ranks.

    Args:
        url: env://, tcp://host:port or file:///path; tcp and file take ?rank=&world_size=.
        rank, world_size: -1: from the URL or the environment.
        timeout: until which the store must answer.

    Raises:
        ValueError: the address is none, or leaves something open.
        DistNetworkError: nobody serves the store.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _METHODS:
        raise ValueError(
            f"init_process_group: got init_method {url!r}, expected env://, tcp://host:port or file:///path"
        )
    rest, _, query = rest.partition("?")
    return _METHODS[scheme](rest, parse_qs(query), rank, world_size, timeout)
