"""Types hold over the whole tree, as `./bazelw run //tools:dev -- check` says."""

from pathlib import Path

from tools.build import check_types

ROOT = Path.cwd()
_MISTAKE = """
import argand_aten
from argand_c10 import Tensor


def count(x: Tensor) -> int:
    return argand_aten.relu(x).softmax(0)
"""


def test_the_only_type_error_is_a_mistake_of_ours(tmp_path: Path) -> None:
    folders = {name.split("/")[0] for name in check_types.sources(ROOT)}
    assert folders == {"benchmarks", "docs", "examples", "packages", "tools"}
    mistake = tmp_path / "mistake.py"
    mistake.write_text(_MISTAKE)
    found = check_types.check(ROOT, ROOT, tmp_path / "cache", mistake).stdout.splitlines()
    text = 'error: Incompatible return value type (got "Tensor", expected "int")  [return-value]'
    assert [line.partition("mistake.py:")[2] or line for line in found[:-1]] == [f"7: {text}"]
