"""Streams and events."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from argand_c10 import _C
from argand_c10.cuda._device import index_of

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "set_stream",
    "stream",
]

_TIMING, _BLOCKING, _INTERPROCESS = 1, 2, 4  # ARGAND_EVENT_* of argand.h


class Stream:
    """A queue of work on a device: what is on one stream runs in order, streams run beside one another.

    Streams come from a pool of 32 per priority; after as many they are shared.

    Args:
        device: a device, an index or None for the current device.
        priority: lower numbers go first; 0 is the default, see `priority_range`.
    """

    device: _C.device
    cuda_stream: int
    priority: int

    def __init__(
        self, device: Any = None, priority: int = 0, *, stream_ptr: int | None = None
    ) -> None:
        index = index_of(device)
        self.device = _C.device("cuda", index)
        self.cuda_stream = (
            _C._cuda_stream_new(index, priority) if stream_ptr is None else stream_ptr
        )
        self.priority = priority

    @property
    def device_index(self) -> int:
        """The index of the stream's device."""
        return self.device.index or 0

    @property
    def device_type(self) -> str:
        """The kind of device, "cuda"."""
        return "cuda"

    @property
    def stream_id(self) -> int:
        """A number that tells the device's streams apart."""
        return self.cuda_stream

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority, as in (0, -5)."""
        return _C._cuda_priority_range(index_of(None))

    def synchronize(self) -> None:
        """Wait until all work on this stream is done."""
        _C._cuda_stream_synchronize(self.device_index, self.cuda_stream)

    def query(self) -> bool:
        """Whether all work on this stream is done."""
        return _C._cuda_stream_query(self.device_index, self.cuda_stream)

    def wait_event(self, event: Event) -> None:
        """Make what is put onto this stream from now on wait for an event; returns at once."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make what is put onto this stream from now on wait for all that another stream has now; returns at once."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Mark this place of the stream by an event (default: a new one); returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        context = StreamContext(self)
        context.__enter__()
        self.__dict__.setdefault("_contexts", []).append(context)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__dict__["_contexts"].pop().__exit__(kind, value, traceback)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.cuda_stream, self.device) == (other.cuda_stream, other.device)

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        return f"<argand.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made; it must outlive this object.

    Args:
        stream_ptr: the CUstream as an integer.
        device: its device (default: the current one).
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, stream_ptr=stream_ptr)


def current_stream(device: Any = None) -> Stream:
    """This thread's current stream of a device."""
    index = index_of(device)
    return Stream(index, stream_ptr=_C._cuda_current_stream(index))


def default_stream(device: Any = None) -> Stream:
    """The stream of a device on which work goes that nobody sent elsewhere."""
    return Stream(device, stream_ptr=0)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """The same as `ExternalStream(data_ptr, device)`."""
    return ExternalStream(data_ptr, device)


def set_stream(stream: Stream | None) -> None:
    """Make a stream this thread's current one of its device; None changes nothing."""
    if stream is not None:
        _C._cuda_set_stream(stream.device_index, stream.cuda_stream)


class StreamContext:
    """Context manager that makes a stream and its device current; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        index = self.stream.device_index
        self._device = _C._cuda_get_device()
        if index != self._device:
            _C._cuda_set_device(index)
        self._previous = _C._cuda_current_stream(index)
        _C._cuda_set_stream(index, self.stream.cuda_stream)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.stream is None:
            return
        _C._cuda_set_stream(self.stream.device_index, self._previous)
        if self.stream.device_index != self._device:
            _C._cuda_set_device(self._device)


def stream(stream: Stream | None) -> StreamContext:
    """Context manager that makes a stream and its device current; None changes nothing."""
    return StreamContext(stream)


class Event:
    """A mark in a stream: waited for by streams or the program, and a clock.

    Args:
        enable_timing: whether `elapsed_time` may be asked.
        blocking: whether `synchronize` lets the thread sleep.
        interprocess: whether other processes may wait for it; not together with timing.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if enable_timing and interprocess:
            raise ValueError(
                "Event: got enable_timing and interprocess, expected at most one of them"
            )
        self._flags = enable_timing * _TIMING | blocking * _BLOCKING | interprocess * _INTERPROCESS
        self._index = -1
        self.cuda_event = 0

    @property
    def device(self) -> _C.device | None:
        """The device whose streams record the event; None before the first time."""
        return _C.device("cuda", self._index) if self._index >= 0 else None

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark at the end of what a stream has now (default: the current stream).

        Raises:
            RuntimeError: for a stream of another device than the first time.
        """
        stream = current_stream() if stream is None else stream
        if self._index < 0:
            self.cuda_event = _C._cuda_event_new(stream.device_index, self._flags)
            self._index = stream.device_index
        if self._index != stream.device_index:
            raise RuntimeError(
                f"Event.record: got a stream of {stream.device} for an event of cuda:{self._index}, "
                "expected the same device; make an event for each device"
            )
        _C._cuda_event_record(self.cuda_event, self._index, stream.cuda_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Make what is put onto a stream from now on wait for this event (default: the current stream)."""
        stream = current_stream() if stream is None else stream
        if self._index >= 0:
            _C._cuda_stream_wait_event(stream.device_index, stream.cuda_stream, self.cuda_event)

    def query(self) -> bool:
        """Whether all work up to the mark is done; True for an event that was never recorded."""
        return self._index < 0 or _C._cuda_event_query(self.cuda_event)

    def synchronize(self) -> None:
        """Wait until all work up to the mark is done."""
        if self._index >= 0:
            _C._cuda_event_synchronize(self.cuda_event)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another; both must have been reached.

        Raises:
            ValueError: for events without timing, or that were never recorded.
        """
        if not self._flags & end_event._flags & _TIMING:
            raise ValueError(
                "Event.elapsed_time: got an event without timing, expected Event(enable_timing=True)"
            )
        if self._index < 0 or end_event._index < 0:
            raise ValueError(
                "Event.elapsed_time: got an event that was never recorded; call record() on both"
            )
        return _C._cuda_event_elapsed(self.cuda_event, end_event.cuda_event)

    def __del__(self) -> None:
        if getattr(self, "_index", -1) >= 0 and _C is not None:
            _C._cuda_event_destroy(self.cuda_event, self._index)

    def __repr__(self) -> str:
        return (
            f"<argand.cuda.Event {self.cuda_event:#x}>"
            if self._index >= 0
            else "<argand.cuda.Event uninitialized>"
        )
