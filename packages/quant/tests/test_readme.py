"""The README's example runs."""

from __future__ import annotations

import re
from pathlib import Path


def test_example() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    scope: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, "README.md", "exec"), scope)
    assert "converted" in scope
