"""How long operators take: recorded over the steps of a training, shown as tables and traces."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Self

from argand.autograd import profiler as autograd_profiler
from argand.autograd.profiler import record_function
from argand.autograd.profiler_util import DeviceType, EventList

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

ProfilerActivity = Enum("ProfilerActivity", ["CPU", "XPU", "MTIA", "CUDA", "HPU", "PrivateUse1"])


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What is recorded: the calls of operators."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Is there PyTorch's library for traces of devices: no."""
    return False


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """What a profiler does in each step, in cycles of `wait + warmup + active` steps.

    Args:
        wait: steps of a cycle in which nothing is done.
        warmup: steps after them whose events are thrown away.
        active: steps after them that are recorded.
        repeat: how many cycles; 0: until the end.
        skip_first: steps before the first cycle.
        skip_first_wait: not 0: the first cycle does not wait.
    """

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        steps = wait + warmup + active
        if repeat > 0 and step / steps >= repeat:
            return ProfilerAction.NONE
        place = step % steps
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == steps - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    if not (wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0):
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    return action


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes each trace to a file of its own.

    Args:
        dir_name: the folder, made where there is none.
        worker_name: how the files' names begin; else by host and process.
        use_gzip: compress the files.
        use_python_export: changes nothing.
    """

    def handler(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as e:
            raise RuntimeError("Can't create directory: " + dir_name) from e
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


def _record_always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class profile:
    """A context manager that records operators of its thread, all the time or as a schedule says. `step` begins the next step.

    Args:
        activities: what is recorded; of those that are not supported a warning tells.
        schedule: what is done in each step; None: everything is recorded.
        on_trace_ready: called with the profiler when a cycle of steps has been recorded.
        record_shapes: the shapes of arguments too.
        profile_memory: by how many bytes the CPU's storages grow in an event too.
        acc_events: events of several cycles are one list, else those of the last remain.
        custom_trace_id_callback: makes the trace's name.
        execution_trace_observer: an object with `start` and `stop`, called with the recording.
        use_cuda: as the activity.
        with_stack, with_flops, with_modules, experimental_config, post_processing_timeout_s: change nothing.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        wanted: set[Any] = set() if activities is not None else supported_activities()
        for activity in activities or ():
            wanted.update(activity if isinstance(activity, dict) else [activity])
        if use_cuda:
            wanted.add(ProfilerActivity.CUDA)
        if not wanted:
            raise AssertionError("No valid profiler activities found")
        others = wanted - supported_activities()
        if others:
            names = ", ".join(sorted(activity.name for activity in others))
            autograd_profiler.warn_unmeasured(f"activities {names}", stacklevel=3)
        self.activities = wanted
        self.schedule = schedule or _record_always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.execution_trace_observer = execution_trace_observer
        self.custom_trace_id_callback = custom_trace_id_callback
        self.profiler: autograd_profiler.profile | None = None
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._step_range: record_function | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, with what the schedule says of the current step."""
        self._turn(ProfilerAction.NONE, self.current_action)
        self._enter_step()

    def stop(self) -> None:
        """End; a cycle that was being recorded is ready."""
        self._leave_step()
        self._turn(self.current_action, None)

    def step(self) -> None:
        """Say that the next step begins."""
        self._leave_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        self._turn(before, self.current_action)
        self._enter_step()

    def _enter_step(self) -> None:
        if self.record_steps:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _leave_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def _turn(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        """From what was done before to what is done now; None: the end."""
        recording = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if before in recording:
            if before is ProfilerAction.RECORD and now in recording:
                return
            early = before is ProfilerAction.RECORD and now is not None
            if early:
                warnings.warn("Incorrect schedule: RECORD is followed by no end", stacklevel=4)
            self.stop_trace()
            if not early and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if now in recording:
            self.prepare_trace()
            self.start_trace()

    def prepare_trace(self) -> None:
        """Make ready for `start_trace`."""
        if self.profiler is None or not self.acc_events:
            self.profiler = autograd_profiler.profile(
                record_shapes=self.record_shapes,
                profile_memory=self.profile_memory,
                use_cpu=ProfilerActivity.CPU in self.activities,
                acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
            )

    def start_trace(self) -> None:
        """Record from now on, whatever the schedule says."""
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        self._recorded().__enter__()
        for name in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, name):
                self._metadata[name] = "1"
        self._metadata.update(self.preset_metadata)

    def stop_trace(self) -> None:
        """End what `start_trace` began."""
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        self._recorded().__exit__(None, None, None)

    def _recorded(self) -> autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized: nothing has been recorded")
        return self.profiler

    def events(self) -> EventList:
        """Every event of the last cycle.

        Raises:
            AssertionError: nothing has been recorded to the end.
        """
        return self._recorded().function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums of events of one name, or of one name and the same shapes; `table` shows them."""
        return self._recorded().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str | Path, use_python_export: bool = False) -> None:
        """Write a trace that chrome://tracing and Perfetto show, compressed if the name ends with .gz."""
        self._recorded().export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str | Path, metric: str = "self_cpu_time_total") -> None:
        """Write how long each stack took: nothing, since no stacks are recorded."""
        self._recorded().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the trace's file."""
        self._metadata[key] = json.dumps(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, which is JSON, to the trace's file."""
        self._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a value, which is JSON, to the files of traces that begin from now on."""
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Name the traces that begin from now on."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the last trace."""
        return None if self.profiler is None else self.profiler.trace_id
