"""Events of a profiler, their sums, and the table that shows them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from argand_c10.profiler import RawEvent

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

DeviceType = Enum("DeviceType", ["CPU", "CUDA", "HIP", "MTIA", "XPU", "HPU", "PrivateUse1"])

_WIDTH = 12  # of a column of numbers


class Interval:
    """From `start` to `end`, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start


def _time(us: float, unit: str | None = None) -> str:
    if unit == "s" or (unit is None and us >= 1e6):
        return f"{us / 1e6:.3f}s"
    if unit == "ms" or (unit is None and us >= 1e3):
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def _share(part: float, whole: float) -> str:
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


def _memory(nbytes: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


class _Measured:
    """What events and their sums show. Nothing is measured on devices."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = 0.0
    self_device_time_total = 0.0
    device_memory_usage = 0
    self_device_memory_usage = 0
    device_type = DeviceType.CPU
    use_device: str | None = None
    overload_name = ""
    node_id = -1
    flops = 0
    is_async = False
    is_remote = False
    is_legacy = False

    @property
    def cpu_time(self) -> float:
        """Of one call, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return _time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return _time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return _time(self.self_cpu_time_total)


class FunctionEvent(_Measured):
    """One call. Times are in microseconds since the profiler's start."""

    def __init__(self, number: int, raw: RawEvent, origin: int, thread: int) -> None:
        self.id = number
        self.name = raw.name
        self.trace_name = raw.name
        if raw.kind == 0:
            name = raw.name.partition(".")[0]
            self.name = self.trace_name = name if "::" in name else f"aten::{name}"
        self.time_range = Interval((raw.begin - origin) / 1e3, (raw.end - origin) / 1e3)
        self.thread = thread
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_memory_usage = raw.nbytes
        self.input_shapes: list[Any] = raw.shapes
        self.input_dtypes = raw.types
        self.stack: list[str] = []
        self.kernels: list[Any] = []
        self.scope = (0, 1, 7)[raw.kind]  # a function, a backward function, the user's
        self.is_user_annotation = raw.kind == 2
        self.sequence_nr = -1

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Without the time of the events within."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class FunctionEventAvg(_Measured):
    """The sum of all events of one name, or of one name and the same shapes."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.input_shapes: list[Any] = []
        self.stack: list[str] = []
        self.scope: int | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.is_user_annotation = False

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or a sum."""
        if self.key is None:
            self.key = other.key
            self.input_shapes = other.input_shapes
            self.cpu_parent = other.cpu_parent
            self.scope = other.scope
            self.is_user_annotation = other.is_user_annotation
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


def events_of(recorded: Iterable[RawEvent], origin: int, thread: int) -> Iterator[FunctionEvent]:
    """The events, children and parents known to each other; of an event whose only child has its name, one."""
    made: list[FunctionEvent] = []
    for number, raw in enumerate(recorded):
        event = FunctionEvent(number + 1, raw, origin, thread)
        if raw.parent >= 0:
            event.cpu_parent = made[raw.parent]
            made[raw.parent].cpu_children.append(event)
        made.append(event)
    for event in made:
        parent = event.cpu_parent
        if parent is not None and parent.name == event.name and parent.cpu_children == [event]:
            parent.cpu_children = event.cpu_children
            for child in event.cpu_children:
                child.cpu_parent = parent
        else:
            yield event


class EventList(list[Any]):
    """Events or sums of events."""

    def __init__(self, *args: Any, profile_memory: bool = False) -> None:
        super().__init__(*args)
        self._profile_memory = profile_memory

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums of events of one name, or of one name and the same shapes."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (event.key, event.is_user_annotation) + (
                (str(event.input_shapes),) if group_by_input_shapes else ()
            )
            sums.setdefault(key, FunctionEventAvg()).add(event)
        for total in sums.values():
            if not group_by_input_shapes:
                total.input_shapes = []
        return EventList(sums.values(), profile_memory=self._profile_memory)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = None
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text, a line each.

        Args:
            sort_by: the attribute by which lines are ordered, the largest first; None: as they are.
            row_limit: how many lines; -1: all.
            max_src_column_width: nothing is said of source files.
            max_name_column_width: of names; None: as wide as the longest.
            max_shapes_column_width: of shapes.
            header: a line above.
            top_level_events_only: leave out what lies in other events.
            time_unit: "s", "ms" or "us"; None: whatever fits.
        """
        if not self:
            return ""
        events = self._sorted(sort_by)
        shown = [e for e in events if not (top_level_events_only and e.cpu_parent is not None)]
        if row_limit >= 0:
            shown = shown[:row_limit]
        total = self.self_cpu_time_total
        with_shapes = any(event.input_shapes for event in events)
        widths = [_limited(max(len(e.key) for e in events) + 4, max_name_column_width)]
        rows = [self._headers(with_shapes)]
        for event in shown:
            rows.append(self._row(event, total, max_name_column_width, time_unit))
            if with_shapes:
                rows[-1].append(str(event.input_shapes))
        widths += [_WIDTH] * (len(rows[0]) - 1)
        if with_shapes:
            longest = max(len(str(e.input_shapes)) for e in events) + 4
            widths[-1] = _limited(longest, max_shapes_column_width)
        separator = "".join("-" * width + "  " for width in widths)
        lines = [
            "".join(f"{text[:width]: >{width}}  " for text, width in zip(row, widths, strict=True))
            for row in rows
        ]
        above = []
        if header is not None:
            above += ["=" * (len(separator) - 2), header]
        if top_level_events_only:
            above += [
                "=" * (len(separator) - 2),
                "This report only display top-level ops statistics",
            ]
        below = f"Self CPU time total: {_time(total, time_unit)}"
        return "\n".join([*above, separator, lines[0], separator, *lines[1:], separator, below, ""])

    def _sorted(self, sort_by: str | None) -> list[Any]:
        if sort_by is None:
            return list(self)
        for device in ("cuda", "xpu", "privateuse1"):
            sort_by = sort_by.replace(device, "device")
        attribute = sort_by
        return sorted(self, key=lambda event: getattr(event, attribute), reverse=True)

    def _headers(self, with_shapes: bool) -> list[str]:
        memory = ["CPU Mem", "Self CPU Mem"] if self._profile_memory else []
        times = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        return [
            "Name",
            *times,
            *memory,
            "# of Calls",
            *(["Input Shapes"] if with_shapes else []),
        ]

    def _row(self, event: Any, total: float, limit: int | None, unit: str | None) -> list[str]:
        too_long = limit is not None and len(event.key) >= limit - 3
        row = [
            event.key[: limit - 3] + "..." if limit is not None and too_long else event.key,
            _share(event.self_cpu_time_total, total),
            _time(event.self_cpu_time_total, unit),
            _share(event.cpu_time_total, total),
            _time(event.cpu_time_total, unit),
            _time(event.cpu_time, unit),
        ]
        if self._profile_memory:
            row += [_memory(event.cpu_memory_usage), _memory(event.self_cpu_memory_usage)]
        return [*row, str(event.count)]

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write the events to a file that chrome://tracing and Perfetto show."""
        write_trace(path, [trace_event(e, "CPU functions", e.thread) for e in self])

    def export_stacks(self, path: str | Path, metric: str) -> None:
        """Write how long each stack took, as flame graphs want it: nothing, since no stacks are recorded."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()!s}")
        open(path, "w").close()

    def supported_export_stacks_metrics(self) -> list[str]:
        return [f"self_{d}_time_total" for d in ("cpu", "cuda", "xpu", "privateuse1")]


def _limited(width: int, limit: int | None) -> int:
    return width if limit is None else min(width, limit)


def write_trace(path: str | Path, trace: Any) -> None:
    """Write a trace as JSON, compressed if the file's name ends with .gz."""
    with gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w") as file:
        json.dump(trace, file)


def trace_event(event: FunctionEvent, process: int | str, thread: int) -> dict[str, Any]:
    """One complete event of Chrome's trace format; times are microseconds."""
    return {
        "ph": "X",
        "name": event.trace_name,
        "pid": process,
        "tid": thread,
        "ts": event.time_range.start,
        "dur": event.time_range.elapsed_us(),
        "args": {},
    }
