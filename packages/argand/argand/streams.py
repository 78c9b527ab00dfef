"""Streams and events of whatever device: queues of work, and marks in them."""

from __future__ import annotations

import time
from typing import Any

import argand_c10
from argand_c10 import cuda

__all__ = ["Event", "HostEvent", "HostStream", "Stream"]


class HostEvent:
    """A mark in the work of the CPU, which is done as soon as it is made.

    Args:
        enable_timing: whether `elapsed_time` may be asked.
    """

    def __init__(self, enable_timing: bool = False, *, device: str = "cpu") -> None:
        self.device = argand_c10.device(device)
        self.event_id = 0
        self._enable_timing = enable_timing
        self._time: float | None = None

    def __repr__(self) -> str:
        return f"argand.Event device_type={self.device.type}, device_index=-1, event_id={self.event_id}"

    def record(self, stream: Any = None) -> None:
        """Put the mark here."""
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing: what is before the mark is done."""

    def query(self) -> bool:
        """True: what is before the mark is done."""
        return True

    def synchronize(self) -> None:
        """Nothing: what is before the mark is done."""

    def elapsed_time(self, end_event: HostEvent) -> float:
        """Milliseconds from this mark to another.

        Raises:
            ValueError: for events without timing, or that were never recorded.
        """
        if not (self._enable_timing and end_event._enable_timing):
            raise ValueError(
                "Event.elapsed_time: got an event without timing, expected enable_timing=True"
            )
        if self._time is None or end_event._time is None:
            raise ValueError(
                "Event.elapsed_time: got an event that was never recorded; call record() on both"
            )
        return (end_event._time - self._time) * 1e3


class HostStream:
    """The CPU's work, which is done when its calls return.

    Args:
        priority: changes nothing.
    """

    stream_id = 0

    def __init__(self, priority: int = -1, *, device: str = "cpu") -> None:
        self.device = argand_c10.device(device)

    @property
    def device_index(self) -> int:
        """-1: there is one such device."""
        return -1

    @property
    def device_type(self) -> str:
        """The kind of device."""
        return self.device.type

    def query(self) -> bool:
        """True: all is done."""
        return True

    def synchronize(self) -> None:
        """Nothing: all is done."""

    def wait_event(self, event: Any) -> None:
        """Wait for an event."""
        event.synchronize()

    def wait_stream(self, stream: Any) -> None:
        """Wait for what is on another stream."""
        stream.synchronize()

    def record_event(self, event: Any = None) -> Any:
        """Mark this place by an event (default: a new one); returns it."""
        event = HostEvent() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostStream) and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"argand.Stream device_type={self.device_type}, device_index={self.device_index}, "
            f"stream_id={self.stream_id}"
        )

    def __enter__(self) -> HostStream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def _place(device: Any) -> argand_c10.device:
    """The device that a stream or event is for: by default the current accelerator, or the CPU where there is none."""
    if device is None:
        return argand_c10.device("cuda" if cuda.is_available() else "cpu")
    return (
        argand_c10.device("cuda", device) if isinstance(device, int) else argand_c10.device(device)
    )


class _Either(type):
    """The class of classes that stand for others."""

    kinds: tuple[type, ...] = ()

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.kinds)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, cls.kinds)


class Stream(metaclass=_Either):
    """The class of all streams; called, it makes one of a device.

    Args:
        device: a device, or an accelerator's index; None for the current accelerator, the CPU where there is none.
        priority: lower numbers go first.
    """

    kinds = (HostStream, cuda.Stream)

    def __new__(cls, device: Any = None, *, priority: int = 0) -> Any:
        place = _place(device)
        if place.type == "cuda":
            return cuda.Stream(place, priority)
        return HostStream(device=place.type)


class Event(metaclass=_Either):
    """The class of all events; called, it makes one.

    Args:
        device: whose streams it marks; None for the current accelerator, the CPU where there is none.
        enable_timing: whether `elapsed_time` may be asked.
        blocking: whether `synchronize` lets the thread sleep.
        interprocess: whether other processes may wait for it.
    """

    kinds = (HostEvent, cuda.Event)

    def __new__(
        cls,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> Any:
        place = _place(device)
        if place.type == "cuda":
            return cuda.Event(enable_timing, blocking, interprocess)
        return HostEvent(enable_timing, device=place.type)
