"""What is said when ranks do not agree, do not come, stop or die."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import argand_aten as aten
import argand_distributed as dist
from argand_distributed import testing as ranks


def differ(rank: int, size: int, what: str) -> str:
    x = aten.ones(4)
    dist.all_reduce(x)
    with pytest.raises(dist.DistBackendError) as error:
        if what == "shapes":
            dist.all_reduce(aten.ones(2, 2 + rank))
        elif what == "dtypes":
            dist.all_reduce(aten.ones(3).double() if rank else aten.ones(3))
        elif what == "operations":
            dist.all_reduce(x, dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)
        elif what == "collectives":
            if rank:
                dist.broadcast(x, 1)  # on rank 1 it ends by itself
                dist.all_reduce(x)
            else:
                dist.all_reduce(x)
        else:
            (dist.send if rank else dist.recv)(aten.ones(3 + rank), 1 - rank)
    with pytest.raises(dist.DistBackendError, match="cannot be used any more"):
        dist.all_reduce(x)
    return str(error.value)


@pytest.mark.parametrize(
    ("what", "calls"),
    [
        ("shapes", ["all_reduce(float32[2, 2], SUM)", "all_reduce(float32[2, 3], SUM)"]),
        ("dtypes", ["all_reduce(float32[3], SUM)", "all_reduce(float64[3], SUM)"]),
        ("operations", ["all_reduce(float32[4], SUM)", "all_reduce(float32[4], MAX)"]),
        ("collectives", ["all_reduce(float32[4], SUM)", "broadcast(float32[4], src=1)"]),
        ("messages", ["send(float32[4])", "recv(float32[3])"]),
    ],
)
def test_calls_that_differ_are_an_error_on_every_rank(what: str, calls: list[str]) -> None:
    began = time.monotonic()
    for message in ranks.run(2, differ, what, seconds=60.0):
        for call in calls:
            assert call in message
        assert "test_failures.py:" in message
    assert time.monotonic() - began < 15  # not the timeout


def one_is_late(rank: int, size: int) -> str:
    dist.barrier()
    if rank == 2:
        time.sleep(6.0)
        return ""
    with pytest.raises(dist.DistBackendError) as error:
        dist.all_reduce(aten.ones(2, 3))
    return str(error.value)


def test_a_timeout_names_who_did_not_arrive_and_the_call() -> None:
    messages = ranks.run(3, one_is_late, seconds=2.0)
    for message in messages[:2]:
        assert "timed out after 2.0 s" in message
        assert "#2 all_reduce(float32[2, 3], SUM) at" in message
        assert "rank 2: has not made this call, its last collective was #1 barrier()" in message
        assert "ranks that did not arrive: 2" in message


def one_stops(rank: int, size: int) -> tuple[str, float]:
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError) as error:
        dist.all_reduce(aten.ones(2))
    return str(error.value), time.monotonic() - began


def test_a_stopped_rank_is_named_within_the_timeout_and_five_seconds() -> None:
    results = ranks.run(3, one_stops, seconds=2.0, may_die=(1,))
    for message, seconds in (results[0], results[2]):
        assert "rank 1: did not answer; its process is stopped, hung or gone" in message
        assert "ranks that did not arrive: 1" in message
        assert seconds < 2.0 + 5.0


def one_dies(rank: int, size: int) -> tuple[str, float]:
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(dist.DistBackendError) as error:
        dist.all_reduce(aten.ones(2))
    return str(error.value), time.monotonic() - began


def test_a_rank_that_dies_is_named_at_once() -> None:
    results = ranks.run(3, one_dies, seconds=60.0, may_die=(1,))
    for message, seconds in (results[0], results[2]):
        assert "ranks that did not arrive: 1" in message
        assert seconds < 10.0


def records(rank: int, size: int) -> list[dict[str, object]]:
    x = aten.ones(3)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    return dist.flight_records()


def test_the_recorder_keeps_every_call_with_the_users_line() -> None:
    for kept in ranks.run(2, records):
        assert [r["call"] for r in kept] == [
            "all_reduce(float32[3], SUM)",
            "broadcast(float32[3], src=0)",
        ]
        assert all(
            str(r["file"]).endswith("test_failures.py") and r["state"] == "done" for r in kept
        )
        assert int(str(kept[1]["line"])) == int(str(kept[0]["line"])) + 1


def recorded(rank: int, size: int) -> list[dict[str, object]]:
    from argand_distributed.world import resolve

    (backend,) = resolve(None).backends.values()
    backend.record_only(3)
    dist.all_reduce(aten.ones(3))
    return dist.flight_records()


def test_calls_that_are_recorded_only() -> None:
    for kept in ranks.run(2, recorded):
        assert [(r["seq"], r["state"]) for r in kept] == [(i, "done") for i in range(1, 5)]
        assert str(kept[0]["file"]).endswith("test_failures.py")


def interrupted(rank: int, size: int) -> str:
    """Ctrl-C while this rank waits for the other one."""
    x = aten.ones(2)
    if rank:
        with pytest.raises(dist.DistBackendError) as error:
            time.sleep(1.0)
            dist.all_reduce(x)
        return str(error.value)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dist.all_reduce(x)
    assert time.monotonic() - began < 2
    with pytest.raises(dist.DistBackendError, match="a signal interrupted rank 0"):
        dist.all_reduce(x)
    return ""


def test_an_interrupt_ends_a_wait_and_others_are_told() -> None:
    assert "gave up: a signal interrupted rank 0" in ranks.run(2, interrupted)[1]
