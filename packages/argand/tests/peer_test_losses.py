"""Whole programs, written once for any torch-like library, run in Argand and in PyTorch.

From equal weights and data their losses must agree within 1e-4 relative for 20 steps.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import argand
import argand.nn
import argand.nn.functional
import argand.optim

STEPS = 20


def make_gpt(torch, vocabulary=64, width=48, heads=4, layers=3, length=32):
    """A GPT-2 with learned positions, pre-norm blocks and tied output weights."""
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width)
            self.proj = nn.Linear(width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(x).split(width, dim=2)
            q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention()
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            x = x + self.attention(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, index, targets):
            x = self.tokens(index) + self.positions(torch.arange(index.shape[1]))
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))

    return GPT()


def make_llama(torch, vocabulary=64, width=48, heads=4, groups=2, layers=2):
    """A Llama: RMS norms, rotary positions, grouped heads, gated feed-forward."""
    nn, F = torch.nn, torch.nn.functional
    head = width // heads

    def rotate(x, cos, sin):
        a, b = x[..., : head // 2], x[..., head // 2 :]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
            self.q = nn.Linear(width, width, bias=False)
            self.k = nn.Linear(width, groups * head, bias=False)
            self.v = nn.Linear(width, groups * head, bias=False)
            self.o = nn.Linear(width, width, bias=False)
            self.gate = nn.Linear(width, 2 * width, bias=False)
            self.up = nn.Linear(width, 2 * width, bias=False)
            self.down = nn.Linear(2 * width, width, bias=False)

        def forward(self, x, cos, sin):
            b, t, _ = x.shape
            y = self.norm1(x)
            q = rotate(self.q(y).view(b, t, heads, head).transpose(1, 2), cos, sin)
            k = rotate(self.k(y).view(b, t, groups, head).transpose(1, 2), cos, sin)
            v = self.v(y).view(b, t, groups, head).transpose(1, 2)
            k, v = (z.repeat_interleave(heads // groups, dim=1) for z in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, t, width))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.RMSNorm(width, eps=1e-5)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, index, targets):
            t = index.shape[1]
            rates = 1.0 / 10000 ** (torch.arange(0, head, 2).to(torch.float32) / head)
            angles = torch.outer(torch.arange(t).to(torch.float32), rates)
            cos, sin = torch.cos(angles), torch.sin(angles)
            x = self.tokens(index)
            for block in self.blocks:
                x = block(x, cos, sin)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1))

    return Llama()


def tokens(rng):
    # Counting sequences, so that there is something to learn.
    starts = rng.integers(0, 64, (8, 1))
    steps = rng.integers(1, 4, (8, 1))
    text = (starts + steps * np.arange(33)) % 64
    return text[:, :-1], text[:, 1:]


def adamw(library, model):
    return library.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, betas=(0.9, 0.95))


PROGRAMS = {
    "gpt": (make_gpt, tokens, adamw),
    "llama": (make_llama, tokens, adamw),
}


def train(library, model, make_data, make_optimizer):
    rng = np.random.default_rng(1)
    optimizer = make_optimizer(library, model)
    losses = []
    for _ in range(STEPS):
        data = [library.tensor(array.tolist()) for array in make_data(rng)]
        optimizer.zero_grad()
        loss = model(*data)
        loss.backward()
        library.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_follow_the_peer(name):
    make, make_data, make_optimizer = PROGRAMS[name]
    torch.manual_seed(0)
    theirs = make(torch)
    ours = make(argand)
    state = {
        k: argand.from_numpy(v.detach().numpy().copy()) for k, v in theirs.state_dict().items()
    }
    assert list(state) == list(ours.state_dict())
    ours.load_state_dict(state)
    our_losses = train(argand, ours, make_data, make_optimizer)
    their_losses = train(torch, theirs, make_data, make_optimizer)
    assert math.isfinite(our_losses[-1])
    assert our_losses[-1] < our_losses[0]
    np.testing.assert_allclose(our_losses, their_losses, rtol=1e-4)
