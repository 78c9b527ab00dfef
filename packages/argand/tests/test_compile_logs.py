"""ARGAND_LOGS: every channel of the compiler says something of a program that has something for each."""

from __future__ import annotations

import logging

import pytest

import argand as torch

# What a line of each channel holds.
EXPECTED = {
    "graph_breaks": "GB0002",
    "recompiles": "size of dimension 0 is 4, expected 3",
    "guards": "sizes [3]",
    "dynamic": "s0 is the size of dimension 0 of argument 'x'",
    "bytecode": "RETURN_VALUE",
    "graph": "call_function sin",
    "aot_graphs": "forward graph",
    "joint_graph": "cos",
    "loop_ir": "sin(",
    "schedule": "step 0",
    "fusion": "kernel over [3]",
    "output_code": "#include",
    "cache": "written",
}


def broken(x):
    y = x.sin() * 2
    print(end="")
    return y + 1


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def lines_of(channels, folder):
    """What each channel says of a compilation without a cache while `channels` are on."""
    handlers = {name: Keep() for name in EXPECTED}
    torch.compiler.reset()
    torch.compiler.set_logs(channels)
    for name, handler in handlers.items():
        logging.getLogger(f"argand.{name}").addHandler(handler)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ARGAND_CACHE_DIR", str(folder))
            compiled = torch.compile(broken)
            for n in (3, 4):
                compiled(torch.ones(n, requires_grad=True)).sum().backward()
    finally:
        for name, handler in handlers.items():
            logging.getLogger(f"argand.{name}").removeHandler(handler)
        torch.compiler.set_logs("")
        torch.compiler.reset()
    return {name: handler.lines for name, handler in handlers.items()}


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    return lines_of(",".join(EXPECTED), tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("channel", EXPECTED)
def test_a_channel_says_what_it_is_for(channel, lines):
    assert any(EXPECTED[channel] in line for line in lines[channel]), lines[channel]


def test_a_channel_alone(tmp_path):
    lines = lines_of("loop_ir", tmp_path)
    assert any(EXPECTED["loop_ir"] in line for line in lines["loop_ir"])
    assert not any(lines[name] for name in ("graph", "aot_graphs", "schedule", "output_code"))


def test_stances():
    calls = []

    def backend(graph, inputs):
        def run(*args):
            calls.append(len(args))
            return graph(*args)

        return run

    @torch.compile(backend=backend, dynamic=False)
    def double(x):
        return x * 2

    def runs(size, count):
        """Whether a call gives the right result, by `count` calls of compiled code."""
        before = len(calls)
        return double(torch.ones(size)).tolist() == [2.0] * size and len(calls) - before == count

    with torch.compiler.set_stance("fail_on_recompile"):
        with pytest.raises(RuntimeError, match=r"fail_on_recompile.*double.*not compiled"):
            double(torch.ones(2))
    with torch.compiler.set_stance("eager_on_recompile"):
        assert runs(2, 0)
    assert runs(2, 1)
    with torch.compiler.set_stance("force_eager"):
        assert runs(2, 0)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert runs(2, 1) and runs(3, 0)
    with torch.compiler.set_stance("fail_on_recompile"):
        assert runs(2, 1)
        with pytest.raises(RuntimeError, match="this guard failed"):
            double(torch.ones(3))
    torch.compiler.reset()
    with torch.compiler.set_stance("eager_then_compile"):
        assert runs(4, 0) and runs(4, 1)
    torch.compiler.set_stance("force_eager")
    assert runs(4, 0)
    torch.compiler.set_stance("default")
    plain = torch.compiler.set_stance("force_eager")(double)
    assert runs(4, 1)
    before = len(calls)
    assert plain(torch.ones(1)).tolist() == [2.0] and len(calls) == before
    with pytest.raises(ValueError, match="expected one of"):
        torch.compiler.set_stance("never")


def test_a_forced_backend():
    made = []

    def backend(module, inputs):
        made.append(len(module.graph.nodes))
        return module.forward

    f = torch.compile(lambda x: x * 3 + 1, backend="eager")
    x = torch.ones(2)
    for forced, count in ((None, 0), (backend, 1), (None, 1), ("aot_eager", 1), (backend, 1)):
        with torch.compiler.set_stance("default", force_backend=forced):
            assert f(x).tolist() == f(x).tolist() == [4.0, 4.0]
        assert len(made) == count
    assert torch.compiler.set_stance("default", force_backend=backend)(f)(x).tolist() == [4.0, 4.0]
    assert f(x[:1]).tolist() == [4.0] and len(made) == 1
    with pytest.raises(RuntimeError, match="beside 'force_eager'"):
        torch.compiler.set_stance("force_eager", force_backend=backend)
    with pytest.raises(RuntimeError, match="got backend 'nothing'"):
        torch.compiler.set_stance("default", force_backend="nothing")
