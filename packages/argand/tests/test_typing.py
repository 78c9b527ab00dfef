"""User programs under mypy: what is right passes --strict and runs, what is wrong is found, and types are exact."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typed_program

import argand

pytest.importorskip("mypy")

_RIGHT = """
import argand as torch
import argand.nn.functional as F
from argand import Tensor, nn
from argand.autograd.function import FunctionCtx
from argand.nn.modules.batchnorm import _BatchNorm
from argand.nn.modules.loss import _Loss


def attention(q: Tensor, k: Tensor, v: torch.Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return F.softmax(scores, dim=-1) @ v


class Net(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.fc = nn.Linear(n, 2 * n)
        self.norm = nn.LayerNorm(2 * n)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.fc(x))
        return torch.relu(y).sum(dim=1, keepdim=True)


class Distance(_Loss):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.l1_loss(x, y, reduction=self.reduction)


model = Net(4)
print(Distance()(torch.ones(2), torch.zeros(2)), [isinstance(m, _BatchNorm) for m in model.modules()])
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
x = torch.randn(3, 4, dtype=torch.float32, device="cpu", requires_grad=True)
for _ in range(2):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), torch.zeros(3, 1))
    loss.backward()
    optimizer.step()
    schedule.step()
with torch.no_grad():
    values, indices = torch.topk(x.flatten(), 2)
    x[0, 1:] = 1.0
    print(values.tolist(), indices.item(), x.numpy(), (x > 0).float().mean().item(), -x.abs() ** 2 + 1 - x % 2)
print(torch.cat([x, x]).view(-1, 2).T.contiguous().cpu().to(torch.float64), torch.where(x > 0, x, 0.0), torch.arange(0, 4).long() // 2)
print(torch.linalg.norm(x, ord=2, dim=1), torch.fft.rfft(x, n=8).real, torch.special.expit(x), torch.einsum("ij,jk->ik", x, x.T))
torch.manual_seed(0)
torch.save(model.state_dict(), "model.safetensors")
"""
_TYPES = {
    "torch.__version__": "TorchVersion",
    "FunctionCtx()": "FunctionCtx",
    "x": "Tensor",
    "x.shape": "Size",
    "x.size(0)": "int",
    "x.dtype": "dtype",
    "x + 1": "Tensor",
    "1 - x": "Tensor",
    "x == x": "Tensor",
    "x[0]": "Tensor",
    "x.max(dim=1).values": "Tensor",
    "x.float()": "Tensor",
    "x.add_(1)": "Tensor",
    "torch.zeros(2, 3)": "Tensor",
    "torch.linalg.svd(x).S": "Tensor",
    "torch.fft.fftshift(x)": "Tensor",
    "F.relu(x)": "Tensor",
    "torch.float32": "dtype",
    "torch.split(x, 1)": "tuple",
    "x.unbind(0)[0]": "Tensor",
    "torch.meshgrid(x, x, indexing='ij')[0]": "Tensor",
    "torch.max(x, 0).indices": "Tensor",
    "x.tolist()": "Any",
    "x.requires_grad": "bool",
    "x.numel()": "int",
    "torch.gru(x, x, [x], True, 1, 0.0, False, False, False)": "tuple",
    "torch.lstm(x, x.long(), [x, x], [x], True, 1, 0.0, False, False)": "tuple",
}
_EXAMPLES = ("digits.py", "ddp_digits.py")
_WRONG = {
    "x.foo()": "has no attribute",
    "torch.nope": "has no attribute",
    'torch.relu("a")': "incompatible type",
    "x.sum(keepdims=3)": "sum",
    'torch.linalg.inv(x, "a", 3)': "inv",
    'x + "a"': "Unsupported operand",
    "torch.zeros([1.5])": "List item",
    "torch.stack(1)": "incompatible type",
    "torch.sort(x, dim='a')": "incompatible type",
    "x.view('a')": "incompatible type",
    "torch.nn.functional.relu(x, inplac=True)": "Unexpected keyword",
    "torch.optim.SGD(lr=0.1)": "Missing positional argument",
    "torch.cat([1, 2])": "List item",
    "torch.lstm(x, [x, x], [x])": "No overload variant",
}


def example(name: str) -> Path:
    return next(
        place
        for root in Path(__file__).resolve().parents
        if (place := root / "examples" / name).exists()
    )


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> list[str]:
    """What one run of mypy --strict says, with the packages as they would be installed."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "program.py").write_text(
        _RIGHT + "".join(f"reveal_type({text})\n" for text in _TYPES)
    )
    (folder / "mistakes.py").write_text(
        "\n".join(["import argand as torch", "x = torch.ones(2)", *_WRONG]) + "\n"
    )
    programs = [
        str(folder / "program.py"),
        str(folder / "mistakes.py"),
        typed_program.__file__,
        *(str(example(name)) for name in _EXAMPLES),
    ]
    built = [p for p in sys.path if (Path(p) / "argand_c10-stubs").is_dir()] or [
        str(Path(__file__).resolve().parents[1])
    ]
    options = [
        "--strict",
        "--config-file=",
        f"--cache-dir={folder / 'cache'}",
        "--no-error-summary",
        "--disable-error-code=import-untyped",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*built, *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *programs],
        env=environment,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert not done.stderr.strip(), done.stderr
    return done.stdout.splitlines()


def test_programs_pass_and_types_are_exact(said):
    assert [line for line in said if "program.py" in line and ": error:" in line] == []
    revealed = [
        re.search(r'Revealed type is "(?:[\w.]*\.)?([\w]+)', line).group(1)
        for line in said
        if "Revealed type" in line
    ]
    assert dict(zip(_TYPES, revealed, strict=True)) == _TYPES


def test_a_program_of_many_parts_passes_and_runs(said, tmp_path, monkeypatch):
    assert [line for line in said if "typed_program.py" in line and ": error:" in line] == []
    monkeypatch.chdir(tmp_path)
    typed_program.train()
    assert len(typed_program.operators()) > 20
    assert typed_program.recurrent().shape == (2, 5, 12)
    typed_program.average(typed_program.conv_net(), typed_program.conv_net(), 0.1)
    assert typed_program.utilities(argand.nn.Linear(8, 2)).shape == (4, 2)


def test_mistakes_are_found(said):
    for number, (text, expected) in enumerate(_WRONG.items(), 3):
        assert any(
            re.search(rf"mistakes.py:{number}: error: .*{expected}", line) for line in said
        ), (text, said)


@pytest.mark.parametrize("name", _EXAMPLES)
def test_examples_pass(name, said):
    # A call of a Module is Any, as in PyTorch: returning it is an error of --strict only.
    assert [
        line
        for line in said
        if Path(line.split(":")[0]).name == name
        and ": error:" in line
        and "[no-any-return]" not in line
    ] == []


def test_the_front_end_stub_has_every_name():
    places = [Path(p) / "argand" / "__init__.pyi" for p in sys.path] + [
        Path(__file__).resolve().parents[1] / "argand" / "__init__.pyi"
    ]
    text = next(place for place in places if place.exists()).read_text()
    missing = [name for name in dir(argand) if not re.search(rf"\b{name}\b", text)]
    assert missing == []


def test_modules_that_hand_on_names_have_stubs():
    """Type checkers do not follow a computed `__all__`: such modules are in the list of stubs in packages/argand/BUILD.bazel."""
    folder = Path(argand.__file__).parent
    handing_on = {
        p.relative_to(folder).as_posix()
        for p in folder.rglob("*.py")
        if re.search(r"^from .* import \*", p.read_text(), re.M)
    }
    roots = [Path(p) / "argand" for p in sys.path if (Path(p) / "argand_c10-stubs").is_dir()] or [
        folder
    ]
    assert [
        name
        for name in sorted(handing_on)
        if not any(
            (root / stub).exists()
            for root in roots
            for stub in (f"{name}i", name.replace(".py", "/__init__.pyi"))
        )
    ] == []
