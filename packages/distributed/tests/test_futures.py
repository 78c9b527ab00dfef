"""Futures: values that are set, computed by who waits, handed on and collected."""

from __future__ import annotations

import threading
import time

import pytest

from argand_distributed.futures import Future, collect_all, wait_all


def test_values_are_set_once_and_waited_for() -> None:
    future: Future[int] = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="without a value"):
        future.value()
    threading.Timer(0.05, future.set_result, [3]).start()
    assert future.wait() == 3
    assert future.done()
    assert future.value() == 3
    with pytest.raises(RuntimeError, match="once"):
        future.set_result(4)


def test_exceptions_are_raised_where_values_are_asked_for() -> None:
    future: Future[int] = Future()
    following = future.then(lambda f: f.value() + 1)
    future.set_exception(ValueError("nothing"))
    for waiting in (future, following):
        with pytest.raises(ValueError, match="nothing"):
            waiting.wait()
    with pytest.raises(TypeError, match="expected an exception"):
        Future().set_exception("text")  # type: ignore[arg-type]


def test_callbacks_run_as_soon_as_the_value_is_there() -> None:
    seen: list[int] = []
    future: Future[int] = Future()
    future.add_done_callback(lambda f: seen.append(f.value()))
    doubled = future.then(lambda f: 2 * f.value())
    assert not doubled.done()
    future.set_result(3)
    assert doubled.done()
    assert doubled.value() == 6
    future.add_done_callback(lambda f: seen.append(-f.value()))
    assert seen == [3, -3]
    with pytest.warns(RuntimeWarning, match="callback raised"):
        future.add_done_callback(lambda f: seen[9])


def test_what_is_computed_is_computed_once_by_who_waits() -> None:
    calls: list[threading.Thread] = []

    def compute() -> int:
        time.sleep(0.05)
        calls.append(threading.current_thread())
        return 7

    future = Future.of(compute, lambda: False)
    following = future.then(lambda f: f.value() + 1)
    assert not following.done()
    assert not calls
    other = threading.Thread(target=future.wait)
    other.start()
    assert following.wait() == 8
    other.join()
    assert len(calls) == 1


def test_collections_wait_for_all() -> None:
    a: Future[int] = Future()
    b: Future[int] = Future()
    both = collect_all([a, b])
    sums = both.then(lambda f: sum(part.value() for part in f.value()))
    a.set_result(1)
    assert not both.done()
    b.set_result(2)
    assert both.value() == [a, b]
    assert sums.value() == 3
    assert wait_all([a, Future.of(lambda: 5, lambda: True)]) == [1, 5]
    assert collect_all([]).wait() == []
    b = Future()
    b.set_exception(KeyError("b"))
    with pytest.raises(KeyError):
        wait_all([a, b])


def interrupt(*_):
    raise KeyboardInterrupt


def test_an_interrupted_callback_leaves_nobody_waiting():
    future, seen = Future(), []
    following = future.then(interrupt)
    future.add_done_callback(lambda f: seen.append(f.value()))
    with pytest.raises(KeyboardInterrupt):
        future.set_result(3)
    assert seen == [3] and future.wait() == 3 and following.done()
    with pytest.raises(KeyboardInterrupt):
        following.wait()


def test_who_waits_beside_an_interrupted_thread_computes():
    started, end, seen = threading.Event(), threading.Event(), []

    def compute():
        if not started.is_set():
            started.set()
            end.wait(30)
            raise KeyboardInterrupt
        return 5

    future = Future.of(compute, lambda: False)

    def first():
        with pytest.raises(KeyboardInterrupt):
            future.wait()
        seen.append("interrupted")

    threads = [threading.Thread(target=first)]
    threads[0].start()
    started.wait(30)
    threads.append(threading.Thread(target=lambda: seen.append(future.wait())))
    threads[1].start()
    end.set()
    for thread in threads:
        thread.join(30)
    assert sorted(map(str, seen)) == ["5", "interrupted"]
