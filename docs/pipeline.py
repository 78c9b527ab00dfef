"""Writes the blocks of docs/pipeline.md: what each stage of the compiler makes of docs/pipeline_example.py.

./bazelw run //docs:pipeline
"""

from __future__ import annotations

import inspect
import os
import re
import tempfile
from pathlib import Path
from typing import Any

# A block is a fenced one after its marker.
_BLOCK = re.compile(r"(<!-- stage: (\w+) -->\n```\w*\n)(.*?)(```\n)", re.S)


def stages() -> dict[str, str]:
    """The text of every stage by its name; `backward_` before those of the backward graph."""
    import argand as torch
    from argand_c10 import debug_trace
    from docs.pipeline_example import f

    compilations: list[Any] = []
    debug_trace.enable()
    debug_trace.subscribe(compilations.append)
    torch.compiler.reset()
    torch.manual_seed(0)
    x, w = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
    torch.compile(f)(x, w).sum().backward()
    debug_trace.enable(False)
    found = {"function": inspect.getsource(f)}
    for prefix, compilation in zip(("", "backward_"), compilations, strict=True):
        for stage, payload in compilation.items:
            name = stage if stage.startswith(prefix) else prefix + stage
            found[name] = _text(stage, payload)
    return found


def _text(stage: str, payload: Any) -> str:
    if stage == "output_code":
        text = "\n".join(source.strip() for name, source in payload if name.startswith("k_"))
    elif stage == "schedule":
        text = "\n".join(f"{name}: {', '.join(operators)}" for name, operators, _ in payload)
    elif isinstance(payload, list):
        text = "\n".join(payload)
    else:
        text = payload if isinstance(payload, str) else payload.graph.to_text()
    text = re.sub(r"[\w./+-]*/(?=pipeline_example\.py)", "", text)
    text = re.sub(r"<module 'argand' from [^>\n]*>?", "<module 'argand'>", text)
    return text.strip("\n") + "\n"


def render(page: str, made: dict[str, str]) -> str:
    """The page with its blocks made anew."""
    return _BLOCK.sub(lambda m: m[1] + made[m[2]] + m[4], page)


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ARGAND_CACHE_DIR"] = cache
        made = stages()
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    path = root / "docs" / "pipeline.md"
    path.write_text(render(path.read_text(), made))
    print(f"written: {path}")


if __name__ == "__main__":
    main()
