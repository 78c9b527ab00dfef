"""Programs that launch kernels, on a stand-in for the CUDA driver: kernels compute nothing there, but every call is counted."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from specs import LOCATION, buffer, tensor

import argand_aten as A
import argand_c10 as c10
from argand_c10 import metrics, records, rules
from argand_inductor import _C, load
from argand_inductor.artifact import device_compiler, triton_pool
from argand_inductor.artifact.make import make_program
from argand_inductor.artifact.triton_pool import Image
from argand_inductor.autotune import _operand_bytes, autotuned
from argand_inductor.device_graphs import obstacle_of_program, recorded
from argand_inductor.options import Options
from argand_inductor.program import (
    Buf,
    BufferSpec,
    ExternStep,
    HostScalar,
    LaunchStep,
    ProgramSpec,
    RandomStep,
    TensorSpec,
    TritonKernel,
)

DEVICE = "cuda:0"
_NUMBER = 1 << 8


@functools.cache
def driver() -> Any:
    """The stand-in itself, with its functions for tests."""
    path = os.environ.get("ARGAND_CUDA_DRIVER", "")
    if not Path(path).is_file():
        pytest.skip("needs the stand-in for the driver: set ARGAND_CUDA_DRIVER to it")
    library = ctypes.CDLL(str(Path(path).resolve()))
    if not hasattr(library, "fakeLaunches"):
        pytest.skip("ARGAND_CUDA_DRIVER is a real driver")
    library.fakeLaunched.restype = ctypes.c_char_p
    return library


@pytest.fixture(autouse=True)
def images(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Device code that nobody reads."""
    driver()

    def compiled(kernels: Any, arch: str) -> dict[str, Image]:
        assert arch == "sm_90"
        return {k.name: Image(b"\x7fELF" + k.name.encode(), 128, 64) for k in kernels}

    monkeypatch.setattr(triton_pool, "compile_kernels", compiled)
    monkeypatch.setattr(triton_pool, "library", lambda: ("", ""))
    monkeypatch.setattr(triton_pool, "triton_version", lambda: "3.6.0")
    yield
    driver().fakeFail(b"cuLaunchKernel", 0, 0)


def launches() -> int:
    return int(driver().fakeLaunches())


def launched_since(n: int) -> list[str]:
    return [driver().fakeLaunched(i).decode() for i in range(n, launches())]


def kernel(
    name: str, n_pointers: int, scalars: tuple[str, ...] = (), sizes: int = 0
) -> TritonKernel:
    signature = [(f"p{i}", "*fp32") for i in range(n_pointers)]
    signature += [(f"v{i}", kind) for i, kind in enumerate(scalars)]
    signature += [(f"s{i}", "i64") for i in range(sizes)]
    return TritonKernel(name, f"# {name}", tuple(signature), (("X", 128),), 2, 1)


def on_device(spec: BufferSpec | TensorSpec) -> Any:
    fields = {f: getattr(spec, f) for f in spec.__dataclass_fields__}
    return type(spec)(**{**fields, "device": DEVICE})


def chain(*sizes: int | str, outputs: tuple[str, ...] = ("o",)) -> ProgramSpec:
    """x -> a -> o, two kernels."""
    grid = sizes[0]
    steps = (
        LaunchStep(
            kernel("k_first", 2, sizes=1),
            ("x", "a"),
            ("a",),
            grid,
            sizes=(grid,),
            location=LOCATION,
        ),
        LaunchStep(
            kernel("k_second", 2, sizes=1),
            ("a", "o"),
            ("o",),
            grid,
            sizes=(grid,),
            location=LOCATION,
        ),
    )
    return ProgramSpec(
        (on_device(tensor("x", *sizes)),),
        tuple(Buf(o) for o in outputs),
        steps,
        {"a": on_device(buffer(*sizes)), "o": on_device(buffer(*sizes))},
        arch="sm_90",
    )


def empty(*sizes: int) -> c10.Tensor:
    return A.empty(list(sizes), device=DEVICE)


def test_kernels_are_launched_in_order() -> None:
    program = make_program(chain("s0", 4))
    before = launches()
    (out,) = program(empty(6, 4))
    assert launched_since(before) == ["k_first", "k_second"]
    assert tuple(out.shape) == (6, 4) and str(out.device) == DEVICE


def test_an_empty_grid_is_not_launched() -> None:
    program = make_program(chain("s0", 4))
    before = launches()
    (out,) = program(empty(0, 4))
    assert launches() == before and tuple(out.shape) == (0, 4)


def test_inputs_on_another_device_are_refused() -> None:
    program = make_program(chain("s0", 4))
    with pytest.raises(
        RuntimeError, match=r"got float32 \[6, 4\] .* on cpu, expected .* on cuda:0"
    ):
        program(A.empty([6, 4]))


def test_a_failed_launch_names_the_line() -> None:
    program = make_program(chain("s0", 4))
    x = empty(6, 4)
    driver().fakeFail(b"cuLaunchKernel", 1, 1)
    with pytest.raises(RuntimeError, match=r"in compiled code of model.py:12 \(forward\)"):
        program(x)
    driver().fakeFail(b"cuLaunchKernel", 0, 0)
    (out,) = program(x)
    assert tuple(out.shape) == (6, 4)


def test_a_module_without_its_kernel_is_unloaded() -> None:
    unloaded = driver().fakeCalls(b"cuModuleUnload")
    driver().fakeFail(b"cuModuleGetFunction", 500, 1)  # the second of two kernels
    try:
        with pytest.raises(RuntimeError):
            make_program(chain("s0", 5))
    finally:
        driver().fakeFail(b"cuModuleGetFunction", 0, 0)
    assert driver().fakeCalls(b"cuModuleUnload") == unloaded + 1


def test_operands_that_are_not_aligned_are_copied() -> None:
    program = make_program(chain(8))
    base = empty(16)
    copies = driver().fakeCalls(b"cuMemcpyDtoDAsync_v2")
    program(base[0:8])
    assert driver().fakeCalls(b"cuMemcpyDtoDAsync_v2") == copies
    program(base[1:9])
    assert driver().fakeCalls(b"cuMemcpyDtoDAsync_v2") == copies + 1


def test_what_lies_behind_a_last_row_is_copied_with_operands_that_are_not_aligned() -> None:
    spec = chain(3, 50)
    padded = replace(spec.inputs[0], strides=(64, 1))
    program = make_program(replace(spec, inputs=(padded,)))
    base = A.full([200], 7.0).to(DEVICE)
    seen = []

    def note(name: bytes, params: Any) -> int:
        if name == b"k_first":
            source = ctypes.c_uint64.from_address(params[0]).value
            seen.append(list((ctypes.c_float * 192).from_address(source)))
        return 0

    with deferred(note, lambda launch: None):
        program(A.as_strided(base, (3, 50), (64, 1), 1))
        program(A.as_strided(base, (3, 50), (64, 1), 9))  # whose memory ends in the last gap
    assert seen[0] == [7.0] * 192 and seen[1][:191] == [7.0] * 191


def test_operands_of_kernels_that_are_measured_have_their_last_gap() -> None:
    spec = chain(3, 50)
    padded = replace(spec, inputs=(replace(spec.inputs[0], strides=(64, 1)),))
    (first, _) = padded.steps
    assert isinstance(first, LaunchStep)
    assert _operand_bytes(padded, first) == [4 * 3 * 64, 4 * 150]


def test_intermediates_share_one_arena() -> None:
    n = 1 << 20
    steps, buffers, last = [], {}, "x"
    for i in range(8):
        name = f"b{i}"
        steps.append(LaunchStep(kernel(f"k_{i}", 2), (last, name), (name,), 1))
        buffers[name] = on_device(buffer(n))
        last = name
    spec = ProgramSpec(
        (on_device(tensor("x", n)),), (Buf(last),), tuple(steps), buffers, arch="sm_90"
    )
    program = make_program(spec)
    x = empty(n)
    program(x)
    assert driver().fakeUsed(0) <= 64 << 20


def test_host_numbers_are_read_at_the_launch() -> None:
    spec = ProgramSpec(
        (on_device(tensor("x", 8)), tensor("s")),
        (Buf("o"),),
        (
            LaunchStep(
                kernel("k_scale", 2, ("fp32",)),
                ("x", "o"),
                ("o",),
                1,
                (HostScalar("s", "float32"),),
            ),
        ),
        {"o": on_device(buffer(8))},
        arch="sm_90",
    )
    before = launches()
    make_program(spec)(empty(8), A.full([], 2.5))
    assert launched_since(before) == ["k_scale"]
    assert "host" in obstacle_of_program(spec)


def test_a_fresh_process_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_program(chain("s0", 4)).serialize()
    monkeypatch.setattr(triton_pool, "compile_kernels", None)
    again = load(data)
    assert again is not None
    before = launches()
    again(empty(6, 4))
    assert launched_since(before) == ["k_first", "k_second"]


def test_another_triton_compiles_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARGAND_TRITON_PYTHON", raising=False)
    monkeypatch.setattr(device_compiler, "own_triton", lambda: "3.6.0")
    data = make_program(chain("s0", 4)).serialize()
    assert load(data) is not None
    monkeypatch.setattr(
        device_compiler, "own_triton", lambda: ""
    )  # nothing here could make it anew
    assert load(data) is not None
    monkeypatch.setattr(device_compiler, "own_triton", lambda: "3.7.0")
    assert load(data) is None
    old = triton_pool.key_of(kernel("k", 1), "sm_90")
    monkeypatch.setattr(triton_pool, "triton_version", lambda: "3.7.0")
    assert triton_pool.key_of(kernel("k", 1), "sm_90") != old


def test_the_version_of_triton_is_found_without_importing_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("__version__ = '9.1'\nraise ImportError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    assert device_compiler.own_triton() == "9.1"


def test_shapes_of_kernels_with_numbers_are_measured() -> None:
    first, second = chain(8).steps
    others = tuple(replace(first, kernel=kernel(f"k_other{i}", 2, sizes=2)) for i in range(2))
    drawing = replace(first, sizes=("seed", 8), others=others)  # type: ignore[arg-type]
    steps = (RandomStep("seed", "counter", 1, DEVICE, "state"), drawing, second)
    spec = replace(chain(8), steps=steps)
    tried = metrics.counters().get("kernels_tried", 0)
    tuned = autotuned(spec, Options(mode="max-autotune-no-cudagraphs"))
    assert metrics.counters()["kernels_tried"] == tried + 3
    assert all(not getattr(s, "others", ()) for s in tuned.steps)
    autotuned(spec, Options(mode="max-autotune-no-cudagraphs"))
    assert metrics.counters()["kernels_tried"] == tried + 3  # the choice is on disk


# ---- recorded graphs ----------------------------------------------------------------------------------------------------


def recorder(*sizes: int | str) -> Any:
    program = make_program(chain(*sizes), records=_NUMBER)
    assert isinstance(program, _C.GraphRecorder)
    return program


def numbered(n: int, first: float) -> c10.Tensor:
    return (A.arange(n, dtype=c10.float32) + first).to(DEVICE)


@contextmanager
def deferred(note: Callable[[bytes, Any], int], run: Callable[[int], None]) -> Iterator[None]:
    """Launches call `note` with their parameters, and `run` with what that returned when the stream gets there."""
    kinds = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
    hooks = kinds(note), ctypes.CFUNCTYPE(None, ctypes.c_uint64)(run)
    driver().fakeDeferKernels(*hooks)
    try:
        yield
    finally:
        driver().fakeDeferKernels(None, None)


@contextmanager
def running_kernels() -> Iterator[None]:
    """Kernels add 1 to what their first operand holds, when the stream gets there; replays too."""
    noted: list[tuple[int, int, int]] = []

    def note(name: bytes, params: Any) -> int:
        source, target, n = (ctypes.c_uint64.from_address(params[i]).value for i in range(3))
        noted.append((source, target, n))
        return len(noted) - 1

    def run(launch: int) -> None:
        source, target, n = noted[launch]
        values = np.ctypeslib.as_array((ctypes.c_float * n).from_address(source)) + 1
        ctypes.memmove(target, values.ctypes.data, 4 * n)

    with deferred(note, run):
        yield


def test_the_second_call_is_recorded_and_replayed() -> None:
    program = recorder(8)
    x = empty(8)
    for _ in range(5):
        program(x)
    assert program.recordings == 1
    assert driver().fakeCalls(b"cuGraphLaunch") >= 4


def test_results_stay_valid_while_they_are_held() -> None:
    program = recorder(8)
    x = empty(8)
    held = [program(x)[0] for _ in range(5)]
    assert len({t.data_ptr() for t in held}) == 5
    assert program.recordings == 1  # of a call that knew that the first one's result is held


def test_results_that_are_gone_are_not_copied() -> None:
    program = recorder(8)
    x = empty(8)
    program(x)
    assert len({program(x)[0].data_ptr() for _ in range(4)}) == 1
    assert program.recordings == 1


def test_results_outlive_the_recorder() -> None:
    program = recorder(8)
    x = empty(8)
    program(x)
    (out,) = program(x)
    del program
    assert out.data_ptr() != 0 and tuple(out.shape) == (8,)


def test_inputs_that_move_are_copied_in() -> None:
    program = recorder(8)
    inputs = [empty(8) for _ in range(4)]
    for x in inputs:
        program(x)
    assert program.recordings == 1
    copies = driver().fakeCalls(b"cuMemcpyDtoDAsync_v2")
    program(inputs[0])
    assert driver().fakeCalls(b"cuMemcpyDtoDAsync_v2") == copies + 1


def test_results_that_move_are_copied_where_they_are_read() -> None:
    first, second = recorder(8), recorder(8)
    x = empty(8)
    kept = first(x)
    second(kept[0])
    kept = first(x)  # recorded while a result is held: its results are copies
    second(kept[0])
    assert (first.recordings, second.recordings) == (1, 1)
    copies = driver().fakeCalls(b"cuMemcpyDtoDAsync_v2")
    kept = first(x)
    second(kept[0])
    # Out of the one, into the other.
    assert driver().fakeCalls(b"cuMemcpyDtoDAsync_v2") == copies + 2


def test_results_of_another_recording_are_read_where_they_lie() -> None:
    first, second = recorder(8), recorder(8)
    x, y = empty(8), empty(8)
    for source in (x, x, x, y, y, y):  # an input that moves: the first recorder records anew
        second(first(source)[0])
    copies = driver().fakeCalls(b"cuMemcpyDtoDAsync_v2")
    second(first(y)[0])
    assert driver().fakeCalls(b"cuMemcpyDtoDAsync_v2") == copies + 1  # y, but not what lies between


def test_recordings_of_a_device_share_temporary_memory() -> None:
    n = 4 << 20
    sources = [empty(n) for _ in range(4)]
    programs = [recorder(n) for _ in sources]
    used = []
    for program, x in zip(programs, sources, strict=True):
        for _ in range(3):
            program(x)
        used.append(int(driver().fakeUsed(0)))
    # What each recording adds is its result: not the value between its kernels, as large, which the first one's memory serves for.
    assert used[3] - used[0] <= 3 * 4 * n + (4 << 20)


def test_programs_that_read_one_anothers_results_in_turn_are_recorded_a_few_times() -> None:
    first, second = recorder(8), recorder(8)
    x = empty(8)
    for _ in range(30):
        (x,) = first(x)
        (x,) = second(x)
    assert first.recordings + second.recordings < 12
    replays = driver().fakeCalls(b"cuGraphLaunch")
    second(first(x)[0])
    assert driver().fakeCalls(b"cuGraphLaunch") == replays + 2


def test_a_recording_does_not_write_to_results_of_later_ones_that_are_held() -> None:
    first, second = recorder(8), recorder(8)
    x = empty(8)
    for _ in range(3):
        first(x)
        second(x)
    (held,) = second(x)
    first(x)
    assert first.recordings == 2  # where the memory of `held` is taken
    address = held.data_ptr()
    del held
    (held,) = second(x)
    assert held.data_ptr() != address  # a copy
    for _ in range(3):
        first(x)
        (held,) = second(x)
    assert (first.recordings, second.recordings) == (2, 1)


@pytest.mark.parametrize("seed", range(4))
def test_held_results_keep_their_values(seed: int) -> None:
    """Programs that read one another's results, called in any order while any of the results are held."""
    random = Random(seed)
    with running_kernels():
        programs = [recorder(n) for n in (8, 8, 8, 3000, 3000)]
        inputs = {n: [numbered(n, 10.0 * i) for i in range(2)] for n in (8, 3000)}
        held: list[tuple[c10.Tensor, float]] = []
        for _ in range(150):
            if held and random.random() < 0.5:
                del held[random.randrange(len(held))]
            k = random.randrange(len(programs))
            n = 8 if k < 3 else 3000
            given = [(x, float(x.cpu()[0])) for x in inputs[n]] + [
                h for h in held if h[0].shape[0] == n
            ]
            x, start = given[random.randrange(len(given)) if random.random() < 0.3 else k % 2]
            held.append((programs[k](x)[0], start + 2))
            for tensor_, first in held:
                values = tensor_.cpu().numpy()
                assert values[0] == first and (values[1:] - values[:-1] == 1).all()


def test_zeros_behind_the_rows_of_padded_inputs_are_copied_with_them() -> None:
    spec = chain(3, 50)
    padded = replace(spec.inputs[0], strides=(64, 1))
    program = make_program(replace(spec, inputs=(padded,)), records=_NUMBER)
    inputs = [A.as_strided(empty(3, 64), (3, 50), (64, 1), 0) for _ in range(4)]
    for x in inputs:
        program(x)
    copies = driver().fakeCalls(b"cuMemcpyDtoDAsync_v2")
    launches = driver().fakeCalls(b"cuLaunchKernel")
    program(inputs[0])
    assert driver().fakeCalls(b"cuMemcpyDtoDAsync_v2") == copies + 1
    assert driver().fakeCalls(b"cuLaunchKernel") == launches


def test_each_size_has_a_recording_up_to_a_limit() -> None:
    program = recorder("s0", 4)
    with records.collect() as found:
        for n in range(2, 8):
            x = empty(n, 4)
            for _ in range(3):
                assert tuple(program(x)[0].shape) == (n, 4)
        assert program.recordings == 6 and not found
        for n in range(8, 14):
            assert tuple(program(empty(n, 4))[0].shape) == (n, 4)
    assert [r.code for r in found] == ["IN012"]


def test_what_fails_while_it_is_recorded_runs_plainly() -> None:
    program = make_program(chain(8))
    calls = []

    def fails_when_recorded(x: c10.Tensor) -> tuple[Any, ...]:
        calls.append(x)
        if len(calls) == 2:
            raise RuntimeError("not while recording")
        return program(x)

    wrapped = recorded(fails_when_recorded, _NUMBER)
    x = empty(8)
    with records.collect() as found:
        for _ in range(4):
            assert tuple(wrapped(x)[0].shape) == (8,)
    assert len(calls) == 5 and [r.code for r in found] == ["IN012"]
    assert "not while recording" in found[0].message


def test_random_numbers_go_on_with_every_replay() -> None:
    spec = chain(8)
    first = replace(spec.steps[0], sizes=("seed", "counter", "state"))
    program = make_program(
        ProgramSpec(
            spec.inputs,
            spec.outputs,
            (RandomStep("seed", "counter", 3, DEVICE, "state"), first, *spec.steps[1:]),
            spec.buffers,
            arch="sm_90",
        ),
        records=_NUMBER,
    )
    x = empty(8)
    generator = c10._C._cuda_default_generator(0)
    before = int(generator.get_state().numpy().view("int64")[1])
    for calls in range(1, 6):
        program(x)
        offset = int(generator.get_state().numpy().view("int64")[1])
        assert offset - before == 3 * calls
    assert program.recordings == 1


def test_programs_with_work_of_the_host_are_not_recorded() -> None:
    spec = chain(8)
    rules.register_rules(lambda: {"host_clock": rules.Rules(kind="opaque", host_work=True)})
    for name in ("host_clock", "clone"):
        steps = (*spec.steps, ExternStep(name, (), (None,)))
        calls = ProgramSpec(spec.inputs, spec.outputs, steps, spec.buffers)
        assert ("host_clock works on the host" in obstacle_of_program(calls)) == (name != "clone")


def test_programs_that_draw_numbers_of_the_host_are_not_recorded() -> None:
    spec = chain(8)
    draws = ProgramSpec(
        spec.inputs,
        spec.outputs,
        (RandomStep("seed", "counter", 1), *spec.steps),
        spec.buffers,
    )
    assert "random" in obstacle_of_program(draws)
    on_host = ExternStep("rand", ((2,), None, None), ("r",))
    calls = ProgramSpec(
        spec.inputs, spec.outputs, (*spec.steps, on_host), {**spec.buffers, "r": buffer(2)}
    )
    assert obstacle_of_program(calls)
    assert not obstacle_of_program(spec)
