"""The wheel's archives hold every kernel that common eager programs launch: nothing is compiled at its first use.

The programs run on the stand-in for the driver, which launches nothing, so that results are arbitrary; the kernels' names are what counts.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("FAKE_CUDA_DEVICES", "1")
if not os.environ.get("ARGAND_CUDA_DRIVER"):
    pytest.skip(
        "ARGAND_CUDA_DRIVER does not name the stand-in for the driver", allow_module_level=True
    )

import argand as torch
import argand_aten_cuda
from argand import nn
from argand.nn import functional as F
from argand_aten_cuda.archive import Archive
from argand_aten_cuda.usual import OPERATORS

MIB = 1 << 20


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Archive]:
    """The wheel's archives by architecture, "sm_90" for one."""
    (wheel,) = Path("packages/aten/cuda/dist").glob("*.whl")
    folder = tmp_path_factory.mktemp("archives")
    with zipfile.ZipFile(wheel) as z:
        members = [name for name in z.namelist() if "/archives/" in name]
        found = {
            Path(m).stem.removeprefix("kernels_"): Archive(Path(z.extract(m, folder)))
            for m in members
        }
    if not found:
        pytest.skip("the wheel was built with --define=archives=no")
    assert "sm_90" in found
    assert wheel.stat().st_size <= (1 + 6 * len(found)) * MIB
    return found


_ASKED: set[str] = set()  # of the process: a specialization is asked for once


def _provide(name: str, architecture: int) -> tuple[bytes, str, int, int]:
    assert architecture == 90
    _ASKED.add(name)
    return b"\0", "kernel", 128, 0


argand_aten_cuda._C.set_provider(_provide)


class Digits(nn.Module):
    """Scans (N, 1, 8, 8) to scores (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.conv2, self.norm2 = nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64)
        self.pool, self.dropout = nn.MaxPool2d(2), nn.Dropout(0.25)
        self.hidden, self.scores = nn.Linear(256, 128), nn.Linear(128, 10)

    def forward(self, x: Any) -> Any:
        x = self.pool(F.relu(self.norm1(self.conv1(x))))
        x = self.pool(F.relu(self.norm2(self.conv2(x))))
        return self.scores(F.relu(self.hidden(self.dropout(x.flatten(1)))))


class Gpt(nn.Module):
    """One block of a small GPT: tokens (N, T) to scores (N, T, vocabulary)."""

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.width = width
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.norm1, self.norm2, self.norm = (
            nn.LayerNorm(width),
            nn.LayerNorm(width),
            nn.LayerNorm(width),
        )
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        shape = (x.shape[0], x.shape[1], self.width // 64, 64)
        q, k, v = (
            p.view(*shape).transpose(1, 2) for p in self.qkv(self.norm1(x)).split(self.width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(x.shape))
        x = x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return F.linear(self.norm(x), self.tokens.weight)


def train(model: Any, inputs: Any, targets: Any, optimizer: Any) -> None:
    """Two steps, as programs write them, and a look at the result."""
    for _ in range(2):
        optimizer.zero_grad()
        scores = model(inputs)
        loss = F.cross_entropy(scores.view(-1, scores.shape[-1]), targets.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
    model.eval()
    with torch.no_grad():
        (model(inputs).argmax(-1) == targets).sum().item()


def optimizers(model: Any) -> list[Any]:
    weights = list(model.parameters())
    return [
        torch.optim.SGD(weights, lr=1e-2),
        torch.optim.SGD(weights, lr=1e-2, momentum=0.9, weight_decay=1e-4),
        torch.optim.Adam(weights, lr=1e-3),
        torch.optim.AdamW(weights, lr=1e-3),
        torch.optim.AdamW(weights, lr=1e-3, fused=True),
    ]


def digits(dtype: torch.dtype) -> None:
    model = Digits().to("cuda", dtype)
    for optimizer in optimizers(model):
        images, labels = (
            torch.randn(64, 1, 8, 8).to("cuda", dtype),
            torch.randint(0, 10, (64,)).to("cuda"),
        )
        train(model, images, labels, optimizer)
        model.train()


def gpt(dtype: torch.dtype) -> None:
    for width, vocabulary in ((64, 50257), (768, 64), (64, 512)):
        model = Gpt(width, vocabulary).to(device="cuda", dtype=dtype)
        tokens = torch.randint(0, vocabulary, (2, 17)).to("cuda")
        for optimizer in optimizers(model)[0 if vocabulary == 512 else 4 :]:
            train(model, tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), optimizer)


def lower(dtype: torch.dtype) -> None:
    """Weights in float32, products in `dtype`, with scaled gradients."""
    model, scaler = Gpt(64, 512).to("cuda"), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, 512, (2, 32)).to("cuda")
    for _ in range(2):
        with torch.autocast("cuda", dtype):
            loss = F.cross_entropy(model(tokens).view(-1, 512), tokens.view(-1))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def calls(dtype: torch.dtype) -> None:
    x, y, rows = (torch.randn(*s).to("cuda", dtype) for s in ((33, 70), (70,), (16384, 768)))
    i, tokens = torch.randint(0, 70, (5,)).to("cuda"), torch.randint(0, 70, (16, 1025)).to("cuda")
    zeros = torch.zeros(33, 2, dtype=torch.int64, device="cuda")
    for call in (
        lambda: (x + y, x - y, x * y, x / y, 1 / x, -x, x**2, x.pow(3), x + 1, x * 2, x[1:, ::2] + 1),
        lambda: (x.relu(), F.gelu(x), F.silu(x), x.sigmoid(), x.tanh(), x.exp(), x.log(), x.sqrt(), x.abs(), x.clamp(0, 1)),
        lambda: (x.sum(), x.sum(0), x.sum(1), x.mean(), x.mean(1), x.amax(1), x.var(1), x.std(), x.norm(), x.cumsum(1)),
        lambda: (rows.sum(), rows.sum(0), rows.sum(1), rows.mean(), rows.amax(), rows.softmax(1), rows.view(16, 1024, 768).sum((0, 1)), rows + rows[0]),
        lambda: (x.max(), x.max(1), x.argmax(1), (x > 0).any(), (x == x).all(), x.isnan().any(), (i == 3).sum(), i.sum()),
        lambda: (torch.softmax(x, 1), torch.log_softmax(x, -1), F.layer_norm(x, (70,)), F.rms_norm(x, (70,)), F.dropout(x, 0.5)),
        lambda: (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), x.t().contiguous(), torch.cat([x, x], 1), torch.stack([x, x]), x.flip(0), x.roll(1, 0), F.pad(x, (1, 1))),
        lambda: (x[:, i], x.gather(1, zeros), x.masked_fill(x > 0, 1), torch.where(x > 0, x, 0), torch.tril(x)),
        lambda: (x.float(), x.half(), x.bfloat16(), x.long(), x.double(), i.to(dtype), i.to("cpu")),
        lambda: (torch.arange(10, device="cuda") * 2 + 1, torch.linspace(0, 1, 5, device="cuda"), torch.eye(4, device="cuda")),
        lambda: (F.mse_loss(x, x * 2), F.cross_entropy(x, zeros[:, 0]), F.one_hot(i, 70), x @ x.t()),
        lambda: (i.sort(), tokens.sort(), tokens.view(-1).sort(), x.sort(1), x.argsort(1, descending=True), x.topk(5, 1), x.view(-1)[:1000].topk(5)),
        lambda: (x.fill_(2), x.zero_(), x.new_ones(3, 3), x.uniform_(), torch.bernoulli(x)),
    ):  # fmt: skip
        call()


@pytest.mark.parametrize(
    "program, dtype",
    [
        (digits, torch.float32),  # the stand-in for cuDNN knows no other dtype
        (gpt, torch.float32),
        (gpt, torch.bfloat16),
        (lower, torch.bfloat16),
        (calls, torch.float32),
        (calls, torch.bfloat16),
    ],
)
def test_nothing_is_compiled(
    program: Callable[[torch.dtype], None], dtype: torch.dtype, archives: dict[str, Archive]
) -> None:
    _ASKED.clear()
    program(dtype)
    assert _ASKED
    for name, archive in archives.items():
        missing = sorted(kernel for kernel in _ASKED if kernel not in archive)
        assert not missing, f"{name} lacks {missing}"


def test_usual_operators(archives: dict[str, Archive]) -> None:
    for archive in archives.values():
        held = {name.split(";")[0].rsplit("_", 1)[0] for name in archive.names()}
        assert held >= OPERATORS


def test_code_objects(archives: dict[str, Archive]) -> None:
    for archive in archives.values():
        found = archive.get("add_contiguous;T=float32;I=i32;BLOCK=1024")
        assert found is not None and found.image[:4] == b"\x7fELF" and found.threads == 128
