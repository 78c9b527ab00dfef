"""`Future`: a value that is there later."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
U = TypeVar("U")


class Future(Generic[T]):
    """A value that somebody sets once, or that the first who waits computes; what is to be done with it may be said before.

    Args:
        devices: where the value will lie, which changes nothing: whoever reads it on a device reads in its stream's order.
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._condition = threading.Condition()
        self._compute: Callable[[], T] | None = None
        self._ready: Callable[[], bool] | None = None
        self._value: T | None = None
        self._error: BaseException | None = None
        self._done = False
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    @classmethod
    def of(cls, compute: Callable[[], T], ready: Callable[[], bool]) -> Future[T]:
        """The value of `compute()`, which runs in the thread that waits; `ready()`: whether it would not block."""
        made = cls()
        made._compute, made._ready = compute, ready
        return made

    def done(self) -> bool:
        """Whether the value, or an exception, is there."""
        return self._done or (self._ready is not None and self._ready())

    def wait(self) -> T:
        """The value, as soon as it is there; its exception is raised."""
        self._finish()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def value(self) -> T:
        """The value.

        Raises:
            RuntimeError: it is not there yet, and nothing computes it.
        """
        if not self._done and self._compute is None:
            raise RuntimeError("Future.value: got a future without a value; call wait first")
        return self.wait()

    def then(self, callback: Callable[[Future[T]], U]) -> Future[U]:
        """The future of `callback(self)`, which runs as soon as this one has its value: in the thread that sets it, or that waits."""
        if self._compute is not None:

            def value() -> U:
                self._finish()
                return callback(self)

            return Future.of(value, self.done)
        following: Future[U] = Future()
        self.add_done_callback(lambda future: following._settle(lambda: callback(future)))
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call `callback(self)` as soon as the value is there; what it raises is warned of."""
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._call([callback])

    def set_result(self, result: T) -> None:
        """Give it its value.

        Raises:
            RuntimeError: it has one.
        """
        self._end(result, None)

    def set_exception(self, result: Exception) -> None:
        """Let those who wait raise `result`."""
        if not isinstance(result, Exception):
            raise TypeError(
                f"Future.set_exception: got {type(result).__name__}, expected an exception"
            )
        self._end(None, result)

    def _finish(self) -> None:
        with self._condition:
            compute, self._compute = self._compute, None
        if compute is not None:
            try:
                result = compute()
            except Exception as error:
                self._end(None, error)
            except BaseException:  # an interrupt: the next who waits computes
                with self._condition:
                    self._compute = compute
                    self._condition.notify()
                raise
            else:
                self._end(result, None)
        with self._condition:
            self._condition.wait_for(lambda: self._done or self._compute is not None)
        if not self._done:
            self._finish()

    def _settle(self, compute: Callable[[], T]) -> None:
        """End it by `compute()`; an interrupt of that is the end too, and goes on in this thread."""
        try:
            result = compute()
        except BaseException as error:
            self._end(None, error)
            if not isinstance(error, Exception):
                raise
        else:
            self._end(result, None)

    def _end(self, value: T | None, error: BaseException | None) -> None:
        with self._condition:
            if self._done:
                raise RuntimeError("Future can only be marked completed once")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        self._call(callbacks)

    def _call(self, callbacks: Sequence[Callable[[Future[T]], Any]]) -> None:
        """All of them are called, whichever is interrupted."""
        interrupt: BaseException | None = None
        for callback in callbacks:
            try:
                callback(self)
            except Exception as error:
                warnings.warn(f"Future: a callback raised {error!r}", RuntimeWarning, stacklevel=3)
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of these futures, when all of them are done."""
    given = list(futures)
    if any(future._compute is not None for future in given) or not given:

        def finish() -> list[Future[Any]]:
            for future in given:
                future._finish()
            return given

        return Future.of(finish, lambda: all(future.done() for future in given))
    collected: Future[list[Future[Any]]] = Future()
    lock, left = threading.Lock(), [len(given)]

    def one_is_done(_: Future[Any]) -> None:
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            collected.set_result(given)

    for future in given:
        future.add_done_callback(one_is_done)
    return collected


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """The values of these futures, when all of them are done; the first exception among them is raised."""
    return [future.wait() for future in collect_all(futures).wait()]
