"""How long operators take: `profile`, and names for parts of a program. `argand.profiler` has schedules and traces besides."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from argand.autograd.profiler_util import (
    EventList,
    FunctionEvent,
    events_of,
    trace_event,
    write_trace,
)
from argand.cuda import nvtx
from argand_c10 import profiler as recorder
from argand_c10.modes import ArgandDispatchMode
from argand_c10.profiler import record_function

__all__ = ["EventList", "FunctionEvent", "emit_nvtx", "profile", "record_function"]

# Names of types as PyTorch's traces have them.
_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
_CATEGORIES = {0: "cpu_op", 1: "cpu_op", 7: "user_annotation"}  # by scope


def warn_unmeasured(got: str, stacklevel: int) -> None:
    """Warn that what was asked for is not measured."""
    warnings.warn(
        f"profile: got {got}; kernels of devices are not measured, only the calls that launch them",
        stacklevel=stacklevel,
    )


class profile:
    """A context manager that records the operators of its thread, and of the backwards that it runs.

    Args:
        enabled: whether anything is recorded.
        use_cuda, use_device: devices are not measured; a warning says it.
        record_shapes: the shapes of arguments too.
        profile_memory: by how many bytes the CPU's storages grow in an event too.
        use_cpu: whether operators are recorded.
        acc_events: events of several runs are one list, else those of the last remain.
        custom_trace_id_callback: makes the trace's name.
        with_flops, with_stack, with_modules, use_kineto, experimental_config, post_processing_timeout_s, activity_filters: change nothing.

    Raises:
        RuntimeError: on entering where the thread is profiled already.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[Any, set[str]] | None = None,
    ) -> None:
        device = use_device or ("cuda" if use_cuda else None)
        if enabled and device is not None:
            warn_unmeasured(f"device {device!r}", stacklevel=3)
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.trace_id = ""
        self.entered = False
        self._events: EventList | None = None
        self._span = (0.0, 0.0)
        self._base = 0

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        make = self.custom_trace_id_callback
        self.trace_id = make() if make else uuid.uuid4().hex.upper()
        self._start = time.monotonic_ns()
        self._base = time.time_ns()
        if self.use_cpu:
            recorder.start(shapes=self.record_shapes, memory=self.profile_memory)
        self.entered = True
        return self

    def __exit__(self, *exc: object) -> None:
        if not self.enabled:
            return
        self.entered = False
        recorded = recorder.stop() if self.use_cpu else []
        self._span = (0.0, (time.monotonic_ns() - self._start) / 1e3)
        thread = threading.get_native_id()
        events = EventList(
            events_of(recorded, self._start, thread), profile_memory=self.profile_memory
        )
        if self.acc_events and self._events is not None:
            self._events.extend(events)
        else:
            self._events = events

    @property
    def function_events(self) -> EventList:
        """Every event.

        Raises:
            AssertionError: nothing has been recorded to the end.
        """
        if self._events is None:
            raise AssertionError("Profiler didn't finish running")
        return self._events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None else repr(self._events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None else str(self._events)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Every event as text: `EventList.table`."""
        return self.function_events.table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums of events: `EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> Any:
        """The sum of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Of all events, in microseconds."""
        return self.function_events.self_cpu_time_total

    def export_stacks(self, path: str | Path, metric: str = "self_cpu_time_total") -> None:
        """Write stacks: `EventList.export_stacks`."""
        self.function_events.export_stacks(path, metric)

    def export_chrome_trace(
        self,
        path: str | Path,
        metadata: dict[str, str] | None = None,
        use_python_export: bool = False,
    ) -> None:
        """Write a trace that chrome://tracing and Perfetto show, with the fields of PyTorch's, compressed if the name ends with .gz.

        Args:
            path: of the file.
            metadata: entries of the file, by name; their values are JSON.
            use_python_export: changes nothing.
        """
        write_trace(path, self._chrome_trace(str(path).removesuffix(".gz"), metadata or {}))

    def _chrome_trace(self, name: str, metadata: dict[str, str]) -> dict[str, Any]:
        process = os.getpid()
        named = {"process_name": Path(sys.executable).name, "process_labels": "CPU"}
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": name, "ts": 0.0, "pid": process, "tid": 0, "args": args}
            for name, args in (
                ("process_name", {"name": named["process_name"]}),
                ("process_labels", {"labels": named["process_labels"]}),
                ("process_sort_index", {"sort_index": process}),
            )
        ]
        for thread in sorted({event.thread for event in self.function_events}):
            label = {"name": f"thread {thread} ({named['process_name']})"}
            events.append(
                {"ph": "M", "name": "thread_name", "ts": 0.0, "pid": process, "tid": thread}
                | {"args": label}
            )
        for index, event in enumerate(self.function_events):
            entry = trace_event(event, process, event.thread)
            entry["cat"] = _CATEGORIES[event.scope]
            entry["args"] = {"External id": event.id, "Record function id": 0, "Ev Idx": index}
            if self.record_shapes and event.scope == 0:
                entry["args"] |= {
                    "Input type": [_TYPES.get(t, t) for t in event.input_dtypes],
                    "Input Dims": event.input_shapes,
                }
            events.append(entry)
        begin, end = self._span
        span: dict[str, Any] = {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Spans",
        }
        span |= {"tid": "PyTorch Profiler", "ts": begin, "dur": end - begin}
        events.append(span | {"args": {"Op count": 0}})
        return {
            "schemaVersion": 1,
            "deviceProperties": [],
            "trace_id": self.trace_id,
            **{key: json.loads(value) for key, value in metadata.items()},
            "host_name": socket.gethostname(),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self._base,
            "traceEvents": events,
            "traceName": name,
        }


class emit_nvtx(ArgandDispatchMode):
    """A context manager in which every operator is a range in the timelines of NVIDIA's profilers.

    Args:
        enabled: whether there are ranges.
        record_shapes: the shapes of the arguments stand in the ranges' names.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Self | None:  # type: ignore[override]
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("NVTX annotation context manager is not reentrant")
        self.entered = True
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self.entered = False
            super().__exit__(*exc)

    def __argand_dispatch__(
        self, op: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = op.name.partition(".")[0]
        text = name if "::" in name else f"aten::{name}"
        if self.record_shapes:
            text += f", sizes = {[list(getattr(arg, 'shape', ())) for arg in args]}"
        with nvtx.range(text.replace("{", "{{").replace("}", "}}")):
            return op(*args, **(kwargs or {}))
