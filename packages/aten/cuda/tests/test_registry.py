"""The registry's generated tests of values on an emulated CUDA device: a sample spread over all families and kinds."""

from __future__ import annotations

import os

os.environ["ARGAND_TEST_DEVICE"] = "cuda"  # read when optest is imported

import importlib
import sys
import zlib
from pathlib import Path
from typing import Any

import emulated
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

from tools.codegen.runtime import optest

emulated.start()

_TESTS = Path(__file__).absolute().parents[2] / "generated" / "tests"
_KINDS = ("pointwise", "reduction", "scan")
_DTYPES = ("float32", "bfloat16", "int64", "bool", "uint32", "uint64")


def _cases() -> list[Any]:
    sys.path.insert(0, str(_TESTS))
    found = []
    for path in sorted(_TESTS.glob("test_*.py")):
        if path.name.startswith("test_gradients"):
            continue
        module = importlib.import_module(path.stem)
        found += [c for c in module.CASES if c.kind in _KINDS and c.reference is not None]
    return found


CASES = _cases()


def _number(case: Any) -> int:
    """Depends on the name alone: what is tested of a case does not change with the others."""
    return zlib.crc32(case.name.encode())


def _sample(one_of: int) -> list[Any]:
    return [pytest.param(c, id=c.name) for c in CASES if _number(c) % one_of == 0]


@pytest.mark.parametrize("case", _sample(4))
def test_reference(case: Any) -> None:
    dtypes = [d for d in case.dtypes if d in _DTYPES]
    dtype = dtypes[_number(case) // 4 % len(dtypes)]
    if "reference" in case.skips:
        pytest.skip(case.skips["reference"])
    optest.check_reference(case, dtype)
    emulated.check()


@pytest.mark.parametrize("case", _sample(9))
@pytest.mark.parametrize("check", ["broadcast", "noncontiguous", "out", "inplace"])
def test_layouts(check: str, case: Any) -> None:
    dtypes = [p.values[1] for p in optest.parameters([case], check) if p.values[1] in _DTYPES]
    if not dtypes or check in case.skips:
        pytest.skip("the operator has no such form")
    getattr(optest, f"check_{check}")(case, dtypes[0])
    emulated.check()
