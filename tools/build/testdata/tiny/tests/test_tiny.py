"""The extension, its shared library and the libraries of the environment work from Bazel's outputs."""

from pathlib import Path

import numpy as np

import argand_tiny


def test_calls_through_extension_and_shared_library() -> None:
    assert argand_tiny.twice(21) == 42
    assert argand_tiny.tiers(3.0) >= 1


def test_openblas_is_linked() -> None:
    assert argand_tiny.dot(np.arange(3.0), np.arange(3.0)) == 5.0


def test_library_lies_beside_the_extension_with_its_abi_in_the_name() -> None:
    folder = Path(argand_tiny.__file__).parent
    assert (folder / "libargand_tiny.so.3").exists()
    maps = Path("/proc/self/maps").read_text()
    assert "libargand_tiny.so.3" in maps
