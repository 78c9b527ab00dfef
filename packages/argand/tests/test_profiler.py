"""argand.profiler and argand.autograd.profiler: what is recorded, summed, shown and written."""

from __future__ import annotations

import gzip
import json
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import argand as torch
from argand.autograd import profiler as autograd_profiler
from argand.autograd.profiler_util import FunctionEvent
from argand.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)


def names(events: list[FunctionEvent]) -> list[str]:
    return [event.name for event in events]


def test_events_nest_and_their_own_times_add_up() -> None:
    x = torch.ones(2, 3)
    with profile(record_shapes=True, profile_memory=True) as p:
        with record_function("outer"):
            y = torch.cat([x, x]) + 1
            with record_function("inner"):
                y.sum(0)
        x.mul_(2)
    outer, cat, add, inner, total, mul = p.events()
    assert names([outer, cat, add]) == ["outer", "aten::cat", "aten::add"]
    assert names([inner, total, mul]) == ["inner", "aten::sum", "aten::mul_"]
    assert outer.cpu_children == [cat, add, inner] and total.cpu_parent is inner
    assert mul.cpu_parent is None and outer.is_user_annotation and not cat.is_user_annotation
    assert cat.input_shapes == [[[2, 3], [2, 3]], []] and add.input_shapes[:2] == [[4, 3], []]
    assert cat.input_dtypes == ["TensorList", "Scalar"] and add.input_dtypes[0] == "float32"
    assert cat.cpu_memory_usage == 48 and mul.cpu_memory_usage == 0
    assert (
        outer.cpu_memory_usage == 48 and outer.self_cpu_memory_usage == -48
    )  # y remains, x twice goes
    for event, within in ((outer, 3), (inner, 1), (cat, 0)):
        children = sum(child.cpu_time_total for child in event.cpu_children)
        assert len(event.cpu_children) == within
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - children)
        assert event.time_range.start >= 0 and event.self_cpu_time_total >= 0
    assert p.events().self_cpu_time_total == pytest.approx(
        outer.cpu_time_total + mul.cpu_time_total
    )


def test_sums_and_their_table() -> None:
    x = torch.ones(3)
    with profile(record_shapes=True, profile_memory=True) as p:
        for n in (1, 2, 3):
            x.repeat(n).exp()
    sums = {event.key: event for event in p.key_averages()}
    assert sums["aten::exp"].count == 3 and sums["aten::exp"].cpu_memory_usage == 72
    assert sums["aten::exp"].cpu_time == pytest.approx(sums["aten::exp"].cpu_time_total / 3)
    assert p.key_averages().total_average().count == len(p.events())
    shapes = [e.input_shapes for e in p.key_averages(group_by_input_shape=True)]
    assert [[3]] in shapes and [[6]] in shapes and [[9]] in shapes
    table = p.key_averages().table(sort_by="self_cpu_time_total", row_limit=1, header="Mine")
    lines = table.splitlines()
    assert lines[1] == "Mine" and lines[-1].startswith("Self CPU time total: ")
    columns = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    assert lines[3].split("  ")[-2:] == ["# of Calls", ""]
    assert [c for c in lines[3].replace("   ", "  ").split("  ") if c.strip()] and all(
        column in lines[3] for column in [*columns, "CPU Mem", "Self CPU Mem"]
    )
    assert len(lines) == 8 and {len(line) for line in lines[2:7]} == {len(lines[2])}
    assert "Input Shapes" in p.key_averages(group_by_input_shape=True).table()
    assert all(cell.endswith("s") for cell in p.events().table(time_unit="s").split()[-1:])
    longer = record_function("n" * 80)
    with profile() as p, longer:
        pass
    assert "n" * 52 + "..." in str(p.events()) and "n" * 80 in p.events().table(
        max_name_column_width=None
    )


def test_backwards_are_recorded_by_their_nodes() -> None:
    w = torch.ones(2, 3, requires_grad=True)
    with profile() as p:
        (w.exp() * 2).sum().backward()
    node = next(e for e in p.events() if e.name == "ExpBackward0")
    assert node.cpu_parent.name == "autograd::engine::evaluate_function: ExpBackward0"
    assert names(node.cpu_children)[-1] == "aten::mul" and node.scope == 1
    found = names(p.events())
    assert found.index("MulBackward0") < found.index("ExpBackward0")
    assert found[-1] == "torch::autograd::AccumulateGrad"


def test_optimizers_name_their_steps() -> None:
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.sum().backward()
    with profile() as p:
        optimizer.step()
        optimizer.zero_grad()
    outer = [event.name for event in p.events() if event.cpu_parent is None]
    assert outer == ["Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"]


def test_errors_close_events() -> None:
    x = torch.ones(2)
    with profile() as p:
        with pytest.raises(RuntimeError), record_function("failing"):
            torch.mm(x, x)
        x.exp()
    failing, mm, exp = p.events()
    assert mm.cpu_parent is failing and exp.cpu_parent is None
    assert failing.time_range.end <= exp.time_range.start


def test_ranges_across_recordings() -> None:
    before = record_function("before")
    before.__enter__()
    with profile() as p:
        after = record_function("after").__enter__()
        torch.ones(1)
        before.__exit__(None, None, None)
    assert names(p.events())[0] == "after" and p.events()[0].cpu_time_total > 0
    with profile() as p:
        torch.ones(1)
        after.__exit__(None, None, None)  # of another recording
        inner = record_function("inner").__enter__()
        outer = record_function("outer").__enter__()
        inner.__exit__(None, None, None)
        outer.__exit__(None, None, None)
        torch.ones(1)
    assert [e.name for e in p.events() if e.cpu_parent is None] == [
        "aten::ones",
        "inner",
        "aten::ones",
    ]

    @record_function("f")
    def f(n: int) -> int:
        """Factorial."""
        return n * f(n - 1) if n else 1

    with autograd_profiler.profile() as p:
        assert f(2) == 2 and f.__doc__ == "Factorial."
    assert len(p.function_events) == 1  # an event that has one of its name inside is one
    assert p.function_events[0].cpu_children == []


def test_one_thread_and_one_profiler_at_a_time() -> None:
    def elsewhere() -> None:
        torch.ones(5).cos()

    with profile() as p:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        torch.ones(1).sin()
        with pytest.raises(RuntimeError, match="profiled already"), profile():
            pass
    assert "aten::sin" in names(p.events()) and "aten::cos" not in names(p.events())
    with profile() as p:
        pass
    assert p.events() == [] and str(p.events()) == ""


def test_schedules() -> None:
    action = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    text = "".join(
        {"NONE": "-", "WARMUP": "w", "RECORD": "r", "RECORD_AND_SAVE": "s"}[action(i).name]
        for i in range(12)
    )
    assert text == "--wrs-wrs---"
    early = schedule(wait=1, warmup=0, active=1, skip_first=1, skip_first_wait=1)
    assert [early(i).name for i in range(3)] == ["NONE", "RECORD_AND_SAVE", "NONE"]
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        schedule(wait=0, warmup=1, active=0)


def test_steps_follow_the_schedule(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    handler = tensorboard_trace_handler(str(tmp_path / "logs"), worker_name="me", use_gzip=True)

    def ready(p: Any) -> None:
        seen.append([e.name for e in p.events() if e.cpu_parent is None])
        handler(p)

    cycle = schedule(wait=1, warmup=1, active=2)
    with profile(schedule=cycle, on_trace_ready=ready) as p:
        for _ in range(8):
            torch.ones(2)
            p.step()
        assert p.step_num == 8 and p.current_action is ProfilerAction.NONE
    assert seen == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]
    files = sorted((tmp_path / "logs").iterdir())
    assert len(files) == 2 and all(
        f.name.startswith("me.") and f.name.endswith(".pt.trace.json.gz") for f in files
    )
    with gzip.open(files[0], "rt") as file:
        trace = json.load(file)
    assert trace["traceName"] == str(files[0]).removesuffix(".gz")
    events = trace["traceEvents"]
    assert any(e["name"] == "ProfilerStep#2" and e["cat"] == "user_annotation" for e in events)
    seen.clear()
    with profile(schedule=cycle, on_trace_ready=ready, acc_events=True) as p:
        for _ in range(8):
            p.step()
    assert seen[1] == [f"ProfilerStep#{n}" for n in (2, 3, 6, 7)]


def test_chrome_traces_have_the_usual_fields(tmp_path: Path) -> None:
    with profile(record_shapes=True, custom_trace_id_callback=lambda: "mine") as p:
        with record_function("part"):
            torch.ones(2, 3).to(torch.int64) @ torch.ones(3, 4, dtype=torch.int64)
    p.add_metadata("who", 'a "name"')
    p.add_metadata_json("numbers", "[1, 2]")
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["schemaVersion"] == 1 and trace["displayTimeUnit"] == "ms"
    assert (trace["who"], trace["numbers"], trace["record_shapes"]) == ('a "name"', [1, 2], 1)
    assert trace["trace_id"] == "mine" == p.get_trace_id()
    by_name = {event["name"]: event for event in trace["traceEvents"]}
    assert by_name["process_name"]["ph"] == "M" and by_name["part"]["cat"] == "user_annotation"
    mm = by_name["aten::mm"]
    assert mm["ph"] == "X" and mm["cat"] == "cpu_op" and mm["dur"] > 0
    assert mm["args"]["Input Dims"] == [[2, 3], [3, 4]]
    assert mm["args"]["Input type"] == ["long", "long"]
    part = by_name["part"]
    assert part["ts"] <= mm["ts"] and mm["ts"] + mm["dur"] <= part["ts"] + part["dur"]
    p.events().export_chrome_trace(str(tmp_path / "plain.json"))
    assert [e["name"] for e in json.loads((tmp_path / "plain.json").read_text())][0] == "part"


def test_devices_are_not_measured() -> None:
    with pytest.warns(UserWarning, match="activities CUDA; kernels of devices") as told:
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        autograd_profiler.profile(use_cuda=True)
    assert "device 'cuda'; kernels of devices" in str(told[1].message)
    assert {Path(w.filename) for w in told} == {Path(__file__)}
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[])
    with autograd_profiler.profile(enabled=False) as p:
        assert p is None
    unfinished = autograd_profiler.profile()
    assert "unfinished" in str(unfinished)
    with pytest.raises(AssertionError):
        assert unfinished.function_events


def test_compiled_programs_leave_ranges_out() -> None:
    def f(x: Any) -> Any:
        with record_function("part"):
            y = torch.linalg.inv(x)
        return y @ x

    x = torch.eye(3) * 2
    compiled = torch.compile(f, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(compiled(x), f(x))
    with profile() as p:
        compiled(x)
    assert "part" not in names(p.events()) and "aten::linalg_inv_ex" in names(p.events())


def test_operators_as_ranges_of_nvtx(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(autograd_profiler.nvtx, "range_push", lambda text: said.append(text))
    monkeypatch.setattr(autograd_profiler.nvtx, "range_pop", lambda: said.append("pop"))
    x = torch.ones(2)
    with autograd_profiler.emit_nvtx(record_shapes=True):
        x.exp()
    x.cos()
    assert said == ["aten::exp, sizes = [[2]]", "pop"]
    with autograd_profiler.emit_nvtx(enabled=False):
        x.exp()
    assert len(said) == 2
