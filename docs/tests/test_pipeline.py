"""The pages that show what the compiler does are true."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from docs import pipeline

PAGE = Path(__file__).absolute().parents[1] / "pipeline.md"


def test_page_shows_what_the_stages_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path))
    page, made = PAGE.read_text(), pipeline.stages()
    if sys.version_info[:2] != (3, 11):
        made["bytecode"] = pipeline._BLOCK.search(page[page.index("<!-- stage: bytecode") :])[3]
    assert pipeline.render(page, made) == page


def test_every_block_names_a_stage() -> None:
    names = [m[2] for m in pipeline._BLOCK.finditer(PAGE.read_text())]
    assert len(names) == PAGE.read_text().count("<!-- stage:") == 13
