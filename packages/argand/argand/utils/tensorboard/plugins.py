"""What TensorBoard's plugins show: the rest of a value behind its tag, and the projector's files."""

from __future__ import annotations

import io
import json
import time
import wave
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from argand.utils.tensorboard.messages import (
    array,
    double,
    float32,
    integer,
    message,
    summary_metadata,
    tensor,
)
from argand_c10 import Tensor

__all__ = [
    "audio",
    "curve",
    "custom_scalars",
    "hparams",
    "mesh",
    "pr_curve",
    "sprite",
    "write_embedding",
]

_STRING, _BOOL, _FLOAT = 1, 2, 3  # types of settings
_VERTEX, _FACE, _COLOR = 1, 2, 3


def audio(sound: Any, sample_rate: int) -> bytes:
    """A sound of one channel as a WAV file with 16 bits."""
    samples = array(sound).squeeze()
    if samples.ndim != 1:
        raise ValueError(
            f"SummaryWriter.add_audio: got a shape of {list(array(sound).shape)}, expected (1, length)"
        )
    data = (samples.clip(-1, 1) * 32767.0).astype("<i2").tobytes()
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(sample_rate)
        written.writeframes(data)
    content = message(4, file.getvalue()) + message(5, "audio/wav")
    return message(6, float32(1, sample_rate) + integer(2, 1) + integer(3, len(samples)) + content)


def curve(labels: Any, predictions: Any, thresholds: int, weights: Any) -> Any:
    """Six rows with an entry a threshold: true and false positives, true and false negatives, precision and recall."""
    is_true = array(labels).reshape(-1).astype(np.float64)
    weight = 1.0 if weights is None else array(weights).reshape(-1)
    place = np.floor(array(predictions).reshape(-1) * (thresholds - 1)).astype(np.int32)

    def at_least(amounts: Any) -> Any:
        """How much lies at a threshold or above it."""
        found = np.histogram(place, thresholds, (0, thresholds - 1), weights=amounts * weight)[0]
        return found[::-1].cumsum()[::-1]

    true, false = at_least(is_true), at_least(1.0 - is_true)
    missed = true[0] - true
    some = 1e-7  # nothing divides by 0
    precision = true / np.maximum(some, true + false)
    recall = true / np.maximum(some, true + missed)
    return np.stack([true, false, false[0] - false, missed, precision, recall])


def pr_curve(counts: Any) -> bytes:
    """What `curve` returns."""
    content = integer(2, counts.shape[1])
    return message(8, tensor(counts.astype(np.float32))) + summary_metadata("pr_curves", content)


def mesh(
    tag: str, vertices: Any, colors: Any, faces: Any, config: Mapping[str, Any] | None
) -> Iterator[tuple[str, bytes]]:
    """The tensors of a mesh, each with its name."""
    given = ((vertices, _VERTEX, "VERTEX"), (faces, _FACE, "FACE"), (colors, _COLOR, "COLOR"))
    there = [(array(values), kind, name) for values, kind, name in given if values is not None]
    components = sum(1 << kind for _, kind, _ in there)
    for values, kind, name in there:
        content = message(2, tag) + integer(3, kind) + message(5, json.dumps(config or {}))
        content += b"".join(integer(6, n) for n in values.shape) + integer(7, components)
        number = values.astype(np.int32 if kind == _FACE else np.float32)
        yield f"{tag}_{name}", message(8, tensor(number)) + summary_metadata("mesh", content)


def custom_scalars(layout: Mapping[str, Any]) -> bytes:
    """Categories of charts: by name ("Multiline", tags) or ("Margin", tags of a curve and what bounds it)."""
    written = b""
    for category, charts in layout.items():
        content = message(1, category)
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                series = b"".join(message(i, tag) for i, tag in enumerate(tags, 1))
                shown = message(3, message(1, series))
            else:
                shown = message(2, b"".join(message(1, tag) for tag in tags))
            content += message(2, message(1, title) + shown)
        written += message(2, content)
    text = integer(1, 7) + message(2, b"") + message(8, written)
    return message(8, text) + summary_metadata("custom_scalars")


# Settings -----------------------------------------------------------------------------------------


def _setting(name: str, value: Any) -> tuple[int, bytes]:
    """The type of a setting's value, and the value as a message."""
    if isinstance(value, Tensor | np.generic):
        value = value.item()
    if isinstance(value, bool):
        return _BOOL, integer(4, value)
    if isinstance(value, str):
        return _STRING, message(3, value)
    if isinstance(value, int | float):
        return _FLOAT, double(2, float(value))
    raise ValueError(
        "value should be one of int, float, str, bool, or torch.Tensor; "
        f"SummaryWriter.add_hparams: got {type(value).__name__} for {name!r}"
    )


def hparams(
    settings: Mapping[str, Any], metrics: Mapping[str, Any], domains: Mapping[str, Any] | None
) -> list[tuple[str, bytes]]:
    """What begins, describes and ends a run, each with its tag."""
    infos, values = b"", b""
    for name, value in settings.items():
        if value is None:
            continue
        kind, written = _setting(name, value)
        info = message(1, name) + integer(4, kind)
        if domains and name in domains:
            several = b"".join(message(1, _setting(name, v)[1]) for v in domains[name])
            info += message(5, several)
        infos += message(4, info)
        values += message(1, message(1, name) + message(2, written))
    shown = b"".join(message(5, message(1, message(2, name))) for name in metrics)
    parts = (
        ("experiment", 2, infos + shown),
        ("session_start_info", 3, values + double(5, time.time())),
        ("session_end_info", 4, integer(1, 1) + double(2, time.time())),
    )
    return [
        (f"_hparams_/{name}", summary_metadata("hparams", message(field, content)))
        for name, field, content in parts
    ]


# Points -------------------------------------------------------------------------------------------


def sprite(pictures: Any) -> Any:
    """Pictures beside each other, as many in a row as there are rows."""
    n, channels, height, width = pictures.shape
    side = int(np.ceil(np.sqrt(n)))
    whole = np.zeros((channels, side * height, side * width), pictures.dtype)
    for i, picture in enumerate(pictures):
        row, column = divmod(i, side)
        whole[:, row * height : (row + 1) * height, column * width : (column + 1) * width] = picture
    return whole


def _table(rows: Any) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def write_embedding(
    folder: Path, points: Any, labels: Any, header: Any, pictures: bytes | None,
    shape: tuple[int, ...], step: int | None, tag: str,
) -> None:  # fmt: skip
    """The projector's files of some points, and their entry in its settings."""
    n = len(points)
    if points.ndim != 2:
        raise ValueError("mat should be 2D, where mat.size(0) is the number of data points")
    if labels is not None and len(labels) != n:
        raise ValueError("#labels should equal with #data points")
    if pictures is not None and shape[0] != n:
        raise ValueError("#images should equal with #data points")
    place = f"{str(step or 0).zfill(5)}/{quote(tag, safe='')}"
    target = folder / place
    target.mkdir(parents=True, exist_ok=True)
    (target / "tensors.tsv").write_text(_table(points.tolist()))
    entry = [
        f'tensor_name: "{tag}:{str(step or 0).zfill(5)}"',
        f'tensor_path: "{place}/tensors.tsv"',
    ]
    if labels is not None:
        rows = labels if header else [[label] for label in labels]
        text = _table([header, *rows] if header else rows)
        (target / "metadata.tsv").write_text(text, encoding="utf-8")
        entry.append(f'metadata_path: "{place}/metadata.tsv"')
    if pictures is not None:
        (target / "sprite.png").write_bytes(pictures)
        size = f"single_image_dim: {shape[3]}\n    single_image_dim: {shape[2]}"
        entry.append(f'sprite {{\n    image_path: "{place}/sprite.png"\n    {size}\n  }}')
    with (folder / "projector_config.pbtxt").open("a") as settings:
        settings.write("embeddings {\n  " + "\n  ".join(entry) + "\n}\n")
