"""Checkpoints: saved by two ranks, loaded by one, three, four; complete or not there; damaged ones are told."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_distributed as dist
import argand_nn as nn
from argand_distributed import testing as ranks
from argand_nn.optim import AdamW


def state(seed: int) -> dict[str, Any]:
    c10.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7))
    optimizer = AdamW(model.parameters(), lr=0.1)
    model(aten.rand(3, 5)).pow(2).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "odd": {
            "half": aten.rand(3).to(c10.bfloat16),
            "z": aten.rand(2, 2).to(c10.complex64),
            "none": aten.empty(0, 3),
            "flag": c10.tensor(True),
        },
        "epoch": 3,
        "lr": 0.1 + 0.2,
        "name": "a/b~c",
        4: [None, (1, 2)],
    }


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [x for k, v in value.items() for x in [k, *flat(v)]]
    if isinstance(value, (list, tuple)):
        return [type(value), *(x for v in value for x in flat(v))]
    return [(str(value.dtype), value.tolist())] if isinstance(value, c10.Tensor) else [value]


def save(rank: int, size: int, path: str) -> None:
    dist.save_checkpoint(state(1), path)


def load(rank: int, size: int, path: str) -> None:
    into = state(2)
    loaded = dist.load_checkpoint(into, path)
    assert flat(loaded) == flat(state(1))
    assert loaded["model"]["0.weight"] is into["model"]["0.weight"]
    assert flat(dist.load_checkpoint(None, path)) == flat(state(1))


@pytest.mark.parametrize("savers", [1, 2, 3])
def test_saved_by_some_loaded_by_others(savers: int, tmp_path: Path) -> None:
    path = str(tmp_path / "step1")
    ranks.run(savers, save, path)
    load(0, 1, path)  # without a group
    for loaders in (3, 4):
        ranks.run(loaders, load, path)
    assert sorted(os.listdir(tmp_path)) == ["step1"]


def test_latest_and_replacing(tmp_path: Path) -> None:
    assert dist.latest_checkpoint(tmp_path / "missing") is None
    for step in (2, 10, 9):
        dist.save_checkpoint({"step": step}, tmp_path / f"step{step}")
    (tmp_path / "step11.partial").mkdir()
    (tmp_path / "step12").mkdir()
    latest = dist.latest_checkpoint(tmp_path)
    assert latest == tmp_path / "step10"
    dist.save_checkpoint({"step": -1}, latest)
    assert dist.load_checkpoint(None, latest) == {"step": -1}
    shutil.move(
        latest, tmp_path / "step10.old"
    )  # where a process that dies between two renames leaves it
    assert dist.load_checkpoint(None, latest) == {"step": -1}


def test_what_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c"
    dist.save_checkpoint({"w": aten.ones(2), "v": aten.ones(3)}, path)
    kept = aten.zeros(2)
    with pytest.raises(dist.CheckpointError, match=r"\.v is float32\[4\] here and float32\[3\]"):
        dist.load_checkpoint({"w": kept, "v": aten.zeros(4)}, path)
    with pytest.raises(dist.CheckpointError, match=r"lacks \['\.x'\] and has \['\.v'\] besides"):
        dist.load_checkpoint({"w": kept, "x": aten.zeros(3)}, path)
    assert kept.tolist() == [0.0, 0.0]
    with pytest.raises(dist.CheckpointError, match="no index.json"):
        dist.load_checkpoint(None, tmp_path)
    with pytest.raises(TypeError, match=r"got function at \.f"):
        dist.save_checkpoint({"f": save}, tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_damaged_files_give_clear_errors(tmp_path: Path) -> None:
    path = tmp_path / "c"
    dist.save_checkpoint(state(1), path)
    rng = random.Random(0)
    for trial in range(60):
        broken = tmp_path / f"b{trial}"
        shutil.copytree(path, broken)
        victim = broken / rng.choice(["index.json", "rank0.safetensors"])
        data = bytearray(victim.read_bytes())
        if trial % 3 == 0:
            del data[rng.randrange(len(data)) :]
        else:
            for _ in range(1 + trial % 4):
                data[rng.randrange(len(data))] = rng.randrange(256)
        victim.write_bytes(bytes(data))
        try:
            dist.load_checkpoint(None, broken)  # a changed weight cannot be seen
        except dist.CheckpointError:
            pass
    index = json.loads((path / "index.json").read_text())
    index["tensors"][0]["parts"][0][0] = "../c/rank0.safetensors"
    (path / "index.json").write_text(json.dumps(index))
    with pytest.raises(dist.CheckpointError, match="bad part"):
        dist.load_checkpoint(None, path)
