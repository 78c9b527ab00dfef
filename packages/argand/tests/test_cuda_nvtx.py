"""argand.cuda.nvtx with a stand-in for NVIDIA's library, and without any."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import argand.cuda.nvtx as nvtx

# Keeps count as a profiler does, and writes down what it was told.
_SOURCE = """
#include <stdio.h>
static int depth;
static FILE* out(void) { static FILE* f; return f ? f : (f = fopen(PLACE, "w")); }
int nvtxRangePushA(const char* m) { fprintf(out(), "push %s\\n", m); fflush(out()); return depth++; }
int nvtxRangePop(void) { fprintf(out(), "pop\\n"); fflush(out()); return --depth; }
unsigned long long nvtxRangeStartA(const char* m) { fprintf(out(), "start %s\\n", m); fflush(out()); return 1ull << 40; }
void nvtxRangeEnd(unsigned long long id) { fprintf(out(), "end %d\\n", id == 1ull << 40); fflush(out()); }
void nvtxMarkA(const char* m) { fprintf(out(), "mark %s\\n", m); fflush(out()); }
"""


@pytest.fixture(autouse=True)
def searched_anew() -> None:
    nvtx._library.cache_clear()


def test_calls_reach_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, library = tmp_path / "said", tmp_path / "libnvtx.so"
    (tmp_path / "nvtx.c").write_text(_SOURCE)
    command = ["gcc", "-shared", "-fPIC", f'-DPLACE="{said}"', "-o", library, tmp_path / "nvtx.c"]
    subprocess.run(command, check=True)
    monkeypatch.setenv("ARGAND_NVTX_LIBRARY", str(library))
    assert nvtx.range_push("a") == 0
    with nvtx.range("step {}", 3):
        nvtx.mark("here")
    assert nvtx.range_pop() == 0
    nvtx.range_end(nvtx.range_start("b"))
    lines = ["push a", "push step 3", "mark here", "pop", "pop", "start b", "end 1"]
    assert said.read_text().splitlines() == lines


def test_without_a_library_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGAND_NVTX_LIBRARY", "/nonexistent/libnvtx.so")

    @nvtx.range("f")
    def f() -> int:
        return 5

    assert f() == 5
    assert nvtx.range_push("a") < 0 and nvtx.range_pop() < 0
    nvtx.range_end(nvtx.range_start("b"))
    nvtx.mark("c")
