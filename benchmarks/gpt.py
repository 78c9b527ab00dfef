"""A small GPT, the training benchmark's model; parametrised by the module that plays `torch`."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


def _build_model(
    torch: ModuleType, width: int, layers: int, heads: int, length: int, vocabulary: int
) -> Any:
    nn: Any = torch.nn
    F: Any = torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            shape = (x.shape[0], x.shape[1], heads, width // heads)
            q, k, v = (
                part.view(*shape).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(width, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(x.shape))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return GPT()


def build_training_step(
    torch: ModuleType,
    *,
    width: int = 256,
    layers: int = 4,
    heads: int = 4,
    length: int = 256,
    batch: int = 8,
    vocabulary: int = 512,
    compiled: bool = False,
    wrap: Callable[[Any], Any] = lambda model: model,
) -> Any:
    """Returns `step() -> loss`: one AdamW step on a fixed batch of random token sequences; `compiled`: of the model compiled.

    `wrap` gives what is called in the model's place.
    """
    torch.manual_seed(0)
    model = wrap(_build_model(torch, width, layers, heads, length, vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    forward = torch.compile(model) if compiled else model
    data = torch.randint(0, vocabulary, (batch, length + 1))
    inputs, targets = data[:, :-1], data[:, 1:].reshape(-1)

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(forward(inputs).reshape(-1, vocabulary), targets)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step
