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
