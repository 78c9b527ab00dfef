"""Runs a test file again in the processor's lower instruction tiers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from argand_c10 import cpu

lower_tiers = pytest.mark.parametrize(
    "tier", range(cpu.tier()) if "ARGAND_CPU_TIER" not in os.environ else []
)


def run_again(file: str, tier: int) -> None:
    """Fails where the file's tests do."""
    environment = {**os.environ, "ARGAND_CPU_TIER": str(tier)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:]
