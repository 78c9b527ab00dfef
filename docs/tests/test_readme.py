"""The README's example runs, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).absolute().parents[2]
README = (ROOT / "README.md").read_text()


def test_example_runs_and_learns(tmp_path: Path):
    code = re.search(r"^```python\n(.*?)^```", README, re.M | re.S).group(1)
    script = tmp_path / "example.py"
    script.write_text(code)
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loss, sine = map(
        float, re.fullmatch(r"loss (\S+), sin\(1\) is about (\S+)\n", done.stdout).groups()
    )
    assert loss < 0.01
    assert sine == pytest.approx(0.841, abs=0.1)


def test_picture_is_well_formed_and_shows_every_layer():
    texts = {element.text for element in ElementTree.parse(ROOT / "docs" / "layers.svg").iter()}
    assert {"argand", "nn", "autograd", "aten", "c10", "registry"} <= texts


def test_headings_of_contributing():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for heading in ("Add an operator", "Add a kernel", "Add a package"):
        assert f"## {heading}" in text


def test_links_to_files_below_docs_exist():
    links = re.findall(r"\]\((docs/[\w/.-]+\.(?:md|svg))\)", README)
    assert "docs/layers.svg" in links and "docs/benchmarks.md" in links
    for link in links:
        assert (ROOT / link).exists(), link
