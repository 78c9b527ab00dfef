"""Checkpoints by logical tensor: saved by any number of ranks, loaded by any other.

A checkpoint is a folder with `index.json`, which says of each tensor its shape, dtype and where its parts lie, and `rank<r>.safetensors` files.
Values other than tensors stand in the index. It appears at once, complete, or not at all. Loading runs no code of the files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import argand_c10 as c10
from argand_aten import empty
from argand_autograd import no_grad
from argand_c10 import Tensor
from argand_distributed import collectives
from argand_distributed.objects import all_gather_object, broadcast_object_list
from argand_distributed.world import is_initialized, resolve

_INDEX: Final = "index.json"
_FORMAT: Final = 1
_STEP: Final = re.compile(r"step(\d+)$")


class CheckpointError(RuntimeError):
    """A checkpoint is damaged, or does not fit what is to be loaded."""


def _pack(value: Any, tensors: list[tuple[str, Tensor]], path: str) -> Any:
    """JSON for nested dicts, lists and tuples: [kind, content]; tensors are appended and stand for their number."""
    if isinstance(value, Tensor):
        tensors.append((path, value))
        return ["tensor", len(tensors) - 1]
    if value is None or type(value) in (bool, int, str):
        return ["value", value]
    if type(value) is float:
        return ["float", value.hex()]
    if isinstance(value, dict):
        for key in value:
            if type(key) not in (str, int):
                raise TypeError(
                    f"save_checkpoint: got a key {key!r} at {path or 'the top'}, expected str or int"
                )
        return ["dict", [[k, _pack(v, tensors, f"{path}.{k}")] for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, [_pack(v, tensors, f"{path}[{i}]") for i, v in enumerate(value)]]
    raise TypeError(
        f"save_checkpoint: got {type(value).__name__} at {path or 'the top'}, expected tensors, numbers, text, None, and "
        "dicts and lists of them"
    )


def _unpack(packed: Any, tensors: list[Any]) -> Any:
    kind, content = packed
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {k: _unpack(v, tensors) for k, v in content}
    if kind in ("list", "tuple"):
        items = [_unpack(v, tensors) for v in content]
        return tuple(items) if kind == "tuple" else items
    return float.fromhex(content) if kind == "float" else content


def _tensor_places(value: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors of a state, with the names that `_pack` gives them."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from _tensor_places(v, f"{path}.{k}")
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from _tensor_places(v, f"{path}[{i}]")


def _group_ranks(group: Any) -> tuple[int, int]:
    if not is_initialized():
        return 0, 1
    pg = resolve(group)
    return pg.rank(), pg.size()


def _rows(shape: list[int], rank: int, size: int) -> tuple[int, int]:
    """Which rows (of the first dimension) of a tensor this rank writes."""
    n = shape[0] if shape else 1
    return n * rank // size, n * (rank + 1) // size


def save_checkpoint(state: Any, path: str | os.PathLike[str], group: Any = None) -> None:
    """Writes nested dicts and lists of tensors and plain values; every rank of the group calls it, with the same state.

    Each rank writes a share of the rows of every tensor. The folder gets its name when all files are complete; one that was there
    before is replaced.

    Raises:
        TypeError: a value is neither tensor nor plain (None, bool, int, float, str).
        OSError: the folder cannot be written; what was there before is kept.
    """
    rank, size = _group_ranks(group)
    target = Path(path)
    building = target.with_name(target.name + ".partial")
    tensors: list[tuple[str, Tensor]] = []
    tree = _pack(state, tensors, "")
    if rank == 0:
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
    _wait(group)
    own = _write_share([t for _, t in tensors], building, rank, size)
    shares: list[Any] = [own]
    if size > 1:
        shares = [None] * size
        all_gather_object(shares, own, group)
    if rank == 0:
        facts = [
            {"name": name, **_facts(t), "parts": [p for share in shares for p in share[i]]}
            for i, (name, t) in enumerate(tensors)
        ]
        text = json.dumps({"format": _FORMAT, "tensors": facts, "tree": tree}, indent=1)
        _write_synced(building / _INDEX, text.encode())
        old = target.with_name(target.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            os.replace(target, old)
        os.replace(building, target)
        _sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)
    _wait(group)


def _wait(group: Any) -> None:
    if is_initialized():
        collectives.barrier(group)


def _facts(t: Tensor) -> dict[str, Any]:
    return {"dtype": str(t.dtype).split(".")[-1], "shape": list(t.shape)}


def _write_share(tensors: list[Tensor], folder: Path, rank: int, size: int) -> list[list[Any]]:
    """Writes this rank's rows of all tensors; for each the parts [file, key, first row, end]."""
    arrays: dict[str, Any] = {}
    parts: list[list[Any]] = []
    file = f"rank{rank}.safetensors"
    for number, t in enumerate(tensors):
        first, end = _rows(list(t.shape), rank, size)
        parts.append([] if first == end else [[file, str(number), first, end]])
        if first == end:
            continue
        rows = t.detach()[first:end] if t.ndim else t.detach()
        raw = rows.cpu().contiguous().reshape(-1)
        # Bytes: safetensors' NumPy side has no bfloat16 and no complex numbers.
        arrays[str(number)] = raw.view(c10.uint8).numpy() if raw.numel() else np.empty(0, np.uint8)
    save_file(arrays, str(folder / file))
    with open(folder / file, "rb") as f:
        os.fsync(f.fileno())
    return parts


def _write_synced(path: Path, data: bytes) -> None:
    with open(path, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def load_checkpoint(state: Any, path: str | os.PathLike[str]) -> Any:
    """Reads a checkpoint; every rank by itself.

    Args:
        state: nested dicts and lists as they were saved, whose tensors are written into; None: new tensors.
        path: the folder.

    Returns:
        The saved state. Its tensors are those of `state` where that was given.

    Raises:
        CheckpointError: the folder is no complete checkpoint, or has other tensors than `state`. No tensor has changed then.
    """
    folder = Path(path)
    if not folder.exists() and folder.with_name(folder.name + ".old").exists():
        folder = folder.with_name(
            folder.name + ".old"
        )  # a process died while it replaced one by another
    index = _read_index(folder)
    read = [_read_tensor(folder, facts) for facts in index["tensors"]]
    if state is None:
        return _unpack(index["tree"], read)
    given = dict(_tensor_places(state))
    stored = {facts["name"]: facts for facts in index["tensors"]}
    if set(given) != set(stored):
        missing, extra = sorted(set(given) - set(stored)), sorted(set(stored) - set(given))
        raise CheckpointError(
            f"load_checkpoint: {folder} has other tensors: it lacks {missing[:5]} and has {extra[:5]} besides; give a state like the one "
            "that was saved, or None"
        )
    for name, facts in stored.items():
        if _facts(given[name]) != {"dtype": facts["dtype"], "shape": facts["shape"]}:
            have = _facts(given[name])
            raise CheckpointError(
                f"load_checkpoint: {name} is {have['dtype']}{have['shape']} here and {facts['dtype']}{facts['shape']} in {folder}; "
                "build the model as it was saved"
            )
    targets = [given[facts["name"]] for facts in index["tensors"]]
    with no_grad():
        for t, value in zip(targets, read, strict=True):
            t.copy_(value)
    return _unpack(index["tree"], targets)


def _read_index(folder: Path) -> dict[str, Any]:
    try:
        index = json.loads((folder / _INDEX).read_bytes())
    except FileNotFoundError:
        raise CheckpointError(
            f"load_checkpoint: {folder} has no {_INDEX}; it is no checkpoint, or was never completed"
        ) from None
    except ValueError as error:
        raise CheckpointError(f"load_checkpoint: {folder / _INDEX} is damaged: {error}") from None
    if not isinstance(index, dict) or index.get("format") != _FORMAT:
        raise CheckpointError(
            f"load_checkpoint: {folder / _INDEX} has another format than {_FORMAT}; it was written by another version"
        )
    return index


def _read_tensor(folder: Path, facts: dict[str, Any]) -> Tensor:
    try:
        dtype, shape = getattr(c10, facts["dtype"]), facts["shape"]
        result = empty(shape, dtype=dtype)
        covered = 0
        for file, key, first, end in facts["parts"]:
            if "/" in file or not 0 <= first <= end:
                raise ValueError(f"bad part {file} {first} {end}")
            with safe_open(folder / file, framework="numpy") as f:
                raw = c10.from_numpy(np.array(f.get_tensor(key)))
            rows = result if not shape else result[first:end]
            if raw.numel():
                rows.copy_(raw.view(dtype).reshape(rows.shape))
            covered += end - first
        if covered != (shape[0] if shape else 1):
            raise ValueError("rows are missing")
        return result
    except (
        OSError,
        SafetensorError,
        RuntimeError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ) as error:
        raise CheckpointError(
            f"load_checkpoint: {facts.get('name')} in {folder} is damaged: {error}"
        ) from error


def latest_checkpoint(folder: str | os.PathLike[str], group: Any = None) -> Path | None:
    """The complete checkpoint `step<N>` of a folder with the highest N, as rank 0 sees it; None where there is none."""
    found: list[Any] = [None]
    if _group_ranks(group)[0] == 0:
        steps = [
            (int(m[1]), p.name)
            for p in (Path(folder).iterdir() if Path(folder).is_dir() else ())
            if (m := _STEP.match(p.name)) and (p / _INDEX).exists()
        ]
        found = [max(steps)[1] if steps else None]
    if is_initialized():
        broadcast_object_list(found, resolve(group).ranks[0], group)
    return None if found[0] is None else Path(folder) / found[0]
