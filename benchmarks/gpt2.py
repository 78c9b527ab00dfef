"""GPT-2 (124 M parameters; Radford et al., 2019) trained in bfloat16, for any module that plays `torch`."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH = 50257, 768, 12, 12, 1024


def build_model(torch: ModuleType) -> Any:
    """The network; its head shares the weight of the token embedding."""
    nn: Any = torch.nn
    F: Any = torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            shape = (x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)
            q, k, v = (
                part.view(*shape).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(WIDTH, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(x.shape))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT2(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, tokens: Any, targets: Any) -> Any:
            places = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.tokens(tokens) + self.places(places)
            for block in self.blocks:
                x = block(x)
            scores = F.linear(self.norm(x), self.tokens.weight)
            return F.cross_entropy(scores.view(-1, VOCABULARY), targets.view(-1))

    return GPT2()


def set_weights(torch: ModuleType, model: Any) -> None:
    """Weights that do not depend on the library's own random numbers: N(0, 0.02) in order of the parameters' names."""
    generator = numpy.random.default_rng(0)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            if parameter.ndim < 2:
                parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
            else:
                values = generator.standard_normal(tuple(parameter.shape), numpy.float32) * 0.02
                parameter.copy_(torch.from_numpy(values))


def build_training_step(
    torch: ModuleType,
    *,
    device: str,
    batch: int,
    compiled: bool,
    length: int = LENGTH,
    wrap: Callable[[Any], Any] = lambda model: model,
) -> Any:
    """Returns `step(k) -> loss`, a tensor of `device`: one fused AdamW step on the k-th batch of a fixed sequence.

    `wrap` gives what is called, or compiled, in the model's place.
    """
    model = build_model(torch)
    set_weights(torch, model)
    model = model.to(device=device, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    called = wrap(model)
    forward = torch.compile(called) if compiled else called
    # A sequence that can be learned: every token follows from the last one, with some noise.
    generator = numpy.random.default_rng(1)
    tokens = numpy.empty((4, batch, length + 1), numpy.int64)
    tokens[..., 0] = generator.integers(0, VOCABULARY, tokens.shape[:-1])
    for i in range(1, length + 1):
        noise = generator.integers(0, 8, tokens.shape[:-1])
        tokens[..., i] = (tokens[..., i - 1] * 31 + noise) % VOCABULARY
    data = torch.from_numpy(tokens).to(device)

    def step(k: int = 0) -> Any:
        rows = data[k % len(tokens)]
        optimizer.zero_grad(set_to_none=True)
        loss = forward(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
