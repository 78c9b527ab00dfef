"""Files for TensorBoard: records, events and what is in them, by a reader of their own."""

from __future__ import annotations

import io
import struct
import wave
import zlib

import numpy as np
import pytest

import argand as torch
from argand.utils.tensorboard import SummaryWriter
from argand.utils.tensorboard import writer as tensorboard


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


def plugin(value):
    """The name and the content of the plugin that shows a value."""
    data = fields(fields(value[9][0])[1][0])
    return data[1][0], fields(data.get(2, [b""])[0])


def numbers(value):
    found = fields(value[8][0])
    shape = [fields(dim)[1][0] for dim in fields(found[2][0])[2]]
    return np.frombuffer(found[4][0], {1: "<f4", 3: "<i4"}[found[1][0]]).reshape(shape)


def test_sounds(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("sound", torch.tensor([[0.5, -2.0, 0.0]]), 1, sample_rate=8000)
        with pytest.raises(ValueError, match="expected"):
            writer.add_audio("sound", torch.ones(2, 3))
    ((step, value, _),) = events(tmp_path)
    sound = fields(value[6][0])
    assert step == 1 and (sound[1], sound[2], sound[3]) == ([8000.0], [1], [3])
    with wave.open(io.BytesIO(sound[4][0])) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (8000, 1, 2)
        assert np.frombuffer(file.readframes(3), "<i2").tolist() == [16383, -32767, 0]


def test_curves_of_precision(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        labels, predictions = torch.tensor([1, 0, 1, 0]), torch.tensor([0.9, 0.6, 0.4, 0.1])
        writer.add_pr_curve("curve", labels, predictions, 2, num_thresholds=3)
        rows = np.arange(12).reshape(6, 2)
        writer.add_pr_curve_raw("raw", *rows, num_thresholds=2)
    (_, value, _), (_, raw, _) = events(tmp_path)
    assert plugin(value) == (b"pr_curves", {2: [3]})
    expected = [[2, 1, 0], [2, 1, 0], [0, 1, 2], [0, 1, 2], [0.5, 0.5, 0], [1, 0.5, 0]]
    assert numbers(value).tolist() == expected and numbers(raw).tolist() == rows.tolist()


def test_meshes(tmp_path):
    vertices, faces = torch.arange(9.0).reshape(1, 3, 3), torch.tensor([[[0, 1, 2]]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_mesh("mesh", vertices, faces=faces, config_dict={"lights": []})
    (_, points, _), (_, triangles, _) = events(tmp_path)
    assert points[1] == [b"mesh_VERTEX"] and triangles[1] == [b"mesh_FACE"]
    assert numbers(points).tolist() == vertices.tolist()
    assert numbers(triangles).tolist() == faces.tolist() and numbers(triangles).dtype == np.int32
    content = {2: [b"mesh"], 3: [1], 5: [b'{"lights": []}'], 6: [1, 3, 3], 7: [6]}
    assert plugin(points) == (b"mesh", content)


def test_settings_of_runs(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        given = {"rate": 0.5, "name": "sgd", "fast": True, "none": None}
        domains = {"name": ["sgd", "adam"]}
        writer.add_hparams(given, {"loss": torch.tensor(0.25)}, domains, "one", 3)
        with pytest.raises(TypeError, match="should be dictionary"):
            writer.add_hparams([], {})
        with pytest.raises(ValueError, match="'bad'"):
            writer.add_hparams({"bad": [1]}, {})
    described, began, ended, metric = events(tmp_path / "one")
    assert described[1][1] == [b"_hparams_/experiment"] and described[0] == 3
    experiment = fields(plugin(described[1])[1][2][0])
    infos = [fields(x) for x in experiment[4]]
    assert [(x[1], x[4]) for x in infos] == [([b"rate"], [3]), ([b"name"], [1]), ([b"fast"], [2])]
    assert [fields(x)[3] for x in fields(infos[1][5][0])[1]] == [[b"sgd"], [b"adam"]]
    assert fields(fields(experiment[5][0])[1][0]) == {2: [b"loss"]}
    values = [fields(x) for x in fields(plugin(began[1])[1][3][0])[1]]
    assert {x[1][0]: fields(x[2][0]) for x in values} == {
        b"rate": {2: [0.5]}, b"name": {3: [b"sgd"]}, b"fast": {4: [1]},
    }  # fmt: skip
    assert fields(plugin(ended[1])[1][4][0])[1] == [1]
    assert metric[1] == {1: [b"loss"], 2: [0.25]}


def test_points(tmp_path):
    pictures = torch.rand(3, 1, 2, 4)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(torch.tensor([[1.0, 2.0]] * 3), ["a", "b", "c"], pictures, 4, "two d")
        writer.add_embedding(np.ones((1, 2)), [["x", "y"]], metadata_header=["p", "q"])
        with pytest.raises(ValueError, match="#labels"):
            writer.add_embedding(np.ones((2, 2)), ["a"])
    assert (tmp_path / "00004/two%20d/tensors.tsv").read_text() == "1.0\t2.0\n" * 3
    assert (tmp_path / "00004/two%20d/metadata.tsv").read_text() == "a\nb\nc\n"
    assert (tmp_path / "00000/default/metadata.tsv").read_text() == "p\tq\nx\ty\n"
    header = (tmp_path / "00004/two%20d/sprite.png").read_bytes()[16:24]
    assert struct.unpack(">II", header) == (8, 4)  # two in a row
    settings = (tmp_path / "projector_config.pbtxt").read_text()
    assert (
        settings.count("embeddings {") == 2
        and 'tensor_path: "00004/two%20d/tensors.tsv"' in settings
    )


def test_models(tmp_path, capsys):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())

        def forward(self, x, y):
            return self.body(x).sum(1) * y if x.ndim == 2 else x

    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(Net(), (torch.ones(4, 2), torch.ones(4)), verbose=True)
    assert "aten::linear(input/input_0, " in capsys.readouterr().out
    ((_, _, event),) = events(tmp_path)
    nodes = [fields(node) for node in fields(event[4][0])[1]]
    found = {
        n[1][0].decode(): (n[2][0].decode(), [x.decode() for x in n.get(3, [])]) for n in nodes
    }
    linear = "Net/Sequential[body]/Linear[0]"
    assert found[f"{linear}/weight"] == ("Parameter", [])
    assert found[f"{linear}/linear"] == (
        "aten::linear", ["input/input_0", f"{linear}/weight", f"{linear}/bias"],
    )  # fmt: skip
    assert found["Net/Sequential[body]/ReLU[1]/relu"][1] == [f"{linear}/linear"]
    assert found["Net/mul"] == ("aten::mul", ["Net/sum", "input/input_1"])
    assert found["output/output_0"] == ("IO Node", ["Net/mul"])


def test_layouts(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_custom_scalars({"a": {"b": ["Multiline", ["x", "y"]]}})
        writer.add_custom_scalars_marginchart(["x", "low", "high"])
    (_, lines, _), (_, margin, _) = events(tmp_path)
    assert plugin(lines)[0] == b"custom_scalars"

    def chart(value):
        category = fields(fields(fields(value[8][0])[8][0])[2][0])
        return category[1][0], fields(category[2][0])

    assert chart(lines) == (b"a", {1: [b"b"], 2: [b"\n\x01x\n\x01y"]})
    name, shown = chart(margin)
    assert name == b"default" and fields(fields(shown[3][0])[1][0])[3] == [b"high"]


def test_summaries_that_programs_make(tmp_path):
    from argand.utils.tensorboard import summary

    writer = SummaryWriter(tmp_path)
    for made in summary.hparams({"rate": 0.5}, {"loss": 0}):
        writer.file_writer.add_summary(made)
    writer.file_writer.add_summary(summary.scalar("loss", 0.25), 7)
    assert writer._get_file_writer().get_logdir() == str(tmp_path)
    writer.file_writer.close()
    *parts, (step, metric, _) = events(tmp_path)
    assert [plugin(value)[0] for _, value, _ in parts] == [b"hparams"] * 3
    assert step == 7 and metric == {1: [b"loss"], 2: [0.25]}
