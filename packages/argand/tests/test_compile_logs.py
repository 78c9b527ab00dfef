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


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()
    yield
    torch.compiler.set_logs("")
    torch.compiler.reset()


@pytest.mark.parametrize("channel", EXPECTED)
def test_a_channel_says_what_it_is_for(channel):
    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    logger, handler = logging.getLogger(f"argand.{channel}"), Keep()
    torch.compiler.set_logs(channel)
    logger.addHandler(handler)
    try:
        compiled = torch.compile(broken)
        for n in (3, 4):
            compiled(torch.ones(n, requires_grad=True)).sum().backward()
    finally:
        logger.removeHandler(handler)
    assert any(EXPECTED[channel] in line for line in lines), lines
