"""Packages against the programs that they are made of, in Python and in a C program without Python."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import Module, Parameter
from argand_export import (
    Dim,
    ExportedProgram,
    export,
    load,
    load_package,
    package,
    runtime_files,
    save,
)
from argand_export.files import FileFormatError


class Net(Module):
    """A matrix product, a softmax, a changed buffer, a changed argument, constants of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        c10.manual_seed(3)
        self.weight, self.bias = Parameter(aten.randn(8, 6)), Parameter(aten.randn(8))
        self.register_buffer("count", aten.zeros(()))
        self.shift = aten.arange(8)

    def forward(self, x: Any, seen: Any, power: float) -> Any:
        self.count.add_(1)
        seen.add_(x.sum())
        y = aten.relu(aten.linear(x, self.weight, self.bias) + self.shift) ** power
        return {"y": aten.softmax(y, -1), "rows": [y.sum(1), 3], "none": None, "half": 0.5}


@pytest.fixture(scope="module")
def program() -> ExportedProgram:
    n = Dim("n", min=2, max=100)
    example = (aten.randn(5, 6), aten.zeros(2), 2.0)
    return export(Net(), example, dynamic_shapes={"x": {0: n}})


@pytest.fixture(scope="module")
def packed(program: ExportedProgram, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    path = tmp_path_factory.mktemp("packed") / "net.ag2p"
    return path, package(program, path)


def values(n: int, *sizes: int) -> Any:
    """What csrc/host/run_package.c fills inputs with."""
    found = [((7 * i + 3) % 17 - 8) / 8 for i in range(n)]
    return aten.tensor(found).reshape(sizes)


def test_as_the_program(program: ExportedProgram, packed: tuple[Path, str]) -> None:
    path, digest = packed
    made = load_package(path, digest=digest)
    assert made.digest == digest and made.range_constraints == {"n": (2, 100)}
    state = {name: t.clone() for name, t in program.state_dict.items()}
    for n in (2, 5, 100):
        x = aten.randn(n, 6)
        first, second = aten.zeros(2), aten.zeros(2)
        a, b = program.run(state, (x, first, 2.0), {}), made(x, second, 2.0)
        assert aten.allclose(a["y"], b["y"], rtol=1e-6, atol=1e-7)
        assert aten.allclose(a["rows"][0], b["rows"][0], rtol=1e-6)
        assert (b["rows"][1], b["none"], b["half"]) == (3, None, 0.5)
        assert aten.allclose(first, second, rtol=1e-5) and not aten.equal(second, aten.zeros(2))
    assert made.state_dict["count"].item() == state["count"].item() == 3.0
    made.state_dict["weight"].zero_()
    made.state_dict["bias"].zero_()
    assert made(aten.ones(2, 6), aten.zeros(2), 2.0)["rows"][0].tolist() == [140.0, 140.0]


def test_any_layout(packed: tuple[Path, str]) -> None:
    made = load_package(packed[0])
    x = aten.randn(4, 12)[:, ::2]
    seen = aten.zeros(4)
    a, b = made(x, seen[::2], 2.0), made(x.contiguous(), aten.zeros(2), 2.0)
    assert aten.equal(a["y"], b["y"])
    assert seen[1].item() == 0.0 and seen[0].item() != 0.0, "changes reach the caller's memory"


@pytest.mark.parametrize(
    ("x", "power", "message"),
    [
        (aten.ones(101, 6), 2.0, r"got size 101 in dimension 0 of 'x', expected n with n in \[2, 100\]"),
        (aten.ones(5, 7), 2.0, "got size 7 in dimension 1 of 'x', expected 6; export with dynamic_shapes"),
        (aten.ones(5, 6, 1), 2.0, "got float32 of 3 dimensions for 'x', expected float32 of 2"),
        (aten.ones(5, 6, dtype=c10.float64), 2.0, "got float64 of 2 dimensions for 'x'"),
        (aten.ones(5, 6), 3.0, r"got 3.0 for args\[2\], expected 2.0"),
        ([1.0], 2.0, "call it as it was exported"),
        ("x", 2.0, "got str for 'x', expected a Tensor"),
    ],
)  # fmt: skip
def test_wrong_calls(packed: tuple[Path, str], x: Any, power: float, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        load_package(packed[0])(x, aten.zeros(2), power)


def test_sizes_that_must_agree(tmp_path: Path) -> None:
    class Pair(Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x[1:] + y

    n = Dim("n")
    made = export(Pair(), (aten.ones(6), aten.ones(5)), dynamic_shapes=({0: n + 1}, {0: n}))
    package(made, tmp_path / "pair.ag2p")
    pair = load_package(tmp_path / "pair.ag2p")
    assert pair(aten.ones(9), aten.ones(8)).tolist() == [2.0] * 8
    with pytest.raises(ValueError, match="where n is 7, but it is 8 by dimension 0 of 'x'"):
        pair(aten.ones(9), aten.ones(7))


def test_a_saved_program_packages_alike(program: ExportedProgram, tmp_path: Path) -> None:
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    package(load(file), tmp_path / "a.ag2p")
    package(program, tmp_path / "b.ag2p")
    made = [load_package(tmp_path / name) for name in ("a.ag2p", "b.ag2p")]
    a, b = (p(values(30, 5, 6), aten.zeros(2), 2.0) for p in made)
    assert aten.equal(a["y"], b["y"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.ag2p", "b.ag2p"]


def test_nothing_is_traced_or_compiled(packed: tuple[Path, str]) -> None:
    code = (
        "import sys\nfrom argand_export import load_package\nimport argand_aten as aten\n"
        f"p = load_package({os.fspath(packed[0])!r})\np(aten.ones(4, 6), aten.zeros(2), 2.0)\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & "
        "{'argand_dynamo', 'argand_aot', 'argand_fx', 'argand_inductor', 'argand_autograd', 'sympy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


# ---- processors ----------------------------------------------------------------------------------------------------------


def test_tiers(program: ExportedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tier = c10.cpu.tier()
    if tier < 1:
        pytest.skip("needs AVX2")
    path = tmp_path / "net.ag2p"
    package(program, path, tiers=(0, tier))
    assert load_package(path).tier == tier
    package(program, path, tiers=(0,))
    low = load_package(path)
    assert low.tier == 0
    assert low(values(12, 2, 6), aten.zeros(2), 2.0)["y"].shape == (2, 8)
    with pytest.raises(ValueError, match="expected numbers of 0, 1 and 2"):
        package(program, path, tiers=(3,))


def test_another_processor_compiles_the_source(program: ExportedProgram, tmp_path: Path) -> None:
    """A process that c10 runs at the lowest tier, with a package for the highest."""
    if c10.cpu.tier() < 1:
        pytest.skip("needs AVX2")
    path = tmp_path / "net.ag2p"
    package(program, path, tiers=(c10.cpu.tier(),))
    code = (
        "from argand_export import load_package\nimport argand_aten as aten\n"
        f"p = load_package({os.fspath(path)!r})\n"
        "print(p.tier, p(aten.ones(4, 6), aten.zeros(2), 2.0)['y'].shape)"
    )
    for compiler, expected in (("gcc", "0 argand.Size([4, 8])"), ("/missing/cc", "tiers=(0, ...)")):
        env = {**os.environ, "ARGAND_CPU_TIER": "0", "ARGAND_CC": compiler}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env
        )
        assert expected in done.stdout + done.stderr


# ---- without Python ------------------------------------------------------------------------------------------------------


def host(*arguments: str) -> subprocess.CompletedProcess[str]:
    files = runtime_files()
    found = os.environ.get("ARGAND_RUN_PACKAGE")
    if not found:
        pytest.skip("ARGAND_RUN_PACKAGE does not name the C program")
    command = [
        os.path.abspath(found),
        "--c10",
        files.c10,
        "--aten",
        files.aten,
        "--blas",
        files.blas,
    ]
    return subprocess.run(
        [*map(str, command), *arguments], capture_output=True, text=True, check=False
    )


def test_in_c(packed: tuple[Path, str]) -> None:
    path, digest = packed
    done = host("--digest", digest, os.fspath(path), "4x6", "2")
    assert done.returncode == 0, done.stderr
    y, rows, three, none, half, left = done.stdout.splitlines()
    assert (three, none, half, left) == ("3", "none", "0.5", "left 0 bytes")
    expected = load_package(path)(values(24, 4, 6), values(2, 2), 2.0)
    for line, tensor in ((y, expected["y"]), (rows, expected["rows"][0])):
        shape, _, numbers = line.partition("] ")
        assert shape == f"tensor {list(tensor.shape)}"[:-1]
        assert [float(x) for x in numbers.split()] == pytest.approx(
            tensor.flatten().tolist(), rel=2e-7
        )


def test_errors_in_c(packed: tuple[Path, str], tmp_path: Path) -> None:
    path, digest = map(os.fspath, packed)
    assert "got size 101 in dimension 0 of 'x', expected n" in host(path, "101x6", "2").stderr
    assert (
        "it is another package than the one you verified"
        in host("--digest", 64 * "0", path, "2x6", "2").stderr
    )
    assert "No such file" in host(os.fspath(tmp_path / "missing"), "2x6", "2").stderr
    (tmp_path / "foreign").write_bytes(b"PK\3\4 and so on" * 9)
    assert "no zip archive" in host(os.fspath(tmp_path / "foreign"), "2x6", "2").stderr


def test_no_python_is_needed() -> None:
    """Neither the libraries nor what they load needs libpython or a symbol of it."""
    files = runtime_files()
    libraries = [files.export, files.c10, files.aten]
    if found := os.environ.get("ARGAND_RUN_PACKAGE"):
        libraries.append(Path(found))
    for library in libraries:
        needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
        assert "python" not in needed.lower().replace(str(library.parent).lower(), "")
        undefined = subprocess.run(
            ["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True
        ).stdout
        assert not [n for n in undefined.split() if n.startswith(("Py", "_Py"))]


# ---- damage --------------------------------------------------------------------------------------------------------------


def rewritten(data: bytes, change: Any) -> bytes:
    """The archive with other contents, and right checksums."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return out.getvalue()


def with_manifest(data: bytes, **entries: Any) -> bytes:
    def change(name: str, content: bytes) -> bytes:
        return (
            json.dumps({**json.loads(content), **entries}).encode()
            if name == "package.json"
            else content
        )

    return rewritten(data, change)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": "other"}, "it is no package"),
        ({"version": 99}, "it has version 99, expected 1"),
        ({"abi": 99}, "it was made for ABI 99"),
        ({"inputs": []}, "damaged|another program"),
        ({"results": [0, 0, 0]}, "damaged|another program"),
        ({"files": {}}, "states no hash"),
        ({"dimensions": []}, "damaged"),
        ({"in_tree": 3}, "damaged"),
    ],
)  # fmt: skip
def test_hostile_manifests(
    packed: tuple[Path, str], tmp_path: Path, entries: dict[str, Any], message: str
) -> None:
    path = tmp_path / "x.ag2p"
    path.write_bytes(with_manifest(packed[0].read_bytes(), **entries))
    with pytest.raises(FileFormatError, match=message):
        load_package(path)


def test_a_changed_library_is_not_loaded(packed: tuple[Path, str], tmp_path: Path) -> None:
    def change(name: str, content: bytes) -> bytes:
        return content[:-1] + bytes([content[-1] ^ 1]) if name.endswith(".so") else content

    path = tmp_path / "x.ag2p"
    path.write_bytes(rewritten(packed[0].read_bytes(), change))
    with pytest.raises(FileFormatError, match="program.tier[012].so differs from the hash"):
        load_package(path)
    with pytest.raises(FileFormatError, match="its digest is"):
        load_package(packed[0], digest="0" * 64)


def test_a_thousand_damaged_files(packed: tuple[Path, str], tmp_path: Path) -> None:
    """Every damaged file gives FileFormatError, or a package where the damage is in what does not matter."""
    data = packed[0].read_bytes()
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    rng = random.Random(0)
    path = tmp_path / "x.ag2p"
    refused = 0

    def scratched(target: bytearray) -> bytes:
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(target))
            if rng.random() < 0.5:
                target[at] = rng.randrange(32, 127)
            else:
                del target[at : at + rng.randrange(1, 40)]
        return bytes(target)

    for _ in range(1000):
        kind = rng.randrange(4)
        if kind == 0:
            broken = data[: rng.randrange(len(data))]
        elif kind == 1:
            whole = bytearray(data)
            for _ in range(rng.randrange(1, 8)):
                whole[rng.randrange(len(whole))] = rng.randrange(256)
            broken = bytes(whole)
        else:  # inside of a file, with right checksums
            chosen = "package.json" if kind == 2 else rng.choice(names)
            broken = rewritten(
                data, lambda n, c, chosen=chosen: scratched(bytearray(c)) if n == chosen else c
            )
        path.write_bytes(broken)
        try:
            load_package(path)
        except FileFormatError:
            refused += 1
    assert refused > 800


def test_the_digest_is_of_the_manifest(packed: tuple[Path, str]) -> None:
    path, digest = packed
    with zipfile.ZipFile(path) as archive:
        manifest = archive.read("package.json")
        assert hashlib.sha256(manifest).hexdigest() == digest
        for name, stated in json.loads(manifest)["files"].items():
            assert hashlib.sha256(archive.read(name)).hexdigest() == stated


def test_a_bound_that_is_none(tmp_path: Path) -> None:
    made = type("Made", (Module,), {"forward": lambda self, x: x + 1})()
    n = Dim("n", max=sys.maxsize)
    program = export(made, (aten.ones(4),), dynamic_shapes=({0: 2 * n},))
    package(program, tmp_path / "p.ag2p")
    assert load_package(tmp_path / "p.ag2p")(aten.ones(6)).tolist() == [2.0] * 6
