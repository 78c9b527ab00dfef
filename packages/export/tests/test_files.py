"""Saved programs: the same after loading, and nothing but clear errors from damaged files."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import Module, Parameter
from argand_export import Dim, ExportedProgram, export, load, save
from argand_export.files import FileFormatError


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = Parameter(aten.randn(3, 4)), Parameter(aten.randn(3))
        self.register_buffer("count", aten.zeros(()))
        self.shift = aten.arange(3)

    def forward(self, x: Any, power: float, kind: Any) -> Any:
        self.count.add_(1)
        y = aten.linear(x, self.weight, self.bias).to(kind).view(-1, 3) + self.shift
        return y.abs().pow(power), {"rows": x[:, 1:], "n": 3, "half": y[: y.shape[0] // 2]}


def program() -> ExportedProgram:
    example = (aten.randn(6, 4), 2.5, c10.float64)
    return export(Net(), example, dynamic_shapes={"x": {0: Dim("n", min=2, max=100)}})


def saved(made: ExportedProgram) -> bytes:
    buffer = io.BytesIO()
    save(made, buffer)
    return buffer.getvalue()


def test_round_trip(tmp_path: Path) -> None:
    made = program()
    path = tmp_path / "net.ag2"
    save(made, path)
    assert [p.name for p in tmp_path.iterdir()] == ["net.ag2"]
    again = load(path)
    assert again.graph.to_text(comments=False) == made.graph.to_text(comments=False)
    assert again.graph_signature == made.graph_signature
    assert again.range_constraints == made.range_constraints
    for n in (2, 6, 31):
        x = aten.randn(n, 4)
        (a, rest), (b, other) = (p(x, 2.5, c10.float64) for p in (made, again))
        assert aten.equal(a, b) and aten.equal(rest["rows"], other["rows"])
        assert aten.equal(rest["half"], other["half"]) and other["n"] == 3
    assert again.state_dict["count"].item() == 3.0
    with pytest.raises(ValueError, match="n in \\[2, 100\\]"):
        again(aten.randn(101, 4), 2.5, c10.float64)


def test_equal_programs_give_equal_files() -> None:
    c10.manual_seed(0)
    first = saved(program())
    c10.manual_seed(0)
    assert saved(program()) == first


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "net.ag2"
    made = program()
    save(made, path)
    before = path.read_bytes()
    made.state_dict["weight"] = aten.zeros(2, dtype=c10.complex128)
    with pytest.raises(TypeError):
        save(made, path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def changed(data: bytes, **entries: Any) -> bytes:
    """The archive with other entries in program.json."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "program.json":
                content = json.dumps({**json.loads(content), **entries}).encode()
            new.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": "other"}, "is no exported program"),
        ({"version": 99}, "has version 99"),
        ({"graph": "graph {\n    %x = call_function os.system('true')\n}\n"}, "damaged"),
        ({"graph": "graph {\n    %x = call_function builtins.len((1,))\n}\n"}, "expected an operator"),
        ({"graph": "graph {\n    %x = call_function other::op(1)\n}\n"}, "other::op, which is not registered; import"),
        ({"inputs": []}, "damaged"),
        ({"ranges": {}}, "without a range"),
        ({"symbols": {"s99999999": "n"}}, "damaged"),
        ({"in_tree": ["tuple", 3]}, "damaged"),
        ({"relations": [[0, 0, "__import__('os')"]]}, "damaged"),
    ],
)  # fmt: skip
def test_hostile_programs(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        load(io.BytesIO(changed(saved(program()), **entries)))


def test_foreign_files(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04", b"hello" * 100, b"\x80\x05."):
        path = tmp_path / "x"
        path.write_bytes(content)
        with pytest.raises(FileFormatError):
            load(path)
    with pytest.raises(OSError):
        load(tmp_path / "missing")


def test_a_thousand_damaged_files() -> None:
    """Every damaged file gives FileFormatError, or a program where the damage is in what does not matter."""
    data = saved(program())
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    rng = random.Random(0)
    refused = 0
    for _ in range(1000):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {name: bytearray(archive.read(name)) for name in names}
        kind = rng.randrange(4)
        if kind == 0:
            broken = bytes(data[: rng.randrange(len(data))])
        elif kind == 1:
            whole = bytearray(data)
            for _ in range(rng.randrange(1, 8)):
                whole[rng.randrange(len(whole))] = rng.randrange(256)
            broken = bytes(whole)
        else:  # inside of a file, with right checksums
            target = files["program.json" if kind == 2 else rng.choice(names)]
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(target))
                if rng.random() < 0.5:
                    target[at] = rng.randrange(32, 127)
                else:
                    del target[at : at + rng.randrange(1, 40)]
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as archive:
                for name, content in files.items():
                    archive.writestr(name, bytes(content))
            broken = out.getvalue()
        try:
            assert isinstance(load(io.BytesIO(broken)), ExportedProgram)
        except FileFormatError:
            refused += 1
    assert refused > 500


def test_files_of_users_go_along():
    made, buffer = program(), io.BytesIO()
    save(made, buffer, extra_files={"notes/a.txt": "text", "b": "\u00e9".encode()})
    assert "extra/notes/a.txt" in zipfile.ZipFile(buffer).namelist()
    found = {"notes/a.txt": "", "b": None}
    buffer.seek(0)
    assert isinstance(load(buffer, extra_files=found), ExportedProgram)
    assert found == {"notes/a.txt": "text", "b": "\u00e9"}
    buffer.seek(0)
    with pytest.raises(FileFormatError, match="extra/missing"):
        load(buffer, extra_files={"missing": ""})
