"""Files for TensorBoard: records, events and what is in them, by a reader of their own."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

import argand as torch
from argand.utils import tensorboard
from argand.utils.tensorboard import SummaryWriter


def fields(data):
    """The fields of a message: values by number."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 2:
            size = varint()
            value, at = data[at : at + size], at + size
        else:
            size, kind = {1: (8, "<d"), 5: (4, "<f")}[key & 7]
            value, at = struct.unpack(kind, data[at : at + size])[0], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder):
    """The events of the only file in a folder, each with its step and the fields of its value."""
    (path,) = [p for p in folder.iterdir() if p.is_file()]
    data, found = path.read_bytes(), []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        record = data[12 : 12 + size]
        crcs = struct.unpack("<I", data[8:12]) + struct.unpack("<I", data[12 + size : 16 + size])
        assert crcs == (tensorboard._masked_crc(data[:8]), tensorboard._masked_crc(record))
        data = data[16 + size :]
        event = fields(record)
        value = fields(fields(event[5][0])[1][0]) if 5 in event else None
        found.append((event.get(2, [None])[0], value, event))
    assert found[0][2][3] == [b"brain.Event:2"]
    return found[1:]


def test_the_checksum():
    crc = tensorboard._masked_crc(b"123456789")
    turned = (crc - 0xA282EAD8) & 0xFFFFFFFF
    assert (turned >> 17 | turned << 15) & 0xFFFFFFFF == 0xE3069283


def test_numbers(tmp_path):
    with SummaryWriter(tmp_path / "run", filename_suffix=".end") as writer:
        writer.add_scalar("loss/train", torch.tensor([0.5]), 3, walltime=17.0)
        writer.add_scalar("loss/train", np.float64(0.25), 300)
        writer.add_scalar("loss/train", -1e39, 301)
        writer.add_scalars("both", {"a/b": 1, "c": torch.tensor(2.0)}, 1)
        with pytest.raises(ValueError, match="one number"):
            writer.add_scalar("loss", torch.ones(2))
    assert writer.get_logdir() == str(tmp_path / "run")
    first, second, beyond = events(tmp_path / "run")
    assert beyond[1][2] == [-np.inf]
    assert first[0] == 3 and first[1] == {1: [b"loss/train"], 2: [0.5]} and first[2][1] == [17.0]
    assert second[0] == 300 and second[1][2] == [0.25]
    ((step, value, _),) = events(tmp_path / "run" / "both_a_b")
    assert (step, value) == (1, {1: [b"both"], 2: [1.0]})
    assert next((tmp_path / "run").glob("*.end")).name.startswith("events.out.tfevents.")


def test_distributions(tmp_path):
    values = torch.tensor([-1.0, 0.5, 0.5, 2.0], dtype=torch.bfloat16)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", values, 1)
        writer.add_histogram("h", values, 2, bins=4, max_bins=2)
        with pytest.raises(ValueError, match="no values"):
            writer.add_histogram("h", torch.empty(0))
    for step, value, _ in events(tmp_path):
        found = fields(value[5][0])
        assert [found[i][0] for i in range(1, 6)] == [-1.0, 2.0, 4.0, 2.0, 5.5]
        limits, counts = (np.frombuffer(found[i][0]) for i in (6, 7))
        assert len(limits) == len(counts) and counts.sum() == 4 and counts[0] == 0
        for low, high, count in zip(limits, limits[1:], counts[1:], strict=False):
            inside = [v for v in values.tolist() if low <= v < high or v == high == limits[-1]]
            assert len(inside) == count
        assert step == 1 or len(counts) == 3


def pixels(value):
    """Height, width, channels and the rows of the PNG."""
    height, width, channels, png = (fields(value[4][0])[i][0] for i in range(1, 5))
    at, body = 8, b""
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            name + data
        )
        body += data if name == b"IDAT" else b""
        at += 12 + size
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


def test_pictures(tmp_path):
    image = torch.arange(24).reshape(3, 2, 4) / 24
    batch = torch.stack([image, image.flip(-1)])
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("i", image, 1)
        writer.add_image("i", (image[0] * 255).to(torch.uint8), 2, dataformats="HW")
        writer.add_images("i", batch, 3)
        for wrong in (image[:2], image[0]):
            with pytest.raises(ValueError, match="add_image"):
                writer.add_image("i", wrong)
    expected = (image * 255).to(torch.uint8).permute(1, 2, 0).numpy()
    one, gray, both = [pixels(value) for _, value, _ in events(tmp_path)]
    assert np.array_equal(one, expected) and np.array_equal(gray[..., 0], expected[..., 0])
    assert np.array_equal(both, np.concatenate([expected, expected[:, ::-1]], axis=1))


def test_texts_and_broken_off_runs(tmp_path):
    writer = SummaryWriter(tmp_path, purge_step=5)
    writer.add_text("note", "*so*", 6)
    writer.flush()
    start, text = events(tmp_path)
    assert start[0] == 5 and fields(start[2][7][0]) == {1: [1]}
    assert text[1][1] == [b"note/text_summary"] and fields(text[1][8][0])[8] == [b"*so*"]
    assert fields(fields(text[1][9][0])[1][0])[1] == [b"text"]
    writer.close()
