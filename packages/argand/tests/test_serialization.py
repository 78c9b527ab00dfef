"""save and load: round trips, sharing, atomic writes, and files that are not what they should be."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import resource
import zipfile
from collections import OrderedDict

import pytest
import safetensors

import argand as torch
import argand.nn as nn
from argand.serialization import FileFormatError

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype, tmp_path):
    value = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    state = {"x": value, "scalar": value[1, 1], "empty": torch.zeros(0, 3).to(dtype)}
    torch.save(state, tmp_path / "x.safetensors")
    loaded = torch.load(tmp_path / "x.safetensors")
    assert same(state, loaded)
    loaded["x"].zero_()  # memory of its own, and writable


def test_nested_state(tmp_path):
    state = {
        "epoch": 3,
        "loss": 0.25,
        "best": math.inf,
        "unknown": math.nan,
        "done": False,
        "name": "ä \n",
        "nothing": None,
        0: {1: [torch.arange(3), (torch.ones(2), "x")], "": torch.zeros(1)},
        "dtype": torch.bfloat16,
        "device": torch.device("cuda:1"),
        "z": 1 + 2j,
        "a.b": torch.ones(1),
        "a": {"b": torch.zeros(1)},
        "__metadata__": torch.ones(1),
    }
    torch.save(state, tmp_path / "state")
    assert same(torch.load(tmp_path / "state"), state)
    torch.save(torch.ones(2), tmp_path / "one")
    assert torch.load(tmp_path / "one").tolist() == [1.0, 1.0]
    torch.save(torch.arange(6).reshape(2, 3).t(), tmp_path / "strided")
    assert torch.load(tmp_path / "strided").tolist() == [[0, 3], [1, 4], [2, 5]]


def test_sets_bytes_and_ordered_dicts(tmp_path):
    state = OrderedDict([("b", {1, (2, 3)}), ("a", b"\x00\xff"), ((1, "x"), [set(), ()])])
    torch.save(state, tmp_path / "x")
    loaded = torch.load(tmp_path / "x")
    assert type(loaded) is OrderedDict
    assert list(loaded.items()) == list(state.items())


def test_the_order_of_dimensions_is_kept(tmp_path):
    image = torch.arange(48.0).reshape(2, 2, 3, 4)
    last = image.to(memory_format=torch.channels_last)
    state = [
        last,
        image.permute(3, 1, 0, 2),
        image[:, :, ::2],
        torch.nn.Parameter(last),
        image[0].mT,
    ]
    torch.save(state, tmp_path / "x")
    for saved, loaded in zip(state, torch.load(tmp_path / "x"), strict=True):
        assert loaded.equal(saved)
        assert type(loaded) is type(saved)
        dense = saved if saved is not state[2] else saved.contiguous()
        assert loaded.stride() == dense.stride()
    entries = dict(safetensors.deserialize((tmp_path / "x").read_bytes()))
    assert entries["0"]["shape"] == [2, 2, 3, 4]


def test_models_and_optimizers(tmp_path):
    def build():
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        return model, torch.optim.AdamW(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(4, 3) * torch.arange(4).reshape(4, 1)).sum().backward()
        optimizer.step()

    model, optimizer = build()
    step(model, optimizer)
    path = tmp_path / "checkpoint"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    other, other_optimizer = build()
    state = torch.load(path)
    other.load_state_dict(state["model"])
    other_optimizer.load_state_dict(state["optimizer"])
    step(model, optimizer)
    step(other, other_optimizer)
    assert same(dict(model.state_dict()), dict(other.state_dict()))


def test_shared_tensors_are_stored_once_and_tied_again(tmp_path):
    weight = torch.randn(100, 100)
    torch.save({"a": weight, "b": weight, "c": weight.t()}, tmp_path / "x")
    assert os.path.getsize(tmp_path / "x") < 2.2 * 40_000
    loaded = torch.load(tmp_path / "x")
    assert loaded["a"] is loaded["b"]
    assert same(loaded["c"], weight.t())


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_storages(tmp_path):
    x = torch.arange(6, dtype=torch.int16)[2:]
    path = tmp_path / "storages"
    typed = x.storage()
    torch.save([typed, {"again": x.storage()}, x.untyped_storage(), torch.ones(2).storage()], path)
    one, again, bare, ones = torch.load(path)
    assert type(one) is torch.TypedStorage and one.dtype == torch.int16
    assert one.tolist() == list(range(6)) and ones.tolist() == [1, 1]
    assert again["again"].data_ptr() == one.data_ptr()
    assert type(bare) is torch.UntypedStorage and list(bare) == list(typed.untyped())


def test_what_requires_grad_does_so_again(tmp_path):
    x = torch.ones(2, requires_grad=True)
    fixed = nn.Parameter(torch.ones(2), requires_grad=False)
    tied = nn.Parameter(torch.zeros(3))
    state = [x, x * 1, x.detach(), tied, [tied], fixed, torch.Size([2, 3])]
    torch.save(state, tmp_path / "x")
    loaded = torch.load(tmp_path / "x")
    assert same(loaded, state)
    assert [t.requires_grad for t in loaded[:4]] == [True, True, False, True]
    assert loaded[1].is_leaf
    assert loaded[0].data_ptr() == loaded[2].data_ptr()
    assert (type(loaded[3]), loaded[4][0] is loaded[3]) == (nn.Parameter, True)
    assert (type(loaded[5]), loaded[5].requires_grad) == (nn.Parameter, False)
    assert type(loaded[6]) is torch.Size


def test_other_programs_read_our_files(tmp_path):
    torch.save({"w": torch.tensor([1.0, 2.0]), "n": torch.tensor(3)}, tmp_path / "x")
    entries = dict(safetensors.deserialize((tmp_path / "x").read_bytes()))
    assert entries["w"]["dtype"] == "F32"
    assert entries["w"]["shape"] == [2]
    assert bytes(entries["w"]["data"]) == b"\x00\x00\x80?\x00\x00\x00@"
    assert entries["n"]["shape"] == []


def plain_file(tensors, data, metadata=None):
    header = dict(tensors)
    if metadata is not None:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


W = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


def test_files_of_other_programs(tmp_path):
    (tmp_path / "x").write_bytes(plain_file(W, b"\x00\x00\x80?\x00\x00\x00@"))
    assert torch.load(tmp_path / "x")["w"].tolist() == [1.0, 2.0]


def test_tensors_of_other_programs_keep_the_order_of_the_header(tmp_path):
    names = [f"layer{i * 7 % 10}" for i in range(10)]
    tensors = {
        name: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
        for i, name in enumerate(names)
    }
    (tmp_path / "x").write_bytes(plain_file(tensors, bytes(range(10))))
    loaded = torch.load(tmp_path / "x")
    assert list(loaded) == names
    assert [value.item() for value in loaded.values()] == list(range(10))


def test_a_header_whose_length_looks_like_a_pickle(tmp_path):
    padding = 0x280 - (len(plain_file(W, b"", {"note": ""})) - 8)
    data = plain_file(W, b"\0" * 8, {"note": "x" * padding})
    assert data.startswith(b"\x80\x02")  # also how pickles of protocol 2 begin
    (tmp_path / "x").write_bytes(data)
    assert torch.load(tmp_path / "x")["w"].tolist() == [0.0, 0.0]


def test_file_objects():
    buffer = io.BytesIO()
    torch.save({"x": torch.ones(3)}, buffer)
    buffer.seek(0)
    assert torch.load(buffer, weights_only=True)["x"].tolist() == [1.0] * 3


def test_map_location(tmp_path):
    torch.save({"x": torch.ones(3)}, tmp_path / "x")
    assert torch.load(tmp_path / "x", map_location="cpu")["x"].device.type == "cpu"
    assert torch.load(tmp_path / "x", map_location=torch.device("meta"))["x"].device.type == "meta"
    meta = torch.empty(3, device="meta").untyped_storage()
    for location, expected in (
        ({"cuda:0": "cpu"}, "cpu"),
        ({"cpu": "meta"}, "meta"),
        (lambda storage, location: storage, "cpu"),
        (lambda storage, location: None, "cpu"),
        (lambda storage, location: meta if location == "cpu" else storage, "meta"),
    ):
        found = torch.load(tmp_path / "x", map_location=location, encoding="ascii")["x"]
        assert found.device.type == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (nn.Linear(1, 1), "got a Module, expected tensors; save module.state_dict()"),
        ({"a": [object()]}, "got object at 'a.0'"),
        ({frozenset(): 3}, "got a key of type frozenset at"),
        ({"f": print}, "got builtin_function_or_method at 'f'"),
        ({"x": torch.ones(1).numpy()}, "got a NumPy ndarray at 'x'"),
        ({"x": torch.ones(1, dtype=torch.complex128)}, "complex128 for 'x'"),
        ({"x": torch.ones(1, device="meta")}, "on device meta"),
    ],
    ids=str,
)
def test_what_cannot_be_saved(value, message, tmp_path):
    path = tmp_path / "x"
    torch.save({"old": 1}, path)
    with pytest.raises(TypeError) as caught:
        torch.save(value, path)
    assert message in str(caught.value)
    assert torch.load(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["x"]


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    torch.save({"old": 1}, path)

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        torch.save({"new": torch.ones(1000)}, path)
    assert torch.load(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["x"]
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save({}, tmp_path / "absent" / "x")


def test_a_partial_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    torch.save({"old": 1}, path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="save: .*File too large"):
            torch.save({"new": torch.ones(10_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert torch.load(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["x"]


def test_files_have_the_usual_mode(tmp_path):
    path = tmp_path / "x"
    torch.save({}, path)
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o640)
    torch.save({"new": 1}, path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_links_stay_and_name_what_is_written(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to("target")
    for value in ({"a": 1}, {"b": 2}):  # first where there is no file yet
        torch.save(value, link)
        assert link.is_symlink() and not target.is_symlink() and torch.load(target) == value


def test_pipes_are_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    torch.save({"a": torch.ones(3)}, pipe)
    assert torch.load(io.BytesIO(os.read(reader, 10_000)))["a"].tolist() == [1, 1, 1]
    os.close(reader)
    assert pipe.is_fifo()


def test_recursion_is_refused(tmp_path):
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested containers"):
        torch.save(loop, tmp_path / "x")


def test_every_truncation_is_noticed(tmp_path):
    path = tmp_path / "x"
    torch.save({"a": torch.arange(5), "b": torch.ones(3, dtype=torch.bfloat16)}, path)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(FileFormatError):
            torch.load(path)
    path.write_bytes(data + b"x")
    with pytest.raises(FileFormatError, match="is damaged"):
        torch.load(path)


def test_pytorch_checkpoints_are_explained(tmp_path):
    (tmp_path / "old.pt").write_bytes(pickle.dumps({"x": 1}))
    with pytest.raises(FileFormatError, match="is a pickle .*save_file"):
        torch.load(tmp_path / "old.pt")
    with zipfile.ZipFile(tmp_path / "new.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    with pytest.raises(FileFormatError, match="PyTorch checkpoint"):
        torch.load(tmp_path / "new.pt")


def entry(**changes):
    return {"w": {**W["w"], **changes}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a safetensors file"),
        (b"hello, world: this is text", "is not a safetensors file"),
        ((50).to_bytes(8, "little") + b"x" * 60, "is not a safetensors file"),
        ((2).to_bytes(8, "little") + b"[]", "is not a safetensors file"),
        (plain_file(entry(dtype="F99"), b"\0" * 8), "F99"),
        (plain_file(entry(dtype=[1]), b"\0" * 8), "expected string"),
        (plain_file(entry(shape=[-2]), b"\0" * 8), "integer `-2`"),
        (plain_file(entry(shape=[True, 2]), b"\0" * 8), "boolean `true`"),
        (plain_file(entry(shape=[3]), b"\0" * 8), "invalid shape"),
        (plain_file(entry(data_offsets=[0]), b"\0" * 8), "is damaged or cut off"),
        (plain_file(entry(data_offsets=[8, 16]), b"\0" * 16), "invalid offset for tensor `w`"),
        (plain_file({"w": 3}, b""), "is damaged or cut off"),
        (plain_file({**W, "v": W["w"]}, b"\0" * 8), "invalid offset for tensor"),
        (plain_file(W, b"\0" * 8, {"x": 3}), "expected a string"),
        (plain_file(entry(dtype="F8_E8M0", shape=[8]), b"\0" * 8), "'F8_E8M0', expected one of"),
        (plain_file(entry(dtype="BOOL", shape=[8]), b"\0" * 7 + b"\2"), "other than 0 and 1"),
        (plain_file(entry(shape=[1] * 65, data_offsets=[0, 4]), b"\0" * 4), "unusable shape"),
        (plain_file(entry(shape=[0, 2**64 - 1], data_offsets=[0, 0]), b""), "unusable shape"),
        (plain_file(W, b"\0" * 8, {"argand.tree": "{"}), "structure cannot be read"),
        (plain_file(W, b"\0" * 8, {"argand.tree": '{"tensor":"v"}'}), "structure cannot be read"),
        (
            plain_file(W, b"\0" * 8, {"argand.tree": "1", "argand.orders": '{"w":[0,0]}'}),
            "cannot be",
        ),
        (plain_file(W, b"\0" * 8, {"argand.tree": '{"eval":[1]}'}), "unknown kind 'eval'"),
        (plain_file(W, b"\0" * 8, {"argand.tree": '{"list":"ab"}'}), "expected a list"),
        (plain_file(W, b"\0" * 8, {"argand.tree": '{"parameter":["w"]}'}), "structure cannot"),
        (plain_file(W, b"\0" * 8, {"argand.tree": '{"dtype":"Module"}'}), "is no dtype"),
        (plain_file(W, b"\0" * 8, {"argand.tree": '{"device":["x"]}'}), "structure cannot be read"),
        (
            plain_file(W, b"\0" * 8, {"argand.tree": f'{{"device":["cuda",{2**70}]}}'}),
            "OverflowError",
        ),
        (plain_file(W, b"\0" * 8, {"argand.tree": '{"list":[' * 200 + "]}" * 200}), "too many"),
    ],
    ids=range(28),
)
def test_damaged_files(content, message, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        torch.load(tmp_path / "x")
    assert message in str(caught.value)
    assert str(tmp_path / "x") in str(caught.value)


def test_absent_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "absent")


def test_archives_of_records(tmp_path):
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", b"0123")
        archive.writestr("x/data/0", b"abcdefgh")
    reader = torch.PyTorchFileReader(str(path))
    assert reader.get_all_records() == ["data.pkl", "data/0"]
    assert reader.get_record("data/0") == b"abcdefgh" and reader.get_record_size("data.pkl") == 4
    assert reader.has_record("data/0") and not reader.has_record("x/data/0")
    with pytest.raises(RuntimeError, match="data/1"):
        reader.get_record("data/1")
    damaged = path.read_bytes().replace(b"abcdefgh", b"abcdefgi", 1)
    with pytest.raises(RuntimeError, match="damaged"):
        torch.PyTorchFileReader(io.BytesIO(damaged)).get_record("data/0")
    with pytest.raises(RuntimeError, match="zip archive"):
        torch.PyTorchFileReader(io.BytesIO(b"abc"))


def test_sparse_tensors(tmp_path):
    x = torch.sparse_coo_tensor([[1, 0, 1], [0, 2, 0]], [3.0, 4.0, 5.0], (2, 3))
    saved = {
        "x": x,
        "leaf": x.coalesce().detach().requires_grad_(),
        "h": torch.eye(3).to_sparse(1).half(),
    }
    torch.save(saved, tmp_path / "x")
    loaded = torch.load(tmp_path / "x", weights_only=True)
    for name, tensor in saved.items():
        assert repr(loaded[name]) == repr(tensor)
        assert loaded[name].is_coalesced() == tensor.is_coalesced()
    module = torch.nn.Module()
    module.register_buffer("x", x)
    buffer = module.double().x
    module.load_state_dict({"x": x.coalesce() * 2})
    assert module.x is buffer and buffer.dtype == torch.float64
    assert buffer._values().tolist() == [8.0, 16.0] and buffer.is_coalesced()
    torch.save([torch.sparse_coo_tensor([[0, 7]], [1.0, 2.0], (2,))], tmp_path / "bad")
    with pytest.raises(FileFormatError, match="size is 2 but found index 7"):
        torch.load(tmp_path / "bad")
