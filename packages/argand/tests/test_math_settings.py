"""Switches of CUDA's libraries: they are one state, whatever name changes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import argand
from argand_c10 import math_settings


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = math_settings.current()
    yield
    fields = {name: getattr(before, name) for name in before.__slots__}
    argand.set_float32_matmul_precision("highest")
    math_settings.change(**fields)


def test_defaults() -> None:
    assert argand.backends.cuda.matmul.allow_tf32 is False
    assert argand.backends.cudnn.allow_tf32 is True
    assert argand.backends.cudnn.benchmark is False and argand.backends.cudnn.deterministic is False
    assert argand.get_float32_matmul_precision() == "highest"


def test_precision_and_tf32_are_one() -> None:
    argand.set_float32_matmul_precision("medium")
    assert argand.backends.cuda.matmul.allow_tf32 is True
    argand.backends.cuda.matmul.allow_tf32 = False
    assert argand.get_float32_matmul_precision() == "highest"
    argand.backends.cuda.matmul.allow_tf32 = True
    assert argand.get_float32_matmul_precision() == "medium"
    with pytest.raises(ValueError, match="expected one of"):
        argand.set_float32_matmul_precision("low")


def test_listeners_are_told() -> None:
    seen: list[math_settings.MathSettings] = []
    math_settings.listen(seen.append)
    argand.backends.cudnn.benchmark = True
    with argand.backends.cudnn.flags(deterministic=True):
        assert argand.backends.cudnn.deterministic and not argand.backends.cudnn.benchmark
    assert [s.benchmark for s in seen] == [False, True, False, True]
    assert seen[2].deterministic and not seen[3].deterministic
