"""Operations under way, and what becomes of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from argand_distributed import _C
from argand_distributed.futures import Future

__all__ = ["Future", "Work"]


class Work:
    """An operation under way. Its tensors may be read, or written, after `wait`.

    Args:
        handles: the backend's.
        result: the tensors that `result` gives.
        finish: what remains to be done when all have ended; called once, by the first `wait`.
    """

    __slots__ = ("_finish", "_handles", "_result")

    def __init__(
        self, handles: list[Any], result: list[Any], finish: Callable[[], None] | None = None
    ) -> None:
        self._handles = handles
        self._result = result
        self._finish = finish

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Waits for the end; on CUDA, the current stream does.

        Raises:
            DistBackendError: the operation failed on some rank; its message says which and where.
            DistTimeoutError: it has not ended within `timeout`, and goes on.
        """
        for handle in self._handles:
            handle._wait(timeout)
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish()
        return True

    def is_completed(self) -> bool:
        return all(handle.is_completed() for handle in self._handles)

    def is_success(self) -> bool:
        return all(handle.is_success() for handle in self._handles)

    def exception(self) -> Exception | None:
        for handle in self._handles:
            message = handle._error()
            if message is not None:
                return _C.DistBackendError(message)  # type: ignore[no-any-return]
        return None

    def result(self) -> list[Any]:
        return self._result

    def source_rank(self) -> int:
        """The sender, in the group, of a finished `irecv` from any rank."""
        return int(self._handles[0].source_rank())

    def get_future(self) -> Future[list[Any]]:
        """The result, as communication hooks hand it on."""

        def value() -> list[Any]:
            self.wait()
            return self._result

        return Future.of(value, self.is_completed)
