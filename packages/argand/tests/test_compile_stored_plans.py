"""Plans of earlier processes: only those that hold for a call are taken over, and they stand in the way of nothing."""

from __future__ import annotations

import gc

import pytest

import argand as torch
from argand import nn

K = 0


def scaled(x):
    return x * K


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def in_a_new_process(call):
    """What a call counts and reports where nothing but the disk is known."""
    torch.compiler.reset()
    with torch.compiler.collect_records() as found:
        result = call()
    return result, torch.compiler.counters(), found


def test_a_changed_global_is_compiled_in_every_process():
    x = torch.ones(3)
    for k in range(1, 12):
        globals()["K"] = k
        result, counts, found = in_a_new_process(lambda: torch.compile(scaled)(x))
        assert result.tolist() == [k] * 3 and counts["traces"] == 1 and not found, (k, found)
    _, counts, found = in_a_new_process(lambda: torch.compile(scaled)(x))
    assert counts == {"plans_loaded": 1, "artifacts_loaded": 1} and not found


def rows(x):
    return [x.shape[0] * K]


def test_a_global_that_a_fake_reads_is_compiled_in_every_process():
    """Beneath a helper, as a later process finds it at its start."""
    x = torch.ones(3)
    for repeat in (False, True):
        for k in (2, 1, 3):
            globals()["K"] = k
            tiled = torch.library.custom_op("stored::tiled", mutates_args=())(_tiled)
            tiled.register_fake(lambda x: x.new_empty(rows(x)))
            program = torch.compile(lambda x, op=tiled: (op(x) + 1).sum(), fullgraph=True)
            result, counts, found = in_a_new_process(lambda p=program: p(x))
            assert result.item() == 6 * k and not found, (k, found)
            assert counts.get("plans_loaded", 0) == repeat, (k, counts)


def _tiled(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x] * K)


def test_models_do_not_share_their_room_on_disk():
    models = [nn.Sequential(*[nn.ReLU() for _ in range(n)]) for n in range(1, 12)]
    models += [nn.Linear(3, n) for n in range(1, 4)]
    x = torch.ones(3)
    for model in models:
        _, counts, found = in_a_new_process(lambda m=model: torch.compile(m)(x))
        assert counts["traces"] == 1 and not found, found
    for model in models:
        _, counts, found = in_a_new_process(lambda m=model: torch.compile(m)(x))
        assert counts == {"plans_loaded": 1, "artifacts_loaded": 1} and not found


def broken_twice(x):
    y = x + 1
    print(end="")
    return y * y.sum().item()


def test_breaks_of_stored_plans_are_reported():
    x = torch.ones(3)
    _, first, made = in_a_new_process(lambda: torch.compile(broken_twice)(x))
    _, second, found = in_a_new_process(lambda: torch.compile(broken_twice)(x))
    assert [r.code for r in made] == ["GB0002", "GB0003"] and found == made
    assert first["graph_breaks"] == second["graph_breaks"] == 2 and "traces" not in second


def test_options_that_do_not_exist_are_errors():
    for options in ({"zoom": 1}, {"max_fusion_size": 0}, {"fusion": "yes"}):
        with pytest.raises(RuntimeError, match="options: got"):
            torch.compile(scaled, options=options)(torch.ones(3))


def test_options_by_pytorch_names():
    x = torch.rand(3)
    for options in (
        {"max_autotune": True, "triton.cudagraphs": True, "epilogue_fusion": False},
        {"shape_padding": True, "fallback_random": True},
    ):
        assert torch.equal(torch.compile(scaled, options=options)(x), scaled(x))
    with pytest.raises(RuntimeError, match="options: got epilogues"):
        torch.compile(scaled, options={"epilogue_fusion": "yes"})


def several_results(x):
    found = torch.max(x, 1), x.sort(0), torch.histogram(x, 2)
    return *found, torch.meshgrid(x[0], x[1], indexing="ij"), x[0].expand_as(x)


def test_named_results_and_operators_are_found_again():
    x = torch.arange(6.0).reshape(2, 3)
    want = several_results(x)
    for known in ({}, {"plans_loaded": 1, "artifacts_loaded": 1}):
        got, counts, found = in_a_new_process(lambda: torch.compile(several_results)(x))
        assert not found and counts.items() >= known.items()
        for a, b in zip(got, want, strict=True):
            assert type(a) is type(b)
            for u, v in zip(a, b, strict=True):
                assert torch.equal(u, v)


def test_the_collector_waits_for_the_compiler():
    """From the first look at stored plans to the storing of a new one, and in backward; where it was off it stays off."""
    model, x = nn.Sequential(*[nn.Linear(3, 3) for _ in range(60)]), torch.ones(2, 3)
    phases = []

    def note(phase, _):
        phases.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    try:
        torch.compile(model)(x).sum().backward()
    finally:
        gc.callbacks.remove(note)
    assert phases.count("start") <= 3 and gc.isenabled()
    gc.disable()
    try:
        torch.compile(scaled)(x)
        assert not gc.isenabled()
    finally:
        gc.enable()
